"""What classifiers share: classes, two-class problems, votes and probabilities.

Inside, one column belongs to each two-class problem, and the first class of a problem is the
positive one, as in LIBSVM. Outside, the attributes are scikit-learn's, where with two classes the
second one is positive: :func:`orientation` is the sign between the two.
"""

from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if

from jsvm.estimators.calibration import METHODS, Logistic, fit_sigmoids, probabilities
from jsvm.estimators.checks import (
    check_presence,
    class_factors,
    encoded,
    one_of,
    present_rows,
    weighted,
)
from jsvm.estimators.declaration import estimator
from jsvm.estimators.grid_task import TrainedInBatches
from jsvm.estimators.kernel_estimator import KernelMachine
from jsvm.estimators.two_class import Formulation, Training
from jsvm.precision import working_dtype
from jsvm.solvers import SMO
from jsvm.validation.parts import Part, one_against_one, one_against_rest


def _is_calibrated(estimator: Any) -> bool:
    if estimator.calibration is None:
        raise AttributeError(
            "probabilities need calibration='platt' or 'sigmoid' before the fit; "
            "decision_function needs no calibration"
        )
    return True


@estimator
class Classifier(ClassifierMixin, TrainedInBatches, KernelMachine):
    """A classifier made of two-class machines; which ones is left to the concrete classes.

    Parameters
    ----------
    class_weight : dict, 'balanced' or None
        Factors of the weights of all examples of a class.
    calibration : {'platt', 'sigmoid'} or None
        Adds `predict_proba`, from decision values of examples left out of training. 'platt' has
        two parameters and may contradict `predict`; 'sigmoid' has one, and `predict` is then the
        class of largest probability, which for two classes is the sign of the decision value.
    multiclass : {'ovo', 'ovr'}
        One machine for every pair of classes, or for every class against the rest.
    decision_function_shape : {'ovr', 'ovo'}
        One column a class, or one column a pair of classes.
    break_ties : bool
        Break ties of votes by the decision values; needs 'ovr'.
    random_state : int, RandomState or None
        Of the folds of the calibration; nothing else is random.

    Attributes
    ----------
    classes_, support_, support_vectors_, n_support_, dual_coef_, intercept_, n_iter_, fit_status_
        As in scikit-learn; `dual_coef_` has one row a class with ``multiclass="ovr"``.
    probA_, probB_ : arrays, one entry a two-class problem
        The sigmoids, as in LIBSVM.
    """

    _numbers: ClassVar = ("dual_coef_", "intercept_", "n_support_", "multiclass")

    class_weight: Any = None
    calibration: Any = None
    multiclass: Any = "ovo"
    decision_function_shape: Any = "ovr"
    break_ties: Any = False
    random_state: Any = None

    def _formulation(self) -> Formulation:
        """Return what the two-class problems are; raise ValueError if parameters are bad."""
        raise NotImplementedError

    def _cost(self, n: int, present: np.ndarray, codes: np.ndarray) -> Any:
        """Return what an example of weight one costs, for those of the n examples `present`."""
        return 1.0

    def _check_problems(self, problems: list[Part]) -> None:
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
        solver, formulation = self._check_parameters(), self._formulation()
        X, y, codes, weight = self._labelled(X, y, sample_weight)
        costs = weight * class_factors(self.class_weight, self.classes_, y, codes, weight)
        present = np.flatnonzero(costs > 0)
        codes, n = codes[present], len(y)
        check_presence(self.classes_, codes)
        weight, X = weight[present], present_rows(X, present, self._square)
        costs = weighted(self._cost(n, present, codes), costs[present], self.dtype)
        K, dtype = self._gram(X, weight), working_dtype(self.dtype)

        problems = self._problems(codes, costs)
        training = Training(formulation, K, solver, dtype)
        last = self._last_solutions([len(problem.examples) for problem in problems])
        self._report(training.solve(problems, last, **self._options()), solver)
        # The support vectors are kept by class, then by index, as LIBSVM does.
        columns, offsets = zip(*map(training.function, problems, self.solutions_), strict=True)
        classes = len(self.classes_)
        rows = packed(list(columns), problems, codes, classes, self.multiclass == "ovr")
        used = np.flatnonzero((rows != 0).any(axis=0))
        used = used[np.argsort(codes[used], kind="stable")]
        self._keep(X, present, used, rows, orientation(classes) * np.array(offsets))
        self.n_support_ = np.bincount(codes[used], minlength=classes).astype(np.int32)
        if self.calibration is not None:
            seed = check_random_state(self.random_state).randint(2**31 - 1)
            sigmoids = fit_sigmoids(self.calibration, X, training, problems, seed)
            self.probA_ = np.array([sigmoid.slope for sigmoid in sigmoids])
            self.probB_ = np.array([sigmoid.offset for sigmoid in sigmoids])
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return decision values: (n,) for two classes, else one column a class or a pair.

        :meth:`predict` returns the class of the largest column; for more than two classes with
        calibration='sigmoid' these columns are the logarithms of the probabilities.
        """
        values, classes = self._values(X), len(self.classes_)
        if classes == 2:
            return orientation(classes) * values[:, 0]
        if self.decision_function_shape == "ovo":
            return values
        if self.calibration == "sigmoid":
            return _logarithm(self._probabilities(values))
        if self.multiclass == "ovr":
            return values
        return votes_and_confidences(values, classes)[1]

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted labels; with calibration='sigmoid' those of largest probability."""
        values = self._values(X)
        if self.calibration == "sigmoid":
            return self.classes_[np.argmax(self._probabilities(values), axis=1)]
        return self._predicted(values)

    @available_if(_is_calibrated)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of every class, in the order of `classes_`."""
        return self._probabilities(self._values(X))

    @available_if(_is_calibrated)
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithms of the probabilities."""
        return _logarithm(self.predict_proba(X))

    def _predicted(self, decisions: np.ndarray) -> np.ndarray:
        """Return the label of every row of decision values."""
        classes = len(self.classes_)
        if classes == 2:
            return self.classes_[(decisions[:, 0] < 0).astype(int)]
        if self.multiclass == "ovo":
            votes, confidences = votes_and_confidences(decisions, classes)
            decisions = confidences if self.break_ties else votes
        return self.classes_[np.argmax(decisions, axis=1)]

    def _check_parameters(self) -> SMO:
        shape = self.decision_function_shape
        one_of("multiclass", self.multiclass, ("ovo", "ovr"))
        one_of("decision_function_shape", shape, ("ovr", "ovo"))
        one_of("calibration", self.calibration, (None, *METHODS))
        if self.break_ties and shape == "ovo":
            raise ValueError("break_ties=True needs decision_function_shape='ovr'")
        if self.multiclass == "ovr" and shape == "ovo":
            raise ValueError(
                "multiclass='ovr' trains no pairs of classes; use decision_function_shape='ovr'"
            )
        return super()._check_parameters()

    def _labelled(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any, Any]:
        """Return the validated data: X, y, y as numbers, and weights; sets `classes_`."""
        X, y = self._read(X, y, ensure_min_samples=2)
        self.classes_, codes = encoded(y)
        return X, y, codes, self._weights(X, sample_weight)

    def _problems(self, codes: np.ndarray, costs: np.ndarray) -> list[Part]:
        classes = len(self.classes_)
        divide = one_against_rest if self.multiclass == "ovr" and classes > 2 else one_against_one
        problems = divide(codes, classes, costs)
        self._check_problems(problems)
        return problems

    def _coefficients(self) -> tuple[np.ndarray, np.ndarray]:
        columns = unpacked(self.dual_coef_, self.n_support_, self.multiclass == "ovr")
        return columns, orientation(len(self.classes_)) * self.intercept_

    def _probabilities(self, decisions: np.ndarray) -> np.ndarray:
        if not hasattr(self, "probA_"):
            raise AttributeError("fitted without calibration; fit again with calibration set")
        sigmoids = [Logistic(a, b) for a, b in zip(self.probA_, self.probB_, strict=True)]
        pairs = self.multiclass == "ovo"
        return probabilities(decisions, sigmoids, len(self.classes_), pairs)

    def _fold_parts(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any, Any]:
        """Return the data, and the function from training examples to their problems."""
        X, y, codes, weight = self._labelled(X, y, sample_weight)

        def parts(train: np.ndarray) -> list[Part]:
            given = y[train], codes[train], weight[train]
            costs = weight[train] * class_factors(self.class_weight, self.classes_, *given)
            some = train[costs > 0]
            check_presence(self.classes_, codes[some])
            problems = self._problems(codes[some], costs[costs > 0])
            return [part._replace(examples=some[part.examples]) for part in problems]

        return X, y, weight, parts


