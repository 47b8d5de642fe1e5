"""What the estimators of the Potential SVM share.

    f(x) = Σ_j α_j (K_xj − m_j)/s_j + b        (003, eq. 32, with the normalisation of eq. 20)

K compares an example x with a row object j; m_j and s_j are mean and length (or deviation) of
column j over the training examples, b is the mean of the targets (003, eq. 23). The row objects
with α_j ≠ 0 are the support features; only these are needed to predict.

**Weights.** w equal rows of K have the products of one row times √w, so √w_i (K_ij − m_j) and
√w_i (y_i − b) stand for all copies of an example, with weighted means m and b. Where the examples
are the row objects, too, a copy is also a copy of a column: of equal columns only the sum of their
coefficients counts, and the sum of w of them is bounded by wC.
"""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import _get_feature_names, check_is_fitted, validate_data

from jsvm import problems
from jsvm.estimators.base import FLOATS, KernelMachine, from_device
from jsvm.estimators.columns import Columns, normalised_columns
from jsvm.estimators.parameters import at_least, one_of, positive_cost
from jsvm.estimators.row_objects import axes, centers, check_rows, given_points
from jsvm.evaluate import decision_values
from jsvm.kernels.sparse import is_sparse
from jsvm.precision import working_dtype
from jsvm.problems.matrix_data import SCALINGS, MatrixData, as_matrix_data
from jsvm.solvers import PSMO, Solution, solve


class PotentialMachine(KernelMachine):
    """A Potential SVM; the targets are left to the concrete ones."""

    _solver_type = PSMO

    def __init__(
        self,
        *,
        rows: Any,
        n_rows: Any,
        C: Any,
        epsilon: Any,
        scaling: Any,
        random_state: Any,
        **common: Any,
    ) -> None:
        super().__init__(**common)
        self.rows = rows
        self.n_rows = n_rows
        self.C = C
        self.epsilon = epsilon
        self.scaling = scaling
        self.random_state = random_state

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
        return self._solver_of_parameters()

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
        self.solutions_ = self._solve_each(columns, targets, bounds, solver)
        self._report(solver)

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
        last = getattr(self, "solutions_", []) if self.warm_start else []
        known = [len(solution.alpha) for solution in last] == [len(bounds)] * len(targets)
        watch, solutions = self._watch(), []
        for k, y in enumerate(targets):
            target, bias = columns.target(y)
            program = problems.psvm(columns.data, target, bounds, float(self.epsilon))
            path = watch.checkpoint
            if path is not None and len(targets) > 1:
                path = f"{path}.{k}"
            solution = solve(
                program,
                solver,
                np.clip(last[k].alpha, -bounds, bounds) if known else None,
                dtype=working_dtype(self.dtype),
                progress=watch.progress,
                callback=watch.callback,
                checkpoint=path,
            )
            solutions.append(replace(solution, bias=bias))
        return solutions

    def _steps(self, solution: Solution) -> int:
        return solution.steps or solution.newton_steps

    def _machine_values(self, X: Any) -> np.ndarray:
        """Return the values of all machines, one column each."""
        check_is_fitted(self)
        X = from_device(X)
        beta = (self.dual_coef_ / self.column_scale_).T
        if isinstance(self.kernel_, str):
            values = self._columns(X)
            if is_sparse(values):
                return values @ beta + (self.intercept_ - self.column_mean_ @ beta)
            return (values - self.column_mean_) @ beta + self.intercept_
        X = validate_data(self, X, dtype=FLOATS, accept_sparse="csr", reset=False)
        bias, dtype = self.intercept_ - self.column_mean_ @ beta, working_dtype(self.dtype)
        return decision_values(self.kernel_, self.support_vectors_, beta, bias, X, dtype)

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
