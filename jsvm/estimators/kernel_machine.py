"""Machines of support vectors, trained by a solver of quadratic programs."""

from typing import Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from jsvm.estimators.declaration import estimator
from jsvm.estimators.kernel_estimator import KernelEstimator
from jsvm.estimators.validation import FLOATS, from_device
from jsvm.kernels.sparse import kernel_and_points
from jsvm.precision import working_dtype
from jsvm.problems import QuadraticProgram
from jsvm.solvers import SMO, Solution, solve
from jsvm.solvers.starts import near


@estimator
class KernelMachine(KernelEstimator):
    """A machine f(x) = Σ_i β_i k(x, x_i) + b over support vectors x_i.

    Attributes
    ----------
    support_, support_vectors_, n_support_, dual_coef_, intercept_, n_iter_, fit_status_
        As in scikit-learn.
    """

    def _gram(self, X: Any, weight: np.ndarray) -> Any:
        """Return what a problem takes as K, for rows that are present; sets `kernel_`."""
        if self._precomputed:
            self.kernel_ = "precomputed"
            return X
        self.kernel_ = self._kernel_with(self.gamma, X, weight)
        return kernel_and_points(self.kernel_, X)

    def _solve(self, program: QuadraticProgram, solver: SMO) -> Solution:
        """Solve the only problem of this machine."""
        last = self._last_solutions([program.size])
        start = None if last is None else near(last[0].alpha, program)
        dtype = working_dtype(self.dtype)
        solution = solve(program, solver, start, dtype=dtype, **self._options())
        self._report([solution], solver)
        return solution

    def _keep(self, X: Any, present: np.ndarray, used: np.ndarray, rows: Any, bias: Any) -> None:
        """Keep the support vectors, those in `used`, and the coefficients of all examples."""
        self.support_ = present[used].astype(np.int32)
        # A kernel matrix has no points; `support_` says which columns are needed.
        self.support_vectors_ = X[:0] if self.kernel_ == "precomputed" else X[used]
        self.dual_coef_, self.intercept_ = rows[:, used], bias

    def _keep_single(self, X: Any, present: np.ndarray, beta: np.ndarray, bias: float) -> None:
        """Keep the support vectors of a machine with one output."""
        used = np.flatnonzero(beta)
        self._keep(X, present, used, beta[None], np.array([bias]))
        self.n_support_ = np.array([len(used)], np.int32)

    def _coefficients(self) -> tuple[np.ndarray, np.ndarray]:
        return self.dual_coef_.T, self.intercept_

    def _values(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        if not isinstance(self.kernel_, str):
            return super()._values(X)
        machine = self._predictor().machine
        return self._columns(from_device(X)) @ machine.coefficients + machine.bias[None, :]

    def _columns(self, X: Any) -> np.ndarray:
        """Return the kernel values with the support vectors, given all columns or only these."""
        X = check_array(X, dtype=FLOATS)
        if X.shape[1] == self.n_features_in_:
            return X[:, self.support_]
        if X.shape[1] == len(self.support_):
            return X
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(self).__name__} is expecting "
            f"{self.n_features_in_} features as input: kernel values with all training examples, "
            f"or with the {len(self.support_)} support vectors, in the order of support_"
        )
