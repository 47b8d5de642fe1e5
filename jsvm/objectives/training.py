"""Machines trained on some of the examples, as differentiable functions of kernel and C.

Small problems are one compiled program. Larger ones, and kernels that run on the host, are trained
one after the other by the solver of many tiles, with the same derivatives; inside the caller's own
``jit`` only the compiled program works.
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
from jsvm.objectives.arguments import Builder
from jsvm.precision import default_platform, is_traced
from jsvm.solvers import SMO, solve
from jsvm.validation.splits import Splits, take

LARGEST_COMPILED = 1280  # examples of a problem that is trained inside a compiled program


def in_one_program(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function of (kernel, X, …) if its problems are small; keywords are static."""
    parameters = inspect.signature(function).parameters.values()
    static = [own.name for own in parameters if own.kind is own.KEYWORD_ONLY]
    compiled = jax.jit(function, static_argnames=static)

    def call(kernel: Any, X: Any, *arguments: Any, **options: Any) -> Any:
        chosen = compiled if compiles(kernel, X.shape[0]) else function
        return chosen(kernel, X, *arguments, **options)

    return call


def compiles(kernel: Kernel, n: int) -> bool:
    """Tell whether a problem of n examples is trained inside a compiled program."""
    return n <= LARGEST_COMPILED and not kernel.runs_on_host()


def each(function: Callable[[Splits], Any], splits: Splits) -> Any:
    """Return the function of every split, stacked."""
    count = splits.train.shape[0]
    if count == 1 or not is_traced(splits):
        return jnp.stack([function(take(splits, k)) for k in range(count)])
    return mapped(function, splits)


def mapped(function: Callable[[Any], Any], items: Any) -> Any:
    """Return the function of all items: one by one on a CPU, together elsewhere.

    On a CPU every member of a batch would take as many steps as the slowest one.
    """
    return lax.map(function, items) if default_platform() == "cpu" else jax.vmap(function)(items)


def held_out_values(
    kernel: Kernel, X: Any, C: Any, splits: Splits, machine: Builder, solver: SMO
) -> Any:
    """Return f(x) of the held-out examples, one row per split."""

    def one(split: Splits) -> Any:
        train, y = split.train, split.labels
        if not is_traced(train, y):
            train, y = (values[np.flatnonzero(y)] for values in (train, y))
        cost = jnp.where(y == 0, 0.0, C if C.ndim == 0 else C[train])
        n, points = train.shape[0], X[train]
        if not compiles(kernel, n):
            s = solve(machine((kernel, points), y, cost), solver)
            return Machine.of(kernel, points, s)(X[split.test])
        # One matrix for both: its derivative is computed once.
        K = kernel(X[jnp.concatenate([train, split.test])], points)
        s = solve(machine(K[:n], y, cost), solver)
        return product(K[n:], s.alpha) + s.bias

    return each(one, splits)
