"""Search along gradients, with any optax transformation.

All steps of a round are one program: value and gradient of the objective with respect to the
hyperparameters (:mod:`jsvm.search.space`), the step of the optimiser, a new key. Between two rounds
the host moves the progress bar, calls the callback and checks the time limit.
"""

import time
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jsvm.kernels import Kernel
from jsvm.numerics.arrays import as_key
from jsvm.optim import irprop_plus, noisy_rprop
from jsvm.precision import scope, working_dtype
from jsvm.programs import program
from jsvm.search.problem import Callback, Objective, SearchProblem, SearchResult, Watch, as_data
from jsvm.search.space import Space

FIRST_ROUND = 10  # steps; their time, with that of compiling, is the first estimate
LONGEST_ROUND = 1000  # steps; the program keeps so many values and places
LARGEST_GROWTH = 10  # a round has at most so many times the steps taken before it
ROUND_SECONDS = 0.5  # aim for a round: how often the user hears from a search
WINDOW = 10  # steps in which a converged search moves by less than `tol`
TAIL = 0.25  # last part of the steps of a random search whose mean is its result
LOG_STEP, LARGEST_LOG_STEP = 0.1, 1.0  # of the optimisers: first and largest step of a logarithm


def gradient(
    objective: Objective,
    kernel: Kernel,
    X: Any,
    y: Any,
    *,
    C: Any = 1.0,
    key: Any = None,
    maximise: bool = False,
    optimizer: optax.GradientTransformation | None = None,
    steps: int = 100,
    tol: float = 1e-6,
    restarts: int = 0,
    spread: float = 1.0,
    time_limit: float | None = None,
    progress: bool = False,
    callback: Callback | None = None,
    dtype: Any = None,
) -> SearchResult:
    """Follow the gradient of an objective from a kernel and C.

    Parameters
    ----------
    objective : function
        ``objective(kernel, X, y, C=C, key=key)`` as in :mod:`jsvm.objectives`, without `C` or `key`
        if these are None here. A new function object is compiled anew.
    kernel : Kernel
        The start. Every real number in it is searched for, positive ones by their logarithm.
    X, y : arrays
        Arguments of the objective; any pytrees of arrays.
    C : float or None
        The start; None if the objective does not take C.
    key : int or key, optional
        For a random objective: every evaluation gets a key of its own.
    maximise : bool
        Look for large values.
    optimizer : optax.GradientTransformation, optional
        By default iRprop⁺, and NoisyRprop for a random objective.
    steps : int
        Evaluations of value and gradient.
    tol : float
        A search without randomness ends when all logarithms change by less in ten steps.
    restarts : int
        Further searches, from normally distributed logarithms around the start; the best of all
        searches is returned.
    spread : float
        Standard deviation of these logarithms.
    time_limit : float, optional
        Seconds, for each of the searches.
    progress : bool
        Show a bar.
    callback : function, optional
        Called after every round with a dict of `steps`, `value` and `seconds`; a true result stops
        the search.
    dtype : {'float64', 'float32'}, optional
        By default float64 on a CPU and float32 elsewhere.

    Returns
    -------
    SearchResult
        The best point seen. Values of a random objective cannot be compared; there it is the mean
        of the logarithms over the last quarter of the steps.

    Examples
    --------
    >>> from jsvm import data, kernels, objectives
    >>> X, y = data.chess_board(2, 2, size=60, key=0)
    >>> result = gradient(objectives.kernel_target_alignment, kernels.RBF(0.1), X, y, C=None,
    ...                   maximise=True, steps=40)
    >>> bool(result.value > result.history["value"][0])
    True
    """
    chosen = working_dtype(dtype)
    if steps < 1 or restarts < 0:
        raise ValueError(f"steps={steps} must be at least 1, and restarts={restarts} at least 0")
    with scope(chosen):
        space = Space.of(kernel, C)
        start = space.encode(kernel, C)
        run = partial(
            _search,
            SearchProblem(objective, space, maximise, key is not None),
            as_data(kernel, X, y, chosen),
            optimizer=optimizer,
            tol=tol,
            watch=partial(Watch, steps, time_limit, progress, callback),
        )
        keys = jax.random.split(as_key(0 if key is None else key), restarts + 1)
        starts = [start]
        for own in keys[1:]:
            shift = jax.random.normal(jax.random.fold_in(own, 1), start.shape)
            starts.append(start + spread * np.asarray(shift, float))
        results = [run(theta, own) for theta, own in zip(starts, keys, strict=True)]
    sign = -1.0 if maximise else 1.0
    return min(results, key=lambda result: np.nan_to_num(sign * result.value, nan=np.inf))


