"""Feature selection with the Potential SVM."""

import numbers
from typing import Any, ClassVar

import numpy as np
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from jsvm.estimators.columns import normalised_columns
from jsvm.estimators.declaration import estimator
from jsvm.estimators.kernel_estimator import Estimator
from jsvm.estimators.parameters import (
    at_least,
    fraction,
    one_of,
    positive_cost,
    whole_number,
)
from jsvm.estimators.support_features import Support, SupportPath
from jsvm.estimators.training_data import FLOATS, against_rest, encoded, from_device
from jsvm.precision import working_dtype
from jsvm.problems.matrix_data import SCALINGS, as_matrix_data
from jsvm.solvers import PSMO, Solution

DEFAULT_EPSILON = 0.2  # of ‖Kᵀy‖∞, if neither ε nor a number of features is given


@estimator
class PSVMSelector(SelectorMixin, Estimator):
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
        Number of features, or their fraction. ε is searched for: as large as possible with at least
        so many support features, of which those with the largest |α_j| are selected. There are
        never many more support features than examples unless C is finite; what is missing is taken
        in the order of `ranking_`. With `epsilon` given it is not searched for, and the best ranked
        are selected.
    C : float
        Bound of |α_j|.
    scaling : {'length', 'variance'}
        Columns have mean zero and length one, or variance one as in the paper: the same
        machines, with ε √n times as large and C √n times as small.
    target : {'auto', 'classes', 'values'}
        Whether y are labels of classes or real values. 'auto' decides by scikit-learn's
        `type_of_target`: strings, booleans and whole numbers are labels, even as floats, so give
        'values' for a regression on counts. Of more than two classes each is told from the rest,
        and the largest |α_j| counts.
    n_resamples : int
        Number of further runs on random parts of the examples ("multiple runs to obtain stable
        results", section 3.3.3), of the same fraction of every class and without repetition.
        Selection and ranking are then by how often a feature is a support feature, then by its mean
        |α_j|. ε is that of all examples, times √(m/n) (m/n for scaling='variance') for m of n
        examples, which is the same threshold of correlation.
    resample_fraction : float in (0, 1]
        Of the examples in a run.
    threshold : float in (0, 1]
        With `n_resamples`: a feature is selected if it is a support feature in at least this
        fraction of the runs, unless `n_features_to_select` is given.
    tol : float
        Largest violation of the KKT conditions, as a fraction of ε.
    cache_size : float
        Megabytes for K.
    max_iter : int
        Budget of steps of each machine; −1 is an automatic, finite one.
    time_limit : float or None
        Seconds for each machine.
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

    _solver_type: ClassVar[Any] = PSMO

    epsilon: Any = None
    n_features_to_select: Any = None
    C: Any = np.inf
    scaling: Any = "length"
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
        """Find the support features of `X` for labels or values `y`.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, P)
        y : array of shape (n,)
        """
        solver = self._check_parameters()
        X, y = validate_data(
            self, from_device(X), y, dtype=FLOATS, accept_sparse="csr", ensure_min_samples=2
        )
        X = X.astype(np.float64, copy=False)
        targets, codes = self._targets(y)
        wanted = self._wanted(X.shape[1])
        path = self._path(X, targets, solver)
        if self.epsilon is None and wanted is not None:
            support = path.with_count(wanted)
        else:
            support = path.at(
                DEFAULT_EPSILON * path.largest if self.epsilon is None else float(self.epsilon)
            )
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
            at_least("epsilon", self.epsilon, 0.0)
        positive_cost(self.C)
        one_of("scaling", self.scaling, SCALINGS)
        one_of("target", self.target, ("auto", "classes", "values"))
        whole_number("n_resamples", self.n_resamples, 0)
        fraction("resample_fraction", self.resample_fraction)
        fraction("threshold", self.threshold)
        return self._configured_solver()

    def _wanted(self, features: int) -> int | None:
        """Return the number of features that is asked for."""
        wanted = self.n_features_to_select
        if wanted is None:
            return None
        if isinstance(wanted, numbers.Integral):
            if whole_number("n_features_to_select", wanted, 1) > features:
                raise ValueError(f"n_features_to_select={wanted} is more than the {features} of X")
            return int(wanted)
        return max(1, int(fraction("n_features_to_select", wanted) * features))

    def _targets(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return one row of targets a machine, and the class of every example."""
        vars(self).pop("classes_", None)
        values = self.target == "values"
        if values or (self.target == "auto" and type_of_target(y, "y") == "continuous"):
            return np.asarray(y, np.float64)[None, :], np.zeros(len(y), int)
        self.classes_, codes = encoded(y)
        return against_rest(codes, len(self.classes_)), codes

    def _path(self, X: Any, targets: np.ndarray, solver: PSMO) -> SupportPath:
        weight, budget = np.ones(X.shape[0]), solver.cache_size * 1e6
        columns = normalised_columns(as_matrix_data(X), self.scaling, weight, budget)
        dtype, relative = working_dtype(self.dtype), self.solver is None
        return SupportPath(columns, targets, float(self.C), solver, dtype, relative)

    def _describe(self, support: Support, correlations: np.ndarray, n: int) -> None:
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
