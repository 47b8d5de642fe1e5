"""An objective at many hyperparameters, in one program."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import jax
import numpy as np

from jsvm.objectives.training import mapped
from jsvm.precision import default_platform
from jsvm.search.problem import Problem

SMALLEST_SHARE = 4  # hyperparameters for which another thread pays


def values_of(problem: Problem, data: Any, thetas: np.ndarray, key: Any) -> np.ndarray:
    """Return what is to be minimised, at the rows of `thetas`; all see the same key.

    On a CPU they are computed one after the other, in as many threads as there are cores; on other
    devices together.
    """
    workers = os.cpu_count() or 1 if default_platform() == "cpu" else 1
    workers = max(1, min(workers, len(thetas) // SMALLEST_SHARE))
    share = -(-len(thetas) // workers)
    full = np.pad(thetas, ((0, workers * share - len(thetas)), (0, 0)), mode="edge")
    compute = partial(_values, data=data, key=key, problem=problem)
    parts = [full[k * share : (k + 1) * share] for k in range(workers)]
    found = in_threads(compute, parts)
    return np.concatenate(found)[: len(thetas)]


def in_threads(compute: Callable[[Any], Any], parts: list[Any]) -> list[np.ndarray]:
    """Return a function of all parts as NumPy arrays; the context of JAX goes with them."""
    if len(parts) == 1:
        return [np.asarray(compute(parts[0]))]
    x64 = bool(jax.config.jax_enable_x64)  # pyright: ignore[reportAttributeAccessIssue]

    def work(part: Any) -> np.ndarray:
        with jax.enable_x64(x64):
            return np.asarray(compute(part))

    with ThreadPoolExecutor(len(parts)) as pool:
        return list(pool.map(work, parts))


@partial(jax.jit, static_argnames="problem")
def _values(thetas: Any, *, data: Any, key: Any, problem: Problem) -> Any:
    def one(theta: Any) -> Any:
        return problem.value(theta, data, key)

    return mapped(one, thetas)
