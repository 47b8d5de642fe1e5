"""An objective on a grid of kernels and costs, evaluated in one batch."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from jsvm.kernels import Kernel
from jsvm.numerics.keys import as_key
from jsvm.precision import scope, working_dtype
from jsvm.search.result import SearchResult
from jsvm.search.search_problem import Objective, SearchProblem, as_data, values_of
from jsvm.search.space import Space


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
    k, c = _best(values.reshape(len(family), -1), costs)
    return SearchResult(
        family[k],
        None if costs is None else float(costs[c]),
        float(history["value"].reshape(len(family), -1)[k, c]),
        history,
    )


def _best(values: np.ndarray, costs: np.ndarray | None) -> tuple[int, int]:
    """Return the place of the smallest value."""
    if not np.isfinite(values).any():
        raise ValueError("the objective is finite nowhere on the grid")
    order = np.arange(values.shape[1]) if costs is None else np.argsort(costs, kind="stable")
    c, k = np.unravel_index(np.nanargmin(values[:, order].T), values.T.shape)
    return int(k), int(order[c])
