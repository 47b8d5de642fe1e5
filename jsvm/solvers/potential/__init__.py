"""Solvers of the Potential SVM: the papers' SMO, and tiles with a semismooth Newton method."""

from jsvm.solvers.potential.config import PSMO
from jsvm.solvers.potential.host import solve_potential, solve_potential_traced
from jsvm.solvers.potential.path import epsilon_path

__all__ = ["PSMO", "epsilon_path", "solve_potential", "solve_potential_traced"]
