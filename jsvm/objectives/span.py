"""The span bound of Glasmachers 2008, sections 9.1.5 and 9.3.4, and that of Vapnik and Chapelle.

With f^n̂ the machine of all examples but the n-th,

    S = Σ_n 1 − f^n̂(x_n)/f(x_n)  where y_n f^n̂(x_n) > 0,   Σ_n 1  elsewhere.

It bounds the number of leave-one-out errors, is continuous, and has a derivative almost everywhere.
Vapnik and Chapelle train only once: as long as no variable arrives at a bound or leaves it,

    y_n f(x_n) − y_n f^n̂(x_n) = |α_n| S_n²,

where S_n is the distance of φ(x_n) from the affine hull of the other free support vectors. With H
the matrix K_uu of the free ones bordered by ones (section 9.3.1),

    S_n² = 1/(H⁻¹)_nn  of a free one,    S_n² = K_nn − (k_n, 1)ᵀ H⁻¹ (k_n, 1)  of one at its bound,

and the estimate is the share of examples with y_n f(x_n) ≤ |α_n| S_n².
"""

from typing import Any

import jax
import jax.numpy as jnp

from jsvm.implicit import symmetric_solver, without_derivative
from jsvm.kernels import Kernel
from jsvm.numerics.products import product
from jsvm.objectives.arguments import SOLVER, Builder, Cost, Labels, Points, Value, checked
from jsvm.objectives.leave_one_out import left_out_values
from jsvm.objectives.training import in_one_program
from jsvm.problems import c_svc
from jsvm.solvers import SMO, solve


def span_bound(
    kernel: Kernel, X: Points, y: Labels, *, C: Cost, machine: Builder = c_svc, solver: SMO = SOLVER
) -> Value:
    """Return S, at least the number of leave-one-out errors; small values are good.

    The parameters are described in :mod:`jsvm.objectives`.

    Examples
    --------
    >>> import numpy as np
    >>> from jsvm import kernels
    >>> X = np.array([[-3.0], [-1.0], [1.0], [3.0]])
    >>> round(float(span_bound(kernels.Linear(), X, np.sign(X[:, 0]), C=10.0)), 6)
    2.0
    """
    X, y, C = checked(kernel, X, y, C)
    return bound(kernel, X, y, C, machine, solver)


def bound(kernel: Kernel, X: Any, y: Any, C: Any, machine: Builder, solver: SMO) -> Any:
    """Return the span bound; examples with label zero are absent."""
    values = left_out_values(kernel, X, y, C, machine=machine, solver=solver)
    margin, left_out = y * values.trained, y * values.left_out
    right = (left_out > 0) & (margin > 0)
    ratio = jnp.where(right, left_out, 0.0) / jnp.where(right, margin, 1.0)
    return jnp.sum(jnp.abs(y) * (1.0 - ratio))


def span_estimate(
    kernel: Kernel,
    X: Points,
    y: Labels,
    *,
    C: Cost,
    slope: float | None = None,
    machine: Builder = c_svc,
    solver: SMO = SOLVER,
) -> Value:
    """Return the leave-one-out error as estimated by Vapnik and Chapelle from one training.

    Parameters
    ----------
    kernel, X, y, C, machine, solver
        See :mod:`jsvm.objectives`.
    slope : float, optional
        Replaces the step that counts an example by the sigmoid 1/(1 + exp(−slope · t)), as Chapelle
        et al. do to have a derivative (they take 5); without it the derivative is zero.

    Examples
    --------
    >>> import numpy as np
    >>> from jsvm import kernels
    >>> X = np.array([[-3.0], [-1.0], [1.0], [3.0]])
    >>> float(span_estimate(kernels.Linear(), X, np.sign(X[:, 0]), C=10.0))
    0.5
    """
    X, y, C = checked(kernel, X, y, C)
    if slope is not None and not slope > 0:
        raise ValueError(f"slope={slope!r} must be positive, or None to count")
    excess = _excess(kernel, X, y, C, machine=machine, solver=solver)
    if slope is None:
        return jnp.mean((excess >= 0).astype(excess.dtype))
    return jnp.mean(jax.nn.sigmoid(slope * excess))


@in_one_program
def _excess(kernel: Kernel, X: Any, y: Any, C: Any, *, machine: Builder, solver: SMO) -> Any:
    """Return |α_n| S_n² − y_n f(x_n): where it is positive, leaving n out is an error."""
    K = kernel(X)
    program = machine(K, y, C)
    s = solve(program, solver)
    lower, upper, alpha = without_derivative((program.lower, program.upper, s.alpha))
    free = (alpha > lower) & (alpha < upper)
    Q = K + jnp.diag(program.hessian.ridge_vector())  # of the 2-norm machine, K + I/C
    squares = _squared_spans(Q, free)
    return jnp.abs(s.alpha) * squares - y * (product(Q, s.alpha) + s.bias)


def _squared_spans(Q: Any, free: Any) -> Any:
    """Return S_n² of all examples."""
    columns = jax.vmap(symmetric_solver(Q, free))(jnp.eye(Q.shape[0], dtype=Q.dtype))
    inverse = jnp.where(free[:, None] & free[None, :], columns, 0.0)
    # H⁻¹ from the inverse of K_uu: the border is eliminated. Without free variables it is absent.
    sums = jnp.sum(inverse, axis=1)
    total = jnp.sum(sums)
    some = jnp.any(free)
    total = jnp.where(some, total, 1.0)
    of_free = jnp.diagonal(inverse) - sums**2 / total
    # A single free variable: the hull of the others is empty.
    alone = ~(of_free > 0)
    free_squares = 1.0 / jnp.where(free & ~alone, of_free, 1.0)
    free_squares = jnp.where(alone, jnp.diagonal(Q), free_squares)
    rows = jnp.where(free[None, :], Q, 0.0)
    within = jnp.sum(product(rows, inverse) * rows, axis=1)
    beside = product(rows, sums) - 1.0
    bounded = jnp.diagonal(Q) - within + jnp.where(some, beside**2 / total, 0.0)
    return jnp.maximum(jnp.where(free, free_squares, bounded), 0.0)
