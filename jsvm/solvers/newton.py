"""The block step: a truncated Newton method on all free variables at once.

On the free variables F solve the KKT system of the equality-constrained problem

    Q_FF d + Σ_g λ_g 1_g = G_F,    1_gᵀ d = 0 for every group g,

go along d to its exact minimum or to the first bound, drop what hit a bound, and repeat. It is the
block optimisation of 000 and the planning ahead of 004 taken to their end: the direction takes the
whole second-order information of F into account, so nothing oscillates. The exact minimum along a
descent direction never raises the objective.

Q_FF may be singular (duplicates) or indefinite: a small ridge is added, and raised until the
Cholesky factor exists. The direction is then that of a proximal step, still one of descent, and
where dᵀQd ≤ 0 it is followed to the bound. During the rounds only G on F is kept; the rest of G is
updated once at the end.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jax.scipy.linalg import cho_solve
from jaxtyping import Bool, Float, Int

from jsvm._typing import Array
from jsvm.problems import QuadraticProgram

MAX_ROUNDS = 50
RIDGE_GROWTH = 100.0
MAX_RIDGES = 12


class Block(NamedTuple):
    """What the rounds carry: α and G on the slots, and which slots are still free."""

    alpha: Array
    gradient: Array
    free: Array
    ridge: Array
    residual: Array  # spread of G within the groups of F: zero when F is solved
    rounds: Array
    go_on: Array


def block_step(
    program: QuadraticProgram,
    alpha: Float[Array, " n"],
    gradient: Float[Array, " n"],
    slots: int,
) -> tuple[Float[Array, " n"], Float[Array, " n"], Int[Array, ""]]:
    """Return α and G after truncated Newton rounds on the first `slots` free variables.

    The third value is the number of rounds.
    """
    free = (alpha > program.lower) & (alpha < program.upper)
    places = first_places(free, slots)
    filled = lax.iota(jnp.int32, slots) < jnp.sum(free)
    rows = program.hessian.rows(places)
    Q = rows[:, places]
    lower, upper = program.lower[places], program.upper[places]
    members = _members(program, places)
    scale = jnp.max(jnp.where(filled, jnp.abs(jnp.diagonal(Q)), 0.0))
    eps = jnp.finfo(alpha.dtype).eps
    start = Block(
        alpha=alpha[places],
        gradient=gradient[places],
        free=filled,
        ridge=jnp.where(scale > 0, scale, 1.0) * eps * 4 * slots,
        residual=jnp.asarray(jnp.inf, alpha.dtype),
        rounds=jnp.int32(0),
        go_on=jnp.sum(filled) > 1,
    )

    def one_round(block: Block) -> Block:
        direction, ridge, residual = _direction(Q, block, members)
        towards = jnp.matmul(Q, direction, precision=lax.Precision.HIGHEST)
        slope, curvature = jnp.dot(block.gradient, direction), jnp.dot(direction, towards)
        exact = jnp.where(curvature > 0, slope / jnp.where(curvature > 0, curvature, 1.0), jnp.inf)
        limits = _limits(block, direction, lower, upper)
        length = jnp.minimum(exact, jnp.min(limits))
        # A ray to infinity is not followed: if it is real, the pair steps drive the objective down
        # until the solver says UNBOUNDED. A length that is not a number or not positive means that
        # rounding has taken over.
        good = (slope > 0) & (length > 0) & jnp.isfinite(length)
        length = jnp.where(good, length, 0.0)
        hit = good & (limits <= length * (1 + 4 * eps))
        moved = jnp.clip(block.alpha + length * direction, lower, upper)
        moved = jnp.where(hit, jnp.where(direction > 0, upper, lower), moved)
        still_free = block.free & (moved > lower) & (moved < upper)
        any_hit = jnp.any(hit)
        # Without a hit the system was solved up to the ridge: go on only while that still helps.
        return Block(
            alpha=jnp.where(block.free, moved, block.alpha),
            gradient=block.gradient - length * towards,
            free=still_free,
            ridge=ridge,
            residual=jnp.where(any_hit, jnp.inf, residual),
            rounds=block.rounds + 1,
            go_on=good & (any_hit | (residual < 0.25 * block.residual)) & (jnp.sum(still_free) > 1),
        )

    end = lax.while_loop(lambda b: b.go_on & (b.rounds < MAX_ROUNDS), one_round, start)
    change = jnp.where(filled, end.alpha - start.alpha, 0.0)
    gradient = gradient - jnp.matmul(change, rows, precision=lax.Precision.HIGHEST)
    targets = jnp.where(filled, places, alpha.shape[0])
    alpha = jnp.asarray(alpha).at[targets].set(end.alpha, mode="drop")
    return alpha, gradient, end.rounds


def first_places(mask: Bool[Array, " n"], count: int) -> Int[Array, " {count}"]:
    """Return the first `count` indices where the mask holds, filled up with others."""
    order = jnp.where(mask, 0, mask.shape[0]) + lax.iota(jnp.int32, mask.shape[0])
    return lax.sort(order)[:count] % mask.shape[0]


def _members(program: QuadraticProgram, places: Int[Array, " m"]) -> Float[Array, "m g"]:
    """Return the indicators of the groups on the slots, one column a group."""
    dtype = program.linear.dtype
    if program.group_count == 1:
        return jnp.ones((places.shape[0], 1), dtype)
    groups = jnp.asarray(program.groups)[places]
    return (groups[:, None] == jnp.arange(program.group_count)[None, :]).astype(dtype)


def _direction(
    Q: Float[Array, "m m"], block: Block, members: Float[Array, "m g"]
) -> tuple[Float[Array, " m"], Float[Array, ""], Float[Array, ""]]:
    """Return d of the KKT system on the free slots, the ridge it took, and the residual of G."""
    on = block.free
    inside = members * on[:, None].astype(Q.dtype)
    counts = jnp.maximum(jnp.sum(inside, axis=0), 1.0)
    # Only differences of G within a group matter; without their mean the solve loses less.
    centre = jnp.matmul(members, (block.gradient @ inside) / counts)
    g = jnp.where(on, block.gradient - centre, 0.0)
    masked = jnp.where(on[:, None] & on[None, :], Q, 0.0)
    factor, ridge = _factor(masked, on, block.ridge)
    solved = cho_solve((factor, True), jnp.concatenate([g[:, None], inside], axis=1))
    towards, correction = solved[:, 0], solved[:, 1:]
    schur = jnp.matmul(inside.T, correction)
    empty = jnp.sum(inside, axis=0) == 0  # a group without free variables drops out
    schur = schur + jnp.diag(empty.astype(Q.dtype))
    lambdas = _small_solve(schur, inside.T @ towards)
    direction = jnp.where(on, towards - correction @ lambdas, 0.0)
    # The sums are kept to rounding even where the system is nearly singular.
    direction = direction - jnp.where(on, members @ ((direction @ inside) / counts), 0.0)
    direction = jnp.where(jnp.all(jnp.isfinite(direction)), direction, 0.0)
    return direction, ridge, jnp.max(jnp.abs(g))


def _factor(
    masked: Float[Array, "m m"], on: Bool[Array, " m"], ridge: Float[Array, ""]
) -> tuple[Float[Array, "m m"], Float[Array, ""]]:
    """Return the Cholesky factor of the matrix plus the smallest ridge tried that makes it exist.

    The unused slots get a one on the diagonal.
    """

    def failed(carry: tuple) -> Array:
        factor, _, attempts = carry
        return ~jnp.isfinite(factor[-1, -1]) & (attempts < MAX_RIDGES)

    def attempt(carry: tuple) -> tuple:
        _, ridge, attempts = carry
        ridge = ridge * RIDGE_GROWTH
        shifted = masked + jnp.diag(jnp.where(on, ridge, 1.0))
        return (
            lax.linalg.cholesky(jnp.asarray(shifted), symmetrize_input=False),
            ridge,
            attempts + 1,
        )

    unknown = jnp.full_like(masked, jnp.inf)
    factor, ridge, _ = lax.while_loop(failed, attempt, (unknown, ridge / RIDGE_GROWTH, 0))
    return factor, ridge


def _small_solve(A: Float[Array, "g g"], b: Float[Array, " g"]) -> Float[Array, " g"]:
    """Solve the system of the multipliers; one group is a division."""
    return b / A[0] if b.shape[0] == 1 else jnp.linalg.solve(A, b)


def _limits(
    block: Block,
    direction: Float[Array, " m"],
    lower: Float[Array, " m"],
    upper: Float[Array, " m"],
) -> Float[Array, " m"]:
    """Return how far each slot can go before it meets a bound."""
    bound = jnp.where(direction > 0, upper, lower)
    moving = block.free & (direction != 0)
    distance = (bound - block.alpha) / jnp.where(moving, direction, 1.0)
    return jnp.where(moving, distance, jnp.inf)
