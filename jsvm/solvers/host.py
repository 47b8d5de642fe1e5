"""The host's side of solving: precision, padding, time, interruption, and the certificate.

A concrete program is padded to one of few sizes, so that nearby sizes share compiled programs, and
solved in turns of a bounded number of steps, between which the host looks at the clock. Padded
variables have a box of zero width and never move. Inside ``jit`` or ``vmap`` the same solver runs
as part of the caller's program.
"""

import time
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jsvm.precision import at_once, is_traced, scope, working_dtype
from jsvm.problems import Dense, FromKernel, QuadraticProgram, Tile, validate
from jsvm.problems.certificate import Certificate, certify
from jsvm.solvers.config import SMO, Recipe
from jsvm.solvers.prepare import canonical, cast, check_finite, feasible_start, innermost, pad
from jsvm.solvers.smo import Progress, advance, begin, best_point, slots_for
from jsvm.solvers.status import Solution, Status

WORK_PER_TURN = 3e8  # pair steps times variables: about a second
SHORTEST_TURN = 1000  # pair steps
TRACED_SLOTS = 256  # nobody can ask for more inside a transformation


def solve(
    problem: QuadraticProgram,
    solver: SMO | None = None,
    start: Any = None,
    *,
    dtype: Any = None,
) -> Solution:
    """Solve a quadratic program and certify the answer.

    Parameters
    ----------
    problem : QuadraticProgram
        One of :mod:`jsvm.problems`.
    solver : SMO, optional
        Configuration; the default is second-order selection with block steps at tol=1e-3.
    start : array of shape (n,) or Solution, optional
        A feasible point to start from.
    dtype : {'float64', 'float32'}, optional
        What to compute in; by default float64 on a CPU and float32 elsewhere. Inside a JAX
        transformation the dtype of the problem is used.

    Returns
    -------
    Solution
        NumPy arrays and numbers; JAX arrays inside a transformation.

    Examples
    --------
    >>> import numpy as np
    >>> from jsvm import kernels, problems, solve
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> y = np.array([-1.0, -1.0, 1.0, 1.0])
    >>> s = solve(problems.c_svc((kernels.Linear(), X), y, C=10.0))
    >>> round(float(s.bias), 3), bool(s.duality_gap < 1e-3)
    (-3.0, True)
    """
    solver = SMO() if solver is None else solver
    start = start.alpha if isinstance(start, Solution) else start
    if is_traced(problem, start):
        return _solve_traced(problem, solver, start)
    validate(problem)
    chosen = working_dtype(dtype)
    # A program that does not depend on what is being traced is solved at once, in float64.
    with at_once(), scope(chosen):
        return _solve_concrete(problem, solver, start, chosen)


def solve_batch(
    problems: QuadraticProgram, solver: SMO | None = None, *, dtype: Any = None
) -> Solution:
    """Solve a stack of programs at once: every array has a leading axis, Q is dense.

    All programs advance together under ``vmap``; the slowest decides.

    Examples
    --------
    >>> import numpy as np
    >>> from jsvm import problems
    >>> one = problems.c_svc(np.eye(2), np.array([1.0, -1.0]), 1.0)
    >>> solve_batch(jax.tree.map(lambda a: np.stack([a, a]), one)).alpha.shape
    (2, 2)
    """
    solver = SMO() if solver is None else solver
    chosen = working_dtype(dtype)
    _validate_batch(problems)
    with scope(chosen):
        n = problems.linear.shape[1]
        recipe = solver.recipe(min(n, solver.slots, TRACED_SLOTS), elastic=False)
        program = jax.tree.map(partial(cast, dtype=chosen), problems)
        tile, progress = _start_batch(program, recipe)
        progress, history = _drive(tile, progress, solver, recipe, n)
        alpha, certificate = _certify_batch(tile, progress)
        solution = _to_numpy(_report(alpha, progress, certificate, kernel_rows=0))
        return replace(solution, history=history)


def _validate_batch(problems: QuadraticProgram) -> None:
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


def _solve_traced(problem: QuadraticProgram, solver: SMO, start: Any) -> Solution:
    program, restore = canonical(problem)
    n = program.size
    recipe = solver.recipe(min(n, solver.slots, TRACED_SLOTS), elastic=False)
    tile = replace(program, hessian=Tile.of(program.hessian.dense()))
    tile = jax.tree.map(jnp.asarray, tile)
    alpha = tile.feasible_point() if start is None else restore.split(jnp.asarray(start))
    progress = begin(tile, alpha, recipe)
    budget = jnp.int32(solver.step_budget)
    progress = advance(tile, progress, solver.tol, budget, budget, recipe)
    alpha, certificate = _certify(tile, progress)
    return restore.join(_report(alpha, progress, certificate, kernel_rows=jnp.int32(0)))


