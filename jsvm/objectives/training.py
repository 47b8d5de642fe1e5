"""Machines trained on some of the examples, as differentiable functions of kernel and C.

Small problems are one compiled program. Larger ones, and kernels that run on the host, are trained
one after the other by the solver of many tiles, with the same derivatives; inside of the caller's
own ``jit`` only the first way exists.
"""

import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jsvm.kernels import Kernel
from jsvm.machine import Machine
from jsvm.numerics.products import product
from jsvm.objectives.splits import Splits, take
from jsvm.precision import default_platform, is_traced
from jsvm.problems import QuadraticProgram
from jsvm.solvers import SMO, solve

SOLVER = SMO()  # the default; what passes its tolerance is polished to rounding level
LARGEST_COMPILED = 1280  # examples of a problem that is trained inside of a program

Builder = Callable[..., QuadraticProgram]  # problems.c_svc or squared_svc


def checked(kernel: Any, X: Any, y: Any, C: Any = 1.0) -> tuple[Any, Any, Any]:
    """Return X, y and C as arrays; raise ValueError, naming the argument, if they make no sense."""
    if not isinstance(kernel, Kernel):
        raise ValueError(f"kernel={kernel!r} must be one of jsvm.kernels, such as RBF(gamma=0.5)")
    X = jnp.asarray(X)
    if X.ndim != 2 or X.shape[0] < 2:
        raise ValueError(f"X must have at least two rows, one an example; its shape is {X.shape}")
    if not jnp.issubdtype(X.dtype, jnp.floating):
        X = X.astype(float)
    n = X.shape[0]
    y = jnp.asarray(y, X.dtype)
    if y.shape != (n,):
        raise ValueError(f"y must hold {n} labels, one a row of X, not shape {y.shape}")
    if not is_traced(C) and not (np.asarray(C) > 0).all():
        raise ValueError(f"C={C} must be positive")
    C = jnp.asarray(C, X.dtype)
    if C.shape not in ((), (n,)):
        raise ValueError(f"C must be one number or {n} of them, not of shape {C.shape}")
    if not is_traced(X) and not np.isfinite(np.asarray(X)).all():
        raise ValueError("X must be finite")
    if not is_traced(y) and not np.isin(np.asarray(y), (-1.0, 1.0)).all():
        raise ValueError("y must hold the labels -1 and +1 only; encode other labels first")
    return X, y, C


def in_one_program(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function of (kernel, X, …) where its problems are small; keywords are static."""
    parameters = inspect.signature(function).parameters.values()
    static = [own.name for own in parameters if own.kind is own.KEYWORD_ONLY]
    compiled = jax.jit(function, static_argnames=static)

    def call(kernel: Any, X: Any, *arguments: Any, **options: Any) -> Any:
        chosen = compiled if compiles(kernel, X.shape[0]) else function
        return chosen(kernel, X, *arguments, **options)

    return call


def compiles(kernel: Kernel, n: int) -> bool:
    """Tell whether a problem of so many examples is trained inside of a program."""
    return n <= LARGEST_COMPILED and not kernel.runs_on_host()


def each(function: Callable[[Splits], Any], splits: Splits) -> Any:
    """Return the function of every split, stacked."""
    count = splits.train.shape[0]
    if count == 1 or not is_traced(splits):
        return jnp.stack([function(take(splits, k)) for k in range(count)])
    return mapped(function, splits)


def mapped(function: Callable[[Any], Any], items: Any) -> Any:
    """Return the function of all items: one by one on a CPU, together elsewhere.

    On a CPU a batch would take the steps of its slowest member for all of them.
    """
    return lax.map(function, items) if default_platform() == "cpu" else jax.vmap(function)(items)


def held_out_values(
    kernel: Kernel, X: Any, C: Any, splits: Splits, machine: Builder, solver: SMO
) -> Any:
    """Return f(x) of the held-out examples of every split, one row a split."""

    def one(split: Splits) -> Any:
        train, y = split.train, split.labels
        if not is_traced(train, y):
            train, y = (values[np.flatnonzero(y)] for values in (train, y))
        cost = jnp.where(y == 0, 0.0, C if C.ndim == 0 else C[train])
        n, points = train.shape[0], X[train]
        if not compiles(kernel, n):
            return Machine.of(kernel, points, _solved((kernel, points), y, cost))(X[split.test])
        # One matrix for both: its derivative is computed once.
        K = kernel(X[jnp.concatenate([train, split.test])], points)
        s = _solved(K[:n], y, cost)
        return product(K[n:], s.alpha) + s.bias

    def _solved(K: Any, y: Any, cost: Any) -> Any:
        return solve(machine(K, y, cost), solver)

    return each(one, splits)
