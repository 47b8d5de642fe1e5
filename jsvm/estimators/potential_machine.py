"""What the estimators of the Potential SVM share.

    f(x) = Σ_j α_j (K_xj − m_j)/s_j + b        (Hochreiter & Obermayer 2004, eq. 32 and 20)

K compares an example x with a row object j; m_j and s_j are mean and length (or deviation) of
column j over the training examples, b is the mean of the targets (eq. 23). The row objects
with α_j ≠ 0 are the support features; only these are needed to predict.

**Weights.** w equal rows of K have the products of one row times √w, so √w_i (K_ij − m_j) and
√w_i (y_i − b) stand for all copies of an example, with weighted means m and b. Where the examples
are the row objects, too, a copy is also a copy of a column: of equal columns only the sum of their
coefficients counts, and the sum of w of them is bounded by wC.
"""

import warnings
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import _get_feature_names, check_is_fitted, validate_data

from jsvm import problems
from jsvm.estimators.columns import Columns, normalised_columns
from jsvm.estimators.declaration import estimator
from jsvm.estimators.kernel_estimator import KernelEstimator, numbered
from jsvm.estimators.parameters import at_least, one_of, positive_cost
from jsvm.estimators.row_choices import axes, centers, check_rows, given_points
from jsvm.estimators.validation import FLOATS, from_device
from jsvm.kernels.sparse import is_sparse
from jsvm.precision import working_dtype
from jsvm.problems.matrix_data import SCALINGS, MatrixData, as_matrix_data
from jsvm.solvers import PSMO, Solution, solve


