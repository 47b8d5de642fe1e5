"""The SMO solver: its configuration, and its work on a concrete problem.

The user's program is made canonical, copies of examples are merged, and what is left is laid out in
one of few sizes, so that nearby sizes share compiled programs. Small problems are solved on one
tile (`tile/whole.py`), large ones on many (`tiles/decomposition.py`). In float32 many tiles judge
by a gradient in float64, one tile cannot: what it finds is confirmed by a decomposition in float64.
Where float32 makes no more progress, many tiles go on in float64, and one tile begins again.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jsvm.precision import DOUBLE, scope
from jsvm.problems import FromKernel, QuadraticProgram
from jsvm.solvers.canonical import Layout, canonical, feasible_start, innermost, pad
from jsvm.solvers.monitor import Facts, Work, check_limits
from jsvm.solvers.status import Solution, Status
from jsvm.solvers.tile.selection import SELECTIONS, Selection, second_order
from jsvm.solvers.tile.steps import MEASURES, STEPS, Recipe, Step
from jsvm.solvers.tiles.copies import copies_in
from jsvm.solvers.tuning import DEFAULT, Tuning

MAX_STEPS_WITH_BLOCKS, MAX_STEPS_WITHOUT = 10_000_000, 100_000_000
LARGEST_COUNT = 2 * 10**9  # steps are counted in 32 bits


@dataclass(frozen=True)
class SMO:
    """Configuration of the SMO solver.

    Parameters
    ----------
    selection : str or function
        'most_violating', 'second_order', 'maximum_gain', 'hybrid_maximum_gain', 'greedy', or any
        ``select(state, program) -> (i, j)``.
    step : str or function
        How far to move a pair: 'plain', 'planning_ahead', 'overshoot', or any
        ``step(state, program, select) -> Move``. Planning ahead is defined with second-order
        selection.
    recent : int
        Number of recent working sets that planning ahead tries.
    block : bool
        Mix in block steps; False gives the papers' algorithms.
    stopping : {'gap', 'joachims'}
        The violation that is compared with `tol`.
    tol : float
        Tolerance.
    max_steps : int or None
        Budget of pair steps; None is ten million with block steps, a hundred million without.
    time_limit : float or None
        Seconds; those spent on compiling and on the certificate at the end do not count.
    cache_size : float
        Megabytes for kernel rows that are kept.
    run : int
        Pair steps between two block steps.
    slots : int
        Largest number of free variables for which block steps are taken before the last one;
        inside ``jit`` and ``vmap`` also the number of variables that a block step holds.
    tuning : Tuning
        Constants that change the speed, not the solution.

    Examples
    --------
    >>> SMO(step="planning_ahead", block=False).recent
    1
    """

    selection: str | Selection = "second_order"
    step: str | Step = "plain"
    recent: int = 1
    block: bool = True
    stopping: str = "gap"
    tol: float = 1e-3
    max_steps: int | None = None
    time_limit: float | None = None
    cache_size: float | int = 2000
    run: int = 200
    slots: int = 512
    tuning: Tuning = DEFAULT

    def __post_init__(self) -> None:
        for name, value, known in (
            ("selection", self.selection, SELECTIONS),
            ("step", self.step, STEPS),
            ("stopping", self.stopping, MEASURES),
        ):
            own = name != "stopping" and callable(value)
            if not own and value not in known:
                raise ValueError(f"{name}={value!r} is unknown; use one of {sorted(known)}")
        if self._plans_ahead and self.selection not in ("second_order", second_order):
            raise ValueError(
                "step='planning_ahead' is defined with selection='second_order' "
                f"(Glasmachers 2008, Algorithm 7.2), not with {self.selection!r}"
            )
        for name, value, least in (
            ("recent", self.recent, 1),
            ("run", self.run, 1),
            ("slots", self.slots, 2),
        ):
            if value < least:
                raise ValueError(f"{name}={value!r} must be at least {least}")
        check_limits(self)

    @property
    def _plans_ahead(self) -> bool:
        return self.step in ("planning_ahead", STEPS["planning_ahead"])

    @property
    def step_budget(self) -> int:
        """The largest number of pair steps."""
        if self.max_steps is None:
            return MAX_STEPS_WITH_BLOCKS if self.block else MAX_STEPS_WITHOUT
        return min(self.max_steps, LARGEST_COUNT)

    def recipe(self, slots: int, elastic: bool, low_rank: bool = False) -> Recipe:
        """Return the part of the configuration that is compiled in."""
        return Recipe(
            select=self.selection if callable(self.selection) else SELECTIONS[self.selection],
            step=self.step if callable(self.step) else STEPS[self.step],
            measure=MEASURES[self.stopping],
            planning=self.recent if self._plans_ahead else 0,
            run=self.run,
            slots=slots if self.block else 0,
            largest=self.slots,
            elastic=elastic,
            polish=True,
            low_rank=low_rank,
            tuning=self.tuning,
        )

    def accepts(self, problem: QuadraticProgram) -> bool:
        return True

    def precision(self, dtype: np.dtype) -> np.dtype:
        return dtype

    def begin(self, problem: QuadraticProgram, start: Any, dtype: np.dtype) -> Work:
        return SMOWork(problem, self, start, dtype)

    def solve_traced(self, problem: QuadraticProgram, start: Any) -> Solution:
        from jsvm.solvers.tile.whole import solve_traced  # it needs this configuration

        return solve_traced(problem, self, start)


class SMOWork:
    """A concrete problem: which level solves it, in which variables, in which precision."""

    def __init__(self, problem: QuadraticProgram, solver: SMO, start: Any, dtype: np.dtype) -> None:
        self._solver, self._dtype = solver, dtype
        self._program, self._restore = canonical(problem)
        if start is not None:
            point = self._restore.split(np.asarray(start, float))
            start = feasible_start(point, self._program)
        # The papers' algorithms run on the whole problem: their steps are to be comparable.
        many = innermost(self._program.hessian).size ** 2 >= solver.tuning.fewest_copied_entries
        self._copies = copies_in(self._program, solver.tuning) if solver.block and many else None
        if self._copies is not None:
            self._program = self._copies.merged()
            start = None if start is None else self._copies.together(start)
        whole = self._program.size <= solver.tuning.largest_whole or not solver.block
        self._layout = Layout.of(self._program, shuffled=not whole)
        self._level = self._whole_tile(start) if whole else self._decomposition(start)
        self._is_certain = not whole or dtype == DOUBLE

    @property
    def status(self) -> Status:
        status = self._level.status
        failed = status in (Status.STALLED, Status.UNBOUNDED) and self._dtype != DOUBLE
        found = status == Status.CONVERGED and not self._is_certain
        return Status.RUNNING if failed or found else status

    @status.setter
    def status(self, status: Status) -> None:
        self._level.status = status

    def round(self, seconds: float = math.inf) -> None:
        if not self._is_certain and self._has_failed():
            self._begin_again_in_double()
        elif self._level.status != Status.RUNNING:
            self._go_on_in_double(Status.RUNNING)
        with scope(self._dtype):
            self._level.round(seconds)

    def _has_failed(self) -> bool:
        """Tell whether one tile of float32 has stopped, or has taken too many steps, in vain."""
        status = self._level.status
        spent = self._level.steps > self._solver.tuning.rough_sweeps * self._program.size
        return status in (Status.STALLED, Status.UNBOUNDED) or (status == Status.RUNNING and spent)

    def facts(self) -> Facts:
        return self._level.facts()

    def point(self) -> np.ndarray:
        return self._restore.point(self._apart(self._level.point()))

    def solution(self) -> Solution:
        if not self._is_certain:
            self._go_on_in_double(self._level.status)
        with scope(self._dtype):
            solution = self._level.solution()
        return self._restore.join(replace(solution, alpha=self._apart(solution.alpha)))

    def release(self) -> None:
        self._level.release()

    def _apart(self, alpha: np.ndarray) -> np.ndarray:
        return alpha if self._copies is None else self._copies.apart(alpha)

    def _whole_tile(self, start: np.ndarray | None):
        from jsvm.solvers.tile.whole import WholeTile  # it needs the configuration, too

        program, layout = self._program, self._layout
        inner = innermost(program.hessian)
        rows = inner.size if isinstance(inner, FromKernel) else 0
        start = None if start is None else layout.spread(start, self._dtype)
        return WholeTile(pad(program, layout, self._dtype), layout, start, self._solver, rows)

    def _decomposition(self, start: np.ndarray | None):
        from jsvm.solvers.tiles.decomposition import Decomposition

        return Decomposition(self._program, self._layout, start, self._solver, self._dtype)

    def _go_on_in_double(self, status: Status) -> None:
        """Replace the level by a decomposition in float64 that begins at its point."""
        start = np.clip(self._level.point(), self._program.lower, self._program.upper)
        self._replace_level(self._decomposition, start, status)

    def _begin_again_in_double(self) -> None:
        """Replace one tile of float32, whose point is of no use, by one of float64."""
        self._replace_level(self._whole_tile, None, Status.RUNNING)

    def _replace_level(self, make: Callable[..., Any], start: Any, status: Status) -> None:
        last, self._dtype, self._is_certain = self._level, DOUBLE, True
        with scope(DOUBLE):
            self._level = make(start)
        self._level.take_over(last)
        self._level.status = status
        last.release()
