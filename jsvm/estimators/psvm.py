"""Classification and regression with the Potential SVM.

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
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import check_array
from sklearn.utils.validation import _get_feature_names, check_is_fitted, validate_data

from jsvm import problems
from jsvm.estimators import checks
from jsvm.estimators.columns import ColumnEstimator, Columns, axes, centers, check_rows, normalise
from jsvm.estimators.declaration import estimator
from jsvm.estimators.kernel_estimator import KernelEstimator, numbered
from jsvm.numerics.arrays import is_sparse
from jsvm.precision import working_dtype
from jsvm.problems.matrix_data import SCALINGS, MatrixData, as_matrix_data
from jsvm.solvers import PSMO, Solution
from jsvm.solvers.potential import PsvmFamily


@estimator
class PotentialMachine(ColumnEstimator, KernelEstimator):
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

    _numbers: ClassVar = ("dual_coef_", "intercept_", "column_mean_", "column_scale_")

    rows: Any = "samples"
    n_rows: Any = None
    C: Any = 100.0
    epsilon: Any = 0.1
    random_state: Any = None

    @property
    def _square(self) -> bool:
        """Return False: a matrix may have any shape, and its columns are not the examples."""
        return False

    def _check_parameters(self) -> PSMO:
        """Return the solver; raise ValueError if a parameter is bad."""
        check_rows(self.rows, self.n_rows, self._precomputed)
        checks.positive_cost(self.C)
        checks.at_least("epsilon", self.epsilon, 0.0)
        checks.one_of("scaling", self.scaling, SCALINGS)
        return super()._check_parameters()

    def _train(
        self,
        X: Any,
        present: np.ndarray,
        targets: np.ndarray,
        weight: np.ndarray,
        factors: np.ndarray,
        solver: PSMO,
    ) -> None:
        """Train one machine for each row of `targets`; `factors` of the weights count only here."""
        X = X.astype(np.float64, copy=False)
        K, Z, examples = self._relations(X, weight)
        costs, C = weight * factors, float(self.C)
        names = present if examples else np.arange(K.shape[1])
        columns = normalise(K, self.scaling, costs, solver.cache_size * 1e6)
        varies = columns.scale > 0
        self.dropped_ = names[~varies].astype(np.int32)
        if not varies.all():
            count = f"{len(self.dropped_)} of {len(names)}"
            message = f"{count} columns of K are constant and were dropped; see dropped_"
            warnings.warn(message, UserWarning, stacklevel=3)
        bounds = np.where(varies, checks.weighted(C, costs, self.dtype) if examples else C, 0.0)
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
        """Return K, row objects that are points, and whether they are examples; set `kernel_`."""
        rows = check_rows(self.rows, self.n_rows, self._precomputed)
        vars(self).pop("row_objects_", None)
        if self._precomputed or rows == "features":
            self.kernel_ = "precomputed" if self._precomputed else "features"
            return as_matrix_data(X), None, False
        self.kernel_ = self._kernel_with(self.gamma, X, weight)
        if rows == "samples":
            Z = X
        elif rows is None:
            accepted: Any = {"dtype": np.float64, "accept_sparse": "csr", "input_name": "rows"}
            Z = check_array(checks.from_device(self.rows, "rows"), **accepted)
            if Z.shape[1] != X.shape[1]:
                raise ValueError(f"rows has {Z.shape[1]} features, X has {X.shape[1]}")
        elif rows == "axes":
            self.row_objects_ = Z = axes(X, weight, self.n_rows)
        else:
            self.row_objects_ = Z = centers(X, weight, self.n_rows, self.random_state)
        return as_matrix_data((self.kernel_, X, Z)), Z, rows == "samples"

    def _solve_each(
        self, columns: Columns, targets: np.ndarray, bounds: np.ndarray, solver: PSMO
    ) -> list[Solution]:
        """Solve one program for each row of `targets`, all on one K; each has its checkpoint."""
        last = self._last_solutions([len(bounds)] * len(targets))
        family = PsvmFamily(columns.data, solver, working_dtype(self.dtype))
        options, solutions = self._options(), []
        for k, y in enumerate(targets):
            target, bias = columns.target(y)
            program = problems.psvm(columns.data, target, bounds, float(self.epsilon))
            start = None if last is None else np.clip(last[k].alpha, -bounds, bounds)
            options["checkpoint"] = numbered(self.checkpoint, k, len(targets))
            solutions.append(replace(family.solve(program, start, **options), bias=bias))
        family.release()
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
        machine, values = self._predictor().machine, self._columns(checks.from_device(X))
        if is_sparse(values):
            return values @ machine.coefficients + machine.bias
        return (values - self.column_mean_) @ machine.coefficients + self.intercept_

    def _columns(self, X: Any) -> Any:
        """Return the columns of the support features, of all columns or of only these."""
        accept: Any = "csr" if self.kernel_ == "features" else False
        values = check_array(X, dtype=checks.FLOATS, accept_sparse=accept)
        what = "relations to all row objects, or to the {} support features"
        chosen = self._of_support(values, self.support_, what)
        if values.shape[1] == self.n_features_in_:
            validate_data(self, X, reset=False, skip_check_array=True)  # names of features
            return chosen
        names, known = _get_feature_names(X), getattr(self, "feature_names_in_", None)
        if names is not None and known is not None and any(names != known[self.support_]):
            raise ValueError(
                "The feature names should match those that were passed during fit: all of them, "
                "or those of support_, in that order"
            )
        return chosen


@estimator
class PSVC(ClassifierMixin, PotentialMachine):
    """Potential support vector classifier (Hochreiter & Obermayer 2004, section 2.4.4).

    ½αᵀKᵀKα − yᵀKα + ε‖α‖₁ is minimised over −C ≤ α ≤ C for a matrix K of the relations between
    examples and row objects, of any shape, with normalised columns, and y = ±1; the decision
    function is Kα plus the mean of y. K need not be symmetric or definite. Of more than two classes
    each has a machine that tells it from the rest, all on the same K.

    Parameters
    ----------
    epsilon : float
        Threshold of correlation: a row object enters if its column has a larger product with the
        residual, which is at most √n with scaling='length'.
    class_weight : dict, 'balanced' or None
        Factors of the weights of all examples of a class. They count as copies, too, with one
        exception: `gamma`, the centres and the axes depend on `sample_weight` only.

    Attributes
    ----------
    classes_ : array
        The labels, in the order of the machines.
    dual_coef_ : array of shape (machines, n_support)
        Their α; there is one machine for two classes, otherwise one a class.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> round(PSVC().fit(X, y).score(X, y), 2)
    0.98
    """

    epsilon: Any = 0.03
    class_weight: Any = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "PSVC":
        """Train on the rows of `X` (a measured matrix for 'precomputed') with labels `y`.

        The arguments are those of :meth:`SVC.fit`. With rows='samples' a row object has the weight
        of its example; columns of a measured matrix and features are not examples and have none.
        """
        solver = self._check_parameters()
        X, y = self._read(X, y, ensure_min_samples=2)
        self.classes_, codes = checks.encoded(y)
        weight = self._weights(X, sample_weight)
        factors = checks.class_factors(self.class_weight, self.classes_, y, codes, weight)
        present = np.flatnonzero(weight * factors > 0)
        codes, weight, factors = codes[present], weight[present], factors[present]
        checks.check_presence(self.classes_, codes)
        targets = checks.against_rest(codes, len(self.classes_))
        self._train(
            checks.present_rows(X, present, False), present, targets, weight, factors, solver
        )
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return decision values: (n,) for two classes, else one column a class."""
        values = self._values(X)
        return values[:, 0] if len(self.classes_) == 2 else values

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted labels."""
        values = self.decision_function(X)
        winners = (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
        return self.classes_[winners]


@estimator
class PSVR(RegressorMixin, PotentialMachine):
    """Potential support vector regression (Hochreiter & Obermayer 2004, section 2.4.5).

    The program is that of :class:`PSVC` for real y, the predictor Kα plus the mean of y. With C = ∞
    this is the lasso on the normalised columns of K.

    Examples
    --------
    >>> X = np.linspace(0.0, 6.0, 40)[:, None]
    >>> machine = PSVR().fit(X, np.sin(X[:, 0]))
    >>> round(machine.score(X, np.sin(X[:, 0])), 2)
    0.99
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "PSVR":
        """Train on the rows of `X` with targets `y`; see :meth:`PSVC.fit`."""
        solver = self._check_parameters()
        X, y = self._read(X, y, y_numeric=True)
        X, weight, present = self._present(X, self._weights(X, sample_weight))
        targets = np.asarray(y, np.float64)[None, present]
        self._train(X, present, targets, weight, np.ones(len(weight)), solver)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted values."""
        return self._values(X)[:, 0]
