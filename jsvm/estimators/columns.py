"""K as the Potential SVM takes it: its row objects, and the normalisation of its columns.

The columns of K = k(X, Z) belong to the rows of Z (Hochreiter & Obermayer 2004, section 2.4.3): the
examples themselves; the unit vectors, where K is X and no kernel is needed; the centres of a
clustering of the examples; their principal axes; or any points a user gives. Examples, centres and
axes see weights as copies; which centres k-means finds also depends on its random start.

    √w_i (K_ij − m_j) / s_j        (eq. 20)

are the normalised columns. With weights w an example counts as w copies. The same matrix serves all
machines of a fit, only their targets differ. In memory it has one of few sizes, so that few
programs are compiled: it is padded with examples of weight zero.
"""

from typing import Any, ClassVar, NamedTuple

import numpy as np

from jsvm import problems
from jsvm.estimators.calibration import row_kinds
from jsvm.estimators.checks import whole_number
from jsvm.estimators.declaration import estimator
from jsvm.estimators.kernel_estimator import Estimator
from jsvm.numerics.arrays import bucket, check_finite, is_sparse, repeat_first, widened
from jsvm.precision import DOUBLE, scope
from jsvm.problems import MatrixData, Normalised
from jsvm.programs import program
from jsvm.solvers import PSMO

CHOICES = ("samples", "features", "centers", "axes")
DEFAULT_CENTERS = 50
NARROWEST_AXIS = 1e-10  # of the widest: along a narrower one X varies by rounding only


@estimator
class ColumnEstimator(Estimator):
    """What the estimators of the Potential SVM share: its solver, and the scaling of columns.

    Parameters
    ----------
    scaling : {'length', 'variance'}
        Columns have mean zero and length one, or variance one as in Hochreiter & Obermayer 2004:
        the same machines, with ε √n times as large and C √n times as small.
    cache_size : float
        Megabytes for K; a larger one is computed block by block.
    max_iter : int
        Budget of steps of each machine; −1 is an automatic, finite one.
    time_limit : float or None
        Seconds for each machine.
    solver : PSMO or None
        Full configuration of the solver; replaces `tol`, `cache_size`, `max_iter` and `time_limit`.
    """

    _solver_type: ClassVar[Any] = PSMO

    scaling: Any = "length"


class Columns(NamedTuple):
    """The normalised columns of K; s = 0 for a column that is constant."""

    data: MatrixData
    mean: np.ndarray
    scale: np.ndarray
    weight: np.ndarray

    def target(self, y: np.ndarray) -> tuple[np.ndarray, float]:
        """Return √w (y − b), and b, the mean of y (eq. 23)."""
        mean = float(np.average(y, weights=self.weight))
        values = np.sqrt(self.weight) * (y - mean)
        return np.pad(values, (0, self.data.shape[0] - len(values))), mean

    def correlations(self, alpha: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Return G = Kᵀ(y − Kα)."""
        if isinstance(self.data, problems.DenseMatrix):
            rows = self.data.rows
            return rows @ (target - alpha @ rows)
        used = np.flatnonzero(alpha)
        with scope(DOUBLE):
            output = alpha[used] @ np.asarray(self.data.objects(used))
            return np.asarray(self.data.correlations(target - output))


def normalise(K: MatrixData, scaling: str, weight: np.ndarray, budget: float) -> Columns:
    """Return the normalised columns of K; in memory if they take at most `budget` bytes."""
    length, count = K.shape
    long, wide = bucket(length), bucket(count)
    with scope(DOUBLE):
        if 8 * long * wide > budget or isinstance(K, problems.SparseMatrix):
            normal = problems.normalised(K, scaling, weight)
            mean, scale = np.asarray(normal.mean), np.asarray(normal.scale)
            return Columns(Normalised(K, mean, scale, np.sqrt(weight)), mean, scale, weight)
        padded = np.pad(weight, (0, long - length))
        found = _normalise(_values(K, (wide, long)), padded, scaling)
        rows, mean, scale = (np.asarray(values)[:count] for values in found)
    check_finite(mean)  # one value that is not finite makes the mean so
    return Columns(problems.DenseMatrix(rows), mean, scale, weight)


@program(static_argnames="scaling")
def _normalise(values: Any, weight: Any, scaling: str) -> tuple[Any, Any, Any]:
    normal = problems.normalised(problems.DenseMatrix(values), scaling, weight)
    return normal.all_objects(), normal.mean, normal.scale


def _values(K: Any, shape: tuple[int, int]) -> np.ndarray:
    """Return Kᵀ with copies of its first row and column up to a shape, as a new array."""
    (wide, long), (length, count) = shape, K.shape
    if isinstance(K, problems.KernelMatrix) and type(K.X) is type(K.Z) is np.ndarray:
        X = repeat_first(widened(K.kernel, K.X), long)
        Z = repeat_first(widened(K.kernel, K.Z), wide)
        return np.array(problems.KernelMatrix(K.kernel, X, Z).all_objects())
    values = np.empty(shape)
    values[:count, :length] = K.all_objects()
    values[:count, length:] = values[:count, :1]
    values[count:] = values[:1]
    return values


def check_rows(rows: Any, n_rows: Any, precomputed: bool) -> str | None:
    """Return the name of the choice, None for given points; raise ValueError if it is bad."""
    name = rows if isinstance(rows, str) else None
    if isinstance(rows, str) and rows not in CHOICES:
        raise ValueError(f"rows={rows!r} is unknown; use one of {CHOICES}, or an array of points")
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


def centers(X: Any, weight: np.ndarray, n_rows: int | None, random_state: Any) -> np.ndarray:
    """Return the centres that k-means finds."""
    from sklearn.cluster import KMeans  # here: other fits do not wait for this import

    different = int(row_kinds(X).max()) + 1
    count = _count(n_rows, min(DEFAULT_CENTERS, different), different, "different examples")
    means = KMeans(count, random_state=random_state).fit(X, sample_weight=weight)
    return np.asarray(means.cluster_centers_, np.float64)


def axes(X: Any, weight: np.ndarray, n_rows: int | None) -> np.ndarray:
    """Return the principal axes along which X varies, at least one, the widest first."""
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
