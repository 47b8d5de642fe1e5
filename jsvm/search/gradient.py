"""Search along gradients, with any optax transformation.

All steps of a round are one program: value and gradient of the objective with respect to the
hyperparameters (:mod:`jsvm.search.space`), the step of the optimiser, a new key. Between two rounds
the host shows how things are and looks at the clock.
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
from jsvm.numerics.keys import as_key
from jsvm.optim import irprop_plus, noisy_rprop
from jsvm.precision import scope, working_dtype
from jsvm.search.problem import Objective, Problem, as_data
from jsvm.search.result import CONVERGED, FINISHED, SearchResult
from jsvm.search.space import Space
from jsvm.search.watch import Callback, Watch

LONGEST_ROUND = 1000  # steps
SECONDS = 0.5  # of a round
FIRST_ROUND = 10
WINDOW = 10  # steps in which a search that has converged does not move
TAIL = 0.25  # of the steps of a random search, over which its result is the mean


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
        if these are None here. A function that is made anew for every call is compiled anew.
    kernel : Kernel
        The start. Every real number in it is searched for, positive ones by their logarithm.
    X, y : arrays
        Handed on to the objective; any pytrees of arrays.
    C : float or None
        The start; None if the objective does not know C.
    key : int or key, optional
        Makes the objective a random one: every evaluation gets a key of its own.
    maximise : bool
        Look for large values.
    optimizer : optax.GradientTransformation, optional
        By default iRprop⁺, and NoisyRprop for a random objective.
    steps : int
        Evaluations of value and gradient.
    tol : float
        A search without randomness ends when all logarithms change by less in ten steps.
    restarts : int
        Further searches, from normally distributed logarithms around the start; the best counts.
    spread : float
        Standard deviation of these.
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
            Problem(objective, space, maximise, key is not None),
            as_data(kernel, X, y, chosen),
            optimizer=_default(key is not None) if optimizer is None else optimizer,
            steps=steps,
            tol=tol,
            watch=partial(Watch, steps, time_limit, progress, callback),
        )
        keys = jax.random.split(jax.random.key(0) if key is None else as_key(key), restarts + 1)
        starts = [start]
        for own in keys[1:]:
            shift = jax.random.normal(jax.random.fold_in(own, 1), start.shape)
            starts.append(start + spread * np.asarray(shift, float))
        results = [run(theta, own) for theta, own in zip(starts, keys, strict=True)]
    sign = -1.0 if maximise else 1.0
    return min(results, key=lambda result: np.nan_to_num(sign * result.value, nan=np.inf))


@lru_cache
def _default(random: bool) -> Any:
    """Return an optimiser whose steps are those of logarithms."""
    return noisy_rprop(0.1, largest=1.0) if random else irprop_plus(0.1, largest=1.0)


def first_values(problem: Problem, data: Any, thetas: np.ndarray, key: Any) -> np.ndarray:
    """Return what is to be minimised at the rows of `thetas`; all see the same key.

    It is the program of the search that computes them, with their gradients: compiling another one
    would take longer.
    """
    optimizer = _with_value(_default(problem.random))
    values = []
    for theta in thetas:
        start = jnp.asarray(theta, float)
        given = start, _initial(start, optimizer), key, data, problem.space.limits(theta)
        values.append(_round(*given, np.int32(1), problem, optimizer)[3][0])
    return np.asarray(jax.device_get(values))


def _search(
    problem: Problem,
    data: Any,
    theta: Any,
    key: Any,
    *,
    optimizer: Any,
    steps: int,
    tol: float,
    watch: Callable[[], Watch],
) -> SearchResult:
    space, random, sign = problem.space, problem.random, problem.sign
    optimizer = _with_value(optimizer)
    limits = space.limits(theta)
    theta = jnp.asarray(theta, float)
    state = _initial(theta, optimizer)
    values, thetas = np.zeros(0), np.zeros((0, space.size))
    status, count = FINISHED, FIRST_ROUND
    with watch() as watched:
        while watched.running and status == FINISHED:
            count = min(count, watched.left)
            begin = time.monotonic()
            theta, state, key, found, places = _round(
                theta, state, key, data, limits, np.int32(count), problem, optimizer
            )
            values = np.concatenate([values, np.asarray(found)[:count]])
            thetas = np.concatenate([thetas, np.asarray(places)[:count]])
            taken = time.monotonic() - begin
            end = None if random else _converged(thetas, tol)
            if end is not None:
                status, values, thetas = CONVERGED, values[:end], thetas[:end]
            watched.took(count, sign * float(values[-1]))
            count = int(np.clip(count * SECONDS / max(taken, 1e-9), 1, LONGEST_ROUND))
            count = min(count, 10 * len(values))  # the first one compiled
    status = status if watched.status == FINISHED else watched.status
    if not len(values):  # interrupted before the first round was over
        values, thetas = np.full(1, np.nan), np.asarray(theta)[None]
    value, place = _chosen(values, thetas, random)
    kernel, C = space.decode(place, data[0])
    return SearchResult(
        kernel,
        None if C is None else float(C),
        sign * value,
        {"value": sign * values} | space.history(thetas, data[0]),
        status,
    )


def _converged(thetas: np.ndarray, tol: float) -> int | None:
    """Return after which multiple of ten steps the search had converged; rounds play no part."""
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
def _with_value(optimizer: Any) -> Any:
    """Return the transformation as one that may be told the value; the same for the same."""
    return optax.with_extra_args_support(optimizer)


@partial(jax.jit, static_argnames="optimizer")
def _initial(theta: Any, optimizer: Any) -> Any:
    return optimizer.init(theta)


@partial(jax.jit, static_argnames=("problem", "optimizer"))
def _round(
    theta: Any,
    state: Any,
    key: Any,
    data: Any,
    limits: Any,
    count: Any,
    problem: Problem,
    optimizer: Any,
) -> tuple:
    """Take so many steps; also return the values and where they were taken."""

    def step(carry: tuple) -> tuple:
        k, theta, state, key, values, places = carry
        key, own = jax.random.split(key)
        value, slope = jax.value_and_grad(problem.value)(theta, data, own)
        change, state = optimizer.update(slope, state, theta, value=value)
        values, places = values.at[k].set(value), places.at[k].set(theta)
        return k + 1, jnp.clip(theta + change, *limits), state, key, values, places

    values = jnp.zeros(LONGEST_ROUND, theta.dtype)
    places = jnp.zeros((LONGEST_ROUND, theta.shape[0]), theta.dtype)
    start = jnp.int32(0), theta, state, key, values, places
    _, *end = jax.lax.while_loop(lambda carry: carry[0] < count, step, start)
    return tuple(end)
