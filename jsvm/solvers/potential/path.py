"""Solutions of a P-SVM along a grid of ε, each started from the one before."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from jsvm.precision import at_once, scope, working_dtype
from jsvm.problems import Normal, QuadraticProgram, validate
from jsvm.solvers.monitor import Monitor
from jsvm.solvers.potential.psmo import PSMO
from jsvm.solvers.potential.psvm_tiles import Tiles
from jsvm.solvers.potential.solve_psvm import DOUBLE, certified, prepared
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
    features for a large ε mostly remain so for a smaller one (000, section 4).

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
    validate(problem)
    chosen = working_dtype(dtype)
    solutions: dict[int, Solution] = {}
    with at_once(), scope(DOUBLE):
        data, vectors = prepared(problem, solver.cache_size * 1e6)
        alpha, tile = np.zeros(data.shape[1]), None
        for k in np.argsort(-grid, kind="stable"):
            part = vectors._replace(epsilon=float(grid[k]))
            monitor = Monitor(solver.time_limit, progress)
            work = Tiles(data, part, solver, chosen, alpha, tile)
            monitor.follow(work)
            solutions[int(k)] = certified(work, problem, monitor)
            alpha, tile = work.alpha, work.tile
    return tuple(solutions[k] for k in range(len(grid)))
