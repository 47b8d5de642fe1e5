"""Configuration of the SMO solver, and the part of it that is compiled in."""

from dataclasses import dataclass
from typing import NamedTuple

from jsvm.solvers.tile.selection import SELECTIONS, Selection, greedy, second_order
from jsvm.solvers.tile.steps import STEPS, Step
from jsvm.solvers.tile.stopping import MEASURES, Measure

MAX_STEPS_WITH_BLOCKS, MAX_STEPS_WITHOUT = 10_000_000, 100_000_000


@dataclass(frozen=True)
class SMO:
    """Configuration of the SMO solver.

    Parameters
    ----------
    selection : str or function
        'most_violating', 'second_order', 'maximum_gain', 'hybrid_maximum_gain', 'greedy', or any
        ``select(state, program) -> (i, j)``.
    step : {'plain', 'planning_ahead', 'overshoot'}
        How far to move a pair. Planning ahead is defined with second-order selection.
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

    Examples
    --------
    >>> SMO(step="planning_ahead", block=False).recent
    1
    """

    selection: str | Selection = "second_order"
    step: str = "plain"
    recent: int = 1
    block: bool = True
    stopping: str = "gap"
    tol: float = 1e-3
    max_steps: int | None = None
    time_limit: float | None = None
    cache_size: float | int = 2000
    run: int = 200
    slots: int = 512

    def __post_init__(self) -> None:
        for name, value, known in (
            ("selection", self.selection, SELECTIONS),
            ("step", self.step, STEPS),
            ("stopping", self.stopping, MEASURES),
        ):
            own = name == "selection" and callable(value)
            if not own and value not in known:
                raise ValueError(f"{name}={value!r} is unknown; use one of {sorted(known)}")
        if self.step == "planning_ahead" and self.selection not in ("second_order", second_order):
            raise ValueError(
                "step='planning_ahead' is defined with selection='second_order' "
                f"(004, Algorithm 7.2), not with {self.selection!r}"
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
    def step_budget(self) -> int:
        """The largest number of pair steps."""
        if self.max_steps is None:
            return MAX_STEPS_WITH_BLOCKS if self.block else MAX_STEPS_WITHOUT
        return min(self.max_steps, 2 * 10**9)  # steps are counted in 32 bits

    def recipe(self, slots: int, elastic: bool) -> "Recipe":
        """Return the part of the configuration that is compiled in."""
        select = self.selection if callable(self.selection) else SELECTIONS[self.selection]
        return Recipe(
            select=select,
            step=STEPS[self.step],
            measure=MEASURES[self.stopping],
            planning=self.recent if self.step == "planning_ahead" else 0,
            run=self.run,
            slots=slots if self.block else 0,
            largest=self.slots,
            elastic=elastic,
            polish=True,
        )


class Recipe(NamedTuple):
    """What is compiled in: the strategies, and the number of slots of a block step.

    An elastic recipe stops and asks for another number of slots when they do not fit the number of
    free variables; one that is not takes the first free variables that it has slots for.
    """

    select: Selection
    step: Step
    measure: Measure
    planning: int
    run: int
    slots: int  # 0: no block steps
    largest: int
    elastic: bool
    polish: bool  # a block step also when the violation has passed

    @property
    def is_plain(self) -> bool:
        """Whether a pair step is a few operations on vectors, as a kernel may hold them."""
        return self.select in SELECTIONS.values() and self.select is not greedy
