"""What classifiers share: classes, two-class problems, votes and probabilities."""

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from jsvm.estimators.base import KernelMachine, present_rows
from jsvm.estimators.calibration import METHODS, fit_sigmoids, probabilities
from jsvm.estimators.grid import folds_of, kernel_of, scorer
from jsvm.estimators.labels import check_presence, class_factors, encoded
from jsvm.estimators.sigmoid import Logistic
from jsvm.estimators.two_class import Machine, solve_all
from jsvm.precision import working_dtype
from jsvm.search import GridTask, Part
from jsvm.solvers import SMO
from jsvm.validation.class_pairs import TwoClass, one_against_one, one_against_rest


def _is_calibrated(estimator: Any) -> bool:
    if estimator.calibration is None:
        raise AttributeError(
            "probabilities need calibration='platt' or 'sigmoid' before the fit; "
            "decision_function needs no calibration"
        )
    return True


class Classifier(ClassifierMixin, KernelMachine):
    """A classifier made of two-class machines; what these are is left to the concrete ones."""

    def __init__(
        self,
        *,
        class_weight: Any,
        calibration: Any,
        multiclass: Any,
        decision_function_shape: Any,
        break_ties: Any,
        random_state: Any,
        **common: Any,
    ) -> None:
        super().__init__(**common)
        self.class_weight = class_weight
        self.calibration = calibration
        self.multiclass = multiclass
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state

    def _machine(self) -> Machine:
        """Return what the two-class problems are; raise ValueError if parameters are bad."""
        raise NotImplementedError

    def _cost(self, n: int, present: np.ndarray, codes: np.ndarray) -> Any:
        """Return what an example of weight one costs, for those of the n examples `present`."""
        return 1.0

    def _check(self, problems: list[TwoClass], weights: np.ndarray) -> None:
        """Raise ValueError if a problem has no solution."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Train on the rows of `X` (a kernel matrix for 'precomputed') with labels `y`.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
        y : array of shape (n,)
        sample_weight : array of shape (n,), optional
            An example of weight w counts as w copies of it, one of weight zero is absent.
        """
        solver, machine = self._check_parameters(), self._machine()
        X, y, codes, weight = self._labelled(X, y, sample_weight)
        costs = weight * class_factors(self.class_weight, self.classes_, y, codes, weight)
        present = np.flatnonzero(costs > 0)
        codes, n = codes[present], len(y)
        check_presence(self.classes_, codes)
        weight, X = weight[present], present_rows(X, present, self._square)
        costs = costs[present] * self._cost(n, present, codes)
        K, dtype = self._gram(X, weight), working_dtype(self.dtype)

        problems = self._problems(codes)
        self._check(problems, costs)
        self.solutions_ = solve_all(
            machine, K, problems, costs, solver, dtype, self._watch(), self._last(problems)
        )
        self._report(solver)
        self._keep_classes(X, present, codes, problems, machine, costs)
        if self.calibration is not None:
            seed = check_random_state(self.random_state).randint(2**31 - 1)
            sigmoids = fit_sigmoids(
                self.calibration, machine, X, K, problems, costs, solver, dtype, seed
            )
            self.probA_ = np.array([sigmoid.slope for sigmoid in sigmoids])
            self.probB_ = np.array([sigmoid.offset for sigmoid in sigmoids])
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return decision values: (n,) for two classes, else one column a class or a pair.

        The largest column of a class is what :meth:`predict` tells; for more than two classes with
        calibration='sigmoid' these columns are the logarithms of the probabilities.
        """
        values = self._decisions(X)
        if len(self.classes_) == 2:
            return values[:, 0]
        if self.decision_function_shape == "ovo":
            return values
        if self.calibration == "sigmoid":
            return _logarithm(self._probabilities(values))
        if self.multiclass == "ovr":
            return values
        return _votes_and_confidences(values, len(self.classes_))[1]

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted labels; with calibration='sigmoid' those of largest probability."""
        values = self._decisions(X)
        if self.calibration == "sigmoid":
            return self.classes_[np.argmax(self._probabilities(values), axis=1)]
        return self.classes_[self._winners(values, len(self.classes_))]

    @available_if(_is_calibrated)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of every class, in the order of `classes_`."""
        return self._probabilities(self._decisions(X))

    @available_if(_is_calibrated)
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithms of the probabilities."""
        return _logarithm(self.predict_proba(X))

    def _winners(self, decisions: np.ndarray, classes: int) -> np.ndarray:
        """Return the class of every row of decision values, as a number."""
        if classes == 2:
            return (decisions[:, 0] > 0).astype(int)
        if self.multiclass == "ovr":
            return np.argmax(decisions, axis=1)
        votes, confidences = _votes_and_confidences(decisions, classes)
        return np.argmax(confidences if self.break_ties else votes, axis=1)

    def _check_parameters(self) -> SMO:
        for name, known in (
            ("multiclass", ("ovo", "ovr")),
            ("decision_function_shape", ("ovr", "ovo")),
            ("calibration", (None, *METHODS)),
        ):
            if getattr(self, name) not in known:
                raise ValueError(f"{name}={getattr(self, name)!r} must be one of {known}")
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties=True needs decision_function_shape='ovr'")
        if self.multiclass == "ovr" and self.decision_function_shape == "ovo":
            raise ValueError(
                "multiclass='ovr' trains no pairs of classes; use decision_function_shape='ovr'"
            )
        return self._solver_of_parameters()

    def _labelled(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any, Any]:
        """Return the validated data: X, y, y as numbers, and weights; sets `classes_`."""
        X, y = self._read(X, y, ensure_min_samples=2)
        self.classes_, codes = encoded(y)
        return X, y, codes, self._weights(X, sample_weight)

    def _problems(self, codes: np.ndarray) -> list[TwoClass]:
        classes = len(self.classes_)
        if self.multiclass == "ovr" and classes > 2:
            return one_against_rest(codes, classes)
        return one_against_one(codes, classes)

    def _last(self, problems: list[TwoClass]) -> Any:
        """Return the last solutions, if they are to start from and are of these sizes."""
        last = getattr(self, "solutions_", []) if self.warm_start else []
        sizes = [len(problem.examples) for problem in problems]
        return last if [len(solution.alpha) for solution in last] == sizes else None

    def _keep_classes(
        self,
        X: Any,
        present: np.ndarray,
        codes: np.ndarray,
        problems: list[TwoClass],
        machine: Machine,
        costs: np.ndarray,
    ) -> None:
        """Keep the support vectors, by class, then by index, as LIBSVM does.

        Of pairs of classes, row r of a class's coefficients belongs to the r-th of the other
        classes; of classes against the rest, each has its row.
        """
        n, classes = len(codes), len(self.classes_)
        rows = classes - 1 if classes == 2 or self.multiclass == "ovo" else classes
        coefficients, offsets = np.zeros((rows, n)), np.zeros(len(problems))
        for k, (problem, solution) in enumerate(zip(problems, self.solutions_, strict=True)):
            given = problem.signs, costs[problem.examples]
            beta, offsets[k] = machine.function(solution, *given)
            row: Any = k
            if rows < classes and classes > 2:
                here = codes[problem.examples]
                a, b = here[problem.signs > 0][0], here[problem.signs < 0][0]
                row = np.where(here == a, b - 1, a)
            coefficients[row, problem.examples] = beta
        used = np.flatnonzero((coefficients != 0).any(axis=0))
        used = used[np.argsort(codes[used], kind="stable")]
        self.support_ = present[used].astype(np.int32)
        self.support_vectors_ = self._vectors(X, used)
        self.n_support_ = np.bincount(codes[used], minlength=classes).astype(np.int32)
        self.dual_coef_, self.intercept_ = coefficients[:, used], offsets
        if classes == 2:  # the positive class of a two-class machine is the second one
            self.dual_coef_, self.intercept_ = -self.dual_coef_, -self.intercept_

    def _grid_task(self, X: Any, y: Any, sample_weight: Any, cv: Any, scoring: Any) -> GridTask:
        """Return what :func:`jsvm.search.cross_validate` needs to know; this is left unfitted."""
        own: Any = clone(self)
        solver, machine = own._check_parameters(), own._machine()
        X, y, codes, weight = own._labelled(X, y, sample_weight)
        classes = len(own.classes_)

        def parts(train: np.ndarray) -> list[Part]:
            given = y[train], codes[train], weight[train]
            costs = weight[train] * class_factors(own.class_weight, own.classes_, *given)
            some = train[costs > 0]
            check_presence(own.classes_, codes[some])
            problems, costs = own._problems(codes[some]), costs[costs > 0]
            own._check(problems, costs)
            return [Part(some[p.examples], p.signs, costs[p.examples]) for p in problems]

        def predict(decisions: np.ndarray) -> np.ndarray:
            signed = -decisions if classes == 2 else decisions
            return own.classes_[own._winners(signed, classes)]

        return GridTask(
            X=X,
            kernel=kernel_of(own, X, weight),
            folds=folds_of(own, cv, X, y),
            parts=parts,
            build=machine.build,
            parameters=machine.parameters,
            copies=1,
            score=scorer(own, y, scoring, predict),
            solver=solver,
            dtype=working_dtype(own.dtype),
        )

    def _columns_of_problems(self) -> np.ndarray:
        """Return dual coefficients as one column for each two-class problem."""
        classes = len(self.classes_)
        if classes == 2 or self.multiclass == "ovr":
            return self.dual_coef_.T
        owner = np.repeat(np.arange(classes), self.n_support_)
        columns = []
        for a in range(classes):
            for b in range(a + 1, classes):
                column = np.where(owner == a, self.dual_coef_[b - 1], 0.0)
                columns.append(np.where(owner == b, self.dual_coef_[a], column))
        return np.stack(columns, axis=1)

    def _decisions(self, X: Any) -> np.ndarray:
        """Return the decision values of all two-class problems."""
        check_is_fitted(self)
        return self._values(X, self._columns_of_problems(), self.intercept_)

    def _probabilities(self, decisions: np.ndarray) -> np.ndarray:
        if not hasattr(self, "probA_"):
            raise AttributeError("fitted without calibration; fit again with calibration set")
        sigmoids = [Logistic(a, b) for a, b in zip(self.probA_, self.probB_, strict=True)]
        classes = len(self.classes_)
        signed = -decisions if classes == 2 else decisions  # a sigmoid's positive class comes first
        return probabilities(signed, sigmoids, classes, pairs=self.multiclass == "ovo")


def _logarithm(probabilities: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(probabilities)


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
