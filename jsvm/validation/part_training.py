"""Training of all folds and all C with one kernel.

Squared distances or products of the points are computed once for all γ. Folds and classes are parts
of the kernel matrix; each part is trained for one C after the other, from the smallest up, starting
from the last solution scaled. One program does all that; parts that are too large for it are
trained one by one.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jsvm.kernels.sparse import between_sparse, kernel_and_points
from jsvm.numerics.arrays import bucket, cast, is_sparse, repeat_first, widened
from jsvm.precision import scope
from jsvm.problems import QuadraticProgram
from jsvm.problems.certificate import certify
from jsvm.problems.hessian import gram
from jsvm.programs import program
from jsvm.solvers import SMO, solve
from jsvm.solvers.canonical import near
from jsvm.solvers.tile.loop import advance, best_point
from jsvm.solvers.tile.progress import Limits
from jsvm.solvers.tile.steps import Recipe
from jsvm.solvers.tile.whole import start_whole
from jsvm.validation.parts import Part, of_some, stacked, values_of_some

LARGEST_PART = 2048  # variables of a part that is trained inside the program, on one tile


class GridTask(NamedTuple):
    """An estimator and its data, as :func:`jsvm.search.cross_validate` needs them.

    ``build(K, targets, costs, *parameters)`` is the program of a part; it is compiled in.
    """

    X: Any  # array or sparse matrix of shape (n, d): the points, or the kernel matrix
    kernel: Callable[[Any], Any]  # from γ (None: the estimator's own) to a Kernel or 'precomputed'
    folds: list[tuple[np.ndarray, np.ndarray]]  # examples that train, and that test
    parts: Callable[[np.ndarray], list[Part]]  # from the training examples of a fold
    build: Callable[..., QuadraticProgram]
    parameters: tuple[float, ...]
    copies: int  # variables per example
    score: Callable[[np.ndarray, np.ndarray], float]  # from test examples and decision values
    solver: SMO
    dtype: np.dtype


class Trained(NamedTuple):
    """Decision values of all examples (parts, C, n), status and violation (parts, C)."""

    values: np.ndarray
    status: np.ndarray
    violation: np.ndarray


def trainer(
    task: GridTask, kernels: Sequence[Any], parts: list[Part], costs: np.ndarray
) -> Callable[[Any], Trained]:
    """Return the function that trains all parts for all C, in rising order, with one kernel."""
    largest = max(len(part.examples) for part in parts)
    if task.copies * largest > LARGEST_PART or not all(_fits(kernel, task.X) for kernel in kernels):
        return partial(_one_by_one, task, parts, costs)
    return _in_batches(task, kernels, parts, costs)


def _fits(kernel: Any, X: Any) -> bool:
    """Tell whether the matrix of a kernel can be computed inside a program."""
    if isinstance(kernel, str):
        return True
    needs_points = kernel.basis is None
    return not kernel.runs_on_host() and not (is_sparse(X) and needs_points)


def _in_batches(
    task: GridTask, kernels: Sequence[Any], parts: list[Part], costs: np.ndarray
) -> Callable[[Any], Trained]:
    """Return the function that trains all parts for all C with one kernel, in one program."""
    n, dtype = task.X.shape[0], task.dtype
    stack = stacked(parts, dtype)
    variables = task.copies * stack.examples.shape[1]
    slots = min(variables, task.solver.slots, 256 if variables > 512 else 128)
    # Scores need the tolerance and no more: no polishing, no block steps on some of many.
    recipe = task.solver.recipe(slots, elastic=False)._replace(polish=False, largest=slots)
    shared, of_basis = _shared(task, kernels[0])

    def train(kernel: Any, budget: int | None = None) -> Trained:
        with scope(dtype):
            matrix, function = shared, None
            if not isinstance(kernel, str):
                own = jax.tree.map(partial(cast, dtype=dtype), kernel)
                matrix, function = (shared, own) if of_basis else (gram(own, shared), None)
            limit = np.int32(task.solver.step_budget if budget is None else budget)
            given = function, matrix, stack, costs.astype(dtype), task.solver.tol, limit
            values, status, violation = _train(*given, task.parameters, task.build, recipe)
            values = np.asarray(values, np.float64)[:, :, :n]
            return Trained(values, np.asarray(status), np.asarray(violation, np.float64))

    train(kernels[0], budget=0)  # compile once, before several threads do
    return train


def _shared(task: GridTask, kernel: Any) -> tuple[Any, bool]:
    """Return what all γ share, and whether it is the matrix of the kernel's basis."""
    X, dtype = task.X, task.dtype
    size = bucket(X.shape[0])
    with scope(dtype):
        if isinstance(kernel, str):
            return np.pad(np.asarray(X, dtype), (0, size - len(X))), False
        basis = kernel.basis
        if is_sparse(X):
            values = between_sparse(basis, X, X, dtype)
            return np.pad(values, (0, size - X.shape[0])), True
        points = jnp.asarray(repeat_first(widened(kernel, X), size), dtype)
        return (points, False) if basis is None else (basis.matrix(points, points), True)


