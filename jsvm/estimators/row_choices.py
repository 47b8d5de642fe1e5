"""Row objects: what the examples are compared with (Hochreiter & Obermayer 2004, section 2.4.3).

The columns of K = k(X, Z) belong to the rows of Z, which may be

    1. the examples themselves,
    2. the unit vectors: K = X, no kernel is needed,
    3. the centres of a clustering of the examples,
    4. their principal axes,

or any points a user gives. The examples, the centres and the axes see weights as copies; which
centres k-means finds also depends on its random start.
"""

from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.utils import check_array

from jsvm.estimators.calibration import row_kinds
from jsvm.estimators.parameters import whole_number
from jsvm.kernels.sparse import is_sparse

NAMES = ("samples", "features", "centers", "axes")
DEFAULT_CENTERS = 50
NARROWEST_AXIS = 1e-10  # of the widest: along a narrower one X varies by rounding only


def check_rows(rows: Any, n_rows: Any, precomputed: bool) -> str | None:
    """Return the name of the choice, None for given points; raise ValueError if it is bad."""
    name = rows if isinstance(rows, str) else None
    if isinstance(rows, str) and rows not in NAMES:
        raise ValueError(f"rows={rows!r} is unknown; use one of {NAMES}, or an array of points")
    if precomputed and name != "samples":
        raise ValueError(
            f"rows={'an array' if name is None else repr(name)} has no meaning with "
            "kernel='precomputed': the row objects are the columns of X; leave rows='samples'"
        )
    if n_rows is not None:
        whole_number("n_rows", n_rows, 1)
        if name not in ("centers", "axes"):
            raise ValueError(f"n_rows={n_rows!r} is for rows='centers' and rows='axes' only")
    return name


def given_points(rows: Any, features: int) -> Any:
    """Return the points that a user gave; raise ValueError if they do not fit X."""
    accepted: Any = {"dtype": np.float64, "accept_sparse": "csr"}
    Z = check_array(rows, **accepted, input_name="rows")
    if Z.shape[1] != features:
        raise ValueError(f"rows has {Z.shape[1]} features, X has {features}")
    return Z


def centers(X: Any, weight: np.ndarray, n_rows: int | None, random_state: Any) -> np.ndarray:
    """Return the centres that k-means finds."""
    different = int(row_kinds(X).max()) + 1
    count = _count(n_rows, min(DEFAULT_CENTERS, different), different, "different examples")
    means = KMeans(count, random_state=random_state).fit(X, sample_weight=weight)
    return np.asarray(means.cluster_centers_, np.float64)


def axes(X: Any, weight: np.ndarray, n_rows: int | None) -> np.ndarray:
    """Return the principal axes, unit vectors, the widest first, as far as X varies along them.

    The largest coordinate of an axis is positive. If X does not vary at all there is one axis.
    """
    least = min(X.shape)
    count = _count(n_rows, least, least, "examples or features")
    mean = np.asarray(X.T @ weight).reshape(-1) / weight.sum()
    root = np.sqrt(weight)
    if is_sparse(X):
        widths, vectors = _of_products(X, mean, root)
    else:
        _, widths, vectors = np.linalg.svd(root[:, None] * (X - mean), full_matrices=False)
    vectors = vectors[: max(1, np.count_nonzero(widths > NARROWEST_AXIS * widths[0]))][:count]
    largest = np.abs(vectors).argmax(axis=1)
    return vectors * np.sign(vectors[np.arange(len(vectors)), largest])[:, None]


def _of_products(X: Any, mean: np.ndarray, root: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return widths and axes of sparse points, from the smaller of the two product matrices."""
    weighted = X.multiply(root[:, None]).tocsr()
    if X.shape[1] <= X.shape[0]:
        products = (weighted.T @ weighted).toarray() - (root @ root) * np.outer(mean, mean)
        squares, vectors = np.linalg.eigh(products)
        vectors = vectors.T
    else:
        side = np.outer(weighted @ mean, root)
        products = (weighted @ weighted.T).toarray() - side - side.T
        products += (mean @ mean) * np.outer(root, root)
        squares, left = np.linalg.eigh(products)
        vectors = np.asarray((weighted.T @ left).T) - np.outer(root @ left, mean)
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-300)
    # Rounding errors of the squares would be large as widths: they are set to zero.
    squares = np.where(squares > 1e-13 * squares.max(initial=0.0), squares, 0.0)
    return np.sqrt(squares)[::-1], vectors[::-1]


def _count(n_rows: int | None, default: int, most: int, of_what: str) -> int:
    if n_rows is not None and n_rows > most:
        raise ValueError(f"n_rows={n_rows} is more than the {most} {of_what}")
    return default if n_rows is None else int(n_rows)
