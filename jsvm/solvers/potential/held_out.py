"""Outputs of P-SVMs on examples that they were not trained on: leave-one-out and other folds.

An example is left out by weight zero: its row of K vanishes, and the columns are normalised without
it, so all folds have the shape of the whole problem. In pairwise data its column goes too, by a
bound of zero. Problems of a few hundred variables are solved all together; larger ones one after
the other, each started from the support features of the one before ("priming", Hochreiter &
Obermayer 2004, B.3).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int, Real

from jsvm._typing import Array
from jsvm.numerics.arrays import namespace
from jsvm.precision import DOUBLE, scope, working_dtype
from jsvm.problems.matrix_data import DenseMatrix, Normalised, as_matrix_data, normalised
from jsvm.problems.potential import psvm
from jsvm.problems.program import QuadraticProgram
from jsvm.programs import program
from jsvm.solvers.potential.psmo import PSMO
from jsvm.solvers.potential.solve_psvm import PsvmFamily
from jsvm.solvers.status import Status


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
        The row objects are the examples; one that is left out is not a feature either.
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
    small = count <= solver.tuning.together_variables if together is None else together
    machines = Folds(data.rows, y, weights, bounds, float(epsilon))
    find = _all_together if small else _one_by_one
    coefficients, offsets, converged = find(machines, scaling, solver, working_dtype(dtype))
    outputs = np.full(length, np.nan)
    for k, fold in enumerate(folds):
        outputs[fold] = coefficients[k] @ data.rows[:, fold] + offsets[k]
    return HeldOut(outputs, np.count_nonzero(coefficients, axis=1), converged)


class Folds(NamedTuple):
    """Kᵀ, the targets, and for every fold the weights of the examples and the bounds of |α|."""

    rows: Any
    y: Any
    weights: Any
    bounds: Any
    epsilon: Any

    def machine(
        self, weight: Any, bound: Any, scaling: str
    ) -> tuple[Normalised, Any, QuadraticProgram]:
        """Return K normalised without the fold, the mean of its targets, and its program."""
        K = normalised(DenseMatrix(self.rows), scaling, weight)
        mean = weight @ self.y / weight.sum()
        root = namespace(weight).sqrt(weight)
        return K, mean, psvm(K, root * (self.y - mean), bound, self.epsilon)


def _raw(K: Normalised, alpha: Any, mean: Any) -> tuple[Any, Any]:
    """Return the coefficients of the columns that are not normalised, and the offset."""
    xp = namespace(alpha)
    scale = xp.where(K.scale > 0, K.scale, 1.0)
    coefficients = xp.where(K.scale > 0, alpha / scale, 0.0)
    return coefficients, mean - coefficients @ K.mean


def _one_by_one(
    folds: Folds, scaling: str, solver: PSMO, dtype: np.dtype
) -> tuple[np.ndarray, np.ndarray, bool]:
    coefficients, offsets = np.zeros_like(folds.bounds), np.zeros(len(folds.weights))
    alpha, converged = np.zeros(folds.bounds.shape[1]), True
    for k, (weight, bound) in enumerate(zip(folds.weights, folds.bounds, strict=True)):
        with scope(DOUBLE):
            K, mean, problem = folds.machine(weight, bound, scaling)
        family = PsvmFamily(K, solver, dtype)
        solution = family.solve(problem, np.clip(alpha, -bound, bound))
        family.release()
        alpha, converged = solution.alpha, converged and solution.status == Status.CONVERGED
        coefficients[k], offsets[k] = _raw(K, alpha, mean)
    return coefficients, offsets, converged


def _all_together(
    folds: Folds, scaling: str, solver: PSMO, dtype: np.dtype
) -> tuple[np.ndarray, np.ndarray, bool]:
    count, length = folds.rows.shape
    batch = max(1, solver.tuning.together_bytes // (8 * count * (count + length)))
    parts = []
    with scope(dtype):
        rows, y = (jnp.asarray(v, dtype) for v in (folds.rows, folds.y))
        for begin in range(0, len(folds.weights), batch):
            some = slice(begin, begin + batch)
            weights, bounds = (jnp.asarray(v[some], dtype) for v in (folds.weights, folds.bounds))
            found = _solve_some(Folds(rows, y, weights, bounds, folds.epsilon), scaling, solver)
            parts.append([np.asarray(v) for v in found])
    coefficients, offsets, status = (np.concatenate(part) for part in zip(*parts, strict=True))
    return coefficients, offsets, bool((status == Status.CONVERGED).all())


@program(static_argnames=("scaling", "solver"))
def _solve_some(folds: Folds, scaling: str, solver: PSMO) -> tuple[Any, Any, Any]:
    def one(weight: Any, bound: Any) -> tuple[Any, Any, Any]:
        K, mean, problem = folds.machine(weight, bound, scaling)
        solution = solver.solve_traced(problem, None)
        return *_raw(K, solution.alpha, mean), solution.status

    return jax.vmap(one)(folds.weights, folds.bounds)
