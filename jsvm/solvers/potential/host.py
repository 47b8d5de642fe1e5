"""The host's side of solving a P-SVM: precision, padding, which solver, and the certificate."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jsvm.precision import default_platform, scope
from jsvm.problems import DenseMatrix, Normal, QuadraticProgram
from jsvm.problems.matrix_data import MatrixData, SparseMatrix
from jsvm.problems.potential import potential_primal
from jsvm.solvers.monitor import Monitor
from jsvm.solvers.potential.config import PSMO
from jsvm.solvers.potential.newton import Box, advance, begin
from jsvm.solvers.potential.paper import PaperSMO
from jsvm.solvers.potential.tiles import FINE, Tiles, Vectors, output_of, value_of
from jsvm.solvers.potential.violation import violations
from jsvm.solvers.prepare import bucket
from jsvm.solvers.status import Solution, Status

DOUBLE = np.dtype("float64")


def solve_potential(
    problem: QuadraticProgram, solver: PSMO, start: Any, dtype: np.dtype, monitor: Monitor
) -> Solution:
    """Solve a concrete program and certify the answer with a fresh gradient in float64."""
    alpha = _start(problem, start)
    saved = None if monitor.checkpoint is None else monitor.checkpoint.load()
    alpha = alpha if saved is None else _start(problem, saved)
    with scope(DOUBLE):
        data, vectors = prepared(problem, solver.cache_size * 1e6)
        alpha = np.pad(alpha, (0, data.shape[1] - vectors.size))
        kind = Tiles if solver.block == "newton" else PaperSMO
        work = kind(data, vectors, solver, dtype, alpha)
        monitor.follow(work)
        return certified(work, problem, monitor)


def solve_potential_traced(problem: QuadraticProgram, solver: PSMO, start: Any) -> Solution:
    """Solve as part of the caller's program, with the whole of Q."""
    hessian: Normal = problem.hessian
    rows = jnp.asarray(hessian.data.all_objects())
    Q = jnp.matmul(rows, rows.T, precision=lax.Precision.HIGHEST)
    lower, upper = (jnp.asarray(v, Q.dtype) for v in (problem.lower, problem.upper))
    epsilon = jnp.asarray(0.0 if problem.l1 is None else problem.l1, Q.dtype)
    linear = jnp.asarray(problem.linear, Q.dtype)
    origin = jnp.zeros_like(lower) if start is None else jnp.asarray(start, Q.dtype)
    slope = linear - jnp.matmul(Q, origin, precision=lax.Precision.HIGHEST)
    box = Box(origin, slope, lower, upper, epsilon)
    budget = jnp.int32(solver.step_budget)
    search = begin(Q, box, jnp.zeros((), Q.dtype))
    # The tolerance is what has to be reached, rounding is what is aimed at.
    fine = FINE * jnp.maximum(jnp.max(jnp.abs(linear)), epsilon)
    search = advance(Q, box, search, jnp.minimum(fine, solver.tol), budget)
    alpha = jnp.where(search.best == -origin, 0.0, origin + search.best)
    alpha = jnp.clip(alpha, lower, upper)
    target = jnp.asarray(hessian.target, Q.dtype)
    output = jnp.matmul(alpha, rows, precision=lax.Precision.HIGHEST)
    gradient = jnp.matmul(rows, target - output, precision=lax.Precision.HIGHEST)
    violation = jnp.max(violations(alpha, gradient, lower, upper, epsilon))
    spent = search.steps >= budget
    status = jnp.where(
        search.violation <= solver.tol,
        Status.CONVERGED,
        jnp.where(spent, Status.MAX_STEPS, Status.STALLED),
    )
    return Solution(
        alpha=alpha,
        bias=jnp.mean(target),
        multipliers=jnp.zeros(0, Q.dtype),
        objective=value_of(target, output, alpha, epsilon),
        primal_objective=potential_primal(target, output, gradient, lower, upper, epsilon),
        violation=jnp.maximum(violation, 0.0),
        steps=jnp.int32(0),
        newton_steps=search.steps,
        kernel_rows=jnp.int32(0),
        history=(),
        status=status,
    )


