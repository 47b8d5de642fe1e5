"""The driver of all solvers: what a user sees of a long run and can do about it.

Between two rounds the host writes history, moves the progress bar, looks at the clock, calls the
callback, and saves a checkpoint. Whatever stops a run, the best point so far is handed back.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NotRequired, Protocol, TypedDict, runtime_checkable

import numpy as np

from jsvm.precision import at_once, scope
from jsvm.problems import QuadraticProgram
from jsvm.solvers.checkpoint import Checkpoint
from jsvm.solvers.status import Solution, Status, to_numpy


class Facts(TypedDict):
    """The numbers of a round, as callbacks and `history` have them."""

    violation: float
    objective: float
    support_vectors: int
    kernel_rows: int
    steps: int
    newton_steps: int
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

    @property
    def steps(self) -> int:
        """Pair steps so far."""
        ...

    @property
    def newton_steps(self) -> int:
        """Rounds of block steps, or Newton steps, so far."""
        ...

    @property
    def kernel_rows(self) -> int:
        """Rows of the kernel matrix that were computed so far."""
        ...

    def round(self) -> None:
        """Do a bounded amount of work; sets `status` when there is nothing more to do."""
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
    """Watches rounds.

    Parameters
    ----------
    time_limit : float or None
        Seconds.
    progress : bool
        Show a bar.
    callback : function or None
        Called with the facts of each round, a dict; a true return value stops the run.
    checkpoint : Checkpoint or None
        Where to save the point.
    """

    def __init__(
        self,
        time_limit: float | None = None,
        progress: bool = False,
        callback: Callable[[dict[str, Any]], Any] | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self.time_limit, self.callback, self.checkpoint = time_limit, callback, checkpoint
        self.history: list[dict[str, Any]] = []
        self._bar = _Bar() if progress else None
        self._begun = time.perf_counter()

    def follow(self, work: Work) -> None:
        """Let the work go on until it ends or is stopped."""
        try:
            while work.status == Status.RUNNING:
                work.round()
                facts = {**work.facts(), "seconds": time.perf_counter() - self._begun}
                self.history.append(facts)
                stop = self._tell(facts)
                if work.status == Status.RUNNING and stop is not None:
                    work.status = stop
                elif self.checkpoint is not None and work.status == Status.RUNNING:
                    self.checkpoint.save_now_and_then(work.point)
        except KeyboardInterrupt:
            work.status = Status.INTERRUPTED
        finally:
            if self._bar is not None:
                self._bar.close()
        if self.checkpoint is not None:
            self.checkpoint.save(work.point())

    def _tell(self, facts: dict[str, Any]) -> Status | None:
        if self._bar is not None:
            self._bar.show(facts)
        if self.callback is not None and self.callback(facts):
            return Status.INTERRUPTED
        if self.time_limit is not None and facts["seconds"] > self.time_limit:
            return Status.TIME_LIMIT
        return None


class _Bar:
    """A tqdm bar of rounds with gap, objective, support vectors and rows."""

    def __init__(self) -> None:
        from tqdm.auto import tqdm

        self._bar = tqdm(unit=" rounds", desc="jsvm", dynamic_ncols=True)

    def show(self, facts: dict[str, Any]) -> None:
        self._bar.set_postfix(
            gap=f"{facts['violation']:.2e}",
            objective=f"{facts['objective']:.6g}",
            sv=facts["support_vectors"],
            rows=facts["kernel_rows"],
            refresh=False,
        )
        self._bar.update()

    def close(self) -> None:
        self._bar.close()


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


def drive(
    problem: QuadraticProgram, solver: Solver, start: Any, dtype: np.dtype, monitor: Monitor
) -> Solution:
    """Solve a valid, concrete problem: from the checkpoint if there is one, else from the start."""
    saved = None if monitor.checkpoint is None else monitor.checkpoint.load()
    # Even while JAX traces a function around it, this runs now.
    with at_once(), scope(solver.precision(dtype)):
        work = solver.begin(problem, start if saved is None else saved, dtype)
        solution = finish(work, monitor)
        work.release()
    return solution


def finish(work: Work, monitor: Monitor) -> Solution:
    """Follow the work to its end, or until it is stopped; return its solution."""
    monitor.follow(work)
    return replace(to_numpy(work.solution()), history=tuple(monitor.history))