@estimator
class PotentialMachine(KernelEstimator):
    """A Potential SVM; the targets are left to the concrete classes.

    Parameters
    ----------
    kernel : {'linear', 'poly', 'rbf', 'sigmoid', 'laplacian', 'precomputed'}, Kernel or callable
        A callable takes (X, Z) and returns the matrix. With 'precomputed' `fit` takes a measured
        matrix of any shape, one column a row object, of which cross-validation splits the rows
        only; `predict` takes all of its columns, or only those of the support features
        (`support_`).
    rows : {'samples', 'features', 'centers', 'axes'} or array of shape (P, d)
        The row objects: the examples; the features, where K is X itself, no kernel is used, and
        `predict` takes all columns or only those of `support_`; centres that k-means finds; the
        principal axes of X, unit vectors meant for a linear kernel; or the rows of an array.
    n_rows : int or None
        Number of centres (None: 50, if there are so many different examples) or axes (None: all).
    C : float
        Bound of |α_j|: a small one smooths the influence of single row objects; ``np.inf`` is none.
    epsilon : float
        Threshold of correlation: a row object enters if its column has a larger product with the
        residual. It is in units of y; with scaling='length' it grows with √n.
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
    progress : bool
        Show a bar with gap, objective, support features and columns of K.
    random_state : int, RandomState or None
        Of k-means; nothing else is random.

    Attributes
    ----------
    support_ : array of int
        The support features, those row objects with α_j ≠ 0 in any machine.
    support_vectors_ : array or sparse matrix
        Their coordinates, if they have any.
    dual_coef_ : array of shape (machines, n_support)
        Their α.
    column_mean_, column_scale_ : arrays of shape (n_support,)
        m and s of their columns.
    intercept_ : array of shape (machines,)
        b, the mean of y: f(x) = Σ_j α_j (K_xj − m_j)/s_j + b.
    n_support_ : array of shape (machines,)
        Number of support features of each machine.
    dropped_ : array of int
        Row objects whose column is constant; they take no part.
    row_objects_ : array of shape (P, d)
        The centres or axes, if these are the row objects.
    kernel_ : Kernel, 'precomputed' or 'features'
        The kernel that was used, with its parameters.
    n_iter_, fit_status_
        Steps of the solver for each machine, and whether it failed to converge (0 or 1).
    """

    _solver_type: ClassVar[Any] = PSMO
    _numbers: ClassVar = ("dual_coef_", "intercept_", "column_mean_", "column_scale_")

    rows: Any = "samples"
    n_rows: Any = None
    C: Any = 100.0
    epsilon: Any = 0.1
    scaling: Any = "length"
    random_state: Any = None

    @property
    def _square(self) -> bool:
        """Return False: a matrix may have any shape, and its columns are not the examples."""
        return False

    def _check_parameters(self) -> PSMO:
        """Return the solver; raise ValueError if a parameter is bad."""
        check_rows(self.rows, self.n_rows, self._precomputed)
        positive_cost(self.C)
        at_least("epsilon", self.epsilon, 0.0)
        one_of("scaling", self.scaling, SCALINGS)
        return self._configured_solver()

    def _train(
        self,
        X: Any,
        present: np.ndarray,
        targets: np.ndarray,
        weight: np.ndarray,
        factors: np.ndarray,
        solver: PSMO,
    ) -> None:
        """Train one machine for each row of `targets` on the examples that are present.

        Weights are copies in everything; times `factors` in the training only.
        """
        X = X.astype(np.float64, copy=False)
        K, Z, examples = self._relations(X, weight)
        costs, C = weight * factors, float(self.C)
        names = present if examples else np.arange(K.shape[1])
        columns = normalised_columns(K, self.scaling, costs, solver.cache_size * 1e6)
        varies = columns.scale > 0
        self._note_dropped(names[~varies], len(names))
        bounds = np.where(varies, C * costs if examples else C, 0.0)
        self._report(self._solve_each(columns, targets, bounds, solver), solver)

        alpha = np.stack([solution.alpha for solution in self.solutions_])
        used = np.flatnonzero((alpha != 0).any(axis=0))
        self.support_ = names[used].astype(np.int32)
        self.support_vectors_ = X[:0] if Z is None else Z[used]
        self.n_support_ = np.count_nonzero(alpha, axis=1).astype(np.int32)
        self.dual_coef_ = alpha[:, used]
        self.intercept_ = np.array([solution.bias for solution in self.solutions_])
        self.column_mean_, self.column_scale_ = columns.mean[used], columns.scale[used]

    def _relations(self, X: Any, weight: np.ndarray) -> tuple[MatrixData, Any, bool]:
        """Return K, the row objects if they are points, and whether these are the examples.

        Sets `kernel_`, and `row_objects_` if they are made.
        """
        rows = check_rows(self.rows, self.n_rows, self._precomputed)
        vars(self).pop("row_objects_", None)
        if self._precomputed or rows == "features":
            self.kernel_ = "precomputed" if self._precomputed else "features"
            return as_matrix_data(X), None, False
        self.kernel_ = self._kernel_with(self.gamma, X, weight)
        if rows == "samples":
            Z = X
        elif rows is None:
            Z = given_points(from_device(self.rows), X.shape[1])
        else:
            if rows == "axes":
                Z = axes(X, weight, self.n_rows)
            else:
                Z = centers(X, weight, self.n_rows, self.random_state)
            self.row_objects_ = Z
        return as_matrix_data((self.kernel_, X, Z)), Z, rows == "samples"

    def _note_dropped(self, dropped: np.ndarray, count: int) -> None:
        self.dropped_ = dropped.astype(np.int32)
        if len(dropped):
            warnings.warn(
                f"{len(dropped)} of {count} columns of K are constant and were dropped; "
                "see dropped_",
                UserWarning,
                stacklevel=4,
            )

    def _solve_each(
        self, columns: Columns, targets: np.ndarray, bounds: np.ndarray, solver: PSMO
    ) -> list[Solution]:
        """Solve one program for each row of `targets`; each has its own checkpoint."""
        last = self._last_solutions([len(bounds)] * len(targets))
        dtype, options, solutions = working_dtype(self.dtype), self._options(), []
        for k, y in enumerate(targets):
            target, bias = columns.target(y)
            program = problems.psvm(columns.data, target, bounds, float(self.epsilon))
            start = None if last is None else np.clip(last[k].alpha, -bounds, bounds)
            options["checkpoint"] = numbered(self.checkpoint, k, len(targets))
            solution = solve(program, solver, start, dtype=dtype, **options)
            solutions.append(replace(solution, bias=bias))
        return solutions

    def _steps(self, solution: Solution) -> int:
        return solution.steps or solution.newton_steps

    def _coefficients(self) -> tuple[np.ndarray, np.ndarray]:
        beta = (self.dual_coef_ / self.column_scale_).T
        return beta, self.intercept_ - self.column_mean_ @ beta

    def _values(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        if not isinstance(self.kernel_, str):
            return super()._values(X)
        machine, values = self._predictor().machine, self._columns(from_device(X))
        if is_sparse(values):
            return values @ machine.coefficients + machine.bias
        return (values - self.column_mean_) @ machine.coefficients + self.intercept_

    def _columns(self, X: Any) -> Any:
        """Return the columns of the support features, of all columns or of only these."""
        accept: Any = "csr" if self.kernel_ == "features" else False
        values = check_array(X, dtype=FLOATS, accept_sparse=accept)
        if values.shape[1] == self.n_features_in_:
            validate_data(self, X, reset=False, skip_check_array=True)  # names of features
            return values[:, self.support_]
        if values.shape[1] != len(self.support_):
            raise ValueError(
                f"X has {values.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input: relations to all row objects, or to "
                f"the {len(self.support_)} support features, in the order of support_"
            )
        names, known = _get_feature_names(X), getattr(self, "feature_names_in_", None)
        if names is not None and known is not None and any(names != known[self.support_]):
            raise ValueError(
                "The feature names should match those that were passed during fit: all of them, "
                "or those of support_, in that order"
            )
        return values
