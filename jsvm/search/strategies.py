"""The five strategies of Glasmachers 2008, chapter 12: an objective each, and a search for it.

    cross_validation   5-fold error                         CMA-ES, 100√n generations
    kta                kernel target alignment, then C by   iRprop⁺, 100√n steps, and a grid
                       5-fold error
    span_bound         span bound                           iRprop⁺, 100√n steps
    likelihood         log-likelihood of random splits      NoisyRprop, 10 000√n steps
    posterior          that with a prior                    NoisyRprop, 10 000√n steps

n is the number of hyperparameters. `budget` replaces the number of steps or generations. A search
starts from a kernel, or from the Gaussian kernel of a name with the width of Jaakkola's heuristic;
more exactly from the best point of a coarse grid around it, which the thesis does not have. With
``scout=False`` it starts from the kernel itself and C = 1. With more than two classes the objective
is the sum over all pairs of classes.
"""

import inspect
import math
import numbers
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.tree_util import Partial

from jsvm.kernels import ARD, RBF, GeneralGaussian, Kernel
from jsvm.numerics.arrays import as_key, repeat_first, widened
from jsvm.objectives.priors import GaussianPrior, median_heuristic
from jsvm.precision import scope, working_dtype
from jsvm.search import pairs as of_pairs
from jsvm.search.cma_es import cma_es
from jsvm.search.gradient import first_values, gradient
from jsvm.search.objective_grid import grid, scouted
from jsvm.search.pairs import Pairs, pair_folds, pairs_of
from jsvm.search.problem import SearchResult
from jsvm.search.space import Space

__all__ = ["cross_validation", "kta", "likelihood", "posterior", "span_bound"]

COSTS = np.logspace(-2, 4, 25)  # of the grid that follows the alignment: four values a decade
START_COST = 1.0  # without scouting
STEPS, NOISY_STEPS = 100, 10_000  # times √n: Glasmachers 2008, section 12.1
MEDIAN_EXAMPLES = 1000  # about so many are enough for the median heuristic

PARAMETERS = """
    Parameters
    ----------
    X : array of shape (n, d)
    y : array of shape (n,)
        Labels of two or more classes.
    kernel : {'rbf', 'ard', 'general'} or Kernel
        Radial, diagonal or general Gaussian kernel, or a kernel to start from.
    key : int or key
        Of the folds, the splits and the evolution strategy.
    budget : int, optional
        Generations of the evolution strategy, or steps along the gradient.
    progress : bool
        Show a bar.
    **options
        `time_limit`, `callback` and `dtype` of the search; `scout=False` to start from the kernel
        itself; `padded=True` to pad the data to one of few shapes, for which programs of earlier
        searches can be used again.
"""


