"""Training data: the fast path past scikit-learn's validation, and arrays of other libraries.

scikit-learn's checks of a good array take longer than the fit of a small machine. Arrays that pass
these checks without doubt skip them; everything else, right or wrong, is left to scikit-learn.
"""

from typing import Any

import jax
import numpy as np

FLOATS: Any = (np.float64, np.float32)


def are_plain(
    X: Any, *y: Any, ensure_min_samples: int = 1, y_numeric: bool = False, **others: Any
) -> bool:
    """Tell whether scikit-learn's checks would pass X, and y if it is given, unchanged.

    The keywords are those of ``validate_data``; an unknown one sends the data to scikit-learn.
    `y_numeric` makes no difference: only numeric targets are plain.

    Examples
    --------
    >>> are_plain(np.ones((3, 2)), np.array([0, 1, 1])), are_plain([[1.0]]), are_plain(np.ones(3))
    (True, False, False)
    """
    if type(X) is not np.ndarray or X.dtype not in FLOATS or X.ndim != 2 or others:
        return False
    if X.shape[0] < ensure_min_samples or X.size == 0 or not _is_finite(X):
        return False
    return all(_is_plain_target(target, X.shape[0]) for target in y)


def present_rows(X: Any, rows: np.ndarray, square: bool) -> Any:
    """Return some rows of X, and these columns too if it is a kernel matrix; all: X itself."""
    if len(rows) == X.shape[0]:
        return X
    return X[np.ix_(rows, rows)] if square else X[rows]


def from_device(X: Any) -> Any:
    """Return an array of another library as NumPy's; what scikit-learn can read is unchanged."""
    if hasattr(X, "__dlpack__") and not hasattr(X, "__array__"):
        return np.from_dlpack(X, device="cpu")
    return on_host(X)


def on_host(leaf: Any) -> Any:
    """Return a JAX array as NumPy's, and anything else unchanged."""
    return np.asarray(leaf) if isinstance(leaf, jax.Array) else leaf


def _is_plain_target(y: Any, n: int) -> bool:
    plain = type(y) is np.ndarray and y.shape == (n,) and y.dtype.kind in "iuf"
    return plain and (y.dtype.kind != "f" or _is_finite(y))


def _is_finite(values: np.ndarray) -> bool:
    """Tell whether the sum is finite: then all values are."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(values.sum()))
