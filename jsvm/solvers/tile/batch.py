"""Many problems of one size at once, under ``vmap``: all advance together, the slowest decides."""

import math
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jsvm.numerics.arrays import cast, check_finite
from jsvm.precision import scope, working_dtype
from jsvm.problems import Dense, QuadraticProgram, Tile, validate
from jsvm.problems.certificate import Certificate, certify
from jsvm.programs import program
from jsvm.solvers.monitor import Facts, Monitor, facts_of, finish
from jsvm.solvers.smo import SMO
from jsvm.solvers.status import Solution, Status
from jsvm.solvers.tile.loop import advance, best_point
from jsvm.solvers.tile.progress import Limits, Progress
from jsvm.solvers.tile.steps import Recipe
from jsvm.solvers.tile.whole import start_whole, turn_of


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
    >>> from jsvm import problems
    >>> one = problems.c_svc(np.eye(2), np.array([1.0, -1.0]), 1.0)
    >>> solve_batch(jax.tree.map(lambda a: np.stack([a, a]), one)).alpha.shape
    (2, 2)
    """
    solver = SMO() if solver is None else solver
    monitor = Monitor(solver.time_limit) if monitor is None else monitor
    chosen = working_dtype(dtype)
    _validate(problems)
    with monitor, scope(chosen):
        work = Batch(jax.tree.map(partial(cast, dtype=chosen), problems), solver)
        return finish(work, monitor)


class Batch:
    """The host loop around a batch; see :class:`jsvm.solvers.monitor.Work`."""

    kernel_rows = 0

    def __init__(self, problems: QuadraticProgram, solver: SMO) -> None:
        n = problems.linear.shape[1]
        self.status = Status.RUNNING
        self._solver, self._turn = solver, turn_of(n, solver.tuning)
        slots = min(n, solver.slots, solver.tuning.batch_slots)
        # Nothing is known about given matrices: they may have a low rank.
        self._recipe = solver.recipe(slots, elastic=False, low_rank=True)
        self._tile, self._progress = _start(problems, self._recipe)

    @property
    def steps(self) -> int:
        """Pair steps of the slowest problem."""
        return int(np.max(self._progress.steps))

    @property
    def newton_steps(self) -> int:
        """Rounds of block steps of the problem with most of them."""
        return int(np.max(self._progress.newton_steps))

    def round(self, seconds: float = math.inf) -> None:
        """Advance all problems by one turn."""
        budget = np.int32(self._solver.step_budget)
        limit = jnp.minimum(self._progress.steps, budget - self._turn) + self._turn
        limits = Limits(self._solver.tol, limit, budget)
        self._progress = _advance(self._tile, self._progress, limits, self._recipe)
        if not (np.asarray(self._progress.status) == Status.RUNNING).any():
            self.status = Status.CONVERGED  # each problem has its own status beside this one

    def facts(self) -> Facts:
        """Return the largest violation and the sum of the objectives."""
        state = self._progress.state
        objective = -0.5 * jnp.sum(state.alpha * (self._tile.linear + state.gradient))
        alpha = np.asarray(state.alpha)
        return facts_of(self, np.max(self._progress.violation), objective, alpha)

    def point(self) -> np.ndarray:
        return np.asarray(self._progress.state.alpha)

    def solution(self) -> Solution:
        alpha = _best_points(self._tile, self._progress)
        with scope(np.dtype("float64")):
            alpha, certificate = jax.device_get(_certify(self._tile, alpha))
        status = np.asarray(self._progress.status)
        status = np.where(status == Status.RUNNING, self.status, status)
        contradicted = (status == Status.CONVERGED) & ~(certificate.violation <= self._solver.tol)
        status = np.where(contradicted, Status.STALLED, status).astype(np.int32)
        return Solution.of(alpha, certificate, self._progress, 0, status)

    def release(self) -> None:
        """Nothing of a batch comes from the memory pool."""


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


@program(static_argnames="recipe")
def _start(programs: QuadraticProgram, recipe: Recipe) -> tuple[QuadraticProgram, Progress]:
    return jax.vmap(lambda program: start_whole(program, None, recipe))(programs)


@program(static_argnames="recipe")
def _advance(
    tile: QuadraticProgram, progress: Progress, limits: Limits, recipe: Recipe
) -> Progress:
    own_steps = Limits(None, 0, None)
    return jax.vmap(partial(advance, recipe=recipe), (0, 0, own_steps))(tile, progress, limits)


_best_points = program(jax.vmap(best_point))


@program
@jax.vmap
def _certify(tile: QuadraticProgram, alpha: Any) -> tuple[Any, Certificate]:
    """In float64, whatever the tile was solved in."""
    tile, alpha = jax.tree.map(partial(cast, dtype=np.dtype("float64")), (tile, alpha))
    tile = replace(tile, hessian=Tile.whole(tile.hessian.matrix, tile.hessian.ridge))
    return alpha, certify(tile, alpha, tile.gradient(alpha))
