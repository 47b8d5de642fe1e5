"""Checks of the arguments that the machines share; a traced value is taken as it is."""

from collections.abc import Callable
from typing import Any

import numpy as np

from jsvm.numerics.arrays import as_floating
from jsvm.precision import is_traced


def check(value: Any, name: str, accepts: Callable[[Any], Any], wanted: str) -> None:
    """Raise ValueError if a value is not accepted."""
    if not is_traced(value) and not accepts(value):
        raise ValueError(f"{name}={value!r} must be {wanted}")


def check_fraction(nu: Any) -> None:
    """Raise ValueError if ν is outside (0, 1]."""
    check(nu, "nu", lambda value: 0 < value <= 1, "in (0, 1]")


def labels(y: Any) -> Any:
    """Return the labels −1 and +1 as floating-point numbers."""
    y = _vector(y)
    if not is_traced(y) and not (np.abs(np.asarray(y)) == 1.0).all():
        raise ValueError("y must hold the labels -1 and +1 only; encode other labels first")
    return y


def targets(y: Any) -> Any:
    """Return the finite targets of a regression as floating-point numbers."""
    y = _vector(y)
    if not is_traced(y) and not np.isfinite(np.asarray(y)).all():
        raise ValueError("y must be finite")
    return y


def cost(C: Any, n: int, infinite: str = "a hard margin") -> Any:
    """Return C ≥ 0, one number or n of them; `infinite` says what C = ∞ means."""
    if np.shape(C) not in ((), (n,)):
        raise ValueError(f"C must be one number or {n} of them, not of shape {np.shape(C)}")
    check(C, "C", lambda value: np.all(np.asarray(value) >= 0), f">= 0 (np.inf for {infinite})")
    return C


def weights(xp: Any, weight: Any, like: Any) -> Any:
    """Return one weight ≥ 0 an example; ones if there are none."""
    if weight is None:
        return xp.ones_like(like)
    if np.shape(weight) != like.shape:
        raise ValueError(f"weight must hold {like.shape[0]} numbers, not {np.shape(weight)}")
    if not is_traced(weight) and not (np.asarray(weight) >= 0).all():
        raise ValueError("weight must hold numbers >= 0")
    return 0.0 * like + xp.asarray(weight)


def _vector(y: Any) -> Any:
    y = as_floating(y)
    if y.ndim != 1:
        raise ValueError(f"y must be one-dimensional, not of shape {y.shape}")
    return y
