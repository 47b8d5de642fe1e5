"""Solvers of the Potential SVM: the papers' SMO, and tiles with a semismooth Newton method."""

from jsvm.solvers.potential.path import epsilon_path
from jsvm.solvers.potential.psmo import PSMO
from jsvm.solvers.potential.solve_psvm import solve_potential, solve_potential_traced

__all__ = ["PSMO", "epsilon_path", "solve_potential", "solve_potential_traced"]
