"""Solvers of the Potential SVM: the papers' SMO, and tiles with a semismooth Newton method."""

from jsvm.solvers.potential.psmo import PSMO
from jsvm.solvers.potential.psvm_tuning import PotentialTuning
from jsvm.solvers.potential.solve_psvm import PsvmFamily, epsilon_path

__all__ = ["PSMO", "PotentialTuning", "PsvmFamily", "epsilon_path"]
