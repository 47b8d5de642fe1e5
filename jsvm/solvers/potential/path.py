"""Solutions of a P-SVM along a grid of ε, each started from the one before."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jsvm.problems import Normal, QuadraticProgram
from jsvm.solvers.potential.psmo import PSMO
from jsvm.solvers.potential.solve_psvm import PsvmFamily
from jsvm.solvers.status import Solution


def epsilon_path(
    problem: QuadraticProgram,
    epsilons: Sequence[float],
    solver: PSMO | None = None,
    *,
    dtype: Any = None,
    progress: bool = False,
) -> tuple[Solution, ...]:
    """Solve a P-SVM for several ε, from the largest to the smallest.

    The matrix is prepared once, and the tile of one ε is the beginning of the next: support
    features for a large ε mostly remain so for a smaller one (Knebel et al. 2008, section 4).

    Parameters
    ----------
    problem : QuadraticProgram
        Of :func:`jsvm.problems.psvm`; its own ε is not used.
    epsilons : sequence of float
        In any order; the solutions are in the same.
    solver : PSMO, optional
        With block='newton' and without annealing.
    dtype : {'float64', 'float32'}, optional
        As for :func:`jsvm.solve`.
    progress : bool
        Show a bar for every ε.

    Examples
    --------
    >>> from jsvm import problems
    >>> problem = problems.psvm(np.eye(3), np.array([3.0, 2.0, 1.0]), np.inf, 0.0)
    >>> [int(np.count_nonzero(s.alpha)) for s in epsilon_path(problem, [2.5, 1.5, 0.5])]
    [1, 2, 3]
    """
    solver = PSMO() if solver is None else solver
    if not isinstance(problem.hessian, Normal):
        raise ValueError("epsilon_path needs a problem of problems.psvm")
    if solver.block != "newton" or solver.annealing:
        raise ValueError("epsilon_path needs PSMO(block='newton', annealing=False)")
    grid = np.asarray(epsilons, float)
    if grid.ndim != 1 or not (np.isfinite(grid) & (grid >= 0)).all():
        raise ValueError(f"epsilons={epsilons!r} must be finite numbers >= 0")
    family, alpha = PsvmFamily(problem.hessian.data, solver, dtype), None
    solutions: dict[int, Solution] = {}
    for k in np.argsort(-grid, kind="stable"):
        part = replace(problem, l1=float(grid[k]))
        solutions[int(k)] = family.solve(part, alpha, progress=progress)
        alpha = solutions[int(k)].alpha
    family.release()
    return tuple(solutions[k] for k in range(len(grid)))
