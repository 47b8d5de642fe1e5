"""Solvers: SMO with block steps on a tile, and the host loop around it."""

from jsvm.solvers.config import SMO
from jsvm.solvers.potential import PSMO, epsilon_path
from jsvm.solvers.potential.held_out import HeldOut, held_out
from jsvm.solvers.solve import solve
from jsvm.solvers.status import Solution, Status
from jsvm.solvers.tile.batch import solve_batch
from jsvm.solvers.tile.selection import (
    State,
    greedy,
    hybrid_maximum_gain,
    maximum_gain,
    most_violating,
    second_order,
)

__all__ = [
    "PSMO",
    "SMO",
    "HeldOut",
    "Solution",
    "State",
    "Status",
    "epsilon_path",
    "greedy",
    "held_out",
    "hybrid_maximum_gain",
    "maximum_gain",
    "most_violating",
    "second_order",
    "solve",
    "solve_batch",
]
