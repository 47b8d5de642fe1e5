"""Leaving one example out (Glasmachers 2008, sections 9.1.2 and 9.1.3), and bounds of its errors.

f^n̂ is the machine of all examples but the n-th. To leave it out, the bounds of α_n are set to zero;
the other variables start from their values. Leaving out an example that is no support vector does
not change the machine, so only support vectors need another training.

The span bound of sections 9.1.5 and 9.3.4,

    S = Σ_n 1 − f^n̂(x_n)/f(x_n)  where y_n f^n̂(x_n) > 0,   Σ_n 1  elsewhere,

bounds the number of leave-one-out errors, is continuous, and has a derivative almost everywhere.
Vapnik and Chapelle train only once: as long as no variable arrives at a bound or leaves it,

    y_n f(x_n) − y_n f^n̂(x_n) = |α_n| S_n²,

where S_n is the distance of φ(x_n) from the affine hull of the other free support vectors. With H
the matrix K_uu of the free ones bordered by ones (section 9.3.1),

    S_n² = 1/(H⁻¹)_nn  of a free one,    S_n² = K_nn − (k_n, 1)ᵀ H⁻¹ (k_n, 1)  of one at its bound,

and the estimate is the share of examples with y_n f(x_n) ≤ |α_n| S_n².
"""

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Float

from jsvm._typing import Array
from jsvm.implicit import attach, symmetric_solver, without_derivative
from jsvm.kernels import Kernel
from jsvm.numerics.arrays import product
from jsvm.objectives.inputs import SOLVER, Builder, Cost, Labels, Points, Value, objective
from jsvm.objectives.training import Loss, compiles, in_one_program, mapped, zero_one
from jsvm.problems import QuadraticProgram, c_svc
from jsvm.problems.program import fill
from jsvm.solvers import SMO, solve
from jsvm.solvers.canonical import near


@objective
def leave_one_out_error(
    kernel: Kernel,
    X: Points,
    y: Labels,
    *,
    C: Cost,
    loss: Loss = zero_one,
    machine: Builder = c_svc,
    solver: SMO = SOLVER,
) -> Value:
    """Return the mean loss over all examples, each predicted by the machine of the others.

    Examples
    --------
    >>> from jsvm import kernels
    >>> X = np.arange(-5.0, 6.0)[:, None]
    >>> error = leave_one_out_error(kernels.Linear(), X, np.sign(X[:, 0] + 0.5), C=10.0)
    >>> round(float(error), 4)  # 0 is in the middle of −1 and 1
    0.0909
    """
    values = left_out_values(kernel, X, y, C, machine=machine, solver=solver).left_out
    return jnp.mean(loss(y, values))


@objective
@in_one_program
def support_vector_count(
    kernel: Kernel, X: Points, y: Labels, *, C: Cost, machine: Builder = c_svc, solver: SMO = SOLVER
) -> Value:
    """Return the number of support vectors, a bound of the leave-one-out errors (section 9.1.3).

    Examples
    --------
    >>> from jsvm import kernels
    >>> X = np.arange(-5.0, 6.0)[:, None]
    >>> float(support_vector_count(kernels.Linear(), X, np.sign(X[:, 0] + 0.5), C=10.0))
    2.0
    """
    alpha = solve(without_derivative(machine((kernel, X), y, C)), solver).alpha
    return jnp.sum(jnp.asarray(alpha) != 0).astype(X.dtype)


@objective
def span_bound(
    kernel: Kernel, X: Points, y: Labels, *, C: Cost, machine: Builder = c_svc, solver: SMO = SOLVER
) -> Value:
    """Return S, at least the number of leave-one-out errors; small values are good.

    Examples
    --------
    >>> from jsvm import kernels
    >>> X = np.array([[-3.0], [-1.0], [1.0], [3.0]])
    >>> round(float(span_bound(kernels.Linear(), X, np.sign(X[:, 0]), C=10.0)), 6)
    2.0
    """
    return bound(kernel, X, y, C, machine, solver)


def bound(kernel: Kernel, X: Any, y: Any, C: Any, machine: Builder, solver: SMO) -> Any:
    """Return the span bound; examples with label zero are absent."""
    values = left_out_values(kernel, X, y, C, machine=machine, solver=solver)
    margin, left_out = y * values.trained, y * values.left_out
    right = (left_out > 0) & (margin > 0)
    ratio = jnp.where(right, left_out, 0.0) / jnp.where(right, margin, 1.0)
    return jnp.sum(jnp.abs(y) * (1.0 - ratio))


