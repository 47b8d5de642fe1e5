"""Machines without labels: the support of a distribution, and the smallest ball around it."""

from typing import Any

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.utils import check_array

from jsvm import problems
from jsvm.estimators.base import FLOATS, KernelMachine, from_device
from jsvm.estimators.parameters import fraction
from jsvm.kernels.sparse import is_sparse, squared_lengths
from jsvm.precision import scope, working_dtype

ROUNDING = 1e-12  # relative, of kernel values and their sums


class OneClassSVM(OutlierMixin, KernelMachine):
    """Support of a distribution: a half-space in feature space that holds most of the examples.

    Parameters
    ----------
    kernel : {'linear', 'poly', 'rbf', 'sigmoid', 'laplacian', 'precomputed'}, Kernel or callable
        A callable takes (X, Z) and returns the matrix. With 'precomputed' `fit` takes the square
        kernel matrix; `predict` takes the kernel values with all training examples, or with the
        support vectors only (the columns `support_`).
    nu : float in (0, 1]
        Bounds the fraction of outliers from above and that of support vectors from below.
    gamma : {'scale', 'auto'} or float
        Parameter of the named kernels that have it.
    degree, coef0
        Further parameters of the named kernels.
    tol : float
        Largest violation of the KKT conditions.
    cache_size : float
        Megabytes for kernel rows that are kept.
    max_iter : int
        Budget of pair steps; −1 is an automatic, finite one.
    time_limit : float or None
        Seconds.
    solver : SMO or None
        Full configuration of the solver; replaces `tol`, `cache_size`, `max_iter` and `time_limit`.
    dtype : {'float64', 'float32'} or None
        What to compute in; None is float64 on a CPU, float32 on a GPU.
    progress : bool
        Show a bar with gap, objective, support vectors and kernel rows.
    warm_start : bool
        Start from the solution of the last `fit` if it had as many examples; its
        coefficients are cut to the new bounds.
    callback : function or None
        Called after every round with a dict of numbers, see :func:`jsvm.solve`; a true return value
        stops the fit.
    checkpoint : path or None
        A file from which an interrupted fit goes on, see :func:`jsvm.solve`.

    Attributes
    ----------
    support_, support_vectors_, n_support_, dual_coef_, intercept_, n_iter_, fit_status_
        As in scikit-learn.
    kernel_ : Kernel or 'precomputed'
        The kernel that was used, with its parameters.
    solutions_ : list of Solution
        One, with its certificate.
    offset_ : float
        ``decision_function = score_samples - offset_``.

    Examples
    --------
    >>> X = np.array([[0.0], [0.1], [-0.1], [5.0]])
    >>> OneClassSVM(nu=0.3, gamma=1.0).fit(X).predict([[0.0], [9.0]])
    array([ 1, -1])
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        nu: Any = 0.5,
        gamma: Any = "scale",
        degree: Any = 3,
        coef0: Any = 0.0,
        tol: Any = 1e-3,
        cache_size: Any = 2000,
        max_iter: Any = -1,
        time_limit: Any = None,
        solver: Any = None,
        dtype: Any = None,
        progress: Any = False,
        warm_start: Any = False,
        callback: Any = None,
        checkpoint: Any = None,
    ) -> None:
        super().__init__(
            kernel=kernel,
            gamma=gamma,
            degree=degree,
            coef0=coef0,
            tol=tol,
            cache_size=cache_size,
            max_iter=max_iter,
            time_limit=time_limit,
            solver=solver,
            dtype=dtype,
            progress=progress,
            warm_start=warm_start,
            callback=callback,
            checkpoint=checkpoint,
        )
        self.nu = nu

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "OneClassSVM":
        """Train on the rows of `X` (a kernel matrix for 'precomputed').

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
        y : ignored
        sample_weight : array of shape (n,), optional
            An example of weight w counts as w copies of it, one of weight zero is absent.
        """
        solver, nu = self._solver_of_parameters(), fraction("nu", self.nu)
        X = self._read(X)
        X, weight, present = self._present(X, self._weights(X, sample_weight))
        program = problems.one_class(self._gram(X, weight), nu, weight)
        solution = self._solve(program, solver)
        self._keep(X, present, solution.alpha, float(solution.bias))
        self.offset_ = -float(solution.bias)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the signed height above the boundary; negative for outliers.

        What is within rounding error of the boundary is on it: a support vector is no outlier by
        chance.
        """
        values = self._output(X)
        rounding = ROUNDING * (np.abs(values + self.offset_) + abs(self.offset_))
        return np.where(np.abs(values) <= rounding, 0.0, values)

    def score_samples(self, X: Any) -> np.ndarray:
        """Return the decision values without offset."""
        return self.decision_function(X) + self.offset_

    def predict(self, X: Any) -> np.ndarray:
        """Return +1 for inliers and −1 for outliers."""
        return np.where(self.decision_function(X) >= 0, 1, -1)


