"""An objective on a grid of kernels and costs, and a coarse grid before another search."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import numpy as np

from jsvm.kernels import Kernel
from jsvm.numerics.arrays import as_key
from jsvm.precision import scope, working_dtype
from jsvm.search.problem import Objective, SearchProblem, SearchResult, as_data, values_of
from jsvm.search.space import Space

# Of the coarse grid.
SCALES = 4.0 ** np.arange(-2, 3)  # factors of γ: widths from a quarter to four times the start's
COSTS = 10.0 ** np.arange(-1, 4)  # values of C, from the underfitted to the nearly hard margin
KEYS = 8  # splits over which the values of a random objective are averaged


def grid(
    objective: Objective,
    kernels: Kernel | Sequence[Kernel],
    X: Any,
    y: Any,
    *,
    C: Iterable[float] | None = (1.0,),
    key: Any = None,
    maximise: bool = False,
    dtype: Any = None,
) -> SearchResult:
    """Evaluate an objective for all kernels and all C.

    Parameters
    ----------
    objective, X, y, maximise, dtype
        As for :func:`jsvm.search.gradient`.
    kernels : Kernel or sequence of kernels
        Of one class, with different parameters.
    C : numbers, optional
        None if the objective does not take C.
    key : int or key, optional
        For a random objective; the same for all kernels and C, so that the splits are the same.

    Returns
    -------
    SearchResult
        The best; of equal ones that of the smallest C, then of the first kernel. The arrays of its
        history have the shape (number of kernels, number of C), or (number of kernels,) without C.

    Examples
    --------
    >>> from jsvm import data, kernels, objectives
    >>> X, y = data.chess_board(2, 2, size=60, key=0)
    >>> widths = [kernels.RBF(gamma) for gamma in (0.01, 0.1, 1.0)]
    >>> result = grid(objectives.cross_validation_error, widths, X, y, C=[1.0, 100.0])
    >>> result.history["value"].shape, float(result.kernel.gamma)
    ((3, 2), 1.0)
    """
    family = [kernels] if isinstance(kernels, Kernel) else list(kernels)
    costs = None if C is None else np.asarray(list(C), float)
    if not family:
        raise ValueError("kernels must hold at least one kernel")
    if costs is not None and not (costs.size and (costs > 0).all() and np.isfinite(costs).all()):
        raise ValueError(f"C={costs.tolist()!r} must be one or more positive finite numbers")
    chosen = working_dtype(dtype)
    with scope(chosen):
        space = Space.of(family[0], C)
        if any(Space.of(kernel, C) != space for kernel in family):
            raise ValueError("kernels must be of one class with parameters of one shape")
        each_cost = [None] if costs is None else costs
        thetas = np.stack([space.encode(kernel, C) for kernel in family for C in each_cost])
        problem = SearchProblem(objective, space, maximise, key is not None)
        data = as_data(family[0], X, y, chosen)
        values = values_of(problem, data, thetas, as_key(0 if key is None else key))
        history = space.history(thetas, family[0])
    shape = (len(family),) if costs is None else (len(family), len(costs))
    history = {name: part.reshape(*shape, *part.shape[1:]) for name, part in history.items()}
    history["value"] = problem.sign * values.reshape(shape)
    values = values.reshape(len(family), -1)
    if not np.isfinite(values).any():
        raise ValueError("the objective is finite nowhere on the grid")
    order = np.arange(values.shape[1]) if costs is None else np.argsort(costs, kind="stable")
    place, k = np.unravel_index(np.nanargmin(values[:, order].T), values.T.shape)
    c = order[place]
    cost = None if costs is None else float(costs[c])
    best = problem.sign * float(values[k, c])
    return SearchResult(family[k], cost, best, history)


def scouted(
    objective: Objective,
    kernel: Kernel,
    X: Any,
    y: Any,
    *,
    with_cost: bool,
    key: Any = None,
    maximise: bool = False,
    dtype: Any = None,
    evaluate: Callable[..., np.ndarray] = values_of,
) -> tuple[Kernel, float | None]:
    """Return the kernel, scaled, and C with the best value of the objective on a coarse grid.

    Where a kernel is far too wide or too narrow, or C far too small, most objectives are flat, and
    the little slope that they have may lead away from the basin of good machines (Glasmachers 2008,
    section 9.4). So the kernel is scaled as a whole by powers of four, with some values of C. A
    random objective is compared on the same few splits. `evaluate` does what `values_of` does.
    """
    chosen = working_dtype(dtype)
    with scope(chosen):
        costs = COSTS if with_cost else [None]
        space = Space.of(kernel, costs[0])
        points = [space.encode(kernel, C) for C in costs]
        thetas = np.stack([space.scaled(theta, scale) for scale in SCALES for theta in points])
        problem = SearchProblem(objective, space, maximise, key is not None)
        keys = [jax.random.key(0)] if key is None else list(jax.random.split(key, KEYS))
        data = as_data(kernel, X, y, chosen)
        values = np.mean([evaluate(problem, data, thetas, own) for own in keys], axis=0)
        best = int(np.argmin(np.where(np.isfinite(values), values, np.inf)))
        found, C = space.decode(thetas[best], kernel)
        return found, None if C is None else float(C)