@program(static_argnames=("build", "recipe"))
def _train(
    kernel: Any,
    matrix: Any,
    parts: Any,
    costs: Any,
    tol: Any,
    budget: Any,
    parameters: Any,
    build: Any,
    recipe: Recipe,
) -> Any:
    """Train all parts; `matrix` is that of the kernel's basis, or of the kernel if this is None."""
    K = matrix if kernel is None else kernel.of_basis(matrix)

    def one(part: Any) -> Any:
        some, targets, weights = part
        columns = K[:, some]
        inner = columns[some]

        def program(C: Any) -> QuadraticProgram:
            return build(inner, targets, C * weights, *parameters)  # padding: 0 · C = 0

        def next_cost(last: Any, C: Any) -> Any:
            alpha, cost = last
            here = program(C)
            scale = _scale(here, inner, alpha, C / cost)
            tile, progress = start_whole(here, alpha * scale, recipe)
            progress = advance(tile, progress, Limits(tol, budget, budget), recipe)
            alpha = best_point(tile, progress)
            certificate = certify(tile, alpha, tile.gradient(alpha))
            beta = jnp.sum(alpha.reshape(-1, targets.shape[0]), axis=0)
            values = jnp.matmul(columns, beta, precision=lax.Precision.HIGHEST)
            values = values + jnp.mean(certificate.multipliers)
            return (alpha, C), (values, progress.status, certificate.violation)

        start = program(costs[0]).feasible_point()
        return lax.scan(next_cost, (start, costs[0]), costs)[1]

    return lax.map(one, parts)


def _scale(program: QuadraticProgram, K: Any, alpha: Any, ratio: Any) -> Any:
    """Return the factor from which to start at a C that is `ratio` times the last one.

    The ratio keeps variables at bounds; if most are free, the minimum along the ray is better.
    """
    scaled = alpha * ratio
    free = jnp.sum((scaled > program.lower) & (scaled < program.upper))
    beta = jnp.sum(alpha.reshape(-1, K.shape[0]), axis=0)
    curvature = jnp.dot(beta, jnp.matmul(K, beta, precision=lax.Precision.HIGHEST))
    curvature = jnp.where(curvature > 0, curvature, 1.0)
    lowest = jnp.clip(jnp.dot(program.linear, alpha) / curvature, 1.0, ratio)
    movable = jnp.all(program.totals == 0)  # else only the ratio keeps the sums
    return jnp.where(movable & (2 * free > jnp.sum(alpha != 0)), lowest, ratio)


def _one_by_one(task: GridTask, parts: list[Part], costs: np.ndarray, kernel: Any) -> Trained:
    """Train all parts for all C, each with `solve`."""
    shape = len(parts), len(costs)
    values, status = np.zeros((*shape, task.X.shape[0])), np.zeros(shape, np.int32)
    violation, everyone = np.zeros(shape), np.arange(task.X.shape[0])
    whole = task.X
    if not isinstance(kernel, str):
        whole = kernel_and_points(kernel, task.X) if is_sparse(task.X) else (kernel, task.X)
    for p, part in enumerate(parts):
        K, last = of_some(whole, part.examples), None
        for c, C in enumerate(costs):
            program = task.build(K, part.targets, C * part.weights, *task.parameters)
            start = None if last is None else near(last.alpha * (C / costs[c - 1]), program)
            last = solve(program, task.solver, start, dtype=task.dtype)
            beta = last.alpha.reshape(task.copies, -1).sum(axis=0)
            found = values_of_some(whole, part.examples, beta, everyone, task.dtype)
            values[p, c] = found + last.bias
            status[p, c], violation[p, c] = last.status, last.violation
    return Trained(values, status, violation)