class SmallestBall(KernelMachine):
    """The smallest ball in feature space that holds all examples (004, section 9.1.4).

    Its centre is Σ_i α_i φ(x_i) with Σ α_i = 1. Weights do not matter, except that an example of
    weight zero is absent.

    Parameters
    ----------
    kernel : {'linear', 'poly', 'rbf', 'sigmoid', 'laplacian', 'precomputed'}, Kernel or callable
        A callable takes (X, Z) and returns the matrix. With 'precomputed' `fit` takes the square
        kernel matrix; `predict` takes the kernel values with all training examples, or with the
        support vectors only (the columns `support_`).
    gamma : {'scale', 'auto'} or float
        Parameter of the named kernels that have it.
    degree, coef0
        Further parameters of the named kernels.
    tol : float
        Largest violation of the KKT conditions.
    cache_size : float
        Megabytes for kernel rows that are kept.
    max_iter : int
        Budget of pair steps; −1 is an automatic, finite one.
    time_limit : float or None
        Seconds.
    solver : SMO or None
        Full configuration of the solver; replaces `tol`, `cache_size`, `max_iter` and `time_limit`.
    dtype : {'float64', 'float32'} or None
        What to compute in; None is float64 on a CPU, float32 on a GPU.
    progress : bool
        Show a bar with gap, objective, support vectors and kernel rows.
    warm_start : bool
        Start from the solution of the last `fit` if it had as many examples; its
        coefficients are cut to the new bounds.
    callback : function or None
        Called after every round with a dict of numbers, see :func:`jsvm.solve`; a true return value
        stops the fit.
    checkpoint : path or None
        A file from which an interrupted fit goes on, see :func:`jsvm.solve`.

    Attributes
    ----------
    support_, support_vectors_, n_support_, dual_coef_, n_iter_, fit_status_
        As in scikit-learn; `dual_coef_` are the coefficients of the centre.
    radius_ : float
        Of the ball.
    squared_norm_ : float
        ‖centre‖².
    kernel_ : Kernel or 'precomputed'
        The kernel that was used, with its parameters.
    solutions_ : list of Solution
        One, with its certificate.

    Examples
    --------
    >>> ball = SmallestBall("linear").fit([[0.0], [1.0], [4.0]])
    >>> round(ball.radius_, 6), [round(float(d), 6) for d in ball.decision_function([[2.0], [5.0]])]
    (2.0, [2.0, -1.0])
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        gamma: Any = "scale",
        degree: Any = 3,
        coef0: Any = 0.0,
        tol: Any = 1e-3,
        cache_size: Any = 2000,
        max_iter: Any = -1,
        time_limit: Any = None,
        solver: Any = None,
        dtype: Any = None,
        progress: Any = False,
        warm_start: Any = False,
        callback: Any = None,
        checkpoint: Any = None,
    ) -> None:
        super().__init__(
            kernel=kernel,
            gamma=gamma,
            degree=degree,
            coef0=coef0,
            tol=tol,
            cache_size=cache_size,
            max_iter=max_iter,
            time_limit=time_limit,
            solver=solver,
            dtype=dtype,
            progress=progress,
            warm_start=warm_start,
            callback=callback,
            checkpoint=checkpoint,
        )

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "SmallestBall":
        """Find the ball around the rows of `X` (a kernel matrix for 'precomputed').

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
        y : ignored
        sample_weight : array of shape (n,), optional
            An example of weight zero is absent; other weights do not matter.
        """
        solver = self._solver_of_parameters()
        X = self._read(X)
        X, weight, present = self._present(X, self._weights(X, sample_weight))
        program = problems.smallest_ball(self._gram(X, weight))
        solution = self._solve(program, solver)
        self._keep(X, present, solution.alpha, 0.0)
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
        inner = self._output(X)
        diagonal = self._diagonal(X) if diagonal is None else np.asarray(diagonal)
        if diagonal.shape != inner.shape:
            raise ValueError(f"diagonal must hold {len(inner)} numbers, not {diagonal.shape}")
        return np.sqrt(np.maximum(diagonal - 2.0 * inner + self.squared_norm_, 0.0))

    def decision_function(self, X: Any, diagonal: Any = None) -> np.ndarray:
        """Return the signed distance from the sphere, positive inside; see :meth:`distance`."""
        distance = self.distance(X, diagonal)
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
