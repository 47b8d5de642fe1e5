"""What the estimators share: data, kernel, solver, support vectors, and the report of a fit."""

import warnings
from typing import Any

import jax
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from jsvm.estimators.parameters import solver_of
from jsvm.estimators.plain import FLOATS, are_plain
from jsvm.estimators.two_class import Watch
from jsvm.evaluate import decision_values
from jsvm.kernels import Kernel, resolve
from jsvm.kernels.sparse import kernel_and_points
from jsvm.precision import working_dtype
from jsvm.problems import QuadraticProgram
from jsvm.solvers import SMO, Solution, Status, solve
from jsvm.solvers.starts import near

FORMAT = 1  # of the pickled state


class KernelMachine(BaseEstimator):
    """A machine f(x) = Σ_i β_i k(x, x_i) + b that a solver of quadratic programs trains."""

    n_features_in_: int
    _solver_type: type = SMO

    # Whatever is given is stored; fit checks it, as scikit-learn asks.
    def __init__(
        self,
        kernel: Any,
        gamma: Any,
        degree: Any,
        coef0: Any,
        tol: Any,
        cache_size: Any,
        max_iter: Any,
        time_limit: Any,
        solver: Any,
        dtype: Any,
        progress: Any,
        warm_start: Any,
        callback: Any,
        checkpoint: Any,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.cache_size = cache_size
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.solver = solver
        self.dtype = dtype
        self.progress = progress
        self.warm_start = warm_start
        self.callback = callback
        self.checkpoint = checkpoint

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._square
        tags.input_tags.sparse = not self._precomputed
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """Return plain arrays and numbers, no device buffers, with the version of the format."""
        inherited: Any = super().__getstate__()
        state: dict[str, Any] = dict(inherited)
        for name in ("kernel", "kernel_", "rows"):
            if name in state:
                state[name] = jax.tree.map(_on_host, state[name])
        return state | {"_jsvm_format": FORMAT}

    def __setstate__(self, state: dict[str, Any]) -> None:
        version = state.pop("_jsvm_format", FORMAT)
        if version > FORMAT:
            raise ValueError(f"pickled by a newer jsvm (format {version}, known is {FORMAT})")
        super().__setstate__(state)

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    @property
    def _square(self) -> bool:
        """Whether X is the kernel matrix of the examples, so that its columns are examples, too."""
        return self._precomputed

    def _solver_of_parameters(self) -> Any:
        """Return the solver that the parameters describe; raise ValueError if they are bad."""
        return solver_of(self, self._solver_type)

    def _read(self, X: Any, *y: Any, **checks: Any) -> Any:
        """Return the validated training data: X, or X and y."""
        if not self._precomputed and are_plain(X, *y, **checks):
            self.n_features_in_ = X.shape[1]
            self.__dict__.pop("feature_names_in_", None)
            return (X, *y) if y else X
        data = validate_data(
            self,
            from_device(X),
            *y,
            dtype=FLOATS,
            accept_sparse=False if self._precomputed else "csr",
            **checks,
        )
        X = data[0] if y else data
        if self._square and X.shape[0] != X.shape[1]:
            raise ValueError(f"kernel='precomputed' needs a square X, not {X.shape}")
        return data

    def _weights(self, X: Any, sample_weight: Any) -> np.ndarray:
        """Return one weight an example, ones if none are given."""
        if sample_weight is None:
            return np.ones(X.shape[0])
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not (weight > 0).any():
            raise ValueError("sample_weight is zero everywhere; give some example a weight")
        return weight

    def _present(self, X: Any, weight: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray]:
        """Return X and the weights without the examples of weight zero, and who is left."""
        present = np.flatnonzero(weight > 0)
        return present_rows(X, present, self._square), weight[present], present

    def _gram(self, X: Any, weight: np.ndarray) -> Any:
        """Return what a problem takes as K, for rows that are present; sets `kernel_`."""
        if self._precomputed:
            self.kernel_ = "precomputed"
            return X
        self.kernel_ = self._kernel_with(self.gamma, X, weight)
        return kernel_and_points(self.kernel_, X)

    def _kernel_with(self, gamma: Any, X: Any, weight: np.ndarray) -> Kernel:
        """Return the kernel of these parameters with another γ."""
        return resolve(
            self.kernel,
            X,
            gamma=gamma,
            degree=self.degree,
            coef0=self.coef0,
            weight=None if (weight == 1).all() else weight,
        )

    def _watch(self) -> Watch:
        return Watch(self.progress, self.callback, self.checkpoint)

    def _solve(self, program: QuadraticProgram, solver: SMO) -> Solution:
        """Solve the only problem of this machine, from the last solution if that is asked for."""
        last = getattr(self, "solutions_", [])
        start = None
        if self.warm_start and [len(solution.alpha) for solution in last] == [program.size]:
            start = near(last[0].alpha, program)
        solution = solve(
            program,
            solver,
            start,
            dtype=working_dtype(self.dtype),
            **self._watch()._asdict(),
        )
        self.solutions_ = [solution]
        self._report(solver)
        return solution

    def _report(self, solver: Any) -> None:
        """Set `fit_status_` and `n_iter_`; warn of what did not converge."""
        self.n_iter_ = np.array([self._steps(solution) for solution in self.solutions_], np.int32)
        self.fit_status_ = status_of(self, self.solutions_, solver.tol)

    def _steps(self, solution: Solution) -> int:
        """Return what `n_iter_` counts."""
        return solution.steps

    def _keep(self, X: Any, present: np.ndarray, beta: np.ndarray, bias: float) -> None:
        """Keep the support vectors of a machine with one output."""
        used = np.flatnonzero(beta)
        self.support_ = present[used].astype(np.int32)
        self.support_vectors_ = self._vectors(X, used)
        self.n_support_ = np.array([len(used)], np.int32)
        self.dual_coef_ = beta[None, used]
        self.intercept_ = np.array([bias])

    def _vectors(self, X: Any, used: np.ndarray) -> Any:
        """Return rows of X; none of a kernel matrix, where `support_` tells all."""
        return X[:0] if self.kernel_ == "precomputed" else X[used]

    def _values(self, X: Any, beta: np.ndarray, bias: np.ndarray) -> np.ndarray:
        """Return Σ_i β_i k(x, x_i) + b, one column for each column of `beta`."""
        X = from_device(X)
        if isinstance(self.kernel_, str):
            return self._columns(X) @ beta + bias[None, :]
        X = validate_data(self, X, dtype=FLOATS, accept_sparse="csr", reset=False)
        dtype = working_dtype(self.dtype)
        return decision_values(self.kernel_, self.support_vectors_, beta, bias, X, dtype)

    def _output(self, X: Any) -> np.ndarray:
        """Return the values of a machine with one output."""
        check_is_fitted(self)
        return self._values(X, self.dual_coef_.T, self.intercept_)[:, 0]

    def _columns(self, X: Any) -> np.ndarray:
        """Return the columns of the support vectors, of all columns or of only these."""
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


def status_of(estimator: Any, solutions: list[Solution], tol: float, stacklevel: int = 5) -> int:
    """Return 0 if all solutions have converged, and 1, with a warning, if one has not."""
    statuses = [Status(solution.status) for solution in solutions]
    if Status.UNBOUNDED in statuses:
        raise ValueError(f"C={getattr(estimator, 'C', None)}: {Status.UNBOUNDED.message}")
    for solution, status in zip(solutions, statuses, strict=True):
        if status != Status.CONVERGED:
            warnings.warn(
                f"{type(estimator).__name__} stopped at a KKT gap of {solution.violation:.3g} "
                f"(tol={tol}): {status.message}",
                ConvergenceWarning,
                stacklevel=stacklevel,
            )
            return 1
    return 0


def present_rows(X: Any, rows: np.ndarray, square: bool) -> Any:
    """Return some rows of X, and these columns too if it is a kernel matrix; all: X itself."""
    if len(rows) == X.shape[0]:
        return X
    return X[np.ix_(rows, rows)] if square else X[rows]


def from_device(X: Any) -> Any:
    """Return an array of another library as NumPy's; what scikit-learn can read is left alone."""
    if hasattr(X, "__dlpack__") and not hasattr(X, "__array__"):
        return np.from_dlpack(X, device="cpu")
    return np.asarray(X) if isinstance(X, jax.Array) else X


def _on_host(leaf: Any) -> Any:
    return np.asarray(leaf) if isinstance(leaf, jax.Array) else leaf