def _start(problem: QuadraticProgram, start: Any) -> np.ndarray:
    lower, upper = np.asarray(problem.lower, float), np.asarray(problem.upper, float)
    if (lower > 0).any() or (upper < 0).any():
        raise ValueError("PSMO needs bounds with lower <= 0 <= upper")
    if start is None:
        return np.zeros(problem.size)
    alpha = np.asarray(start, float)
    if alpha.shape != (problem.size,) or not np.isfinite(alpha).all():
        raise ValueError(f"start must hold {problem.size} finite numbers, not {alpha.shape}")
    slack = 1e-6 * np.abs(alpha)
    if (alpha < lower - slack).any() or (alpha > upper + slack).any():
        raise ValueError("start is not feasible: it is outside its bounds")
    return np.clip(alpha, lower, upper)


def prepared(problem: QuadraticProgram, budget: float) -> tuple[MatrixData, Vectors]:
    """Return K, in memory if it fits the budget, and the rest; padded to one of few sizes."""
    hessian: Normal = problem.hessian
    data: MatrixData = hessian.data
    length, count = data.shape
    wide, long = bucket(count), bucket(length)
    if _is_ready(data) or isinstance(data, SparseMatrix) or 8 * wide * long > budget:
        wide, long = count, length
    else:
        data = DenseMatrix(_padded(data, (wide, long)))

    def pad(values: Any, size: int) -> np.ndarray:
        values = np.asarray(values, float)
        return np.pad(values, (0, size - len(values)))

    epsilon = 0.0 if problem.l1 is None else float(problem.l1)
    bounds = pad(problem.lower, wide), pad(problem.upper, wide)
    return data, Vectors(
        count, pad(hessian.target, long), pad(problem.linear, wide), *bounds, epsilon
    )


def _is_ready(data: MatrixData) -> bool:
    """Tell whether K can stay where it is: on the host, with the devices that are the host's."""
    if default_platform() != "cpu" or not isinstance(data, DenseMatrix):
        return False
    rows = data.rows
    return isinstance(rows, np.ndarray) and rows.flags.c_contiguous and rows.dtype == np.float64


def _padded(data: MatrixData, shape: tuple[int, int]) -> jax.Array:
    """Return Kᵀ in float64 with rows and columns of zeros up to a shape."""
    rows: Any = data.all_objects()
    if isinstance(rows, np.ndarray) and not rows.flags.c_contiguous:
        return _pad_to(rows.T, shape, turned=True)  # XLA turns it faster than NumPy
    return _pad_to(rows, shape, turned=False)


@partial(jax.jit, static_argnames=("shape", "turned"))
def _pad_to(rows: Any, shape: tuple[int, int], turned: bool) -> Any:
    rows = rows.T if turned else rows
    more = [(0, size - given) for size, given in zip(shape, rows.shape, strict=True)]
    return jnp.pad(rows.astype(jnp.float64), more)


def certified(work: Any, problem: QuadraticProgram, monitor: Monitor) -> Solution:
    """Return the point of a solver with its certificate."""
    vectors: Vectors = work.vectors
    alpha = work.alpha
    output = output_of(work.data, alpha)
    gradient = np.asarray(work.data.correlations(vectors.target - output))
    bounds = vectors.lower, vectors.upper
    d = violations(alpha, gradient, *bounds, vectors.epsilon)
    violation = max(float(np.max(np.where(vectors.upper > vectors.lower, d, 0.0))), 0.0)
    status = work.status
    if status == Status.CONVERGED and violation > work.solver.tol:
        status = Status.STALLED
    primal = _primal(vectors.target, output, gradient, *bounds, vectors.epsilon)
    return Solution(
        alpha=work.point(),
        bias=float(np.mean(np.asarray(problem.hessian.target, float))),
        multipliers=np.zeros(0),
        objective=float(value_of(vectors.target, output, alpha, vectors.epsilon)),
        primal_objective=float(primal),
        violation=violation,
        steps=getattr(work, "steps", 0),
        newton_steps=work.newton_steps,
        kernel_rows=work.kernel_rows,
        history=tuple(monitor.history),
        status=int(status),
    )


_primal = jax.jit(potential_primal)
