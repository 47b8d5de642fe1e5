"""Many problems of one size at once, under ``vmap``: all advance together, the slowest decides."""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jsvm.numerics.checks import check_finite
from jsvm.numerics.padding import cast
from jsvm.precision import scope, working_dtype
from jsvm.problems import Dense, QuadraticProgram, Tile, validate
from jsvm.problems.certificate import Certificate, certify
from jsvm.solvers.config import SMO, Recipe
from jsvm.solvers.monitor import Monitor
from jsvm.solvers.status import Solution, Status, to_numpy
from jsvm.solvers.tile.loop import Progress, advance, best_point
from jsvm.solvers.tile.whole import SHORTEST_TURN, WORK_PER_TURN, start_whole

SLOTS = 256  # of a block step


def solve_batch(
    problems: QuadraticProgram,
    solver: SMO | None = None,
    *,
    dtype: Any = None,
    monitor: Monitor | None = None,
) -> Solution:
    """Solve a stack of programs at once: every array has a leading axis, Q is dense.

    In float32 the certificates are those of the float32 matrices, computed in float64.

    Examples
    --------
    >>> import numpy as np
    >>> from jsvm import problems
    >>> one = problems.c_svc(np.eye(2), np.array([1.0, -1.0]), 1.0)
    >>> solve_batch(jax.tree.map(lambda a: np.stack([a, a]), one)).alpha.shape
    (2, 2)
    """
    solver = SMO() if solver is None else solver
    monitor = Monitor(solver.time_limit) if monitor is None else monitor
    chosen = working_dtype(dtype)
    _validate(problems)
    with scope(chosen):
        work = Batch(jax.tree.map(partial(cast, dtype=chosen), problems), solver)
        monitor.follow(work)
        alpha = _best_points(work.tile, work.progress)
    with scope(np.dtype("float64")):
        alpha, certificate = jax.device_get(_certify(work.tile, alpha))
    status = np.asarray(work.progress.status)
    status = np.where(status == Status.RUNNING, work.status, status)
    contradicted = (status == Status.CONVERGED) & ~(certificate.violation <= solver.tol)
    status = np.where(contradicted, Status.STALLED, status).astype(np.int32)
    solution = Solution.of(alpha, certificate, work.progress, kernel_rows=0, status=status)
    return replace(to_numpy(solution), history=tuple(monitor.history))


class Batch:
    """The state of the host loop around a batch; :meth:`round` is one turn of all problems."""

    def __init__(self, problems: QuadraticProgram, solver: SMO) -> None:
        n = problems.linear.shape[1]
        self.status = Status.RUNNING
        self._solver = solver
        self._recipe = solver.recipe(min(n, solver.slots, SLOTS), elastic=False)
        self._turn = max(SHORTEST_TURN, int(WORK_PER_TURN / n))
        self.tile, self.progress = _start(problems, self._recipe)

    def round(self) -> None:
        """Advance all problems by one turn."""
        budget = np.int32(self._solver.step_budget)
        limit = jnp.minimum(self.progress.steps, budget - self._turn) + self._turn
        self.progress = _advance(
            self.tile, self.progress, self._solver.tol, limit, budget, self._recipe
        )
        if not (np.asarray(self.progress.status) == Status.RUNNING).any():
            self.status = Status.CONVERGED  # of each of them its own status tells

    def facts(self) -> dict[str, Any]:
        """Return the numbers of the slowest problem."""
        state = self.progress.state
        objective = -0.5 * jnp.sum(state.alpha * (self.tile.linear + state.gradient))
        return {
            "violation": float(np.max(self.progress.violation)),
            "objective": float(objective),
            "support_vectors": int(np.count_nonzero(state.alpha)),
            "kernel_rows": 0,
            "steps": int(np.max(self.progress.steps)),
            "newton_steps": int(np.max(self.progress.newton_steps)),
        }

    def point(self) -> np.ndarray:
        """Return all points."""
        return np.asarray(self.progress.state.alpha)


def _validate(problems: QuadraticProgram) -> None:
    """Raise ValueError if a stack of programs is malformed or one of them infeasible."""
    matrix = getattr(problems.hessian, "matrix", None)
    if matrix is None or matrix.ndim != 3:
        raise ValueError("solve_batch needs a dense Hessian with a leading axis")
    if problems.totals is None or problems.l1 is not None:
        raise ValueError("solve_batch needs groups and no l1 term; use vmap(solve) for others")
    check_finite(matrix)
    vectors = jax.tree.map(np.asarray, replace(problems, hessian=None))
    stub = Dense(np.broadcast_to(0.0, matrix.shape[1:]))
    for k in range(matrix.shape[0]):
        validate(replace(jax.tree.map(lambda leaf, k=k: leaf[k], vectors), hessian=stub))


@partial(jax.jit, static_argnames="recipe")
def _start(programs: QuadraticProgram, recipe: Recipe) -> tuple[QuadraticProgram, Progress]:
    return jax.vmap(lambda program: start_whole(program, None, recipe))(programs)


@partial(jax.jit, static_argnames="recipe")
def _advance(
    tile: QuadraticProgram, progress: Progress, tol: Any, limit: Any, budget: Any, recipe: Recipe
) -> Progress:
    def one(tile: QuadraticProgram, progress: Progress, limit: Any) -> Progress:
        return advance(tile, progress, tol, limit, budget, recipe)

    return jax.vmap(one)(tile, progress, limit)


@jax.jit
def _best_points(tile: QuadraticProgram, progress: Progress) -> Any:
    return jax.vmap(best_point)(tile, progress)


@jax.jit
def _certify(tile: QuadraticProgram, alpha: Any) -> tuple[Any, Certificate]:
    def one(tile: QuadraticProgram, alpha: Any) -> tuple[Any, Certificate]:
        # In float64, whatever the tile was solved in.
        hessian = tile.hessian
        double = jax.tree.map(
            lambda leaf: leaf.astype(float) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf,
            replace(tile, hessian=None),
        )
        double = replace(
            double,
            hessian=Tile.whole(hessian.matrix.astype(float), hessian.ridge.astype(float)),
        )
        alpha = alpha.astype(float)
        return alpha, certify(double, alpha, double.gradient(alpha))

    return jax.vmap(one)(tile, alpha)
