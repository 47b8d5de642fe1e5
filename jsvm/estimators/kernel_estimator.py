"""What every estimator shares, what those with a kernel, and what machines of support vectors."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import field
from numbers import Real
from threading import Lock
from typing import Any, ClassVar, NamedTuple
from weakref import WeakKeyDictionary

import jax
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from jsvm.estimators import checks
from jsvm.estimators.declaration import estimator
from jsvm.evaluate import Predictor
from jsvm.kernels import Kernel, resolve
from jsvm.kernels.sparse import kernel_and_points
from jsvm.machine import Machine
from jsvm.numerics.arrays import is_sparse
from jsvm.precision import default_device, working_dtype
from jsvm.problems import QuadraticProgram
from jsvm.solvers import PSMO, SMO, Solution, Status, solve
from jsvm.solvers.canonical import near

FORMAT = 1  # of the pickled state


@estimator
class Estimator(BaseEstimator):
    """What every estimator has: a solver, a precision, and pickles without device buffers.

    Parameters
    ----------
    tol : float
        Largest violation of the KKT conditions.
    cache_size : float
        Megabytes for kernel rows that are kept.
    max_iter : int
        Budget of pair steps for each problem; −1 is an automatic, finite one.
    time_limit : float or None
        Seconds for each problem, or for all of them where they are solved in one batch.
    solver : SMO or None
        Full configuration of the solver; replaces `tol`, `cache_size`, `max_iter` and `time_limit`.
    dtype : {'float64', 'float32'} or None
        What to compute in; None is float64 on a CPU, float32 on a GPU.

    Attributes
    ----------
    solutions_ : list of Solution
        One for each problem, with its certificate.
    """

    _solver_type: ClassVar[Any] = SMO

    tol: Any = 1e-3
    cache_size: Any = 2000
    max_iter: Any = -1
    time_limit: Any = None
    solver: Any = None
    dtype: Any = None

    def __getstate__(self) -> dict[str, Any]:
        """Return plain arrays and numbers, no device buffers, with the version of the format."""
        inherited: Any = super().__getstate__()
        state: dict[str, Any] = dict(inherited)
        for name in ("kernel", "kernel_", "rows"):
            if name in state:
                state[name] = jax.tree.map(checks.on_host, state[name])
        return state | {"_jsvm_format": FORMAT}

    def __setstate__(self, state: dict[str, Any]) -> None:
        version = state.pop("_jsvm_format", FORMAT)
        if version > FORMAT:
            raise ValueError(f"pickled by a newer jsvm (format {version}, known is {FORMAT})")
        super().__setstate__(state)

    def _check_parameters(self) -> Any:
        """Return the solver that the parameters describe; raise ValueError if they are bad."""
        kind = self._solver_type
        checks.whole_number("max_iter", self.max_iter, -1)
        if isinstance(self.solver, kind):
            return self.solver
        if self.solver is not None:
            raise ValueError(f"solver={self.solver!r} must be None or a solvers.{kind.__name__}")
        for name in ("tol", "cache_size"):
            value = getattr(self, name)
            if not isinstance(value, Real) or not float(value) > 0:
                raise ValueError(f"{name}={value!r} must be a positive number")
        return kind(
            tol=float(self.tol),
            max_steps=None if self.max_iter == -1 else int(self.max_iter),
            time_limit=self.time_limit,
            cache_size=float(self.cache_size),
        )

    def _status_of(self, solutions: list[Solution], tol: float, stacklevel: int = 5) -> int:
        """Return 0 if all solutions have converged, and 1, with a warning, if one has not."""
        statuses = [Status(solution.status) for solution in solutions]
        if Status.UNBOUNDED in statuses:
            raise ValueError(f"C={getattr(self, 'C', None)}: {Status.UNBOUNDED.message}")
        for solution, status in zip(solutions, statuses, strict=True):
            if status != Status.CONVERGED:
                gap = f"stopped at a KKT gap of {solution.violation:.3g} (tol={tol})"
                message = f"{type(self).__name__} {gap}: {status.message}"
                warnings.warn(message, ConvergenceWarning, stacklevel=stacklevel)
                return 1
        return 0


@estimator
class KernelEstimator(Estimator):
    """What estimators with a kernel share: reading data, weights, and a machine that predicts.

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
    progress : bool
        Show a bar with gap, objective, support vectors and kernel rows.
    warm_start : bool
        Start from the solution of the last `fit` if its problems had the same sizes; its
        coefficients are cut to the new bounds.
    callback : function or None
        Called after every round with a dict of numbers, see :func:`jsvm.solve`; a true return value
        stops the fit.
    checkpoint : path or None
        A file from which an interrupted fit goes on, see :func:`jsvm.solve`; of several problems
        each has its own, numbered.

    Attributes
    ----------
    kernel_ : Kernel or 'precomputed'
        The kernel that was used, with its parameters.
    """

    # The fitted attributes that a prediction depends on, apart from kernel and points.
    _numbers: ClassVar[tuple[str, ...]] = ("dual_coef_", "intercept_")

    kernel: Any = field(default="rbf", kw_only=False)
    gamma: Any = "scale"
    degree: Any = 3
    coef0: Any = 0.0
    progress: Any = False
    warm_start: Any = False
    callback: Any = None
    checkpoint: Any = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._square
        tags.input_tags.sparse = not self._precomputed
        return tags

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    @property
    def _square(self) -> bool:
        """Whether X is the kernel matrix of the examples, so that its columns are examples, too."""
        return self._precomputed

    def _read(self, X: Any, *y: Any, **required: Any) -> Any:
        """Return the validated training data: X, or X and y."""
        if not self._precomputed and checks.are_plain(X, *y, **required):
            self.n_features_in_ = X.shape[1]
            self.__dict__.pop("feature_names_in_", None)
            return (X, *y) if y else X
        sparse = False if self._precomputed else "csr"
        given = checks.from_device(X), *(checks.unmasked(target, "y") for target in y)
        data = validate_data(self, *given, dtype=checks.FLOATS, accept_sparse=sparse, **required)
        X = data[0] if y else data
        if self._square and X.shape[0] != X.shape[1]:
            raise ValueError(f"kernel='precomputed' needs a square X, not {X.shape}")
        return data

    def _weights(self, X: Any, sample_weight: Any) -> np.ndarray:
        """Return one weight an example, ones if none are given."""
        if sample_weight is None:
            return np.ones(X.shape[0])
        given = checks.unmasked(sample_weight, "sample_weight")
        weight = _check_sample_weight(given, X, dtype=np.float64, ensure_non_negative=True)
        if not (weight > 0).any():
            raise ValueError("sample_weight is zero everywhere; give some example a weight")
        return weight

    def _present(self, X: Any, weight: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray]:
        """Return X and the weights without the examples of weight zero, and who is left."""
        present = np.flatnonzero(weight > 0)
        return checks.present_rows(X, present, self._square), weight[present], present

    def _kernel_with(self, gamma: Any, X: Any, weight: np.ndarray) -> Kernel:
        """Return the kernel of these parameters with another γ."""
        given = {"gamma": gamma, "degree": self.degree, "coef0": self.coef0}
        return resolve(self.kernel, X, **given, weight=None if (weight == 1).all() else weight)

    def _options(self) -> dict[str, Any]:
        """Return the keyword arguments with which :func:`jsvm.solve` is followed."""
        return {name: getattr(self, name) for name in ("progress", "callback", "checkpoint")}

    def _last_solutions(self, sizes: list[int]) -> list[Solution] | None:
        """Return the solutions of the last fit, if `warm_start` is on and the sizes agree."""
        last = getattr(self, "solutions_", []) if self.warm_start else []
        return last if [len(solution.alpha) for solution in last] == sizes else None

    def _report(self, solutions: list[Solution], solver: SMO | PSMO) -> None:
        """Keep the solutions with their status and counts; warn of what did not converge."""
        self.solutions_ = solutions
        self.n_iter_ = np.array([self._steps(solution) for solution in solutions], np.int32)
        self.fit_status_ = self._status_of(solutions, solver.tol)

    def _steps(self, solution: Solution) -> int:
        """Return what `n_iter_` counts."""
        return solution.steps

    def _coefficients(self) -> tuple[np.ndarray, np.ndarray]:
        """Return β, one column an output, and b of f(x) = Σ_i β_i k(x, x_i) + b."""
        raise NotImplementedError

    def _predictor(self) -> Predictor:
        """Return the machine as it predicts; its points are prepared once."""
        kernel, points = (getattr(self, name) for name in ("kernel_", "support_vectors_"))
        numbers = [getattr(self, name) for name in self._numbers]

        def machine() -> Machine:
            return Machine(kernel, points, *self._coefficients())

        return PREDICTORS.of(self, (kernel, points), numbers, working_dtype(self.dtype), machine)

    def _of_support(self, values: Any, support: np.ndarray, what: str) -> Any:
        """Return the columns of `support_`, given all columns or only these."""
        if values.shape[1] == self.n_features_in_:
            return values[:, support]
        if values.shape[1] == len(support):
            return values
        raise ValueError(
            f"X has {values.shape[1]} features, but {type(self).__name__} is expecting "
            f"{self.n_features_in_} features as input: {what.format(len(support))}, in the "
            "order of support_"
        )

    def _values(self, X: Any) -> np.ndarray:
        """Return the decision values of the rows of X, one column an output."""
        given: Any = {"dtype": checks.FLOATS, "accept_sparse": "csr", "reset": False}
        return self._predictor()(validate_data(self, checks.from_device(X), **given))


def numbered(checkpoint: Any, k: int, count: int) -> Any:
    """Return the checkpoint of problem k: of several problems each has its own."""
    return checkpoint if checkpoint is None or count == 1 else f"{checkpoint}.{k}"


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
        return kernel_and_points(self.kernel_, X) if is_sparse(X) else (self.kernel_, X)

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
        return self._columns(checks.from_device(X)) @ machine.coefficients + machine.bias[None, :]

    def _columns(self, X: Any) -> np.ndarray:
        """Return the kernel values with the support vectors, given all columns or only these."""
        what = "kernel values with all training examples, or with the {} support vectors"
        return self._of_support(check_array(X, dtype=checks.FLOATS), self.support_, what)


class Kept(NamedTuple):
    """Predictors by dtype and device, and the fitted attributes that they were made from."""

    objects: Sequence[Any]
    numbers: Sequence[Any]
    predictors: dict[Any, Predictor]

    def is_of(self, objects: Sequence[Any], numbers: Sequence[Any]) -> bool:
        """Tell whether the attributes are the same objects and numbers still."""
        same = all(a is b for a, b in zip(self.objects, objects, strict=True))
        return same and all(map(np.array_equal, self.numbers, numbers))


class Predictors:
    """A predictor for every estimator, dtype and device, deleted with its estimator.

    A prediction must leave an estimator unchanged, and predictors are not pickled: they are kept
    here. Users may assign fitted attributes, so these are compared at every call: kernel and points
    by identity, numbers by value.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: WeakKeyDictionary[Any, Kept] = WeakKeyDictionary()

    def of(
        self,
        owner: Any,
        objects: Sequence[Any],
        numbers: Sequence[Any],
        dtype: np.dtype,
        machine: Callable[[], Machine],
    ) -> Predictor:
        """Return the predictor of `owner`, made of `machine()` if an attribute has changed."""
        key = dtype, default_device()
        with self._lock:
            kept = self._kept.get(owner)
            if kept is None or not kept.is_of(objects, numbers):
                kept = self._kept[owner] = Kept(objects, [np.array(v) for v in numbers], {})
            if key not in kept.predictors:
                kept.predictors[key] = Predictor(machine(), dtype)
            return kept.predictors[key]


PREDICTORS = Predictors()
