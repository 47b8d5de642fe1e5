"""Support vector classification that chooses its kernel and C by itself."""

from dataclasses import field
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from jsvm import problems
from jsvm.estimators.checks import encoded, whole_number
from jsvm.estimators.classifier import Classifier
from jsvm.estimators.declaration import estimator
from jsvm.estimators.two_class import Formulation
from jsvm.kernels import Kernel
from jsvm.numerics.arrays import is_sparse

# Modest numbers of generations or steps of the strategies.
BUDGETS = {"cross_validation": 30, "kta": 100, "span_bound": 30}
BUDGETS |= {"likelihood": 1000, "posterior": 1000}


@estimator
class Selecting:
    """The parameter that comes before `kernel`.

    The fields of the last base class come first in a dataclass.

    Parameters
    ----------
    strategy : {'posterior', 'likelihood', 'span_bound', 'kta', 'cross_validation'} or callable
        One of :mod:`jsvm.search.strategies`; or ``strategy(X, y, kernel, key=, budget=,
        progress=)`` that returns something with `kernel`, `C`, `value` and `history`, as they do.
    """

    strategy: Any = field(default="posterior", kw_only=False)


@estimator
class AutoSVC(Classifier, Selecting):
    """Support vector classifier whose kernel parameters and C are selected, then fitted to all.

    With more than two classes one kernel and one C serve all machines, and the objective of the
    search is summed over all pairs of classes.

    Parameters
    ----------
    kernel : {'rbf', 'ard', 'general'} or Kernel
        Gaussian kernel with one width, with one for every feature, or with any covariance; or a
        kernel from whose parameters the search starts.
    budget : int or None
        Steps or generations of the search. None is a modest number of them: 100 for 'kta', 30 for
        'span_bound' and 'cross_validation', 1000 for all others. The numbers of the paper, 100√n or
        10 000√n for n parameters, are the defaults of the strategies themselves.
    prior : function or None
        ``prior(kernel, C)``, a log-density for the strategy 'posterior', see
        :func:`jsvm.objectives.log_posterior`.
    max_examples : int or None
        The search sees so many examples at most, drawn at random; the fit sees all.
    time_limit : float or None
        Seconds for the search, and for the fit after it.
    progress : bool
        Show bars.
    random_state : int, RandomState or None
        Of the splits in the search, of the examples that it sees, and of the calibration.

    Attributes
    ----------
    kernel_, C_ : Kernel, float
        What was selected.
    best_value_ : float
        The objective there.
    history_ : dict of arrays
        The objective and the hyperparameters during the search, see
        :class:`jsvm.search.SearchResult`.

    Examples
    --------
    >>> from jsvm import data
    >>> X, y = data.chess_board(2, 2, size=100, key=0)
    >>> machine = AutoSVC(budget=100, random_state=0).fit(X, y)
    >>> bool(machine.score(X, y) > 0.9)
    True
    """

    # The machines that share this code have these parameters; here they are fixed.
    gamma, degree, coef0, class_weight = "scale", 3, 0.0, None
    max_iter, solver, warm_start, callback, checkpoint = -1, None, False, None, None

    budget: Any = None
    prior: Any = None
    max_examples: Any = 1000

    # No weights: the splits of a search do not treat an example of weight two as two of them.
    def fit(self, X: Any, y: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Select kernel and C, then train on the rows of `X` with labels `y`."""
        self._check_parameters()
        points, labels = self._read(X, y, ensure_min_samples=2)
        found = self._select(points, labels)
        self.kernel_, self.C_ = found.kernel, float(found.C)
        self.best_value_, self.history_ = float(found.value), found.history
        return super().fit(X, y)

    def _select(self, X: Any, y: np.ndarray) -> Any:
        """Return what the strategy finds, a SearchResult or the like."""
        _, codes = encoded(y)
        random = check_random_state(self.random_state)
        some = _some(random, codes, self.max_examples)
        X = X[some].toarray() if is_sparse(X) else np.asarray(X)[some]
        given: Any = {"key": random.randint(2**31 - 1), "progress": bool(self.progress)}
        given["budget"] = BUDGETS.get(self.strategy, 1000) if self.budget is None else self.budget
        whole_number("budget", given["budget"], 1)
        strategy: Any = self.strategy
        if not callable(strategy):
            from jsvm.search import strategies  # here: other estimators do not wait for optax

            strategy = getattr(strategies, strategy)
            given |= {"time_limit": self.time_limit, "dtype": self.dtype, "padded": True}
        if self.prior is not None:
            given["prior"] = self.prior
        return strategy(X, codes[some], self.kernel, **given)

    def _check_parameters(self) -> Any:
        known = isinstance(self.strategy, str) and self.strategy in BUDGETS
        if not known and not callable(self.strategy):
            raise ValueError(f"strategy={self.strategy!r} must be one of {sorted(BUDGETS)}")
        if self.prior is not None and known and self.strategy != "posterior":
            raise ValueError(f"prior is for strategy='posterior', not {self.strategy!r}")
        if self._precomputed:
            raise ValueError("kernel='precomputed' has no parameters to select; use SVC")
        if self.max_examples is not None:
            whole_number("max_examples", self.max_examples, 2)
        return super()._check_parameters()

    def _formulation(self) -> Formulation:
        return Formulation(problems.c_svc)

    def _cost(self, n: int, present: np.ndarray, codes: np.ndarray) -> Any:
        return self.C_

    def _kernel_with(self, gamma: Any, X: Any, weight: np.ndarray) -> Kernel:
        return self.kernel_


def _some(random: Any, codes: np.ndarray, most: int | None) -> np.ndarray:
    """Return examples for the search: all, or so many, with some of every class."""
    n = len(codes)
    if most is None or n <= most:
        return np.arange(n)
    order = random.permutation(n)
    # The first ones of every class come first, then the others as they are.
    rank = np.empty(n, int)
    for k in np.unique(codes):
        own = np.flatnonzero(codes[order] == k)
        rank[own] = np.where(np.arange(len(own)) < 3, -1, own)
    return np.sort(order[np.argsort(rank, kind="stable")[:most]])
