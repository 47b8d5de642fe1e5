"""Solving P-SVMs: one, several that share K, or one inside the caller's program."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from jsvm.numerics.arrays import product
from jsvm.numerics.indexing import SLICES
from jsvm.precision import at_once, scope, working_dtype
from jsvm.problems import MatrixData, Normal, QuadraticProgram, validate
from jsvm.problems.potential import certify_potential
from jsvm.solvers.canonical import feasible_start
from jsvm.solvers.checkpoint import Checkpoint
from jsvm.solvers.monitor import Monitor, finish
from jsvm.solvers.potential.paper_smo import PaperSMO
from jsvm.solvers.potential.prepared_psvm import PreparedPsvm, padded, prepared_matrix
from jsvm.solvers.potential.psmo import PSMO
from jsvm.solvers.potential.psvm_tiles import Tiles
from jsvm.solvers.potential.row_object_tile import PsvmTile, tile_of
from jsvm.solvers.potential.semismooth import TileProblem, minimise
from jsvm.solvers.status import Solution, Status


class PsvmFamily:
    """P-SVMs with the same K; targets, bounds and ε may differ.

    K is prepared once, and with block='newton' one tile is handed on from problem to problem. The
    `kernel_rows` of a solution count the row objects fetched since the first problem.

    Parameters
    ----------
    data : MatrixData
        K; the problems are made from this very object.
    solver : PSMO, optional
    dtype : {'float64', 'float32'}, optional
        As for :func:`jsvm.solve`.

    Examples
    --------
    >>> from jsvm import problems
    >>> K = problems.DenseMatrix(np.eye(3))
    >>> family = PsvmFamily(K)
    >>> for y in np.array([[3.0, 2.0, 1.0], [0.0, 0.0, 5.0]]):
    ...     print(family.solve(problems.psvm(K, y, np.inf, 1.5)).alpha.round(6).tolist())
    [1.5, 0.5, 0.0]
    [0.0, 0.0, 3.5]
    """

    def __init__(self, data: MatrixData, solver: PSMO | None = None, dtype: Any = None) -> None:
        self.data, self.solver = data, PSMO() if solver is None else solver
        self._dtype = working_dtype(dtype)
        self._matrix: MatrixData | None = None
        self._tile: PsvmTile | None = None

    def solve(
        self,
        problem: QuadraticProgram,
        start: np.ndarray | None = None,
        *,
        tol: float | None = None,
        progress: bool = False,
        callback: Callable[[dict[str, Any]], Any] | None = None,
        checkpoint: str | Path | None = None,
    ) -> Solution:
        """Solve one problem, as :func:`jsvm.solve` does; `tol` replaces that of the solver."""
        if not isinstance(problem.hessian, Normal) or problem.hessian.data is not self.data:
            raise ValueError("problem must be one of problems.psvm, made from the family's data")
        validate(problem)
        solver = self.solver if tol is None else replace(self.solver, tol=tol)
        file = None if checkpoint is None else Checkpoint(checkpoint, problem)
        saved = None if file is None else file.load()
        monitor = Monitor(solver.time_limit, progress, callback, file)
        with monitor, at_once(), scope(solver.precision(self._dtype)):
            work = self.begin(problem, start if saved is None else saved, solver)
            solution = finish(work, monitor)
        if work.status == Status.INTERRUPTED:  # Ctrl-C after donation: the buffers are deleted
            self._tile = None
        return solution

    def begin(
        self, problem: QuadraticProgram, start: Any, solver: PSMO | None = None
    ) -> Tiles | PaperSMO:
        """Return the work on a valid problem; `solver` may have another tolerance."""
        solver = self.solver if solver is None else solver
        alpha = _feasible(problem, start)
        if self._matrix is None:
            # The papers' steps compare slices of vectors of equal length.
            multiple = 1 if solver.block == "newton" else SLICES
            budget = solver.cache_size * 1e6
            self._matrix = prepared_matrix(self.data, budget, multiple, solver.tuning)
        program = PreparedPsvm.of(problem, self._matrix)
        alpha = padded(alpha, len(program.linear))
        if solver.block != "newton":
            return PaperSMO(program, solver, alpha)
        if self._tile is None:
            self._tile = tile_of(program.matrix, self._dtype, solver.tuning)
        return Tiles(program, solver, alpha, self._tile)

    def release(self) -> None:
        """Return the buffers to the pool; do not use afterwards."""
        if self._tile is not None:
            self._tile.release()


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


def _feasible(problem: QuadraticProgram, start: Any) -> np.ndarray:
    if (np.asarray(problem.lower) > 0).any() or (np.asarray(problem.upper) < 0).any():
        raise ValueError("PSMO needs bounds with lower <= 0 <= upper")
    if start is None:
        return np.zeros(problem.size)
    return feasible_start(np.asarray(start, float), problem)


def solve_traced(problem: QuadraticProgram, solver: PSMO, start: Any) -> Solution:
    """Solve as part of the caller's program, with the whole of Q."""
    hessian: Normal = problem.hessian
    rows = jnp.asarray(hessian.data.all_objects())
    Q = product(rows, rows.T)
    lower, upper = (jnp.asarray(v, Q.dtype) for v in (problem.lower, problem.upper))
    epsilon = jnp.asarray(0.0 if problem.l1 is None else problem.l1, Q.dtype)
    linear = jnp.asarray(problem.linear, Q.dtype)
    origin = jnp.zeros_like(lower) if start is None else jnp.asarray(start, Q.dtype)
    tile = TileProblem(origin, linear - product(Q, origin), lower, upper, epsilon)
    budget, width = jnp.int32(solver.step_budget), jnp.zeros((), Q.dtype)
    # The tolerance has to be reached; the aim is the limit of rounding.
    fine = solver.tuning.polishing_target * jnp.maximum(jnp.max(jnp.abs(linear)), epsilon)
    found = minimise(Q, tile, width, jnp.minimum(fine, solver.tol), budget, solver.tuning)
    alpha = jnp.where(found.best == -origin, 0.0, origin + found.best)
    alpha = jnp.clip(alpha, lower, upper)
    target = jnp.asarray(hessian.target, Q.dtype)
    output = product(alpha, rows)
    gradient = product(rows, target - output)
    certificate = certify_potential(target, output, alpha, gradient, (lower, upper, epsilon))
    failed = jnp.where(found.newton_steps >= budget, Status.MAX_STEPS, Status.STALLED)
    status = jnp.where(found.violation <= solver.tol, Status.CONVERGED, failed)
    return Solution.of(alpha, certificate, found, jnp.int32(0), status, jnp.mean(target))