class Task(NamedTuple):
    """What a strategy works on; `sample` holds examples and classes for the median heuristic."""

    kernel: Kernel
    X: np.ndarray
    pairs: Pairs
    sample: tuple[np.ndarray, np.ndarray]
    key: Any
    budget: int | None
    scout: bool
    options: dict[str, Any]  # of the search: progress, time_limit, callback, dtype

    @classmethod
    def of(
        cls, X: Any, y: Any, kernel: Any, key: Any, budget: int | None, options: dict[str, Any]
    ) -> "Task":
        """Check the arguments of a strategy and make its pairs of classes."""
        unknown = set(options) - {"progress", "time_limit", "callback", "dtype", "padded", "scout"}
        if unknown:
            raise TypeError(f"unknown option {sorted(unknown)[0]!r}")
        pad, scout = options.pop("padded", False), options.pop("scout", True)
        X, y = np.asarray(X), np.asarray(y)
        X = X if np.issubdtype(X.dtype, np.floating) else X.astype(float)
        if X.ndim != 2 or y.shape != X.shape[:1]:
            shapes = f"{X.shape}, {y.shape}"
            raise ValueError(f"X and y must be one row and one label an example: {shapes}")
        if not np.isfinite(X).all():
            raise ValueError("X must be finite")
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError("y holds one class only; a model is selected for two or more")
        step = max(1, len(X) // MEDIAN_EXAMPLES)
        sample = X[::step], codes[::step]
        with scope(working_dtype(options.get("dtype"))):
            start = starting_kernel(kernel, *sample)
        if start.runs_on_host():
            raise ValueError("kernel: one that runs on the host has no parameters to search for")
        size = None
        if pad:
            X = widened(start, X)
            X = repeat_first(X, _grown(len(X)))
            size = _grown(int(np.sort(np.bincount(codes))[-2:].sum()))  # of the largest pair
        return cls(start, X, pairs_of(codes, size), sample, key, budget, scout, options)

    def seed(self) -> int:
        """Return a seed, drawn from the key."""
        return int(jax.random.randint(as_key(self.key), (), 0, 2**31 - 1))

    def start(
        self, objective: Any, y: Any, with_cost: bool = True, **given: Any
    ) -> tuple[Kernel, float | None]:
        """Return kernel and C from which a search starts."""
        if not self.scout:
            return self.kernel, START_COST if with_cost else None
        given |= {"with_cost": with_cost, "dtype": self.options.get("dtype")}
        return scouted(objective, self.kernel, self.X, y, **given)

    def descend(
        self, objective: Any, kernel: Kernel, C: Any, factor: int, **given: Any
    ) -> SearchResult:
        """Follow the gradient for `factor` √n steps, or those of the budget."""
        steps = math.ceil(factor * math.sqrt(Space.of(kernel, C).size))
        if self.budget is not None:
            steps = self.budget
            if not isinstance(steps, numbers.Integral) or steps < 1:
                raise ValueError(f"budget={steps!r} must be a whole number of steps, at least 1")
        given |= self.options
        return gradient(objective, kernel, self.X, self.pairs, C=C, steps=int(steps), **given)


def strategy(search: Callable[..., SearchResult]) -> Callable[..., SearchResult]:
    """Make a public strategy of a function of a :class:`Task` and of options of its own."""
    own = list(inspect.signature(search).parameters)[1:]

    def call(
        X: Any,
        y: Any,
        kernel: Any = "rbf",
        *,
        key: Any = 0,
        budget: int | None = None,
        progress: bool = False,
        **options: Any,
    ) -> SearchResult:
        given = {name: options.pop(name) for name in own if name in options}
        options["progress"] = progress
        with scope(np.dtype("float32")):  # the keys are those of the caller's precision
            return search(Task.of(X, y, kernel, key, budget, options), **given)

    summary, _, rest = (search.__doc__ or "").partition("\n")
    call.__doc__ = f"{summary}\n{PARAMETERS}{rest}"
    call.__name__ = call.__qualname__ = search.__name__
    return call


@strategy
def cross_validation(task: Task) -> SearchResult:
    """Minimise the 5-fold cross-validation error with CMA-ES.

    Examples
    --------
    >>> from jsvm import data
    >>> X, y = data.chess_board(2, 2, size=60, key=0)
    >>> bool(cross_validation(X, y, budget=3).value < 0.5)
    True
    """
    seed = task.seed()
    folds = pair_folds(task.pairs, seed)
    kernel, C = task.start(of_pairs.held_out_errors, folds)
    given: Any = {"C": C, "generations": task.budget, "seed": seed} | task.options
    return cma_es(of_pairs.held_out_errors, kernel, task.X, folds, **given)


@strategy
def kta(task: Task) -> SearchResult:
    """Maximise the kernel target alignment with iRprop⁺, then choose C by 5-fold error.

    Returns
    -------
    SearchResult
        `value` is the alignment; the errors are `history["error"]`, at the `history["C"]`.

    Examples
    --------
    >>> from jsvm import data
    >>> X, y = data.chess_board(2, 2, size=60, key=0)
    >>> bool(kta(X, y, budget=20).value > 0)
    True
    """
    given: Any = {"with_cost": False, "maximise": True, "evaluate": first_values}
    kernel, C = task.start(of_pairs.target_alignment, task.pairs, **given)
    found = task.descend(of_pairs.target_alignment, kernel, C, STEPS, maximise=True)
    folds, dtype = pair_folds(task.pairs, task.seed()), task.options.get("dtype")
    errors = grid(of_pairs.held_out_errors, found.kernel, task.X, folds, C=COSTS, dtype=dtype)
    history = found.history | {"C": COSTS, "error": errors.history["value"][0]}
    return SearchResult(found.kernel, errors.C, found.value, history, found.status)


@strategy
def span_bound(task: Task) -> SearchResult:
    """Minimise the span bound with iRprop⁺. Deterministic; `key` is ignored.

    Examples
    --------
    >>> from jsvm import data
    >>> X, y = data.chess_board(2, 2, size=40, key=0)
    >>> result = span_bound(X, y, budget=5)
    >>> bool(result.value <= result.history["value"][0])
    True
    """
    kernel, C = task.start(of_pairs.span, task.pairs, evaluate=first_values)
    return task.descend(of_pairs.span, kernel, C, STEPS)


@strategy
def likelihood(task: Task) -> SearchResult:
    """Maximise the log-likelihood of random hold-out sets, a new one every step, with NoisyRprop.

    Examples
    --------
    >>> from jsvm import data
    >>> X, y = data.chess_board(2, 2, size=60, key=0)
    >>> bool(likelihood(X, y, budget=50).value < 0)
    True
    """
    return _noisy(task, of_pairs.likelihood)


@strategy
def posterior(task: Task, prior: Any = None) -> SearchResult:
    """Maximise likelihood times prior with NoisyRprop.

    The option `prior` is a function ``prior(kernel, C)``, a log-density; by default that of
    :class:`jsvm.objectives.GaussianPrior` around Jaakkola's heuristic.

    Examples
    --------
    >>> from jsvm import data
    >>> X, y = data.chess_board(2, 2, size=60, key=0)
    >>> bool(posterior(X, y, budget=50).value < 0)
    True
    """
    if prior is None:
        with scope(working_dtype(task.options.get("dtype"))):
            prior = GaussianPrior.around(*task.sample)
    elif not callable(prior):
        raise ValueError(f"prior={prior!r} must be a function of kernel and C")
    # Only pytrees can be passed to a compiled program; a GaussianPrior is one.
    prior = prior if isinstance(prior, GaussianPrior) else Partial(prior)
    return _noisy(task._replace(pairs=task.pairs._replace(prior=prior)), of_pairs.posterior)


def _noisy(task: Task, objective: Any) -> SearchResult:
    """Maximise a random objective with NoisyRprop."""
    first, second = jax.random.split(as_key(task.key))
    given: Any = {"key": first, "maximise": True, "evaluate": first_values}
    kernel, C = task.start(objective, task.pairs, **given)
    return task.descend(objective, kernel, C, NOISY_STEPS, key=second, maximise=True)


def starting_kernel(kernel: Any, X: np.ndarray, y: np.ndarray) -> Kernel:
    """Return the kernel from which a search starts: that given, or one of the width for X and y."""
    if isinstance(kernel, Kernel):
        return kernel
    features = X.shape[1]
    names = {
        "rbf": lambda gamma: RBF(gamma),
        "ard": lambda gamma: ARD(np.full(features, gamma)),
        "general": lambda gamma: GeneralGaussian(np.sqrt(2 * gamma) * np.eye(features)),
    }
    if not isinstance(kernel, str) or kernel not in names:
        raise ValueError(f"kernel={kernel!r} must be a Kernel or one of {sorted(names)}")
    return names[kernel](float(median_heuristic(X, y)))


def _grown(n: int) -> int:
    """Return one of few sizes: at most an eighth more than n, and a multiple of at least eight."""
    step = max(8, (1 << (n - 1).bit_length()) // 16)
    return -(-n // step) * step
