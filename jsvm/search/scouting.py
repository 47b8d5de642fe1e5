"""A coarse grid before a search: the search starts from its best point.

Where a kernel is far too wide or too narrow, or C far too small, most objectives are flat, and the
little slope that they have may lead away from the basin of good machines (Glasmachers 2008, section
9.4). So the kernel is scaled as a whole by powers of four, with some values of C. A random
objective is compared on the same few splits.
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from jsvm.kernels import Kernel
from jsvm.precision import scope, working_dtype
from jsvm.search.search_problem import Objective, SearchProblem, as_data, values_of
from jsvm.search.space import Space

SCALES = 4.0 ** np.arange(-2, 3)  # factors of γ: widths from a quarter to four times the start's
COSTS = 10.0 ** np.arange(-1, 4)  # values of C, from the underfitted to the nearly hard margin
KEYS = 8  # splits over which the values of a random objective are averaged


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
    """Return the kernel, scaled, and C with the best value of the objective.

    `evaluate` is :func:`values_of`, or another function that does the same.
    """
    chosen = working_dtype(dtype)
    with scope(chosen):
        costs = COSTS if with_cost else [None]
        space = Space.of(kernel, costs[0])
        thetas = np.stack(
            [space.scaled(space.encode(kernel, C), scale) for scale in SCALES for C in costs]
        )
        problem = SearchProblem(objective, space, maximise, key is not None)
        keys = [jax.random.key(0)] if key is None else list(jax.random.split(key, KEYS))
        data = as_data(kernel, X, y, chosen)
        values = np.mean([evaluate(problem, data, thetas, own) for own in keys], axis=0)
        best = int(np.argmin(np.where(np.isfinite(values), values, np.inf)))
        found, C = space.decode(thetas[best], kernel)
        return found, None if C is None else float(C)
