"""The driver of all solvers: what a user sees of a long run and can do about it.

Between two rounds the host writes history, moves the progress bar, looks at the clock, calls the
callback, and saves a checkpoint. Whatever stops a run, the best point so far is handed back.
"""

import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NotRequired, Protocol, TypedDict, runtime_checkable

import numpy as np

from jsvm.compilation import Stopwatch
from jsvm.precision import at_once, scope
from jsvm.problems import QuadraticProgram
from jsvm.solvers.checkpoint import Checkpoint
from jsvm.solvers.status import Solution, Status, to_numpy

# Pair steps of a round that has a time limit: before its speed is known, and at least.
FIRST_STEPS, FEWEST_STEPS = 1000, 200


class Facts(TypedDict):
    """The numbers of a round, as callbacks and `history` have them."""

    violation: float
    objective: float
    support_vectors: int
    kernel_rows: int  # rows of the kernel matrix that were computed so far
    steps: int  # pair steps so far
    newton_steps: int  # rounds of block steps, or Newton steps, so far
    seconds: NotRequired[float]


@runtime_checkable
class Work(Protocol):
    """A problem that is solved round by round."""

    @property
    def status(self) -> Status:
        """RUNNING until the work has ended or was stopped."""
        ...

    @status.setter
    def status(self, status: Status) -> None: ...

    def round(self, seconds: float = math.inf) -> None:
        """Do a bounded amount of work; sets `status` when there is nothing more to do.

        `seconds` are left until the time limit: a round should take less.
        """
        ...

    def facts(self) -> Facts:
        """Return the numbers of the last round."""
        ...

    def point(self) -> np.ndarray:
        """Return α in the user's variables."""
        ...

    def solution(self) -> Solution:
        """Return the best point with its certificate."""
        ...

    def release(self) -> None:
        """Return the buffers to the memory pool; do not use the work afterwards."""
        ...


def facts_of(work: Any, violation: Any, objective: Any, alpha: np.ndarray) -> Facts:
    """Return the numbers of a round from the counts of a work and its point."""
    return {
        "violation": float(violation),
        "objective": float(objective),
        "support_vectors": int(np.count_nonzero(alpha)),
        "kernel_rows": work.kernel_rows,
        "steps": work.steps,
        "newton_steps": work.newton_steps,
    }


