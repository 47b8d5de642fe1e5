"""A search: the objective as a function of vectors, the host's watch over it, and its result."""

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jsvm.kernels import Kernel
from jsvm.numerics.arrays import cast
from jsvm.objectives.training import mapped
from jsvm.precision import default_platform, scope
from jsvm.programs import program
from jsvm.search.space import Space

SMALLEST_SHARE = 4  # evaluations per thread; with fewer, another thread costs more than it saves
FINISHED, CONVERGED = "finished", "converged"
TIME_LIMIT, INTERRUPTED, STOPPED = "time limit", "interrupted", "stopped by the callback"

Objective = Callable[..., Any]
Callback = Callable[[dict[str, Any]], Any]


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The hyperparameters that a search found, and its evaluations.

    Attributes
    ----------
    kernel : Kernel
    C : float or None
        None if it was not searched for.
    value : float
        Value of the objective; of a random one the mean over the last part of the search.
    history : dict of arrays
        'value' of every evaluation, and its hyperparameters by name.
    status : str
        How it ended: 'finished', 'converged', 'time limit', 'interrupted' or 'stopped by the
        callback'.

    Examples
    --------
    >>> from jsvm import data, kernels, objectives, search
    >>> X, y = data.chess_board(2, 2, size=60, key=0)
    >>> widths = [kernels.RBF(0.01), kernels.RBF(1.0)]
    >>> result = search.grid(objectives.kernel_polarization, widths, X, y, C=None, maximise=True)
    >>> result.status, result.evaluations, result.C
    ('finished', 2, None)
    """

    kernel: Any
    C: Any
    value: float
    history: dict[str, np.ndarray]
    status: str = FINISHED

    @property
    def evaluations(self) -> int:
        """How often the objective was evaluated."""
        return int(self.history["value"].size)


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
    """Return arrays, real ones in one dtype: Python numbers would need other programs."""
    return jax.tree.map(lambda leaf: jnp.asarray(cast(leaf, dtype)), (kernel, X, y))


def values_of(problem: SearchProblem, data: Any, thetas: np.ndarray, key: Any) -> np.ndarray:
    """Return what is minimised at the rows of `thetas`, all with the same key; threads on a CPU."""
    workers = os.cpu_count() or 1 if default_platform() == "cpu" else 1
    workers = max(1, min(workers, len(thetas) // SMALLEST_SHARE))
    share = -(-len(thetas) // workers)
    full = np.pad(thetas, ((0, workers * share - len(thetas)), (0, 0)), mode="edge")
    shares = [full[k * share : (k + 1) * share] for k in range(workers)]
    x64 = bool(jax.config.jax_enable_x64)  # pyright: ignore[reportAttributeAccessIssue]

    def work(part: np.ndarray) -> np.ndarray:
        with scope(np.dtype("float32")), jax.enable_x64(x64):  # threads do not inherit them
            return np.asarray(_values(part, data=data, key=key, problem=problem))

    if workers == 1:
        return work(shares[0])
    with ThreadPoolExecutor(workers) as pool:
        return np.concatenate(list(pool.map(work, shares)))[: len(thetas)]


@program(static_argnames="problem")
def _values(thetas: Any, *, data: Any, key: Any, problem: SearchProblem) -> Any:
    return mapped(lambda theta: problem.value(theta, data, key), thetas)


class Watch:
    """Counts steps and says when to stop; a context that closes the bar and catches Ctrl-C.

    The callback gets a dict of 'steps', 'value' and 'seconds'; a true result stops the search.
    """

    def __init__(
        self, total: int, time_limit: float | None, progress: bool, callback: Callback | None
    ) -> None:
        if time_limit is not None and not time_limit > 0:
            raise ValueError(f"time_limit={time_limit!r} must be a positive number of seconds")
        self.status = FINISHED
        self.done, self.total = 0, total
        self._limit, self._callback, self._progress = time_limit, callback, progress
        self._begin = time.monotonic()
        self._bar: Any = None

    def __enter__(self) -> "Watch":
        if self._progress:
            from tqdm.auto import tqdm

            self._bar = tqdm(total=self.total, unit=" steps", desc="jsvm")
        return self

    def __exit__(self, kind: Any, *_: object) -> bool:
        if self._bar is not None:
            self._bar.close()
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            self.status = INTERRUPTED  # the search returns what it has
            return True
        return False

    @property
    def left(self) -> int:
        """The number of steps still to be taken."""
        return self.total - self.done

    @property
    def running(self) -> bool:
        """Whether to go on."""
        return self.left > 0 and self.status == FINISHED

    def converged(self) -> None:
        """Stop the search as converged, unless something else has stopped it."""
        if self.status == FINISHED:
            self.status = CONVERGED

    def took(self, steps: int, value: float) -> None:
        """Count steps, show and report the value, and check the time limit."""
        self.done += steps
        seconds = time.monotonic() - self._begin
        if self._bar is not None:
            self._bar.update(steps)
            self._bar.set_postfix_str(f"value {value:.6g}")
        facts = {"steps": self.done, "value": value, "seconds": seconds}
        if self._callback is not None and self._callback(facts):
            self.status = STOPPED
        elif self._limit is not None and seconds >= self._limit:
            self.status = TIME_LIMIT
