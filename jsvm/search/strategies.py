"""The five strategies of 004, chapter 12: an objective each, and a search that suits it.

    cross_validation   5-fold error                         CMA-ES, 100√n generations
    kta                kernel target alignment, then C by   iRprop⁺, 100√n steps, and a grid
                       5-fold error
    span_bound         span bound                           iRprop⁺, 100√n steps
    likelihood         log-likelihood of random splits      NoisyRprop, 10 000√n steps
    posterior          that with a prior                    NoisyRprop, 10 000√n steps

n is the number of hyperparameters. `budget` replaces the number of steps or generations. All begin
with a kernel, or with the name of one: then with the radial Gaussian kernel of Jaakkola's
heuristic. The start is the best point of a coarse grid around it (:mod:`jsvm.search.scouting`),
which the paper does not have; ``scout=False`` is to start from the kernel itself and C = 1. With
more than two classes the objective is the sum over all pairs of classes.
"""

import math
import numbers
from typing import Any

import jax
import numpy as np
from jax.tree_util import Partial

from jsvm.kernels import ARD, RBF, GeneralGaussian, Kernel
from jsvm.numerics.keys import as_key
from jsvm.numerics.padding import repeat_first, widened
from jsvm.objectives.priors import GaussianPrior, median_heuristic
from jsvm.precision import scope, working_dtype
from jsvm.search import pairs as of_pairs
from jsvm.search.cma_es import cma_es
from jsvm.search.gradient import first_values, gradient
from jsvm.search.grid import grid
from jsvm.search.pairs import Pairs, pair_folds, pairs_of
from jsvm.search.result import SearchResult
from jsvm.search.scouting import scouted
from jsvm.search.space import Space

__all__ = ["cross_validation", "kta", "likelihood", "posterior", "span_bound"]

COSTS = np.logspace(-2, 4, 25)  # of the grid that follows the alignment
START_COST = 1.0


def cross_validation(
    X: Any,
    y: Any,
    kernel: Any = "rbf",
    *,
    key: Any = 0,
    budget: int | None = None,
    progress: bool = False,
    **options: Any,
) -> SearchResult:
    """Minimise the 5-fold cross-validation error with CMA-ES (004, section 12.1).

    Parameters
    ----------
    X : array of shape (n, d)
    y : array of shape (n,)
        Labels of two or more classes.
    kernel : {'rbf', 'ard', 'general'} or Kernel
        Radial, diagonal or general Gaussian kernel, or a kernel to start from.
    key : int or key
        Of the folds and the evolution strategy.
    budget : int, optional
        Generations.
    progress : bool
        Show a bar.
    **options
        `time_limit`, `callback` and `dtype` of the search; `scout`, see above; and `padded`: pad
        the data to one of few shapes, so that the programs of a search serve others, too.

    Examples
    --------
    >>> from jsvm import data
    >>> X, y = data.chess_board(2, 2, size=60, key=0)
    >>> bool(cross_validation(X, y, budget=3).value < 0.5)
    True
    """
    start, X, pairs, scout, options = _prepared(X, y, kernel, options)
    seed = _seed(key)
    folds = pair_folds(pairs, seed)
    start, C = _start(scout, of_pairs.held_out_errors, start, X, folds, options)
    return cma_es(
        of_pairs.held_out_errors,
        start,
        X,
        folds,
        C=C,
        generations=budget,
        seed=seed,
        progress=progress,
        **options,
    )


