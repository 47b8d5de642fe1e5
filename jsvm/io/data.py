"""LIBSVM's data files: ``label index:value index:value ...``, one example a line."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from jsvm.io import lines
from jsvm.io.lines import LARGEST_INDEX, number_text, pairs_text

Matrix = Any  # a csr_matrix, or an array where both may be; pyright finds no shape in csr_matrix

DENSE_BYTES = 2**32  # larger dense matrices are refused: they would take all memory
SMALL_BYTES = 2**28  # up to this size a dense matrix is as good as a sparse one


def load_data(
    path: str | Path,
    *,
    n_features: int | None = None,
    dtype: DTypeLike = np.float64,
    dense: bool = False,
    precomputed: bool = False,
) -> tuple[Matrix, np.ndarray]:
    r"""Read a LIBSVM data file.

    Indices count from 1 and ascend, entries that are not written are zero, a row may be empty, and
    a ``#`` starts a comment. A wrong line raises ValueError with its number.

    Parameters
    ----------
    path : path
    n_features : int, optional
        Columns of the matrix; by default the largest index in the file. A test file needs the
        number of the training file.
    dtype : dtype
        Of the matrix: float64 or float32.
    dense : bool
        Return an array; up to 4 GiB.
    precomputed : bool
        The rows are those of a kernel matrix, ``label 0:i 1:k(x_i, x_1) 2:k(x_i, x_2) ...``. The
        serial numbers i are left out, so that column j is k(·, x_j), counted from 0.

    Returns
    -------
    X : csr_matrix or array of shape (n, d)
    y : float64 array of shape (n,)

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "two.txt"
    ...     _ = path.write_text("+1 1:0.5 3:2  # a comment\n-1 2:1\n")
    ...     X, y = load_data(path, dense=True)
    >>> X.tolist(), y.tolist()
    ([[0.5, 0.0, 2.0], [0.0, 1.0, 0.0]], [1.0, -1.0])
    """
    if n_features is not None and not 0 < n_features <= LARGEST_INDEX:
        raise ValueError(f"n_features={n_features} must be between 1 and {LARGEST_INDEX}")
    dtype = np.dtype(dtype)
    if dtype.name not in ("float32", "float64"):
        raise ValueError(f"dtype={dtype} must be float32 or float64")
    largest = LARGEST_INDEX if n_features is None else int(n_features)
    form = lines.LineFormat(str(path), 1, "label", serial=precomputed, largest=largest)
    with Path(path).open("rb") as file:
        rows = lines.read_lines(file, 1, form)
    if len(rows.lengths) == 0:
        raise ValueError(f"{path} holds no examples")
    if precomputed:
        serials, rows = lines.split_serials(rows)
        _check_serials(path, serials, int(rows.indices.max(initial=0)))
    with np.errstate(over="ignore"):
        X = to_csr(rows, n_features).astype(dtype, copy=False)
    if not np.isfinite(X.data).all():
        raise ValueError(f"{path}: a value is too large for dtype={dtype}; read it as float64")
    if dense and (needed := _dense_bytes(X)) > DENSE_BYTES:
        raise ValueError(
            f"{path}: {X.shape[0]} × {X.shape[1]} dense numbers take {needed / 2**30:.1f} GiB, "
            f"more than {DENSE_BYTES / 2**30:.0f} GiB; keep the matrix sparse (dense=False)"
        )
    return (X.toarray() if dense else X), rows.numbers[:, 0]


def save_data(path: str | Path, X: Any, y: Any, *, precomputed: bool = False) -> None:
    r"""Write a LIBSVM data file; every number reads back as the same number.

    Parameters
    ----------
    path : path
    X : array or sparse matrix of shape (n, d)
        Zeros are not written, so the file does not tell d if the last column is zero: see
        `n_features` of :func:`load_data`.
    y : array of shape (n,)
        Numbers; replace other labels by codes, see :func:`numpy.unique`.
    precomputed : bool
        Write the rows of a kernel matrix, with serial numbers and zeros.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "two.txt"
    ...     save_data(path, np.array([[0.5, 0.0], [0.0, -1.0]]), np.array([1, -1]))
    ...     path.read_text()
    '1 1:0.5\n-1 2:-1\n'
    """
    labels = _numeric("y", y, 1)
    rows: Matrix = _numeric("X", X, 2) if precomputed else _sparse(X)
    if rows.shape[0] != len(labels):
        raise ValueError(f"X has {rows.shape[0]} rows, y has {len(labels)} labels")
    with Path(path).open("w", encoding="ascii", newline="\n") as file:
        for i, label in enumerate(labels.tolist()):
            if precomputed:
                pairs = pairs_text(range(rows.shape[1] + 1), [float(i + 1), *rows[i].tolist()])
            else:
                pairs = pairs_text(*row_pairs(rows, i))
            file.write(f"{number_text(label)}{pairs}\n")


def to_csr(rows: lines.ParsedLines, n_features: int | None = None) -> Matrix:
    """Return the pairs as a matrix; index 1 is its first column."""
    width = int(rows.indices.max(initial=0)) if n_features is None else n_features
    parts = rows.values, rows.indices - 1, np.concatenate([[0], np.cumsum(rows.lengths)])
    return sparse.csr_matrix(parts, shape=(len(rows.lengths), width))


def row_pairs(X: Matrix, i: int) -> tuple[list[int], list[float]]:
    """Return indices, from 1, and values of a row."""
    row = slice(X.indptr[i], X.indptr[i + 1])
    return (X.indices[row] + 1).tolist(), X.data[row].tolist()


def dense_if_small(X: Matrix) -> Matrix:
    """Return an array if it is small, or not much larger than the sparse matrix."""
    stored = X.data.nbytes + X.indices.nbytes
    return X.toarray() if _dense_bytes(X) <= max(SMALL_BYTES, 2 * stored) else X


def _dense_bytes(X: Matrix) -> int:
    return X.dtype.itemsize * X.shape[0] * X.shape[1]


def _check_serials(path: str | Path, serials: np.ndarray, columns: int) -> None:
    """Refuse a square matrix with serial numbers 1 ... n in another order than its columns."""
    order = np.arange(1, len(serials) + 1)  # not of `columns`, which may be any number
    shuffled = serials != order
    if len(order) == columns and shuffled.any() and np.array_equal(np.sort(serials), order):
        row = int(np.argmax(shuffled))
        raise ValueError(
            f"{path}: row {row + 1} has the serial number {serials[row]:g}, so the rows of this "
            "kernel matrix are in another order than its columns; sort the lines by serial number"
        )


def _sparse(X: Any) -> Matrix:
    X = X if sparse.issparse(X) else _numeric("X", X, 2)
    matrix = sparse.csr_matrix(X, dtype=np.float64, copy=True)
    matrix.sum_duplicates()  # sorts the indices, too
    matrix.eliminate_zeros()
    _numeric("X", matrix.data, 1)
    return matrix


def _numeric(name: str, values: Any, dimensions: int) -> np.ndarray:
    try:
        array = np.asarray(values, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must hold numbers; replace labels by codes, "
            "names, codes = np.unique(y, return_inverse=True)"
        ) from error
    if array.ndim != dimensions:
        raise ValueError(f"{name} must have {dimensions} dimension(s), not shape {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds NaN or infinity, which a LIBSVM file cannot")
    return array