class Monitor:
    """Watches rounds: seconds, a bar, and a callback that stops the run by a true return value."""

    def __init__(
        self,
        time_limit: float | None = None,
        progress: bool = False,
        callback: Callable[[dict[str, Any]], Any] | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self.time_limit, self.callback, self.checkpoint = time_limit, callback, checkpoint
        self.history: list[dict[str, Any]] = []
        self._bar = _bar() if progress else None
        self._begun = time.perf_counter()
        self._counted = None if time_limit is None else Stopwatch()

    def follow(self, work: Work) -> None:
        """Let the work go on until it ends or is stopped."""
        try:
            while work.status == Status.RUNNING:
                work.round(self._seconds_left())
                facts = {**work.facts(), "seconds": time.perf_counter() - self._begun}
                self.history.append(facts)
                stop = self._tell(facts)
                if work.status == Status.RUNNING and stop is not None:
                    work.status = stop
                elif self.checkpoint is not None and work.status == Status.RUNNING:
                    self.checkpoint.save_now_and_then(work.point)
        finally:
            if self._bar is not None:
                self._bar.close()
        if self.checkpoint is not None:
            self.checkpoint.save(work.point())

    def _tell(self, facts: dict[str, Any]) -> Status | None:
        if self._bar is not None:
            self._bar.set_postfix(
                gap=f"{facts['violation']:.2e}",
                objective=f"{facts['objective']:.6g}",
                sv=facts["support_vectors"],
                rows=facts["kernel_rows"],
                refresh=False,
            )
            self._bar.update()
        if self.callback is not None and self.callback(facts):
            return Status.INTERRUPTED
        return Status.TIME_LIMIT if self._seconds_left() <= 0 else None

    def _seconds_left(self) -> float:
        if self.time_limit is None or self._counted is None:
            return math.inf
        return self.time_limit - self._counted.seconds()


class Pace:
    """How many steps fit into the time that is left, from the steps of the last round."""

    def __init__(self) -> None:
        self._speed: float | None = None  # steps a second

    def steps(self, seconds: float, most: int) -> int:
        """Return the number of steps for the next round, at most `most`."""
        if math.isinf(seconds):
            return most
        steps = FIRST_STEPS if self._speed is None else 0.5 * max(seconds, 0.0) * self._speed
        return min(most, max(FEWEST_STEPS, int(steps)))

    def note(self, steps: int, seconds: float) -> None:
        """Take notice of a round."""
        if steps > 0 and seconds > 0:
            self._speed = steps / seconds


def _bar() -> Any:
    from tqdm.auto import tqdm

    return tqdm(unit=" rounds", desc="jsvm", dynamic_ncols=True)


@runtime_checkable
class Solver(Protocol):
    """A configuration that knows how to begin; SMO and PSMO are such."""

    @property
    def time_limit(self) -> float | None:
        """Seconds."""
        ...

    def accepts(self, problem: QuadraticProgram) -> bool:
        """Tell whether this solver is for such a problem."""
        ...

    def precision(self, dtype: np.dtype) -> np.dtype:
        """Return the dtype that JAX has to allow while the solver works in `dtype`."""
        ...

    def begin(self, problem: QuadraticProgram, start: Any, dtype: np.dtype) -> Work:
        """Return the work on a concrete problem, from a feasible start or None."""
        ...

    def solve_traced(self, problem: QuadraticProgram, start: Any) -> Solution:
        """Solve as part of the caller's program, inside ``jit`` or ``vmap``."""
        ...


def check_limits(solver: Any) -> None:
    """Raise ValueError if a limit that all solvers have is out of range."""
    if solver.max_steps is not None and solver.max_steps < 0:
        raise ValueError(f"max_steps={solver.max_steps!r} must be at least 0")
    if not solver.cache_size > 0:
        raise ValueError(f"cache_size={solver.cache_size!r} must be a positive number of MB")
    if not solver.tol > 0:
        raise ValueError(f"tol={solver.tol!r} must be positive")
    if solver.time_limit is not None and not solver.time_limit >= 0:
        raise ValueError(
            f"time_limit={solver.time_limit!r} must be a number of seconds >= 0, or None"
        )


def drive(
    problem: QuadraticProgram, solver: Solver, start: Any, dtype: np.dtype, monitor: Monitor
) -> Solution:
    """Solve a valid, concrete problem: from the checkpoint if there is one, else from the start."""
    saved = None if monitor.checkpoint is None else monitor.checkpoint.load()
    # Even while JAX traces a function around it, this runs now.
    with at_once(), scope(solver.precision(dtype)):
        begin = partial(solver.begin, problem, start if saved is None else saved, dtype)
        return finish(begin, monitor, release=True)


def finish(begin: Callable[[], Work], monitor: Monitor, release: bool = False) -> Solution:
    """Begin a work, follow it to its end, or until it is stopped, and return its solution.

    After Ctrl-C, at whatever place, what is left to do is done for the present point; work that had
    not begun begins again for it. A second Ctrl-C raises.
    """
    work = solution = None
    interrupted = False
    while True:
        try:
            work = begin() if work is None else work
            if interrupted:
                work.status = Status.INTERRUPTED
            monitor.follow(work)
            solution = replace(to_numpy(work.solution()), history=tuple(monitor.history))
            if release:
                work.release()
            return solution
        except (KeyboardInterrupt, Exception) as error:
            # JAX makes an error of its own of what comparisons and callbacks inside of it raise.
            pressed = isinstance(error, KeyboardInterrupt) or "KeyboardInterrupt" in str(error)
            if pressed and solution is not None:  # buffers that were not returned do no harm
                return solution
            if interrupted or not pressed:
                raise
            interrupted = True
