"""Kernel matrices of sparse points, a block of rows at a time; X as a whole is never dense.

The products ⟨x, z⟩ of sparse rows are all that a kernel of products or distances needs.
"""

from typing import Any

import numpy as np

from jsvm.kernels.base import Kernel
from jsvm.kernels.given import Function
from jsvm.numerics.arrays import is_sparse


def between_sparse(kernel: Kernel, X: Any, Z: Any, dtype: np.dtype) -> np.ndarray:
    """Return the dense matrix k(X, Z), where `X` or `Z` or both are sparse.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> from jsvm import kernels
    >>> between_sparse(kernels.Linear(), csr_matrix(np.eye(2)), np.ones((1, 2)), np.dtype(float))
    array([[1.],
           [1.]])
    """
    return _matrix(kernel, X, Z, squared_lengths(X), squared_lengths(Z), dtype)


def squared_lengths(X: Any) -> np.ndarray:
    """Return ⟨x, x⟩ of every row, in float64."""
    if is_sparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), np.float64).reshape(-1)
    return np.einsum("ij,ij->i", X, X, dtype=np.float64)


def kernel_and_points(kernel: Kernel, X: Any) -> tuple[Kernel, np.ndarray]:
    """Return (kernel, X) for a problem of sparse points: a kernel of row numbers, and these."""
    rows = np.arange(X.shape[0], dtype=np.float64)[:, None]
    of_rows = _RowKernel(kernel, X.tocsr())
    return Function(of_rows, on_host=True, host_diagonal=of_rows.diagonal), rows


class _RowKernel:
    """k(x_i, x_j) as a function of i and j."""

    def __init__(self, kernel: Kernel, X: Any) -> None:
        self._kernel, self._X, self._squares = kernel, X, squared_lengths(X)
        self._columns: tuple[np.ndarray, Any] | None = None

    def __call__(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        i, j = left[:, 0].astype(np.intp), right[:, 0].astype(np.intp)
        columns = self._right(j)
        squares = self._squares[i], self._squares[j]
        return _matrix(self._kernel, self._X[i], columns, *squares, left.dtype)

    def diagonal(self, points: np.ndarray) -> np.ndarray:
        """Return k(x_i, x_i)."""
        squares = self._squares[points[:, 0].astype(np.intp)].astype(points.dtype)
        return np.asarray(self._kernel.of_products(squares, squares, squares))

    def _right(self, j: np.ndarray) -> Any:
        """Return these rows of X; the last ones are kept, because mostly all are asked for."""
        last = self._columns
        if last is None or not np.array_equal(last[0], j):
            self._columns = last = (j, self._X[j])
        return last[1]


def _matrix(
    kernel: Kernel, X: Any, Z: Any, left: np.ndarray, right: np.ndarray, dtype: np.dtype
) -> np.ndarray:
    if is_sparse(X) and is_sparse(Z) and X.shape[1] > X.nnz + Z.nnz:
        X, Z = _without_empty_columns(X.tocsr(), Z.tocsr())
    products = X @ Z.T
    products = products.toarray() if is_sparse(products) else np.asarray(products)
    values = kernel.of_products(
        products.astype(dtype), left.astype(dtype)[:, None], right.astype(dtype)[None, :]
    )
    return np.asarray(values, dtype)


def _without_empty_columns(X: Any, Z: Any) -> list[Any]:
    """Return both with the columns that one of them uses: Z.T takes memory for every column."""
    used = np.unique(np.concatenate([X.indices, Z.indices]))
    shapes = ((A.shape[0], len(used)) for A in (X, Z))
    parts = ((A.data, np.searchsorted(used, A.indices), A.indptr) for A in (X, Z))
    return [type(X)(part, shape=shape) for part, shape in zip(parts, shapes, strict=True)]
