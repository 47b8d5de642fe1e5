"""Checks of parameters that several estimators have."""

import numbers
from typing import Any

import numpy as np


def fraction(name: str, value: Any) -> float:
    """Return a number in (0, 1]; raise ValueError otherwise."""
    if not _is_number(value) or not 0 < float(value) <= 1:
        raise ValueError(f"{name}={value!r} must be in (0, 1]")
    return float(value)


def at_least(name: str, value: Any, least: float) -> float:
    """Return a finite number not below `least`; raise ValueError otherwise."""
    if not _is_number(value) or not least <= float(value) < np.inf:
        raise ValueError(f"{name}={value!r} must be a finite number >= {least}")
    return float(value)


def costs(C: Any, n: int) -> np.ndarray:
    """Return one cost an example from one number or n of them; raise ValueError if they are bad."""
    if np.ndim(C) == 0:
        return np.full(n, positive_cost(C))
    values = np.asarray(C, float)
    if values.shape != (n,) or not (values > 0).all():
        raise ValueError(f"C must hold {n} positive numbers, one an example, or be one number")
    return values


def positive_cost(C: Any) -> float:
    """Return C as a float; raise ValueError if it is no positive number."""
    if not _is_number(C) or not float(C) > 0:
        raise ValueError(f"C={C!r} must be a positive number (np.inf for a hard margin)")
    return float(C)


def whole_number(name: str, value: Any, least: int) -> int:
    """Return a whole number not below `least`; raise ValueError otherwise."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name}={value!r} must be a whole number >= {least}")
    return int(value)


def one_of(name: str, value: Any, known: tuple[Any, ...]) -> Any:
    """Return one of the known values; raise ValueError otherwise."""
    if not isinstance(value, str | None) or value not in known:
        raise ValueError(f"{name}={value!r} must be one of {known}")
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)
