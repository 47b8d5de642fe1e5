"""Search by CMA-ES, for objectives without a derivative (Glasmachers 2008, section 12.1).

The package `cma` proposes a population; its members are evaluated in one batch.
"""

import math
import warnings
from typing import Any

import jax
import numpy as np

from jsvm.kernels import Kernel
from jsvm.numerics.arrays import as_key
from jsvm.precision import scope, working_dtype
from jsvm.search.problem import (
    Callback,
    Objective,
    SearchProblem,
    SearchResult,
    Watch,
    as_data,
    values_of,
)
from jsvm.search.space import Space

SMALLEST_SPREAD = 1e-9  # standard deviation of the logarithms below which the search has converged
HUGE = 1e300  # in place of an infinite value, so that NaN, as ∞, ranks after it


def cma_es(
    objective: Objective,
    kernel: Kernel,
    X: Any,
    y: Any,
    *,
    C: Any = 1.0,
    key: Any = None,
    maximise: bool = False,
    generations: int | None = None,
    population: int | None = None,
    spread: float = 1.0,
    seed: int = 0,
    time_limit: float | None = None,
    progress: bool = False,
    callback: Callback | None = None,
    dtype: Any = None,
) -> SearchResult:
    """Search for the best kernel and C with an evolution strategy that learns its covariance.

    Parameters
    ----------
    objective, kernel, X, y, C, key, maximise, time_limit, progress, callback, dtype
        As for :func:`jsvm.search.gradient`. All members of a population get the same key.
    generations : int, optional
        By default 100√n for n hyperparameters.
    population : int, optional
        By default max(5, ⌊3 log n⌋ + 4).
    spread : float
        Standard deviation of the logarithms in the first population.
    seed : int
        Seed of the evolution strategy.

    Returns
    -------
    SearchResult
        The best point seen; of equal ones the last. Its history has one entry per evaluation.

    Examples
    --------
    >>> from jsvm import data, kernels, objectives
    >>> X, y = data.chess_board(2, 2, size=60, key=0)
    >>> result = cma_es(objectives.cross_validation_error, kernels.RBF(0.1), X, y, generations=3)
    >>> result.evaluations, bool(result.value < 0.5)
    (18, True)
    """
    try:
        import cma
    except ImportError as error:
        raise ImportError(
            "cma_es needs the package cma; install it with pip install 'jsvm[search]'"
        ) from error
    chosen = working_dtype(dtype)
    with scope(chosen):
        space = Space.of(kernel, C)
        n = space.size
        population = default_population(n) if population is None else population
        generations = default_generations(n) if generations is None else generations
        if generations < 1 or population < 2:
            raise ValueError("generations must be at least 1 and population at least 2")
        problem = SearchProblem(objective, space, maximise, key is not None)
        data = as_data(kernel, X, y, chosen)
        theta = space.encode(kernel, C)
        low, high = space.limits(theta)
        options = {"popsize": population, "bounds": [low.tolist(), high.tolist()], "verbose": -9}
        # In one dimension cma warns about its own default.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            strategy: Any = cma.CMAEvolutionStrategy(theta, spread, options | {"seed": seed + 1})
        keys = jax.random.split(as_key(0 if key is None else key), generations)
        values, thetas = [], []
        with Watch(generations, time_limit, progress, callback) as watch:
            while watch.running:
                members = np.asarray(strategy.ask())
                found = values_of(problem, data, members, keys[watch.done])
                found = np.nan_to_num(np.asarray(found, float), nan=np.inf, posinf=HUGE)
                strategy.tell(list(members), found.tolist())
                values.append(found)
                thetas.append(members)
                watch.took(1, problem.sign * float(found.min()))
                if np.max(strategy.sigma * strategy.stds) < SMALLEST_SPREAD:
                    watch.converged()
        if not values:  # interrupted before the first population was evaluated
            values, thetas = [np.full(1, np.nan)], [theta[None]]
        all_values, all_thetas = np.concatenate(values), np.concatenate(thetas)
        best = len(all_values) - 1 - int(np.argmin(np.nan_to_num(all_values, nan=np.inf)[::-1]))
        place = float(all_values[best]), all_thetas[best]
        return problem.result(kernel, all_values, all_thetas, place, watch.status)


def default_population(n: int) -> int:
    """Return the size of a population for n hyperparameters (Glasmachers 2008, section 12.1)."""
    return max(5, math.floor(3 * math.log(n)) + 4)


def default_generations(n: int) -> int:
    """Return the number of generations for n hyperparameters (Glasmachers 2008, section 12.1)."""
    return math.ceil(100 * math.sqrt(n))
