"""Outputs of P-SVMs on examples that they were not trained on: leave-one-out and other folds.

An example is left out by weight zero: its row of K vanishes, and the columns are normalised without
it, so all folds have the shape of the whole problem. In pairwise data its column goes too, by a
bound of zero. Problems of a few hundred variables are solved all together; larger ones one after
the other, each started from the support features of the one before ("priming", 003, B.3).
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int, Real

from jsvm._typing import Array
from jsvm.precision import scope, working_dtype
from jsvm.problems.matrix_data import DenseMatrix, as_matrix_data, normalised
from jsvm.problems.potential import psvm
from jsvm.solvers.potential.psmo import PSMO
from jsvm.solvers.potential.solve_psvm import DOUBLE, solve_potential_traced
from jsvm.solvers.solve import solve
from jsvm.solvers.status import Status

LARGEST_TOGETHER = 300  # variables of problems that are solved all together
BATCH_BYTES = 2**28


class HeldOut(NamedTuple):
    """What was found on the examples that were left out.

    `outputs` holds Kα + b of every example by the machine without it, `support` the number of
    support features of every fold's machine, `converged` whether all of them met the tolerance.
    """

    outputs: np.ndarray
    support: np.ndarray
    converged: bool


def held_out(
    K: Any,
    y: Real[Array, " l"],
    C: float | int,
    epsilon: float | int,
    folds: Sequence[Int[np.ndarray, " _"]] | None = None,
    *,
    pairwise: bool = False,
    scaling: str = "length",
    solver: PSMO | None = None,
    dtype: Any = None,
    together: bool | None = None,
) -> HeldOut:
    """Return the outputs of P-SVMs for examples that were left out of their training.

    Parameters
    ----------
    K : array of shape (L, P), (kernel, X), (kernel, X, Z) or MatrixData
        Not normalised; that is done for every fold without the examples that are left out.
    y : array of shape (L,)
    C, epsilon : float
        Of the machines.
    folds : sequence of integer arrays, optional
        The examples that are left out together; by default each by itself.
    pairwise : bool
        Row objects are the examples: who is left out is no feature either.
    scaling : {'length', 'variance'}
        As for :func:`jsvm.problems.normalised`.
    solver : PSMO, optional
    dtype : {'float64', 'float32'}, optional
    together : bool, optional
        Whether to solve all folds at once; by default if they are small.

    Examples
    --------
    >>> X = np.linspace(-1.0, 1.0, 8)[:, None]
    >>> outputs = held_out(X, 2.0 * X[:, 0], np.inf, 0.0).outputs
    >>> bool(np.allclose(outputs, 2.0 * X[:, 0]))
    True
    """
    solver = PSMO() if solver is None else solver
    with scope(DOUBLE):
        data = DenseMatrix(np.asarray(as_matrix_data(K).all_objects(), np.float64))
    length, count = data.shape
    if pairwise and length != count:
        raise ValueError(f"pairwise=True needs a square K, not one of shape {data.shape}")
    y = np.asarray(y, np.float64)
    folds = [np.array([i]) for i in range(length)] if folds is None else folds
    weights = np.ones((len(folds), length))
    for k, fold in enumerate(folds):
        weights[k, fold] = 0.0
    if not (weights.any(axis=1)).all():
        raise ValueError("folds must leave examples to train on")
    bounds = np.full((len(folds), count), float(C))
    if pairwise:
        bounds = np.where(weights > 0, bounds, 0.0)
    small = count <= LARGEST_TOGETHER if together is None else together
    find = _all_together if small else _one_by_one
    coefficients, offsets, converged = find(
        data, y, weights, bounds, float(epsilon), scaling, solver, dtype
    )
    outputs = np.full(length, np.nan)
    for k, fold in enumerate(folds):
        outputs[fold] = coefficients[k] @ data.rows[:, fold] + offsets[k]
    return HeldOut(outputs, np.count_nonzero(coefficients, axis=1), converged)


def _one_by_one(
    data: DenseMatrix,
    y: np.ndarray,
    weights: np.ndarray,
    bounds: np.ndarray,
    epsilon: float,
    scaling: str,
    solver: PSMO,
    dtype: Any,
) -> tuple[np.ndarray, np.ndarray, bool]:
    coefficients, offsets = np.zeros_like(bounds), np.zeros(len(weights))
    alpha, converged = np.zeros(bounds.shape[1]), True
    for k, (weight, bound) in enumerate(zip(weights, bounds, strict=True)):
        with scope(DOUBLE):
            K = normalised(data, scaling, weight)
            mean = weight @ y / weight.sum()
            problem = psvm(K, np.sqrt(weight) * (y - mean), bound, epsilon)
        start = np.clip(alpha, -bound, bound)
        solution = solve(problem, solver, start, dtype=dtype)
        alpha, converged = solution.alpha, converged and solution.status == Status.CONVERGED
        scale, means = np.asarray(K.scale), np.asarray(K.mean)
        coefficients[k] = np.divide(alpha, scale, out=np.zeros_like(alpha), where=scale > 0)
        offsets[k] = mean - coefficients[k] @ means
    return coefficients, offsets, converged


def _all_together(
    data: DenseMatrix,
    y: np.ndarray,
    weights: np.ndarray,
    bounds: np.ndarray,
    epsilon: float,
    scaling: str,
    solver: PSMO,
    dtype: Any,
) -> tuple[np.ndarray, np.ndarray, bool]:
    chosen, count = working_dtype(dtype), bounds.shape[1]
    batch = max(1, BATCH_BYTES // (8 * count * (count + data.shape[0])))
    parts = []
    with scope(chosen):
        rows, targets = (jnp.asarray(v, chosen) for v in (data.rows, y))
        for begin in range(0, len(weights), batch):
            w, b = (jnp.asarray(v[begin : begin + batch], chosen) for v in (weights, bounds))
            found = _solve_some(rows, targets, w, b, epsilon, scaling, solver)
            parts.append([np.asarray(v) for v in found])
    coefficients, offsets, status = (np.concatenate(part) for part in zip(*parts, strict=True))
    return coefficients, offsets, bool((status == Status.CONVERGED).all())


@partial(jax.jit, static_argnames=("scaling", "solver"))
def _solve_some(
    rows: Any, y: Any, weights: Any, bounds: Any, epsilon: Any, scaling: str, solver: PSMO
) -> tuple[Any, Any, Any]:
    def one(weight: Any, bound: Any) -> tuple[Any, Any, Any]:
        K = normalised(DenseMatrix(rows), scaling, weight)
        mean = jnp.dot(weight, y) / jnp.sum(weight)
        problem = psvm(K, jnp.sqrt(weight) * (y - mean), bound, epsilon)
        solution = solve_potential_traced(problem, solver, None)
        scale = jnp.where(K.scale > 0, K.scale, 1.0)
        coefficients = jnp.where(K.scale > 0, solution.alpha / scale, 0.0)
        return coefficients, mean - jnp.dot(coefficients, K.mean), solution.status

    return jax.vmap(one)(weights, bounds)