def kta(
    X: Any,
    y: Any,
    kernel: Any = "rbf",
    *,
    key: Any = 0,
    budget: int | None = None,
    progress: bool = False,
    **options: Any,
) -> SearchResult:
    """Maximise the kernel target alignment with iRprop⁺, then choose C by 5-fold error.

    Parameters
    ----------
    X, y, kernel, progress, **options
        As for :func:`cross_validation`.
    key : int or key
        Of the folds.
    budget : int, optional
        Steps along the gradient.

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
    start, X, pairs, scout, options = _prepared(X, y, kernel, options)
    steps = _steps(Space.of(start).size, 100, budget)
    objective = of_pairs.target_alignment
    if scout:
        given: Any = {"maximise": True, "dtype": options.get("dtype"), "evaluate": first_values}
        start, _ = scouted(objective, start, X, pairs, with_cost=False, **given)
    found = gradient(
        objective,
        start,
        X,
        pairs,
        C=None,
        maximise=True,
        steps=steps,
        progress=progress,
        **options,
    )
    folds = pair_folds(pairs, _seed(key))
    errors = grid(
        of_pairs.held_out_errors, found.kernel, X, folds, C=COSTS, dtype=options.get("dtype")
    )
    history = found.history | {"C": COSTS, "error": errors.history["value"][0]}
    return SearchResult(found.kernel, errors.C, found.value, history, found.status)


def span_bound(
    X: Any,
    y: Any,
    kernel: Any = "rbf",
    *,
    key: Any = 0,
    budget: int | None = None,
    progress: bool = False,
    **options: Any,
) -> SearchResult:
    """Minimise the span bound with iRprop⁺ (004, section 12.1); takes no chances, nor a key.

    Parameters
    ----------
    X, y, kernel, progress, **options
        As for :func:`cross_validation`.
    key
        Not used.
    budget : int, optional
        Steps along the gradient.

    Examples
    --------
    >>> from jsvm import data
    >>> X, y = data.chess_board(2, 2, size=40, key=0)
    >>> result = span_bound(X, y, budget=5)
    >>> bool(result.value <= result.history["value"][0])
    True
    """
    start, X, pairs, scout, options = _prepared(X, y, kernel, options)
    start, C = _start(scout, of_pairs.span, start, X, pairs, options, evaluate=first_values)
    steps = _steps(Space.of(start, C).size, 100, budget)
    return gradient(of_pairs.span, start, X, pairs, C=C, steps=steps, progress=progress, **options)


def likelihood(
    X: Any,
    y: Any,
    kernel: Any = "rbf",
    *,
    key: Any = 0,
    budget: int | None = None,
    progress: bool = False,
    **options: Any,
) -> SearchResult:
    """Maximise the log-likelihood of random hold-out sets with NoisyRprop (004, section 12.1).

    Parameters
    ----------
    X, y, kernel, progress, **options
        As for :func:`cross_validation`.
    key : int or key
        Of the splits.
    budget : int, optional
        Steps, each with a split of its own.

    Examples
    --------
    >>> from jsvm import data
    >>> X, y = data.chess_board(2, 2, size=60, key=0)
    >>> bool(likelihood(X, y, budget=50).value < 0)
    True
    """
    start, X, pairs, scout, options = _prepared(X, y, kernel, options)
    return _noisy(of_pairs.likelihood, start, X, pairs, key, budget, progress, scout, options)


def posterior(
    X: Any,
    y: Any,
    kernel: Any = "rbf",
    *,
    key: Any = 0,
    budget: int | None = None,
    progress: bool = False,
    prior: Any = None,
    **options: Any,
) -> SearchResult:
    """Maximise likelihood times prior with NoisyRprop (004, section 12.1).

    Parameters
    ----------
    X, y, kernel, progress, **options
        As for :func:`cross_validation`.
    key : int or key
        Of the splits.
    budget : int, optional
        Steps, each with a split of its own.
    prior : function, optional
        ``prior(kernel, C)``, a log-density; by default that of
        :class:`jsvm.objectives.GaussianPrior` around Jaakkola's heuristic.

    Examples
    --------
    >>> from jsvm import data
    >>> X, y = data.chess_board(2, 2, size=60, key=0)
    >>> bool(posterior(X, y, budget=50).value < 0)
    True
    """
    start, points, pairs, scout, options = _prepared(X, y, kernel, options)
    if prior is None:
        with scope(working_dtype(options.get("dtype"))):
            codes = np.unique(y, return_inverse=True)[1]
            prior = GaussianPrior.around(*_some(np.asarray(X), codes))
    elif not callable(prior):
        raise ValueError(f"prior={prior!r} must be a function of kernel and C")
    pairs = pairs._replace(prior=_as_tree(prior))
    return _noisy(of_pairs.posterior, start, points, pairs, key, budget, progress, scout, options)


def starting_kernel(kernel: Any, X: Any, y: Any) -> Kernel:
    """Return the kernel from which a search starts."""
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
    return names[kernel](float(median_heuristic(*_some(X, y))))


def _prepared(
    X: Any, y: Any, kernel: Any, options: dict[str, Any]
) -> tuple[Kernel, np.ndarray, Pairs, bool, dict[str, Any]]:
    """Return the kernel, the points, the pairs of classes, whether to look around, and the rest."""
    options = dict(options)
    unknown = set(options) - {"time_limit", "callback", "dtype", "padded", "scout"}
    if unknown:
        raise TypeError(f"unknown option {sorted(unknown)[0]!r}")
    pad, scout = options.pop("padded", False), options.pop("scout", True)
    X, y = np.asarray(X), np.asarray(y)
    X = X if np.issubdtype(X.dtype, np.floating) else X.astype(float)
    if X.ndim != 2 or y.shape != X.shape[:1]:
        raise ValueError(f"X and y must be one row and one label an example: {X.shape}, {y.shape}")
    if not np.isfinite(X).all():
        raise ValueError("X must be finite")
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError("y holds one class only; a model is selected for two or more")
    with scope(working_dtype(options.get("dtype"))):
        start = starting_kernel(kernel, X, codes)
    if start.runs_on_host():
        raise ValueError("kernel: one that runs on the host has no parameters to search for")
    if not pad:
        return start, X, pairs_of(codes), scout, options
    largest = int(np.sort(np.bincount(codes))[-2:].sum())  # pair of classes
    X = widened(start, X)
    points = repeat_first(X, _grown(len(X)))
    return start, points, pairs_of(codes, _grown(largest)), scout, options


def _grown(n: int) -> int:
    """Return a size of which there are few: at most an eighth more, and at least eight."""
    step = max(8, (1 << (n - 1).bit_length()) // 16)
    return -(-n // step) * step


def _some(X: Any, y: Any) -> tuple[Any, Any]:
    """Return enough examples for a median."""
    step = max(1, len(X) // 1000)
    return X[::step], y[::step]


def _as_tree(prior: Any) -> Any:
    """Return a function as what may be handed to a compiled program."""
    return prior if isinstance(prior, GaussianPrior) else Partial(prior)


def _noisy(
    objective: Any,
    start: Kernel,
    X: Any,
    pairs: Pairs,
    key: Any,
    budget: int | None,
    progress: bool,
    scout: bool,
    options: dict[str, Any],
) -> SearchResult:
    first, second = jax.random.split(as_key(key))
    given: Any = {"key": first, "maximise": True, "evaluate": first_values}
    start, C = _start(scout, objective, start, X, pairs, options, **given)
    steps = _steps(Space.of(start, C).size, 10_000, budget)
    given = {"C": C, "key": second, "maximise": True, "progress": progress}
    return gradient(objective, start, X, pairs, steps=steps, **given, **options)


def _start(
    scout: bool,
    objective: Any,
    kernel: Kernel,
    X: Any,
    y: Any,
    options: dict[str, Any],
    **given: Any,
) -> tuple[Kernel, Any]:
    """Return where the search starts."""
    if not scout:
        return kernel, START_COST
    dtype = options.get("dtype")
    return scouted(objective, kernel, X, y, with_cost=True, dtype=dtype, **given)


def _steps(n: int, factor: int, budget: int | None) -> int:
    if budget is None:
        return math.ceil(factor * math.sqrt(n))
    if not isinstance(budget, numbers.Integral) or budget < 1:
        raise ValueError(f"budget={budget!r} must be a whole number of steps, at least 1")
    return int(budget)


def _seed(key: Any) -> int:
    return int(jax.random.randint(as_key(key), (), 0, 2**31 - 1))
