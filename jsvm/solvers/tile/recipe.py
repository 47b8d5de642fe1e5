"""The part of a solver's configuration that is compiled into the program of a tile."""

from typing import NamedTuple

from jsvm.solvers.tile.selection import Selection
from jsvm.solvers.tile.steps import Step
from jsvm.solvers.tile.stopping import Measure
from jsvm.solvers.tuning import Tuning


class Recipe(NamedTuple):
    """The strategies, and the number of slots of a block step.

    An elastic recipe stops and asks for another number of slots when they do not fit the number of
    free variables; one that is not takes the first free variables that it has slots for.
    """

    select: Selection
    step: Step
    measure: Measure
    planning: int  # working sets that planning ahead looks back at
    run: int  # pair steps between two block steps
    slots: int  # 0: no block steps
    largest: int  # free variables for which a block step is taken before the last one
    elastic: bool
    polish: bool  # a block step also when the violation has passed
    tuning: Tuning

    @property
    def runs_in_kernel(self) -> bool:
        """Whether selection and step declare that a kernel of machine code may hold them."""
        return all(getattr(rule, "runs_in_kernel", False) for rule in (self.select, self.step))
