"""Machines without labels: the support of a distribution, and the smallest ball around it."""

from typing import Any

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.utils import check_array

from jsvm import problems
from jsvm.estimators.checks import FLOATS, fraction, from_device
from jsvm.estimators.declaration import estimator
from jsvm.estimators.kernel_estimator import KernelMachine
from jsvm.kernels.sparse import squared_lengths
from jsvm.numerics.arrays import is_sparse
from jsvm.precision import scope, working_dtype

ROUNDING = 1e-12  # relative, of kernel values and their sums


@estimator
class OneClassSVM(OutlierMixin, KernelMachine):
    """Support of a distribution: a half-space in feature space that holds most of the examples.

    The gap is compared with tol·min(1, νW max K_ii), W being the sum of the weights: a small ν is
    solved as exactly as a large one.

    Parameters
    ----------
    nu : float in (0, 1]
        Bounds the fraction of outliers from above and that of support vectors from below.

    Attributes
    ----------
    offset_ : float
        ``decision_function = score_samples - offset_``.

    Examples
    --------
    >>> X = np.array([[0.0], [0.1], [-0.1], [5.0]])
    >>> OneClassSVM(nu=0.3, gamma=1.0).fit(X).predict([[0.0], [9.0]])
    array([ 1, -1])
    """

    nu: Any = 0.5

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "OneClassSVM":
        """Train on the rows of `X`; `y` is ignored, the other arguments are those of SVC.fit."""
        solver, nu = self._check_parameters(), fraction("nu", self.nu)
        X = self._read(X)
        X, weight, present = self._present(X, self._weights(X, sample_weight))
        solution = self._solve(problems.one_class(self._gram(X, weight), nu, weight), solver)
        self._keep_single(X, present, solution.alpha, float(solution.bias))
        self.offset_ = -float(solution.bias)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the height above the boundary; zero within rounding error, negative outside."""
        values = self._values(X)[:, 0]
        rounding = ROUNDING * (np.abs(values + self.offset_) + abs(self.offset_))
        return np.where(np.abs(values) <= rounding, 0.0, values)

    def score_samples(self, X: Any) -> np.ndarray:
        """Return the decision values without offset."""
        return self.decision_function(X) + self.offset_

    def predict(self, X: Any) -> np.ndarray:
        """Return +1 for inliers and −1 for outliers."""
        return np.where(self.decision_function(X) >= 0, 1, -1)


@estimator
class SmallestBall(KernelMachine):
    """The smallest ball in feature space that holds all examples (Glasmachers 2008, section 9.1.4).

    Its centre is Σ_i α_i φ(x_i) with Σ α_i = 1. Weights do not matter, except that an example of
    weight zero is absent.

    Attributes
    ----------
    support_, support_vectors_, n_support_, dual_coef_, n_iter_, fit_status_
        As in scikit-learn; `dual_coef_` are the coefficients of the centre.
    radius_ : float
        Of the ball.
    squared_norm_ : float
        ‖centre‖².

    Examples
    --------
    >>> ball = SmallestBall("linear").fit([[0.0], [1.0], [4.0]])
    >>> round(ball.radius_, 6), [round(float(d), 6) for d in ball.decision_function([[2.0], [5.0]])]
    (2.0, [2.0, -1.0])
    """

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "SmallestBall":
        """Find the ball around the rows of `X`; `y` and weights other than zero are ignored."""
        solver = self._check_parameters()
        X = self._read(X)
        X, weight, present = self._present(X, self._weights(X, sample_weight))
        program = problems.smallest_ball(self._gram(X, weight))
        solution = self._solve(program, solver)
        self._keep_single(X, present, solution.alpha, 0.0)
        # f = ½αᵀKα − lᵀα with l = ½ diag K, and no G = l − Kα exceeds λ by more than the violation:
        # with it in R² = 2λ + αᵀKα the ball holds all examples, whatever the tolerance.
        half = np.asarray(program.linear)
        inner = 2.0 * float(solution.objective + half @ solution.alpha)
        rounding = ROUNDING * float(np.abs(half).max())
        highest = float(solution.bias) + float(solution.violation) + rounding
        self.squared_norm_ = inner
        self.radius_ = float(np.sqrt(max(2.0 * highest + inner, 0.0)))
        return self

    def distance(self, X: Any, diagonal: Any = None) -> np.ndarray:
        """Return the distances of the rows of `X` from the centre, in feature space.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
        diagonal : array of shape (n,), optional
            k(x, x) of every row; needed with 'precomputed', where `X` does not tell.
        """
        inner = self._values(X)[:, 0]
        diagonal = self._diagonal(X) if diagonal is None else np.asarray(diagonal)
        if diagonal.shape != inner.shape:
            raise ValueError(f"diagonal must hold {len(inner)} numbers, not {diagonal.shape}")
        return np.sqrt(np.maximum(diagonal - 2.0 * inner + self.squared_norm_, 0.0))

    def decision_function(self, X: Any, diagonal: Any = None) -> np.ndarray:
        """Return the signed distance from the sphere, positive inside; see :meth:`distance`."""
        distance = self.distance(X, diagonal)  # first: it says so if there was no fit
        return self.radius_ - distance

    def predict(self, X: Any, diagonal: Any = None) -> np.ndarray:
        """Return +1 inside of the ball and −1 outside; see :meth:`distance`."""
        return np.where(self.decision_function(X, diagonal) >= 0, 1, -1)

    def _diagonal(self, X: Any) -> np.ndarray:
        if isinstance(self.kernel_, str):
            raise ValueError("kernel='precomputed' needs diagonal=, the values k(x, x)")
        dtype = working_dtype(self.dtype)
        containers: Any = "csr"
        X = check_array(from_device(X), dtype=FLOATS, accept_sparse=containers)
        with scope(dtype):
            if is_sparse(X):
                squares = squared_lengths(X).astype(dtype)
                return np.asarray(self.kernel_.of_products(squares, squares, squares))
            return np.asarray(self.kernel_.diagonal(X.astype(dtype)))