@objective
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
    slope : float, optional
        Replaces the step that counts an example by the sigmoid 1/(1 + exp(−slope · t)), as Chapelle
        et al. do to have a derivative (they take 5); without it the derivative is zero.

    Examples
    --------
    >>> from jsvm import kernels
    >>> X = np.array([[-3.0], [-1.0], [1.0], [3.0]])
    >>> float(span_estimate(kernels.Linear(), X, np.sign(X[:, 0]), C=10.0))
    0.5
    """
    if slope is not None and not slope > 0:
        raise ValueError(f"slope={slope!r} must be positive, or None to count")
    excess = _excess(kernel, X, y, C, machine=machine, solver=solver)
    if slope is None:
        return jnp.mean((excess >= 0).astype(excess.dtype))
    return jnp.mean(jax.nn.sigmoid(slope * excess))


class Values(NamedTuple):
    """f(x_n) and f^n̂(x_n) of every example."""

    trained: Any
    left_out: Any


@in_one_program
def left_out_values(
    kernel: Kernel, X: Any, y: Any, C: Any, *, machine: Builder, solver: SMO
) -> Values:
    """Return f and f^n̂ at all examples."""
    K = kernel(X)
    program = machine(K, y, C)
    s = solve(program, solver)
    trained = product(K, s.alpha) + s.bias
    if not compiles(kernel, X.shape[0]):
        return Values(trained, _one_by_one(program, K, s.alpha, trained, solver))
    fixed, alpha = without_derivative((program, s.alpha))
    examples = jnp.arange(X.shape[0])

    def retrain(n: Any) -> tuple[Any, Any, Any]:
        """Train without an example; the derivative is attached later."""
        left = _without(fixed, n)
        found = solve(left, solver, _start(left, alpha, n))
        return found.alpha, found.multipliers, jnp.asarray(found.objective, X.dtype)

    def keep(n: Any) -> tuple[Any, Any, Any]:
        return alpha, jnp.asarray(without_derivative(s.multipliers)), jnp.zeros((), X.dtype)

    # The factorisations for the derivatives are computed again in the backward pass, not kept.
    @jax.checkpoint
    def value(found: tuple) -> Any:
        n, solution = found[0], found[1:]

        def predicted() -> Any:
            beta, multipliers, _ = attach(_without(program, n), *solution)
            return jnp.dot(K[n], beta) + jnp.mean(multipliers)

        return lax.cond(alpha[n] != 0, predicted, lambda: trained[n])

    found = mapped(lambda n: lax.cond(alpha[n] != 0, retrain, keep, n), examples)
    return Values(trained, mapped(value, (examples, *found)))


def _one_by_one(
    program: QuadraticProgram, K: Any, alpha: Any, trained: Any, solver: SMO
) -> Float[Array, " n"]:
    """Return f^n̂ at all examples, with the solver of many tiles."""
    at = np.asarray(without_derivative(alpha))
    values = []
    for n in range(len(at)):
        if at[n] == 0:
            values.append(trained[n])
            continue
        left = _without(program, n)
        s = solve(left, solver, near(at, without_derivative(left)))
        values.append(jnp.dot(K[n], s.alpha) + s.bias)
    return jnp.stack(values)


def _without(program: QuadraticProgram, n: Any) -> QuadraticProgram:
    """Return the program with the bounds of one variable set to zero."""
    here = jnp.arange(program.size) == n
    lower, upper = (jnp.where(here, 0.0, bound) for bound in (program.lower, program.upper))
    return replace(program, lower=lower, upper=upper)


def _start(program: QuadraticProgram, alpha: Any, n: Any) -> Any:
    """Return α with α_n = 0; other variables take over its value as far as their bounds allow."""
    rest = jnp.where(jnp.arange(program.size) == n, 0.0, alpha)
    share = alpha[n]
    free = (rest > program.lower) & (rest < program.upper)
    for movable in (free, ~free):  # variables at bounds stay there as long as possible
        up = jnp.where(movable, program.upper - rest, 0.0)
        down = jnp.where(movable, rest - program.lower, 0.0)
        moved = fill(share, up) - fill(-share, down)
        rest, share = rest + moved, share - jnp.sum(moved)
    return rest


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
