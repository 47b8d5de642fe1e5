"""The host's side of solving a P-SVM: precision, padding, which solver, and the certificate."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jsvm.numerics.padding import bucket
from jsvm.numerics.products import product
from jsvm.numerics.reductions import SLICES
from jsvm.precision import default_platform, scope
from jsvm.problems import DenseMatrix, Normal, QuadraticProgram
from jsvm.problems.matrix_data import MatrixData, SparseMatrix
from jsvm.problems.potential import potential_primal
from jsvm.solvers.monitor import Monitor
from jsvm.solvers.potential.paper_smo import PaperSMO
from jsvm.solvers.potential.psmo import PSMO
from jsvm.solvers.potential.psvm_tiles import FINE, Tiles, Vectors, output_of, value_of
from jsvm.solvers.potential.semismooth import Box, advance, begin
from jsvm.solvers.potential.violation import violations
from jsvm.solvers.starts import feasible_start
from jsvm.solvers.status import Solution, Status

DOUBLE = np.dtype("float64")
LARGE = 2**20  # entries of a matrix


def solve_potential(
    problem: QuadraticProgram, solver: PSMO, start: Any, dtype: np.dtype, monitor: Monitor
) -> Solution:
    """Solve a concrete program and certify the answer with a fresh gradient in float64."""
    alpha = _start(problem, start)
    saved = None if monitor.checkpoint is None else monitor.checkpoint.load()
    alpha = alpha if saved is None else _start(problem, saved)
    with scope(DOUBLE):
        # The steps of the papers compare slices of vectors of equal length.
        multiple = 1 if solver.block == "newton" else SLICES
        data, vectors = prepared(problem, solver.cache_size * 1e6, multiple)
        alpha = np.pad(alpha, (0, data.shape[1] - vectors.size))
        kind = Tiles if solver.block == "newton" else PaperSMO
        work = kind(data, vectors, solver, dtype, alpha)
        monitor.follow(work)
        solution = certified(work, problem, monitor)
        if isinstance(work, Tiles):
            work.release()
        return solution


def solve_potential_traced(problem: QuadraticProgram, solver: PSMO, start: Any) -> Solution:
    """Solve as part of the caller's program, with the whole of Q."""
    hessian: Normal = problem.hessian
    rows = jnp.asarray(hessian.data.all_objects())
    Q = product(rows, rows.T)
    lower, upper = (jnp.asarray(v, Q.dtype) for v in (problem.lower, problem.upper))
    epsilon = jnp.asarray(0.0 if problem.l1 is None else problem.l1, Q.dtype)
    linear = jnp.asarray(problem.linear, Q.dtype)
    origin = jnp.zeros_like(lower) if start is None else jnp.asarray(start, Q.dtype)
    slope = linear - product(Q, origin)
    box = Box(origin, slope, lower, upper, epsilon)
    budget = jnp.int32(solver.step_budget)
    search = begin(Q, box, jnp.zeros((), Q.dtype))
    # The tolerance is what has to be reached, rounding is what is aimed at.
    fine = FINE * jnp.maximum(jnp.max(jnp.abs(linear)), epsilon)
    search = advance(Q, box, search, jnp.minimum(fine, solver.tol), budget)
    alpha = jnp.where(search.best == -origin, 0.0, origin + search.best)
    alpha = jnp.clip(alpha, lower, upper)
    target = jnp.asarray(hessian.target, Q.dtype)
    output = product(alpha, rows)
    gradient = product(rows, target - output)
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
    if (np.asarray(problem.lower) > 0).any() or (np.asarray(problem.upper) < 0).any():
        raise ValueError("PSMO needs bounds with lower <= 0 <= upper")
    if start is None:
        return np.zeros(problem.size)
    return feasible_start(np.asarray(start, float), problem)


def prepared(
    problem: QuadraticProgram, budget: float, multiple: int = 1
) -> tuple[MatrixData, Vectors]:
    """Return K, in memory if it fits the budget, and the rest; of variables a `multiple` if so.

    Where the device is the host K stays in NumPy, whose products need no compilation. Elsewhere it
    is padded to one of few sizes.
    """
    hessian: Normal = problem.hessian
    data: MatrixData = hessian.data
    length, count = data.shape
    long, wide = length, count
    if not isinstance(data, SparseMatrix) and 8 * bucket(count) * bucket(length) <= budget:
        if default_platform() == "cpu":
            wide = -(-count // multiple) * multiple
            rows = _on_host(data)
            data = DenseMatrix(np.pad(rows, ((0, wide - count), (0, 0))) if wide > count else rows)
        else:
            long, wide = bucket(length), bucket(count)
            rows = jnp.asarray(data.all_objects(), jnp.float64)
            data = DenseMatrix(jnp.pad(rows, ((0, wide - count), (0, long - length))))

    def pad(values: Any, size: int) -> np.ndarray:
        values = np.asarray(values, float)
        return np.pad(values, (0, size - len(values)))

    epsilon = 0.0 if problem.l1 is None else float(problem.l1)
    bounds = pad(problem.lower, wide), pad(problem.upper, wide)
    vectors = Vectors(count, pad(hessian.target, long), pad(problem.linear, wide), *bounds, epsilon)
    return data, vectors


def _on_host(data: MatrixData) -> np.ndarray:
    """Return Kᵀ in float64, each row object in one piece."""
    rows: Any = data.all_objects()
    if isinstance(rows, np.ndarray) and not rows.flags.c_contiguous and rows.size > LARGE:
        rows = _turned(rows.T)  # XLA turns a large matrix faster than NumPy
    return np.ascontiguousarray(rows, np.float64)


@jax.jit
def _turned(matrix: Any) -> Any:
    return matrix.T


def certified(work: Any, problem: QuadraticProgram, monitor: Monitor) -> Solution:
    """Return the point of a solver with its certificate."""
    vectors: Vectors = work.vectors
    alpha = work.alpha
    output = output_of(work.data, alpha)
    gradient = np.asarray(work.data.correlations(vectors.target - output))
    bounds = vectors.lower, vectors.upper
    violation = max(float(np.max(violations(alpha, gradient, *bounds, vectors.epsilon))), 0.0)
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
