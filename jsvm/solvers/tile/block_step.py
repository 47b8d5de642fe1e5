"""The block step: a truncated Newton method on all free variables at once.

On the free variables F solve the KKT system of the equality-constrained problem

    Q_FF d + Σ_g λ_g 1_g = G_F,    1_gᵀ d = 0 for every group g,

go along d to the first bound, drop what hit it, and repeat until a whole step fits. It takes the
block optimisation of Knebel et al. (2008) and the planning ahead of Glasmachers (2008) to their
end: the direction uses all second-order information on F, so nothing oscillates.

**One inverse serves many hits.** With P the inverse of Q_FF on the directions that keep the sums
(`inverse.py`), d = PG. When variable k hits a bound after a fraction t of d, the constraint d_k = 0
joins, and

    P ← P − c cᵀ/c_k,    d ← (1 − t)(d − c d_k/c_k),    c = P e_k,

because PQd = d. So a hit costs a few columns; G is not needed at all.

**Rounding.** Q_FF may be singular (duplicates) or indefinite: a small ridge is added, and raised
until the inverse exists. The first direction of an inverse is followed to its exact minimum
with the true curvature, or to the bound where dᵀQd ≤ 0: descent whatever the ridge. The hits after
it are kept only if they have lowered the objective further, computed with the true Q.
During the rounds only G on F is kept; the rest of G is updated once at the end.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Bool, Float, Int

from jsvm._typing import Array
from jsvm.numerics.indexing import add_rows, first_places, put
from jsvm.numerics.products import product
from jsvm.problems import QuadraticProgram
from jsvm.solvers.tile.inverse import Inverse, inverse_on
from jsvm.solvers.tuning import DEFAULT, Tuning


class Slots(NamedTuple):
    """The problem on the slots."""

    Q: Array
    lower: Array
    upper: Array
    members: Array  # one row a group


class Point(NamedTuple):
    """α and G on the slots, and which slots are free."""

    alpha: Array
    gradient: Array
    free: Array


class Block(NamedTuple):
    """What the factorisations carry."""

    point: Point
    ridge: Array
    factors: Array
    rounds: Array
    go_on: Array


class Path(NamedTuple):
    """What the hits carry: the point, the step still to go, P, and what has just hit a bound."""

    alpha: Array
    free: Array
    direction: Array
    length: Array  # how much of the direction was gone
    hit: Array
    removed: Array
    hits: Array
    whole: Array  # the last step met no bound
    go_on: Array


def block_step(
    program: QuadraticProgram,
    alpha: Float[Array, " n"],
    gradient: Float[Array, " n"],
    slots: int,
    tuning: Tuning = DEFAULT,
) -> tuple[Float[Array, " n"], Float[Array, " n"], Int[Array, ""]]:
    """Return α and G after truncated Newton rounds on the first `slots` free variables.

    The third value is the number of rounds, one for each direction.
    """
    free = (alpha > program.lower) & (alpha < program.upper)
    places = first_places(free, slots)
    filled = lax.iota(jnp.int32, slots) < jnp.sum(free)
    part = Slots(
        Q=program.hessian.matrix[places[:, None], places[None, :]],
        lower=program.lower[places],
        upper=program.upper[places],
        members=_members(program, places),
    )
    scale = jnp.max(jnp.where(filled, jnp.abs(jnp.diagonal(part.Q)), 0.0))
    least_ridge = jnp.where(scale > 0, scale, 1.0) * jnp.finfo(alpha.dtype).eps * 4 * slots
    start = Block(
        point=Point(alpha[places], gradient[places], filled),
        ridge=least_ridge,
        factors=jnp.int32(0),
        rounds=jnp.int32(0),
        go_on=jnp.sum(filled) > 1,
    )
    end = lax.while_loop(
        lambda block: block.go_on & (block.factors < tuning.max_factors),
        lambda block: _use_factor(part, block, least_ridge, tuning),
        start,
    )
    change = jnp.where(filled, end.point.alpha - start.point.alpha, 0.0)
    count = jnp.minimum(jnp.sum(free, dtype=jnp.int32), slots)
    gradient = add_rows(gradient, program.hessian.matrix, places, -change, count)
    return put(alpha, places, end.point.alpha, filled), gradient, end.rounds


def _use_factor(part: Slots, block: Block, least_ridge: Float[Array, ""], tuning: Tuning) -> Block:
    """Factorise; a first exact step, then hit after hit, then steps that remove rounding errors."""
    before = block.point
    inverse, ridge = inverse_on(part.Q, before.free, part.members, block.ridge, tuning)
    first, direction, length, hit, good = _newton_move(part, inverse, before)
    # PQd = d holds for Q plus the ridge: where the ridge matters, every hit needs its own inverse.
    following = good & jnp.any(hit) & (ridge <= tuning.ridge_that_matters * least_ridge)
    path = _follow(part, inverse, before, first, direction, length, hit, following, tuning.max_hits)

    change = path.alpha - before.alpha
    towards = product(part.Q, change)
    gain = jnp.dot(before.gradient, change) - 0.5 * jnp.dot(change, towards)
    slope_first = jnp.dot(first.alpha - before.alpha, before.gradient + first.gradient)
    lower_still = following & (gain >= 0.5 * slope_first) & jnp.isfinite(gain)
    point = Point(
        alpha=jnp.where(lower_still, path.alpha, first.alpha),
        gradient=jnp.where(lower_still, before.gradient - towards, first.gradient),
        free=jnp.where(lower_still, path.free, first.free),
    )
    unfinished = good & jnp.where(lower_still, ~path.whole, jnp.any(hit))
    # W at the end of the path belongs to the set that is free there; after a fallback it does not.
    inverse = inverse._replace(removed=jnp.where(lower_still, path.removed, inverse.removed))
    point, steps = _refine(part, inverse, point, good & ~unfinished, tuning.max_refinements)
    return Block(
        point=point,
        ridge=ridge,
        factors=block.factors + 1,
        rounds=block.rounds + 1 + path.hits + steps,
        go_on=unfinished & (jnp.sum(point.free) > 1),
    )


def _newton_move(
    part: Slots, inverse: Inverse, point: Point
) -> tuple[Point, Float[Array, " m"], Float[Array, ""], Bool[Array, " m"], Bool[Array, ""]]:
    """Go along d = PG to the exact minimum or the first bound: descent, whatever the ridge.

    Returns the point, d, the fraction of d that was gone, what hit a bound, and whether it is good.
    """
    centred, _ = _centred(part, point)
    direction = jnp.where(point.free, inverse.times(centred), 0.0)
    direction = _keep_sums(part, direction, point.free)
    direction = jnp.where(jnp.isfinite(jnp.sum(jnp.abs(direction))), direction, 0.0)
    towards = product(part.Q, direction)
    slope, curvature = jnp.dot(point.gradient, direction), jnp.dot(direction, towards)
    exact = jnp.where(curvature > 0, slope / jnp.where(curvature > 0, curvature, 1.0), jnp.inf)
    limits = _limits(part, point.alpha, direction, point.free)
    length = jnp.minimum(exact, jnp.min(limits))
    # A ray to infinity is not followed: if it is real, the pair steps drive the objective down
    # until the solver says UNBOUNDED. A length that is not a number means that rounding has
    # taken over.
    good = (slope > 0) & (length >= 0) & jnp.isfinite(length)
    length = jnp.where(good, length, 0.0)
    hit = good & (limits <= length)
    alpha = _moved(part, point.alpha, direction, length, hit)
    gradient = point.gradient - length * towards
    return Point(alpha, gradient, point.free & ~hit), direction, length, hit, good


def _follow(
    part: Slots,
    inverse: Inverse,
    before: Point,
    first: Point,
    direction: Float[Array, " m"],
    length: Float[Array, ""],
    hit: Bool[Array, " m"],
    following: Bool[Array, ""],
    max_hits: int,
) -> Path:
    """Go on along the bent path, hit after hit, until a whole step fits."""
    groups = part.members.shape[0]
    places = lax.iota(jnp.int32, hit.shape[0])

    def drop(path: Path) -> Path:
        """Take the first variable that hit a bound out of P and out of d.

        Others that hit at the same time are at their bound and stay in: the next step has length
        zero if d leads them outside.
        """
        k = jnp.min(jnp.where(path.hit, places, places.shape[0] - 1))
        shrunk = inverse._replace(removed=path.removed)
        column = shrunk.column(k)
        pivot = column[k]
        safe = pivot > 0
        pivot = jnp.where(safe, pivot, 1.0)
        bent = (1.0 - path.length) * (path.direction - column * (path.direction[k] / pivot))
        free = path.free & (places != k)
        return path._replace(
            free=free,
            direction=_keep_sums(part, jnp.where(free, bent, 0.0), free),
            removed=shrunk.without(column, pivot, groups + path.hits).removed,
            hits=path.hits + 1,
            go_on=safe,
        )

    def one_hit(path: Path) -> Path:
        path = drop(path)
        limits = _limits(part, path.alpha, path.direction, path.free)
        nearest = jnp.min(limits)
        fine = path.go_on & jnp.isfinite(jnp.sum(jnp.abs(path.direction)))
        whole = nearest >= 1.0
        length = jnp.where(fine, jnp.minimum(1.0, nearest), 0.0)
        hit = fine & ~whole & (limits <= length)
        return path._replace(
            alpha=_moved(part, path.alpha, path.direction, length, hit),
            length=length,
            hit=hit,
            whole=whole & fine,
            go_on=fine & ~whole,
        )

    start = Path(
        alpha=first.alpha,
        free=before.free,
        direction=direction,
        length=length,
        hit=hit,
        removed=inverse.removed,
        hits=jnp.int32(0),
        whole=jnp.zeros((), bool),
        go_on=following,
    )
    path = lax.while_loop(lambda p: p.go_on & (p.hits < max_hits), one_hit, start)
    return path._replace(free=path.free & ~path.hit)


def _refine(
    part: Slots, inverse: Inverse, point: Point, wanted: Bool[Array, ""], most: int
) -> tuple[Point, Int[Array, ""]]:
    """Repeat exact Newton steps with the same P while each clears most of what is left of G."""

    def better(carry: tuple) -> Array:
        _, _, count, go_on = carry
        return go_on & (count < most)

    def step(carry: tuple) -> tuple:
        point, residual, count, _ = carry
        moved, _, _, hit, good = _newton_move(part, inverse, point)
        _, left = _centred(part, moved)
        return moved, left, count + 1, good & ~jnp.any(hit) & (left < 0.25 * residual)

    inside = point.free & (point.alpha > part.lower) & (point.alpha < part.upper)
    point = point._replace(free=inside)
    _, residual = _centred(part, point)
    start = point, residual, jnp.int32(0), wanted & (jnp.sum(inside) > 1)
    point, _, count, _ = lax.while_loop(better, step, start)
    return point, count


def _members(program: QuadraticProgram, places: Int[Array, " m"]) -> Bool[Array, "g m"]:
    """Return which slots are in each group, one row a group."""
    if program.group_count == 1:
        return jnp.ones((1, places.shape[0]), bool)
    groups = jnp.asarray(program.groups)[places]
    return groups[None, :] == jnp.arange(program.group_count)[:, None]


def _centred(part: Slots, point: Point) -> tuple[Float[Array, " m"], Float[Array, ""]]:
    """Return G on F without the mean of its group, and the largest of it.

    Only differences of G within a group matter; without their mean the solve loses less.
    """
    g = _keep_sums(part, jnp.where(point.free, point.gradient, 0.0), point.free)
    return g, jnp.max(jnp.abs(g))


def _keep_sums(
    part: Slots, values: Float[Array, " m"], free: Bool[Array, " m"]
) -> Float[Array, " m"]:
    """Return the values without the mean of their group: sums are kept to rounding."""
    for members in part.members:
        inside = members & free
        count = jnp.sum(inside.astype(values.dtype))
        mean = jnp.sum(jnp.where(inside, values, 0.0)) / jnp.maximum(count, 1.0)
        values = jnp.where(members, values - mean, values)
    return jnp.where(free, values, 0.0)


def _limits(
    part: Slots, alpha: Float[Array, " m"], direction: Float[Array, " m"], free: Bool[Array, " m"]
) -> Float[Array, " m"]:
    """Return how far each slot can go before it meets a bound."""
    bound = jnp.where(direction > 0, part.upper, part.lower)
    moving = free & (direction != 0)
    distance = (bound - alpha) / jnp.where(moving, direction, 1.0)
    return jnp.where(moving, distance, jnp.inf)


def _moved(
    part: Slots,
    alpha: Float[Array, " m"],
    direction: Float[Array, " m"],
    length: Float[Array, ""],
    hit: Bool[Array, " m"],
) -> Float[Array, " m"]:
    """Return α after the step; what hit a bound is there exactly."""
    inside = jnp.clip(alpha + length * direction, part.lower, part.upper)
    return jnp.where(hit, jnp.where(direction > 0, part.upper, part.lower), inside)
