"""Training data that need no conversion and no words.

scikit-learn's checks of an array that is as it should be take longer than the fit of a small
machine. What is beyond doubt here goes past them; all else goes to them, whether it is right or
wrong.
"""

from typing import Any

import numpy as np

FLOATS: Any = (np.float64, np.float32)


def are_plain(
    X: Any, *y: Any, ensure_min_samples: int = 1, y_numeric: bool = False, **others: Any
) -> bool:
    """Tell whether scikit-learn's checks would pass X, and y if it is given, as they are.

    The keywords are those of ``validate_data``; with one that is not known here nothing is plain.
    Whether numbers are asked for in y makes no difference: nothing else is plain.

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


def _is_plain_target(y: Any, n: int) -> bool:
    plain = type(y) is np.ndarray and y.shape == (n,) and y.dtype.kind in "iuf"
    return plain and (y.dtype.kind != "f" or _is_finite(y))


def _is_finite(values: np.ndarray) -> bool:
    """Tell whether the sum is a number: then all of them are."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(values.sum()))