def _logarithm(probabilities: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(probabilities)


def orientation(classes: int) -> float:
    """Return the factor between decision values inside and those that users see."""
    return -1.0 if classes == 2 else 1.0


def packed(
    columns: list[np.ndarray], problems: list[Part], codes: np.ndarray, classes: int, ovr: bool
) -> np.ndarray:
    """Return the rows of `dual_coef_` for all examples; `columns` are the coefficients by problem.

    Row r of a class belongs to the r-th of the other classes; of ovr each class has its row.
    """
    rows = classes if ovr and classes > 2 else classes - 1
    coefficients = np.zeros((rows, len(codes)))
    pairs = list(combinations(range(classes), 2))
    for k, (problem, beta) in enumerate(zip(problems, columns, strict=True)):
        if rows == classes:
            coefficients[k, problem.examples] = beta
        else:
            a, b = pairs[k]
            row = np.where(codes[problem.examples] == a, b - 1, a)
            coefficients[row, problem.examples] = beta
    return orientation(classes) * coefficients


def unpacked(dual_coef: np.ndarray, n_support: np.ndarray, ovr: bool) -> np.ndarray:
    """Return one column of coefficients for each two-class problem."""
    classes = len(n_support)
    if ovr or classes == 2:
        return orientation(classes) * dual_coef.T
    owner = np.repeat(np.arange(classes), n_support)
    columns = []
    for a, b in combinations(range(classes), 2):
        column = np.where(owner == a, dual_coef[b - 1], 0.0)
        columns.append(np.where(owner == b, dual_coef[a], column))
    return np.stack(columns, axis=1)


def votes_and_confidences(pairs: np.ndarray, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return votes of every class, and votes plus a share below one half of summed decisions."""
    votes, sums = np.zeros((2, len(pairs), classes))
    for decision, (a, b) in zip(pairs.T, combinations(range(classes), 2), strict=True):
        votes[:, a] += decision > 0
        votes[:, b] += decision <= 0
        sums[:, a] += decision
        sums[:, b] -= decision
    return votes, votes + sums / (3 * (np.abs(sums) + 1))
