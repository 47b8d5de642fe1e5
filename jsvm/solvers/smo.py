"""Configuration of the SMO solver."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from jsvm.problems import QuadraticProgram
from jsvm.solvers.monitor import Work
from jsvm.solvers.status import Solution
from jsvm.solvers.tile.recipe import Recipe
from jsvm.solvers.tile.selection import SELECTIONS, Selection, second_order
from jsvm.solvers.tile.steps import STEPS, Step
from jsvm.solvers.tile.stopping import MEASURES
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
        Seconds.
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
            ("max_steps", self.max_steps, 0),
        ):
            if value is not None and value < least:
                raise ValueError(f"{name}={value!r} must be at least {least}")
        if not self.cache_size > 0:
            raise ValueError(f"cache_size={self.cache_size!r} must be a positive number of MB")
        if not self.tol > 0:
            raise ValueError(f"tol={self.tol!r} must be positive")

    @property
    def _plans_ahead(self) -> bool:
        return self.step in ("planning_ahead", STEPS["planning_ahead"])

    @property
    def step_budget(self) -> int:
        """The largest number of pair steps."""
        if self.max_steps is None:
            return MAX_STEPS_WITH_BLOCKS if self.block else MAX_STEPS_WITHOUT
        return min(self.max_steps, LARGEST_COUNT)

    def recipe(self, slots: int, elastic: bool) -> Recipe:
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
            tuning=self.tuning,
        )

    def accepts(self, problem: QuadraticProgram) -> bool:
        """Tell whether this solver is for such a problem."""
        return True

    def precision(self, dtype: np.dtype) -> np.dtype:
        """Return the dtype that JAX has to allow while this solver works in `dtype`."""
        return dtype

    def begin(self, problem: QuadraticProgram, start: Any, dtype: np.dtype) -> Work:
        """Return the work on a concrete problem, to be followed round by round."""
        from jsvm.solvers.work import SMOWork  # it needs this configuration

        return SMOWork(problem, self, start, dtype)

    def solve_traced(self, problem: QuadraticProgram, start: Any) -> Solution:
        """Solve as part of the caller's program, with the whole of Q in memory."""
        from jsvm.solvers.tile.whole import solve_traced

        return solve_traced(problem, self, start)