def first_values(problem: SearchProblem, data: Any, thetas: np.ndarray, key: Any) -> np.ndarray:
    """Do the same as `values_of` with the program of the search: another one is not compiled."""
    values = []
    for theta in thetas:
        start = jnp.asarray(theta, float)
        place = start, _initial(start, problem.random, None), key
        limits = problem.space.limits(theta)
        values.append(_round(place, data, limits, np.int32(1), problem, None)[1][0])
    return np.asarray(jax.device_get(values))


def _search(
    problem: SearchProblem,
    data: Any,
    theta: Any,
    key: Any,
    *,
    optimizer: Any,
    tol: float,
    watch: Callable[[], Watch],
) -> SearchResult:
    limits = problem.space.limits(theta)
    theta = jnp.asarray(theta, float)
    place = theta, _initial(theta, problem.random, optimizer), key
    values, thetas = np.zeros(0), np.zeros((0, problem.space.size))
    count = FIRST_ROUND
    with watch() as watched:
        while watched.running:
            count = min(count, watched.left)
            begin = time.monotonic()
            given = data, limits, np.int32(count), problem, optimizer
            place, found, places = _round(place, *given)
            values = np.concatenate([values, np.asarray(found)[:count]])
            thetas = np.concatenate([thetas, np.asarray(places)[:count]])
            taken = time.monotonic() - begin
            end = None if problem.random else _converged(thetas, tol)
            if end is not None:
                values, thetas = values[:end], thetas[:end]
                watched.converged()
            watched.took(count, problem.sign * float(values[-1]))
            count = int(np.clip(count * ROUND_SECONDS / max(taken, 1e-9), 1, LONGEST_ROUND))
            count = min(count, LARGEST_GROWTH * len(values))
    if not len(values):  # interrupted before the first round was over
        values, thetas = np.full(1, np.nan), np.asarray(theta)[None]
    best = _chosen(values, thetas, problem.random)
    return problem.result(data[0], values, thetas, best, watched.status)


def _converged(thetas: np.ndarray, tol: float) -> int | None:
    """Return after which multiple of `WINDOW` steps the search converged; None if it did not."""
    for end in range(WINDOW, len(thetas) + 1, WINDOW):
        if np.ptp(thetas[end - WINDOW : end], axis=0).max() < tol:
            return end
    return None


def _chosen(values: np.ndarray, thetas: np.ndarray, random: bool) -> tuple[float, np.ndarray]:
    """Return value and place of the result."""
    if random:
        tail = max(1, int(TAIL * len(values)))
        return float(np.nanmean(values[-tail:])), thetas[-tail:].mean(axis=0)
    best = int(np.nanargmin(values)) if np.isfinite(values).any() else 0
    return float(values[best]), thetas[best]


@lru_cache
def _transformation(random: bool, optimizer: Any) -> Any:
    """Return the optimiser, by default one whose steps are those of logarithms."""
    if optimizer is None:
        optimizer = (noisy_rprop if random else irprop_plus)(LOG_STEP, largest=LARGEST_LOG_STEP)
    return optax.with_extra_args_support(optimizer)  # its update accepts `value`


@program(static_argnames=("random", "optimizer"))
def _initial(theta: Any, random: bool, optimizer: Any) -> Any:
    return _transformation(random, optimizer).init(theta)


@program(static_argnames=("problem", "optimizer"))
def _round(
    place: tuple, data: Any, limits: Any, count: Any, problem: SearchProblem, optimizer: Any
) -> tuple:
    """Take `count` steps from θ, state and key; also return the values and their places."""
    update = _transformation(problem.random, optimizer).update

    def step(carry: tuple) -> tuple:
        k, (theta, state, key), values, places = carry
        key, own = jax.random.split(key)
        value, slope = jax.value_and_grad(problem.value)(theta, data, own)
        change, state = update(slope, state, theta, value=value)
        values, places = values.at[k].set(value), places.at[k].set(theta)
        return k + 1, (jnp.clip(theta + change, *limits), state, key), values, places

    values = jnp.zeros(LONGEST_ROUND, place[0].dtype)
    places = jnp.zeros((LONGEST_ROUND, *place[0].shape), place[0].dtype)
    start = jnp.int32(0), place, values, places
    return jax.lax.while_loop(lambda carry: carry[0] < count, step, start)[1:]
