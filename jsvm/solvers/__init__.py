"""Solvers: SMO with block steps on one tile or many, and the P-SVM's own beside them."""

from jsvm.solvers.potential import PSMO, epsilon_path
from jsvm.solvers.potential.held_out import HeldOut, held_out
from jsvm.solvers.smo import SMO
from jsvm.solvers.solve import solve
from jsvm.solvers.status import Solution, Status
from jsvm.solvers.tile.batch import solve_batch
from jsvm.solvers.tile.selection import (
    State,
    greedy,
    hybrid_maximum_gain,
    maximum_gain,
    most_violating,
    runs_in_kernel,
    second_order,
)
from jsvm.solvers.tile.steps import Move
from jsvm.solvers.tuning import Tuning

__all__ = [
    "PSMO", "SMO", "HeldOut", "Move", "Solution", "State", "Status", "Tuning", "epsilon_path",
    "greedy", "held_out", "hybrid_maximum_gain", "maximum_gain", "most_violating",
    "runs_in_kernel", "second_order", "solve", "solve_batch",
]  # fmt: skip
