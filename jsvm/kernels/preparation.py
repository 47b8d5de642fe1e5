"""Points on the device, prepared once for many blocks of one kernel matrix.

This is ``kernel.prepare`` for points in memory, with two things that its callers need not know:
where float32 is exact the points are kept in it (:mod:`jsvm.kernels.whole_numbers`), and the result
is written to memory of the pool (:mod:`jsvm.numerics.memory`).
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jsvm.kernels.base import Kernel
from jsvm.kernels.distances import Points
from jsvm.kernels.whole_numbers import are_whole, exact_points, exact_widths
from jsvm.numerics.memory import borrow, give_back


def storage_dtype(kernel: Kernel, X: np.ndarray, dtype: np.dtype) -> np.dtype:
    """Return the type in which :func:`prepared` wants the points `X` of a matrix in `dtype`."""
    exact = exact_widths(kernel, X.shape[1], dtype) and are_whole(X)
    return np.dtype(np.float32) if exact else dtype


def prepared(kernel: Kernel, X: Any, dtype: np.dtype) -> Any:
    """Return the points for ``kernel.between`` in `dtype`; `X` is stored in `storage_dtype`."""
    if X.dtype != dtype:
        points = exact_points(X)
        if points is not None:
            return points
        X = jnp.asarray(X, dtype)
    if kernel.prepares_points:
        return _prepare_in(borrow(X.shape, X.dtype), kernel, X)
    return _prepare(kernel, X)


def release(points: Any) -> None:
    """Return the memory of prepared points to the pool; do not use them afterwards."""
    if isinstance(points, Points):
        for coordinates in jax.tree.leaves(points.coordinates):
            give_back(coordinates)


@jax.jit
def _prepare(kernel: Kernel, X: Any) -> Any:
    return kernel.prepare(X)


@partial(jax.jit, donate_argnums=0, keep_unused=True)
def _prepare_in(memory: Any, kernel: Kernel, X: Any) -> Points:
    """Prepare points in the memory given."""
    return kernel.prepare(X)
