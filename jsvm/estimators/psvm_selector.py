"""Feature selection with the Potential SVM, for one ε after another.

For ε ≥ ‖Kᵀy‖∞ no feature has a larger correlation than ε, and all α are zero. For smaller ε
features enter one after the other, and some leave again: their number is not monotonic in ε, and
need not take every value. Each problem starts from the solution of the last ε.
"""

import numbers
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from jsvm import problems
from jsvm.estimators import checks
from jsvm.estimators.columns import ColumnEstimator, Columns, normalise
from jsvm.estimators.declaration import estimator
from jsvm.precision import working_dtype
from jsvm.problems.matrix_data import SCALINGS, as_matrix_data
from jsvm.solvers import PSMO, Solution
from jsvm.solvers.potential import PsvmFamily

DEFAULT_EPSILON = 0.2  # of ‖Kᵀy‖∞, if neither ε nor a number of features is given
SMALLEST_EPSILON = 2.0**-17  # of ‖Kᵀy‖∞: the search for ε ends there
BISECTIONS = 20  # of the logarithm of ε: its factor 2 becomes one of 1 + 7e-7


@estimator
class PSVMSelector(SelectorMixin, ColumnEstimator):
    """Selection of features by the Potential SVM (Hochreiter & Obermayer 2004, section 2.4.6).

    With K = X, columns normalised, ½αᵀKᵀKα − yᵀKα + ε‖α‖₁ is minimised over −C ≤ α ≤ C: a feature
    is used only if its correlation with the residual would otherwise exceed ε. The features with
    α_j ≠ 0, the support features, are selected; |α_j| ranks them.

    Parameters
    ----------
    epsilon : float or None
        Threshold of correlation, |Σ_i K_ij r_i| ≤ ε for all features; the support features are
        selected. None: a fifth of ‖Kᵀy‖∞, from which on there are none, or what
        `n_features_to_select` asks for.
    n_features_to_select : int, float in (0, 1] or None
        Number of features, or their fraction: the best ranked are selected. Without `epsilon`, ε is
        searched for: as large as possible with at least so many support features. There are never
        many more of these than examples unless C is finite.
    C : float
        Bound of |α_j|.
    target : {'auto', 'classes', 'values'}
        Whether y are labels or real values. For 'auto' strings, booleans and whole numbers, even as
        floats, are labels: give 'values' for a regression on counts. Of more than two classes each
        is told from the rest, and the largest |α_j| counts.
    n_resamples : int
        Number of further runs on random parts of the examples, stratified ("multiple runs to obtain
        stable results", section 3.3.3). Selection and ranking are then by how often a feature is a
        support feature, then by its mean |α_j|. ε for m of n examples is that of all examples times
        √(m/n) (m/n for scaling='variance'), the same threshold of correlation.
    resample_fraction : float in (0, 1]
        Of the examples in a run.
    threshold : float in (0, 1]
        With `n_resamples`: a feature is selected if it is a support feature in at least this
        fraction of the runs, unless `n_features_to_select` is given.
    tol : float
        Largest violation of the KKT conditions, as a fraction of ε.
    solver : PSMO or None
        Full configuration of the solver; replaces `tol` (its own is no fraction), `cache_size`,
        `max_iter` and `time_limit`.
    random_state : int, RandomState or None
        Of the random parts of the examples; nothing else is random.

    Attributes
    ----------
    support_ : array of bool of shape (P,)
        Which features are selected; see also :meth:`get_support`.
    n_features_ : int
        Their number.
    epsilon_ : float
        The ε that was used.
    alpha_ : array of shape (P,), or (n_classes, P) for more than two classes
        The coefficients α in the normalisation.
    importance_bound_ : array of the shape of `alpha_`
        By how much Σ_i r_i² / (2n) grows at most if the feature is taken out of the machine
        (eq. 43): (ε|α_j| + ½α_j²)/n for columns of length one, ε|α_j|/n + ½α_j² for variance
        one; where |α_j| = C the correlation with the residual takes the place of ε.
    ranking_ : array of int of shape (P,)
        1 is the largest |α_j|; features with α_j = 0 follow, those nearest to the threshold first.
    selection_frequency_ : array of shape (P,)
        With `n_resamples`: the fraction of runs in which a feature is a support feature.
    classes_ : array
        If y are labels.
    n_iter_, fit_status_
        Steps of the solver in all, and whether it failed to converge (0 or 1).
    solutions_ : list of Solution
        One for each machine at `epsilon_`, with its certificate.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> selector = PSVMSelector(n_features_to_select=5).fit(X, y)
    >>> selector.transform(X).shape, selector.get_support(indices=True).tolist()
    ((569, 5), [7, 20, 21, 27, 28])
    """

    epsilon: Any = None
    n_features_to_select: Any = None
    C: Any = np.inf
    target: Any = "auto"
    n_resamples: Any = 0
    resample_fraction: Any = 0.8
    threshold: Any = 0.5
    random_state: Any = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    def fit(self, X: Any, y: Any) -> "PSVMSelector":
        """Find the support features of `X`, of shape (n, P), for labels or values `y`."""
        solver = self._check_parameters()
        required: Any = {"dtype": checks.FLOATS, "accept_sparse": "csr", "ensure_min_samples": 2}
        X, y = validate_data(self, checks.from_device(X), checks.unmasked(y, "y"), **required)
        X = X.astype(np.float64, copy=False)
        targets, codes = self._targets(y)
        wanted = self._wanted(X.shape[1])
        path = self._path(X, targets, solver)
        if self.epsilon is not None:
            support = path.at(float(self.epsilon))
        elif wanted is not None:
            support = path.with_count(wanted)
        else:
            support = path.at(DEFAULT_EPSILON * path.largest)
        self.epsilon_, self.solutions_ = support.epsilon, support.solutions
        self.n_iter_ = path.steps
        self._describe(support, path.correlations(support), len(y))
        runs = self._resample(X, targets, codes, solver)
        self._select(wanted)
        tol = path.tolerance(support.epsilon)
        self.fit_status_ = self._status_of(self.solutions_ + runs, tol, stacklevel=3)
        return self

    def _get_support_mask(self) -> Any:
        check_is_fitted(self)
        return self.support_

    def _check_parameters(self) -> PSMO:
        if self.epsilon is not None:
            checks.at_least("epsilon", self.epsilon, 0.0)
        checks.positive_cost(self.C)
        checks.one_of("scaling", self.scaling, SCALINGS)
        checks.one_of("target", self.target, ("auto", "classes", "values"))
        checks.whole_number("n_resamples", self.n_resamples, 0)
        checks.fraction("resample_fraction", self.resample_fraction)
        checks.fraction("threshold", self.threshold)
        return super()._check_parameters()

    def _wanted(self, features: int) -> int | None:
        """Return the number of features that is asked for."""
        wanted = self.n_features_to_select
        if wanted is None:
            return None
        if isinstance(wanted, numbers.Integral):
            if checks.whole_number("n_features_to_select", wanted, 1) > features:
                raise ValueError(f"n_features_to_select={wanted} is more than the {features} of X")
            return int(wanted)
        return max(1, int(checks.fraction("n_features_to_select", wanted) * features))

    def _targets(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return one row of targets a machine, and the class of every example."""
        vars(self).pop("classes_", None)
        values = self.target == "values"
        if values or (self.target == "auto" and type_of_target(y, "y") == "continuous"):
            return np.asarray(y, np.float64)[None, :], np.zeros(len(y), int)
        self.classes_, codes = checks.encoded(y)
        return checks.against_rest(codes, len(self.classes_)), codes

    def _path(self, X: Any, targets: np.ndarray, solver: PSMO) -> "SupportPath":
        weight, budget = np.ones(X.shape[0]), solver.cache_size * 1e6
        columns = normalise(as_matrix_data(X), self.scaling, weight, budget)
        dtype, relative = working_dtype(self.dtype), self.solver is None
        return SupportPath(columns, targets, float(self.C), solver, dtype, relative)

    def _describe(self, support: "Support", correlations: np.ndarray, n: int) -> None:
        """Set coefficients, bounds and ranking of the machines."""
        sizes, near = np.abs(support.alpha), np.abs(correlations)
        # Where 0 < |α_j| < C the two are equal, up to the tolerance.
        slope = np.maximum(near, support.epsilon)
        square = 1.0 if self.scaling == "length" else n
        bound = (slope * sizes + 0.5 * square * sizes**2) / n
        first = 0 if len(sizes) == 1 else slice(None)
        self.alpha_, self.importance_bound_ = support.alpha[first], bound[first]
        self.ranking_ = _places(sizes.max(axis=0), near.max(axis=0))

    def _resample(
        self, X: Any, targets: np.ndarray, codes: np.ndarray, solver: PSMO
    ) -> list[Solution]:
        """Count support features on parts of the examples, and rank by that; return solutions."""
        vars(self).pop("selection_frequency_", None)
        if self.n_resamples == 0:
            return []
        generator, solutions = check_random_state(self.random_state), []
        counts, sizes = np.zeros(X.shape[1]), np.zeros(X.shape[1])
        for _ in range(self.n_resamples):
            some = _part(codes, float(self.resample_fraction), generator)
            path = self._path(X[some], targets[:, some], solver)
            share = len(some) / len(codes)
            support = path.at(self.epsilon_ * (share**0.5 if self.scaling == "length" else share))
            counts += support.alpha.any(axis=0)
            sizes += np.abs(support.alpha).max(axis=0)
            solutions += support.solutions
            self.n_iter_ += path.steps
        self.selection_frequency_ = counts / self.n_resamples
        self.ranking_ = _places(counts, sizes, -self.ranking_)
        return solutions

    def _select(self, wanted: int | None) -> None:
        if wanted is not None:
            self.support_ = self.ranking_ <= wanted
        elif self.n_resamples:
            self.support_ = self.selection_frequency_ >= self.threshold
        else:
            self.support_ = np.count_nonzero(np.atleast_2d(self.alpha_), axis=0) > 0
        self.n_features_ = int(np.count_nonzero(self.support_))


def _places(*keys: np.ndarray) -> np.ndarray:
    """Return places from 1 on, the largest first key first, ties by the next, then by the index."""
    order = np.lexsort([-key for key in reversed(keys)])
    places = np.empty(len(order), np.int32)
    places[order] = np.arange(1, len(order) + 1)
    return places


def _part(codes: np.ndarray, share: float, generator: Any) -> np.ndarray:
    """Return a random part of the examples, the same share of every class."""
    members = [np.flatnonzero(codes == code) for code in np.unique(codes)]
    parts = [generator.permutation(some)[: max(1, round(share * len(some)))] for some in members]
    return np.sort(np.concatenate(parts))


class Support(NamedTuple):
    """The machines at one ε; α has one row a machine."""

    epsilon: float
    solutions: list[Solution]
    alpha: np.ndarray

    @property
    def size(self) -> int:
        """The number of features that some machine uses."""
        return int(np.count_nonzero(self.alpha.any(axis=0)))


class SupportPath:
    """Potential SVMs on one K, one per row of `targets`; `relative`: tol is a fraction of ε."""

    def __init__(
        self,
        columns: Columns,
        targets: np.ndarray,
        C: float,
        solver: PSMO,
        dtype: np.dtype,
        relative: bool,
    ) -> None:
        self._solver, self._relative, self._columns = solver, relative, columns
        self._family = PsvmFamily(columns.data, solver, dtype)
        self._targets = [columns.target(y)[0] for y in targets]
        bounds = np.where(columns.scale > 0, C, 0.0)
        self._programs = [problems.psvm(columns.data, t, bounds, 0.0) for t in self._targets]
        self._last: list[Solution | None] = [None] * len(targets)
        self.steps = 0

    @property
    def largest(self) -> float:
        """‖Kᵀy‖∞; at this ε and above nothing is selected."""
        return max(float(np.abs(program.linear).max()) for program in self._programs)

    def at(self, epsilon: float) -> Support:
        """Return the machines at one ε."""
        tol, solve = self.tolerance(epsilon), self._family.solve
        solutions = [
            solve(replace(program, l1=epsilon), None if last is None else last.alpha, tol=tol)
            for program, last in zip(self._programs, self._last, strict=True)
        ]
        self._last = [*solutions]
        self.steps += sum(solution.steps or solution.newton_steps for solution in solutions)
        return Support(epsilon, solutions, np.stack([solution.alpha for solution in solutions]))

    def tolerance(self, epsilon: float) -> float:
        """Return the tolerance at one ε."""
        unit = epsilon or self.largest or 1.0
        return self._solver.tol * (unit if self._relative else 1.0)

    def with_count(self, count: int) -> Support:
        """Return the machines at the largest ε found with at least `count` support features.

        ε is halved until there are so many, then its logarithm is bisected; failing that, the most.
        """
        low = most = self.at(self.largest)
        while low.size < count and low.epsilon > SMALLEST_EPSILON * self.largest:
            low = self.at(low.epsilon / 2)
            most = low if low.size > most.size else most
        if low.size < count:
            return most
        high = 2 * low.epsilon
        for _ in range(BISECTIONS):
            if low.size == count:
                break
            middle = self.at(float(np.sqrt(low.epsilon * high)))
            if middle.size >= count:
                low = middle
            else:
                high = middle.epsilon
        return low

    def correlations(self, support: Support) -> np.ndarray:
        """Return G = Kᵀ(y − Kα), one row a machine."""
        pairs = zip(support.alpha, self._targets, strict=True)
        return np.stack([self._columns.correlations(alpha, target) for alpha, target in pairs])