def _solve_concrete(
    problem: QuadraticProgram, solver: SMO, start: Any, dtype: np.dtype
) -> Solution:
    program, restore = canonical(problem)
    padded, places = pad(program, dtype)
    size = padded.size
    recipe = solver.recipe(slots_for(2, size), elastic=True)
    alpha = None
    if start is not None:
        alpha = np.zeros(size, dtype)
        alpha[places] = feasible_start(restore.split(np.asarray(start, dtype)), program)
    tile, progress = _start(padded, alpha, recipe)
    del padded
    progress, history = _drive(tile, progress, solver, recipe, size)
    alpha, certificate = _certify(tile, progress)
    rows = program.size if isinstance(innermost(program.hessian), FromKernel) else 0
    solution = _to_numpy(_report(alpha, progress, certificate, kernel_rows=rows))
    solution = replace(solution, alpha=solution.alpha[places], history=history)
    return restore.join(solution)


def _drive(
    tile: QuadraticProgram, progress: Progress, solver: SMO, recipe: Recipe, n: int
) -> tuple[Progress, tuple[dict[str, Any], ...]]:
    """Advance in turns until every status is final; returns what was reached, whatever happens."""
    begun = time.perf_counter()
    turn = max(SHORTEST_TURN, int(WORK_PER_TURN / n))
    budget = np.int32(solver.step_budget)
    batched = progress.status.ndim == 1
    step = _advance_batch if batched else advance
    history: list[dict[str, Any]] = []
    try:
        while True:
            limit = jnp.minimum(progress.steps, budget - turn) + turn
            progress = step(tile, progress, solver.tol, limit, budget, recipe)
            running = np.asarray(progress.status) == Status.RUNNING
            if recipe.elastic and int(progress.free):
                recipe = recipe._replace(slots=slots_for(int(progress.free), n))
            seconds = time.perf_counter() - begun
            history.append(
                {
                    "steps": int(np.max(progress.steps)),
                    "newton_steps": int(np.max(progress.newton_steps)),
                    "violation": float(np.max(progress.violation)),
                    "seconds": seconds,
                }
            )
            if not running.any():
                break
            if solver.time_limit is not None and seconds > solver.time_limit:
                progress = _stop(progress, Status.TIME_LIMIT)
                break
    except KeyboardInterrupt:
        progress = _stop(progress, Status.INTERRUPTED)
    return progress, tuple(history)


def _stop(progress: Progress, status: Status) -> Progress:
    unfinished = progress.status == Status.RUNNING
    return progress._replace(status=jnp.where(unfinished, jnp.int32(status), progress.status))


@partial(jax.jit, static_argnames="recipe")
def _start(
    program: QuadraticProgram, alpha: Any, recipe: Recipe
) -> tuple[QuadraticProgram, Progress]:
    tile = replace(program, hessian=Tile.of(program.hessian.dense()))
    return tile, begin(tile, tile.feasible_point() if alpha is None else alpha, recipe)


@partial(jax.jit, static_argnames="recipe")
def _start_batch(programs: QuadraticProgram, recipe: Recipe) -> tuple[QuadraticProgram, Progress]:
    return jax.vmap(lambda program: _start(program, None, recipe))(programs)


@partial(jax.jit, static_argnames="recipe")
def _advance_batch(
    tile: QuadraticProgram, progress: Progress, tol: Any, limit: Any, budget: Any, recipe: Recipe
) -> Progress:
    def one(tile: QuadraticProgram, progress: Progress, limit: Any) -> Progress:
        return advance(tile, progress, tol, limit, budget, recipe)

    return jax.vmap(one)(tile, progress, limit)


@jax.jit
def _certify(tile: QuadraticProgram, progress: Progress) -> tuple[Any, Certificate]:
    alpha = best_point(tile, progress)
    return alpha, certify(tile, alpha, tile.gradient(alpha))


@jax.jit
def _certify_batch(tile: QuadraticProgram, progress: Progress) -> tuple[Any, Certificate]:
    return jax.vmap(_certify)(tile, progress)


def _report(alpha: Any, progress: Progress, certificate: Certificate, kernel_rows: Any) -> Solution:
    return Solution(
        alpha=alpha,
        bias=jnp.mean(certificate.multipliers, axis=-1),
        multipliers=certificate.multipliers,
        objective=certificate.objective,
        primal_objective=certificate.primal_objective,
        violation=certificate.violation,
        steps=progress.steps,
        newton_steps=progress.newton_steps,
        kernel_rows=kernel_rows,
        history=(),
        status=progress.status,
    )


def _to_numpy(solution: Solution) -> Solution:
    def convert(leaf: Any) -> Any:
        leaf = np.asarray(leaf)
        return leaf.item() if leaf.ndim == 0 else leaf

    return jax.tree.map(convert, solution)
