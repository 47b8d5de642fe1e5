"""The driver: what follows any solver round by round to its solution."""

from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from jsvm.precision import at_once, scope
from jsvm.problems import QuadraticProgram
from jsvm.solvers.monitor import Monitor, Work
from jsvm.solvers.status import Solution, to_numpy


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
