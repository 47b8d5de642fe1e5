"""Losses, and machines trained on some of the examples, differentiable in kernel and C.

Small problems are one compiled program. Larger ones, and kernels that run on the host, are trained
one after the other by the solver of many tiles, with the same derivatives; inside the caller's own
``jit`` only the compiled program works.
"""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Float

from jsvm._typing import Array
from jsvm.kernels import Kernel
from jsvm.machine import Machine
from jsvm.numerics.arrays import product
from jsvm.objectives.inputs import Builder, T
from jsvm.precision import default_platform, is_traced
from jsvm.solvers import SMO, solve
from jsvm.validation.splits import Splits

LARGEST_COMPILED = 1280  # examples of a problem that is trained inside a compiled program

Loss = Callable[[Any, Any], Any]


def zero_one(y: Float[Array, "..."], value: Float[Array, "..."]) -> Float[Array, "..."]:
    """Return 1 where the sign of a decision value is not the label, else 0; has no derivative.

    Examples
    --------
    >>> import numpy as np
    >>> [float(loss) for loss in zero_one(np.array([1.0, -1.0]), np.array([0.3, 0.3]))]
    [0.0, 1.0]
    """
    return (jnp.where(value > 0, 1.0, -1.0) != y).astype(value.dtype)


def squared_error(y: Float[Array, "..."], value: Float[Array, "..."]) -> Float[Array, "..."]:
    """Return (f(x) − y)², a loss with a derivative.

    Examples
    --------
    >>> import numpy as np
    >>> float(squared_error(np.array([1.0]), np.array([0.5]))[0])
    0.25
    """
    return (value - y) ** 2


def in_one_program(function: T) -> T:
    """Compile a function of (kernel, X, …) if its problems are small; keywords but C are static."""
    parameters = inspect.signature(function).parameters.values()
    static = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.name != "C"]
    compiled = jax.jit(function, static_argnames=static)

    @wraps(function)
    def call(kernel: Any, X: Any, *arguments: Any, **options: Any) -> Any:
        chosen = compiled if compiles(kernel, X.shape[0]) else function
        return chosen(kernel, X, *arguments, **options)

    return cast(T, call)


def compiles(kernel: Kernel, n: int) -> bool:
    """Tell whether a problem of n examples is trained inside a compiled program."""
    return n <= LARGEST_COMPILED and not kernel.runs_on_host()


def mapped(function: Callable[[Any], Any], items: Any) -> Any:
    """Return the function of all items: on a CPU one by one, or all would wait for the slowest."""
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

    count = splits.train.shape[0]
    if count > 1 and is_traced(splits):
        return mapped(one, splits)
    rows = (Splits(*(jnp.asarray(part)[k] for part in splits)) for k in range(count))
    return jnp.stack([one(row) for row in rows])
