"""Which rows of a matrix are equal."""

import numpy as np


def equal_rows(*matrices: np.ndarray, fewest: float | int) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the index of one row of every kind, and the kind of every row; None if few are equal.

    A row is what the matrices have side by side. With less than `fewest` copies merging them does
    not pay.

    Examples
    --------
    >>> import numpy as np
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
