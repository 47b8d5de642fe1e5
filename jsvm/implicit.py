"""The derivative of a solution, by the KKT conditions that it satisfies.

As long as no variable arrives at a bound or leaves it, the solution of a program satisfies

    Q_uu α_u + A_uᵀ λ = l_u − ε s_u − Q_ug α_g,    A_u α_u = c − A_g α_g,    α_g = its bounds,

with u the free variables, g the others, A the indicators of the groups and s the signs of α_u
(Glasmachers 2008, section 9.3.1). The derivative in any direction, marked by a dot, solves a linear
system:

    Q_uu α̇_u + A_uᵀ λ̇ = (l̇ − Q̇α − Qα̇_g)_u − ε̇ s_u,    A_u α̇_u = ċ − A_g α̇_g.

Q̇α is the derivative of a product with fixed α, so no derivative of a matrix is ever formed. It is
linear in the direction, so reverse mode follows by transposition. Nothing is differentiated
through the iterations of a solver.

**Special cases.** A variable at a bound moves with the bound; one at zero, where ε > 0 has its
kink, stays. In a group without free variables λ is the middle of an interval, and moves with its
ends. Where Q_uu is singular (copies of an example) a small ridge selects one finite derivative;
outputs of the machine do not depend on which. Where a variable is just about to reach or leave a
bound, the derivative is one of the two one-sided ones.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Float

from jsvm._typing import Array, Mask, Matrix, Number, Scalar, Vector
from jsvm.numerics.arrays import product
from jsvm.numerics.elimination import factored, solve_factored
from jsvm.precision import is_traced
from jsvm.problems import QuadraticProgram

RIDGE = 64.0  # in units of rounding of the largest diagonal entry: enough for copies of an example
LARGEST_DENSE = 4096  # variables up to which Qα is computed from the dense matrix, 128 MB


@jax.custom_jvp
def attach(
    program: QuadraticProgram, alpha: Vector, multipliers: Float[Array, " g"], objective: Scalar
) -> tuple[Any, Any, Any]:
    """Return a solution as a function of its program: α, λ and the objective with derivatives.

    `alpha`, `multipliers` and `objective` are its values, found by any solver.
    """
    return alpha, multipliers, objective


@attach.defjvp
def _tangent(primals: tuple, tangents: tuple) -> tuple[tuple, tuple]:
    program, alpha, _, _ = primals
    return primals[1:], derivative(program, alpha, tangents[0])


def derivative(
    program: QuadraticProgram, alpha: Vector, direction: QuadraticProgram
) -> tuple[Vector, Float[Array, " g"], Number]:
    """Return α̇, λ̇ and ḟ of a solution for a direction, a program of tangents."""
    at_lower, at_upper = alpha <= program.lower, alpha >= program.upper
    free = ~(at_lower | at_upper)
    if program.l1 is not None:
        free &= (alpha != 0) | (jnp.asarray(program.l1) == 0)
    sides = Sides(at_lower, at_upper, *_places(free))
    return _derivative(program, alpha, direction, sides)


class Sides(NamedTuple):
    """Which variables are at a bound; `places` holds the free ones where `valid`, else padding."""

    at_lower: Array
    at_upper: Array
    places: Array
    valid: Array


@jax.jit
def _derivative(
    program: QuadraticProgram, alpha: Any, direction: QuadraticProgram, sides: Sides
) -> tuple[Any, Any, Any]:
    places, valid = sides.places, sides.valid
    bounded_dot = jnp.where(sides.at_upper, direction.upper, 0.0)
    bounded_dot = jnp.where(sides.at_lower, direction.lower, bounded_dot)
    slope, slope_dot = jax.jvp(lambda p: _slope(p, alpha), (program,), (direction,))
    _, explicit = jax.jvp(lambda p: _value(p, alpha), (program,), (direction,))

    rows = without_derivative(program.hessian.rows(places))
    solve = symmetric_solver(rows[:, places], valid)
    right = slope_dot[places] - product(rows, bounded_dot)
    found, multipliers_dot = solve(jnp.where(valid, right, 0.0)), jnp.zeros(0, alpha.dtype)
    if program.group_count == 0:
        alpha_dot = bounded_dot.at[places].add(found)
    else:
        groups = jnp.arange(program.group_count, dtype=jnp.int32)[:, None]
        members = jnp.asarray(program.groups, jnp.int32)[None, :] == groups
        inside = (members[:, places] & valid[None, :]).astype(alpha.dtype)
        present = jnp.any(inside > 0, axis=1)
        columns = jax.vmap(solve)(inside)
        schur = product(inside, columns.T) + jnp.diag(jnp.where(present, 0.0, 1.0))
        missing = direction.totals - product(members.astype(alpha.dtype), bounded_dot)
        deficit = jnp.where(present, product(inside, found) - missing, 0.0)
        multipliers_dot = _by_orthogonal_factor(schur, deficit)
        alpha_dot = bounded_dot.at[places].add(found - product(multipliers_dot, columns))
        moved = slope_dot - _matvec(without_derivative(program), alpha_dot)
        ends = _ends(program, alpha, moved, members)
        multipliers_dot = jnp.where(present, multipliers_dot, ends)
    return alpha_dot, multipliers_dot, explicit - jnp.dot(without_derivative(slope), alpha_dot)


def _places(free: Any) -> tuple[Any, Any]:
    """Return places that include those of the free variables, and which of them are free.

    Concrete ones are padded to one of few sizes; if traced, the places are those of all variables.
    """
    n = free.shape[0]
    if is_traced(free):
        return jnp.arange(n), free
    found = np.flatnonzero(np.asarray(free))
    size = min(n, max(16, 1 << (len(found) - 1).bit_length()))
    return np.pad(found, (0, size - len(found))), jnp.arange(size) < len(found)


def _slope(program: QuadraticProgram, alpha: Any) -> Any:
    """Return G minus the derivative of the ℓ1 term; its own derivative is l̇ − Q̇α − ε̇s."""
    slope = program.linear - _matvec(program, alpha)
    return slope if program.l1 is None else slope - program.l1 * jnp.sign(alpha)


def _value(program: QuadraticProgram, alpha: Any) -> Any:
    """Return the objective at a fixed point."""
    smooth = jnp.dot(alpha, 0.5 * _matvec(program, alpha) - program.linear)
    return smooth if program.l1 is None else smooth + program.l1 * jnp.sum(jnp.abs(alpha))


def _matvec(program: QuadraticProgram, alpha: Any) -> Any:
    hessian = program.hessian
    return (hessian.dense() if hessian.size <= LARGEST_DENSE else hessian).matvec(alpha)


def symmetric_solver(Q: Matrix, free: Mask) -> Any:
    """Return the solution of Q_uu x = b as a linear function of b, zero elsewhere."""
    both = free[:, None] & free[None, :]
    ridge = RIDGE * jnp.finfo(Q.dtype).eps * jnp.max(jnp.abs(jnp.diagonal(Q)))
    matrix = jnp.where(both, Q, 0.0) + jnp.diag(jnp.where(free, ridge, 1.0))
    fixed = without_derivative(matrix)  # custom_linear_solve differentiates the product
    factor = factored(fixed)
    definite = jnp.isfinite(sum(jnp.sum(part) for part in jax.tree.leaves(factor)))
    factor = jax.tree.map(lambda part: jnp.where(definite, part, 0.0), factor)

    def solve_fixed(_: Any, b: Any) -> Any:
        by_cholesky, by_qr = partial(solve_factored, factor), partial(_by_orthogonal_factor, fixed)
        return lax.cond(definite, by_cholesky, by_qr, b)  # indefinite kernels need the latter

    def solve(b: Any) -> Any:
        return lax.custom_linear_solve(partial(product, matrix), b, solve_fixed, symmetric=True)

    return solve


def _by_orthogonal_factor(A: Any, b: Any) -> Any:
    """Return A⁻¹b for any A."""
    Q, R = jnp.linalg.qr(A)
    right = product(b, Q)[:, None]
    return lax.linalg.triangular_solve(R, right, left_side=True, lower=False)[:, 0]


def _ends(program: QuadraticProgram, alpha: Any, slope_dot: Any, members: Any) -> Any:
    """Return the derivative of the middle of [max G where α can rise, min G where it can fall]."""
    slope = without_derivative(program.gradient(alpha))
    can_up, can_down = alpha < program.upper, alpha > program.lower

    def of_group(here: Any) -> Any:
        up = jnp.where(here & can_up, slope, -jnp.inf)
        down = jnp.where(here & can_down, slope, jnp.inf)
        ends = slope_dot[jnp.argmax(up)], slope_dot[jnp.argmin(down)]
        known = jnp.any(here & can_up), jnp.any(here & can_down)
        total = sum(jnp.where(k, end, 0.0) for k, end in zip(known, ends, strict=True))
        return total / jnp.maximum(sum(k.astype(slope.dtype) for k in known), 1)

    return jax.vmap(of_group)(members)


def without_derivative(tree: Any) -> Any:
    """Return the tree with gradients stopped; only tracers need it."""
    return jax.tree.map(lambda v: lax.stop_gradient(v) if is_traced(v) else v, tree)
