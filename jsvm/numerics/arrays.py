"""Arrays: of NumPy or JAX, of few shapes, and checked before a solver works on them.

A problem made from NumPy data stays NumPy, and keeps its float64: JAX has float64 only inside of a
scope (:mod:`jsvm.precision`), which is opened by the solver. Shapes are padded to a few buckets, so
that few programs are compiled.
"""

import numbers
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jsvm._typing import Array
from jsvm.precision import scope


def namespace(*values: Any) -> Any:
    """Return jax.numpy if any leaf of the values is a JAX array, numpy otherwise."""
    leaves = jax.tree.leaves(values)
    return jnp if any(isinstance(leaf, jax.Array) for leaf in leaves) else np


def as_floating(values: Any) -> Array:
    """Return an array, NumPy unless it is JAX; numbers that are not floating become float."""
    values = values if isinstance(values, jax.Array) else np.asarray(values)
    return values if jnp.issubdtype(values.dtype, jnp.floating) else values.astype(float)


def in_full_precision(compute: Callable[[], Any], *data: Any) -> Any:
    """Return compute(), a JAX computation on `data`; for NumPy data NumPy, computed in float64."""
    if namespace(*data) is jnp:
        return compute()
    with scope(np.dtype(np.float64)):
        return jax.tree.map(np.asarray, compute())


def is_sparse(X: Any) -> bool:
    """Tell whether `X` is a SciPy sparse matrix or array; SciPy itself is not imported for it."""
    return hasattr(X, "tocsr") and hasattr(X, "nnz")


def product(A: Any, B: Any) -> Any:
    """Return AB in the full precision of the dtype, also on a GPU."""
    return jnp.matmul(A, B, precision=lax.Precision.HIGHEST)


def as_key(key: Any) -> Any:
    """Return the random key of a seed; a key is returned as it is."""
    return jax.random.key(int(key)) if isinstance(key, numbers.Integral) else key


def bucket(n: int) -> int:
    """Return the size to which n is padded.

    Sizes are powers of two from 64 on, with steps of a half of the power below above 256, of a
    quarter above 512, and of a sixteenth above 2048.

    Examples
    --------
    >>> [bucket(n) for n in (3, 100, 300, 600, 5000)]
    [64, 128, 384, 640, 5120]
    """
    if n <= 64:
        return 64
    power = 1 << (n - 1).bit_length() - 1  # power < n <= 2·power
    parts = 1 if n <= 256 else 2 if n <= 512 else 4 if n <= 2048 else 16
    return next(
        power + power * q // parts for q in range(1, parts + 1) if n <= power + power * q // parts
    )


def widened(kernel: Any, X: np.ndarray) -> np.ndarray:
    """Return `X` with columns of zeros up to one of few widths, if the kernel ignores them."""
    features = X.shape[1]
    if features == 0 or not kernel.ignores_zeros():
        return X
    steps = (2, 4, 8, *range(16, 32, 8), *range(32, 256, 32))
    wide = next((w for w in steps if features <= w), -(-features // 16) * 16)
    if wide == features:
        return X
    wider = np.zeros((len(X), wide), X.dtype)
    wider[:, :features] = X
    return wider


def repeat_first(values: np.ndarray, size: int) -> np.ndarray:
    """Return points or indices padded to `size` by copies of the first: valid, and never used."""
    missing = size - len(values)
    return np.concatenate([values, values[[0] * missing]]) if missing else values


def cast(leaf: Any, dtype: np.dtype) -> Any:
    """Return the leaf as an array; floating-point numbers in `dtype`."""
    array = leaf if isinstance(leaf, jax.Array) else np.asarray(leaf)
    floating = np.issubdtype(array.dtype, np.floating)
    return array.astype(dtype) if floating else array


def equal_rows(*matrices: np.ndarray, fewest: float | int) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the index of one row of every kind, and the kind of every row; None if few are equal.

    A row is what the matrices have side by side. With less than `fewest` copies merging them does
    not pay.

    Examples
    --------
    >>> first, kind = equal_rows(np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]]), fewest=1)
    >>> len(first), bool(kind[0] == kind[2] != kind[1])
    (2, True)
    """
    key = sum((_keys(matrix) for matrix in matrices[1:]), _keys(matrices[0]))
    order = np.argsort(key, kind="stable")
    one, next_one = order[:-1], order[1:]
    pairs = np.flatnonzero(key[one] == key[next_one])
    if len(pairs) < max(fewest, 1):
        return None
    one, next_one = one[pairs], next_one[pairs]
    same = np.ones(len(pairs), bool)
    for matrix in matrices:
        same &= (matrix[one] == matrix[next_one]).all(axis=1)
    begins = np.ones(len(key), bool)
    begins[pairs[same] + 1] = False
    kind = np.empty(len(key), np.int64)
    kind[order] = np.cumsum(begins) - 1
    return order[begins], kind


def _keys(rows: np.ndarray) -> np.ndarray:
    """Return a hash of every row: equal rows have equal numbers, others hardly ever."""
    factors = np.sin(np.arange(1.0, 1.0 + rows.shape[1]))  # irregular, without a random generator
    # Not by BLAS, whose rounding depends on where a row is.
    return np.einsum("ij,j->i", rows, factors, dtype=float)


LARGEST_MATRIX = 4 * 2**30  # bytes of a matrix that is in memory as a whole


def check_finite(matrix: Array) -> None:
    """Raise ValueError if a kernel matrix, or a sum of its rows, holds NaN or infinity."""
    if not bool(namespace(matrix).isfinite(matrix).all()):
        raise ValueError("the kernel matrix holds NaN or infinity; check X and the kernel")


def check_size(size: int, dtype: np.dtype) -> None:
    """Raise ValueError if a square matrix of this size is above `LARGEST_MATRIX`."""
    need = size * size * dtype.itemsize
    if need > LARGEST_MATRIX:
        raise ValueError(
            f"the matrix of {size} variables needs {need / 2**30:.1f} GiB, the limit is "
            f"{LARGEST_MATRIX / 2**30:.0f}; use block=True, fewer examples or dtype='float32'"
        )
