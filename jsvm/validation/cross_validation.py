"""Cross-validation of a whole grid of C and γ; what its cells share is computed once."""

import numbers
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from jsvm.precision import default_platform
from jsvm.problems.machines import NORMAL, are_normal, check
from jsvm.solvers import Status
from jsvm.validation.part_training import GridTask, Trained, trainer
from jsvm.validation.parts import Part


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """Scores of a grid.

    Attributes
    ----------
    C, gamma : arrays
        The grid; `gamma` holds the estimator's own if none was given.
    scores : array of shape (number of C, number of γ, folds)
    converged : array of bool of that shape
        Whether all problems of the fold reached the tolerance.
    violation : array of that shape
        The largest violation of the KKT conditions.
    """

    C: np.ndarray
    gamma: np.ndarray
    scores: np.ndarray
    converged: np.ndarray
    violation: np.ndarray

    @property
    def mean_scores(self) -> np.ndarray:
        """Means over the folds."""
        return self.scores.mean(axis=2)

    @property
    def best_index(self) -> tuple[int, int]:
        """Place of the best mean score; of equal ones that of the first C, then of the first γ."""
        c, g = np.unravel_index(np.nanargmax(self.mean_scores), self.mean_scores.shape)
        return int(c), int(g)

    @property
    def best_C(self) -> float:
        """C of the best mean score."""
        return float(self.C[self.best_index[0]])

    @property
    def best_gamma(self) -> Any:
        """γ of the best mean score."""
        return self.gamma[self.best_index[1]]

    @property
    def best_score(self) -> float:
        """The best mean score."""
        return float(self.mean_scores[self.best_index])


def cross_validate(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    cv: Any = 5,
    C: Iterable[float] | None = None,
    gamma: Iterable[float] | None = None,
    sample_weight: Any = None,
    scoring: Callable[[Any, Any], float] | None = None,
    progress: bool = False,
) -> CrossValidation:
    """Cross-validate an estimator on a grid of C and γ.

    The scores are those of ``GridSearchCV`` with the same folds, to the tolerance of the solver.
    Weights enter the training, not the scores. ``gamma="scale"`` is that of all examples.

    Parameters
    ----------
    estimator : SVC, NuSVC, SVR or NuSVR
        All its other parameters are used as they are.
    X : array or sparse matrix of shape (n, d), or a kernel matrix for 'precomputed'
    y : array of shape (n,)
    cv : int, splitter or iterable of (train, test)
        As in scikit-learn; a number means stratified folds for classes, in the order of the data.
    C, gamma : numbers, optional
        The grid; the estimator's own if not given.
    sample_weight : array of shape (n,), optional
    scoring : function, optional
        ``scoring(y_true, y_predicted)``; by default accuracy, or R² for regression.
    progress : bool
        Show a bar.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from jsvm import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> result = cross_validate(SVC(), X, y, C=[0.1, 1.0, 10.0], gamma=[0.01, 0.1])
    >>> result.mean_scores.shape, round(result.best_score, 2)
    ((3, 2), 0.98)
    """
    if not hasattr(estimator, "_grid_task"):
        raise ValueError(
            f"estimator={estimator!r} cannot be trained in batches; use SVC, NuSVC, SVR or NuSVR, "
            "or scikit-learn's GridSearchCV"
        )
    if C is not None and not hasattr(estimator, "C"):
        raise ValueError(f"{type(estimator).__name__} has no C")
    costs = _grid("C", C, getattr(estimator, "C", 1.0))
    gammas = [None] if gamma is None else list(_grid("gamma", gamma, None))
    task = estimator._grid_task(X, y, sample_weight, cv, scoring)
    kernels = [task.kernel(value) for value in gammas]
    order = np.argsort(costs, kind="stable")
    outcomes = zip(*_run(task, kernels, costs[order], progress), strict=True)
    back = np.argsort(order, kind="stable")
    found = (np.stack(values, axis=1)[back] for values in outcomes)
    own = [getattr(kernel, "gamma", np.nan) for kernel in kernels]
    return CrossValidation(costs, np.array(own if gamma is None else gammas, float), *found)


def _grid(name: str, values: Any, own: Any) -> np.ndarray:
    """Return the grid of a parameter; raise ValueError if it is no list of positive numbers."""
    given = [own] if values is None else list(values)
    if values is None and not isinstance(own, numbers.Real):
        raise ValueError(f"{name}={own!r} of the estimator is no number; give {name}=[...]")
    grid = np.asarray(given, float)
    if grid.ndim != 1 or len(grid) == 0 or not (grid > 0).all() or not np.isfinite(grid).all():
        raise ValueError(f"{name}={given!r} must be one or more positive finite numbers")
    check(grid, name, are_normal, NORMAL)
    return grid


Outcome = tuple[np.ndarray, np.ndarray, np.ndarray]  # scores, converged, violation: (C, folds)


def _run(
    task: GridTask, kernels: Sequence[Any], costs: np.ndarray, progress: bool
) -> list[Outcome]:
    problems = [task.parts(train) for train, _ in task.folds]
    train = trainer(task, kernels, [part for parts in problems for part in parts], costs)
    workers = min(len(kernels), os.cpu_count() or 1) if default_platform() == "cpu" else 1
    with ThreadPoolExecutor(workers) as pool:
        outcomes = pool.map(lambda k: _scored(task, problems, train(k)), kernels)
        if progress:
            from tqdm.auto import tqdm

            outcomes = tqdm(outcomes, total=len(kernels), unit=" kernels", desc="jsvm")
        return list(outcomes)


def _scored(task: GridTask, problems: list[list[Part]], trained: Trained) -> Outcome:
    """Return scores, convergence and violations, (C, folds) each."""
    shape = trained.status.shape[1], len(problems)
    scores, converged, violation = np.zeros(shape), np.zeros(shape, bool), np.zeros(shape)
    first = 0
    for f, (parts, (_, test)) in enumerate(zip(problems, task.folds, strict=True)):
        mine = slice(first, first + len(parts))
        first += len(parts)
        converged[:, f] = (trained.status[mine] == Status.CONVERGED).all(axis=0)
        violation[:, f] = trained.violation[mine].max(axis=0)
        for c in range(shape[0]):
            scores[c, f] = task.score(test, trained.values[mine, c][:, test].T)
    return scores, converged, violation
