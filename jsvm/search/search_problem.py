"""What is searched: an objective as a function of one vector, or of many at once."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jsvm.kernels import Kernel
from jsvm.objectives.training import mapped
from jsvm.precision import default_platform
from jsvm.search.result import SearchResult
from jsvm.search.space import Space

SMALLEST_SHARE = 4  # evaluations per thread; with fewer, another thread costs more than it saves

Objective = Callable[..., Any]


class SearchProblem(NamedTuple):
    """An objective over a space; hashable, so that programs compiled for it are found again."""

    objective: Objective
    space: Space
    maximise: bool
    random: bool

    @property
    def sign(self) -> float:
        """The factor between the objective and what is minimised."""
        return -1.0 if self.maximise else 1.0

    def value(self, theta: Any, data: Any, key: Any) -> Any:
        """Return what is minimised; `data` is a kernel, for what is fixed, with X and y."""
        template, X, y = data
        kernel, C = self.space.decode(theta, template)
        options = ({"C": C} if self.space.with_cost else {}) | ({"key": key} if self.random else {})
        return self.sign * self.objective(kernel, X, y, **options)

    def result(
        self,
        kernel: Kernel,
        values: np.ndarray,
        thetas: np.ndarray,
        best: tuple[float, np.ndarray],
        status: str,
    ) -> SearchResult:
        """Return the result of a search from its evaluations, and value and place of the best."""
        found, C = self.space.decode(best[1], kernel)
        history = {"value": self.sign * values} | self.space.history(thetas, kernel)
        cost = None if C is None else float(C)
        return SearchResult(found, cost, self.sign * best[0], history, status)


def as_data(kernel: Kernel, X: Any, y: Any, dtype: np.dtype) -> tuple[Kernel, Any, Any]:
    """Return kernel, X and y with all leaves as arrays, real numbers in one dtype.

    Otherwise one program would be compiled for a Python number in the kernel, another for an array.
    """

    def cast(leaf: Any) -> Any:
        leaf = leaf if isinstance(leaf, jax.Array) else np.asarray(leaf)
        real = jnp.issubdtype(leaf.dtype, jnp.floating)
        return jnp.asarray(leaf, dtype if real else None)

    return jax.tree.map(cast, (kernel, X, y))


def values_of(problem: SearchProblem, data: Any, thetas: np.ndarray, key: Any) -> np.ndarray:
    """Return what is minimised at the rows of `thetas`, all with the same key.

    On a CPU they are computed one after the other, in as many threads as there are cores; on other
    devices together.
    """
    workers = os.cpu_count() or 1 if default_platform() == "cpu" else 1
    workers = max(1, min(workers, len(thetas) // SMALLEST_SHARE))
    share = -(-len(thetas) // workers)
    full = np.pad(thetas, ((0, workers * share - len(thetas)), (0, 0)), mode="edge")
    shares = [full[k * share : (k + 1) * share] for k in range(workers)]
    x64 = bool(jax.config.jax_enable_x64)  # pyright: ignore[reportAttributeAccessIssue]

    def work(part: np.ndarray) -> np.ndarray:
        with jax.enable_x64(x64):  # threads do not inherit it
            return np.asarray(_values(part, data=data, key=key, problem=problem))

    if workers == 1:
        return work(shares[0])
    with ThreadPoolExecutor(workers) as pool:
        return np.concatenate(list(pool.map(work, shares)))[: len(thetas)]


@partial(jax.jit, static_argnames="problem")
def _values(thetas: Any, *, data: Any, key: Any, problem: SearchProblem) -> Any:
    return mapped(lambda theta: problem.value(theta, data, key), thetas)
