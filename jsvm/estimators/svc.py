"""Support vector classification."""

import numbers
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from jsvm import problems
from jsvm.estimators.evaluate import decision_values
from jsvm.estimators.one_against_one import Pair, Watch, class_pairs, solve_pairs
from jsvm.kernels import resolve
from jsvm.precision import working_dtype
from jsvm.solvers import SMO, Status

MACHINES: dict[str, Callable[..., problems.QuadraticProgram]] = {
    "hinge": problems.c_svc,
    "squared_hinge": problems.squared_svc,
}


class SVC(ClassifierMixin, BaseEstimator):
    """Support vector classifier, one against one for more than two classes.

    Parameters
    ----------
    kernel : {'linear', 'poly', 'rbf', 'sigmoid', 'laplacian', 'precomputed'}, Kernel or callable
        A callable takes (X, Z) and returns the matrix.
    C : float
        Cost of an error; ``np.inf`` is the hard margin.
    gamma : {'scale', 'auto'} or float
        Parameter of the named kernels that have it.
    degree, coef0
        Further parameters of the named kernels.
    loss : {'hinge', 'squared_hinge'}
        1-norm or 2-norm soft margin, ½‖w‖² + C Σξ or ½‖w‖² + (C/2) Σξ².
    class_weight : dict, 'balanced' or None
        Factors of C.
    tol : float
        Largest violation of the KKT conditions.
    max_iter : int
        Budget of pair steps for each two-class problem; −1 is an automatic, finite one.
    time_limit : float or None
        Seconds for each batch of problems.
    cache_size : float
        Megabytes for kernel rows that are kept.
    solver : SMO or None
        Full configuration of the solver; replaces `tol`, `max_iter`, `time_limit` and `cache_size`.
    dtype : {'float64', 'float32'} or None
        What to compute in; None is float64 on a CPU, float32 on a GPU.
    decision_function_shape : {'ovr', 'ovo'}
        One column a class, or one column a pair of classes.
    break_ties : bool
        Break ties of votes by the decision values; needs 'ovr'.
    progress : bool
        Show a bar with gap, objective, support vectors and kernel rows.
    warm_start : bool
        Start from the solution of the last `fit` if it had as many examples with these labels; its
        coefficients are cut to the new bounds.
    callback : function or None
        Called after every round with a dict of numbers, see :func:`jsvm.solve`; a true return value
        stops the fit.
    checkpoint : path or None
        A file from which an interrupted fit goes on, see :func:`jsvm.solve`.

    Attributes
    ----------
    classes_, support_, support_vectors_, n_support_, dual_coef_, intercept_, n_iter_, fit_status_
        As in scikit-learn.
    kernel_ : Kernel or 'precomputed'
        The kernel that was used, with its parameters.
    solutions_ : list of Solution
        One for each pair of classes, with its certificate.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> round(SVC(C=1.0).fit(X, y).score(X, y), 2)
    0.97
    """

    # Whatever is given is stored; fit checks it, as scikit-learn asks.
    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        C: Any = 1.0,
        gamma: Any = "scale",
        degree: Any = 3,
        coef0: Any = 0.0,
        loss: Any = "hinge",
        class_weight: Any = None,
        tol: Any = 1e-3,
        max_iter: Any = -1,
        time_limit: Any = None,
        cache_size: Any = 2000,
        solver: Any = None,
        dtype: Any = None,
        decision_function_shape: Any = "ovr",
        break_ties: Any = False,
        progress: Any = False,
        warm_start: Any = False,
        callback: Any = None,
        checkpoint: Any = None,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.loss = loss
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.cache_size = cache_size
        self.solver = solver
        self.dtype = dtype
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.progress = progress
        self.warm_start = warm_start
        self.callback = callback
        self.checkpoint = checkpoint

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "SVC":
        """Train on the rows of `X` (a kernel matrix for 'precomputed') with labels `y`.

        Parameters
        ----------
        X : array of shape (n, d)
        y : array of shape (n,)
        sample_weight : array of shape (n,), optional
            Factors of C; an example of weight zero is absent.
        """
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32], ensure_min_samples=2)
        solver = self._check_parameters()
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                "y holds one class only: The number of classes has to be greater than one; "
                f"got {len(self.classes_)} class"
            )
        cost = self._cost(X, y, codes, sample_weight)
        dtype = working_dtype(self.dtype)
        K = self._gram(X)

        pairs = class_pairs(codes, len(self.classes_))
        watch = Watch(self.progress, self.callback, self.checkpoint)
        starts = self._starts(pairs, cost) if self.warm_start else None
        self.solutions_ = solve_pairs(
            MACHINES[self.loss], K, pairs, cost, solver, dtype, watch, starts
        )
        self._keep_support(X, codes, pairs)
        self._report_status(solver)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return decision values: (n,) for two classes, else one column a class or a pair."""
        pairs = self._pair_decisions(X)
        if len(self.classes_) == 2:
            return pairs[:, 0]
        if self.decision_function_shape == "ovo":
            return pairs
        return _votes_and_confidences(pairs, len(self.classes_))[1]

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted labels."""
        pairs = self._pair_decisions(X)
        if len(self.classes_) == 2:
            return self.classes_[(pairs[:, 0] > 0).astype(int)]
        votes, confidences = _votes_and_confidences(pairs, len(self.classes_))
        return self.classes_[np.argmax(confidences if self.break_ties else votes, axis=1)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return tags

    def _check_parameters(self) -> SMO:
        if self.loss not in MACHINES:
            raise ValueError(f"loss={self.loss!r} is unknown; use one of {sorted(MACHINES)}")
        if not isinstance(self.C, numbers.Real) or not float(self.C) > 0:
            raise ValueError(f"C={self.C!r} must be a positive number (np.inf for a hard margin)")
        if self.decision_function_shape not in ("ovr", "ovo"):
            raise ValueError(
                f"decision_function_shape={self.decision_function_shape!r} must be 'ovr' or 'ovo'"
            )
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties=True needs decision_function_shape='ovr'")
        if not isinstance(self.max_iter, numbers.Integral) or self.max_iter < -1:
            raise ValueError(f"max_iter={self.max_iter!r} must be a whole number >= -1")
        if not isinstance(self.solver, SMO | None):
            raise ValueError(f"solver={self.solver!r} must be None or a solvers.SMO")
        if self.solver is not None:
            return self.solver
        max_steps = None if self.max_iter == -1 else int(self.max_iter)
        return SMO(
            tol=self.tol,
            max_steps=max_steps,
            time_limit=self.time_limit,
            cache_size=self.cache_size,
        )

    def _cost(self, X: Any, y: Any, codes: np.ndarray, sample_weight: Any) -> np.ndarray:
        weights = np.ones(len(X))
        if sample_weight is not None:
            weights = _check_sample_weight(
                sample_weight, X, dtype=np.float64, ensure_non_negative=True
            )
        by_class = np.ones(len(self.classes_))
        if self.class_weight is not None:
            by_class = compute_class_weight(
                self.class_weight, classes=self.classes_, y=y, sample_weight=weights
            )
        if not (np.isfinite(by_class).all() and (by_class >= 0).all()):
            raise ValueError(f"class_weight={self.class_weight!r} must be finite numbers >= 0")
        weights = weights * by_class[codes]
        present = np.bincount(codes, weights > 0, len(self.classes_)) > 0
        if not present.all():
            name = self.classes_[np.argmin(present)]
            raise ValueError(f"sample_weight or class_weight is zero on all of class {name!r}")
        # 0 · ∞: an example without weight is absent, whatever C
        return np.where(weights > 0, self.C * np.where(weights > 0, weights, 1.0), 0.0)

    def _gram(self, X: np.ndarray) -> Any:
        if isinstance(self.kernel, str) and self.kernel == "precomputed":
            if X.shape[0] != X.shape[1]:
                raise ValueError(f"kernel='precomputed' needs a square X, not {X.shape}")
            self.kernel_ = "precomputed"
            return X
        self.kernel_ = resolve(
            self.kernel, X, gamma=self.gamma, degree=self.degree, coef0=self.coef0
        )
        return self.kernel_, X

    def _starts(self, pairs: list[Pair], cost: np.ndarray) -> list[np.ndarray] | None:
        """Return feasible points near the last solutions; None if there are none that fit."""
        last = getattr(self, "solutions_", [])
        if [len(s.alpha) for s in last] != [len(pair.examples) for pair in pairs]:
            return None
        starts = []
        for solution, pair in zip(last, pairs, strict=True):
            limit = cost[pair.examples] if self.loss == "hinge" else np.inf
            alpha = np.clip(pair.signs * solution.alpha, 0.0, limit) * pair.signs
            up, down = alpha[alpha > 0].sum(), -alpha[alpha < 0].sum()
            if (
                abs(up - down) > 1e-9 * up
            ):  # the larger class is scaled down; else bounds stay exact
                factors = (min(1.0, down / up), min(1.0, up / down)) if up * down else (0.0, 0.0)
                alpha = alpha * np.where(alpha > 0, *factors)
            starts.append(alpha)
        return starts

    def _keep_support(self, X: np.ndarray, codes: np.ndarray, pairs: list[Pair]) -> None:
        """Set the attributes of the solution, laid out as LIBSVM does: by class, then by index."""
        n, classes = len(codes), len(self.classes_)
        # Row r of a class's support vectors belongs to the r-th of the other classes.
        coefficients = np.zeros((classes - 1, n))
        for pair, solution in zip(pairs, self.solutions_, strict=True):
            alpha = np.zeros(n)
            alpha[pair.examples] = solution.alpha
            rows = np.where(codes == pair.positive, pair.negative - 1, pair.positive)
            coefficients[rows[pair.examples], pair.examples] = alpha[pair.examples]
        used = np.flatnonzero((coefficients != 0).any(axis=0))
        self.support_ = used[np.argsort(codes[used], kind="stable")].astype(np.int32)
        self.n_support_ = np.bincount(codes[self.support_], minlength=classes).astype(np.int32)
        self.dual_coef_ = coefficients[:, self.support_]
        self.intercept_ = np.array([solution.bias for solution in self.solutions_])
        if classes == 2:  # the positive class of a two-class machine is the second one
            self.dual_coef_, self.intercept_ = -self.dual_coef_, -self.intercept_
        precomputed = self.kernel_ == "precomputed"
        self.support_vectors_ = X[:0] if precomputed else X[self.support_]
        self.n_iter_ = np.array([solution.steps for solution in self.solutions_], np.int32)

    def _report_status(self, solver: SMO) -> None:
        statuses = [Status(solution.status) for solution in self.solutions_]
        self.fit_status_ = int(any(status != Status.CONVERGED for status in statuses))
        if Status.UNBOUNDED in statuses:
            raise ValueError(f"C={self.C}: {Status.UNBOUNDED.message}")
        for solution, status in zip(self.solutions_, statuses, strict=True):
            if status != Status.CONVERGED:
                warnings.warn(
                    f"SVC stopped at a KKT gap of {solution.violation:.3g} (tol={solver.tol}): "
                    f"{status.message}",
                    ConvergenceWarning,
                    stacklevel=3,
                )
                break

    def _pair_coefficients(self) -> np.ndarray:
        """Return dual coefficients as one column for each pair of classes."""
        classes = len(self.classes_)
        if classes == 2:
            return self.dual_coef_.T
        owner = np.repeat(np.arange(classes), self.n_support_)
        columns = []
        for a in range(classes):
            for b in range(a + 1, classes):
                column = np.where(owner == a, self.dual_coef_[b - 1], 0.0)
                columns.append(np.where(owner == b, self.dual_coef_[a], column))
        return np.stack(columns, axis=1)

    def _pair_decisions(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        beta, dtype = self._pair_coefficients(), working_dtype(self.dtype)
        if isinstance(self.kernel_, str):
            return X[:, self.support_] @ beta + self.intercept_[None, :]
        return decision_values(self.kernel_, self.support_vectors_, beta, self.intercept_, X, dtype)


def _votes_and_confidences(pairs: np.ndarray, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return votes of every class, and votes plus a share below one half of summed decisions."""
    votes, sums = np.zeros((2, len(pairs), classes))
    column = 0
    for a in range(classes):
        for b in range(a + 1, classes):
            decision = pairs[:, column]
            votes[:, a] += decision > 0
            votes[:, b] += decision <= 0
            sums[:, a] += decision
            sums[:, b] -= decision
            column += 1
    return votes, votes + sums / (3 * (np.abs(sums) + 1))
