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

**Rounding.** Q_FF may be singular (duplicates, few features) or indefinite: a small ridge is added,
and raised until the inverse exists. The first direction of an inverse is followed to its exact
minimum with the true curvature, or to the bound where dᵀQd ≤ 0: descent whatever the ridge. The
hits after it are kept only if they have lowered the objective further, computed with the true Q.
Of a matrix of low rank, dependent variables go to bounds first (`independent.py`).
During the rounds only G on F is kept; the rest of G is updated once at the end.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Bool, Int

from jsvm._typing import Array, Mask, Number, Vector
from jsvm.numerics.arrays import product
from jsvm.numerics.indexing import add_rows, first_places, put, square_at
from jsvm.numerics.kernel_call import LONG_REDUCTION, in_one_kernel
from jsvm.problems import QuadraticProgram
from jsvm.solvers.tile.independent import independent
from jsvm.solvers.tile.inverse import Inverse, inverse_on
from jsvm.solvers.tile.slots import Point, Slots, limits, moved
from jsvm.solvers.tuning import DEFAULT, Tuning


class NewtonMove(NamedTuple):
    """A step along d, the fraction of d that was gone, what hit a bound, and if all is finite."""

    point: Point
    direction: Array
    length: Array
    hit: Array
    good: Array


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
    alpha: Vector,
    gradient: Vector,
    slots: int,
    tuning: Tuning = DEFAULT,
    low_rank: bool = False,
) -> tuple[Vector, Vector, Int[Array, ""]]:
    """Return α, G and the number of Newton rounds on the first `slots` free variables.

    With `low_rank` free variables that depend on others go to bounds; it costs time to compile.
    """
    # Kernels of their own are compiled at the same time.
    piece = in_one_kernel if slots <= tuning.most_in_kernel else _as_it_is
    piece_on_all = piece if program.size < LONG_REDUCTION else _as_it_is
    part, places, start = piece_on_all(partial(_gathered, slots=slots))(program, alpha, gradient)
    end = lax.while_loop(
        lambda block: block.go_on & (block.factors < tuning.max_factors),
        lambda block: _use_factor(part, block, start.ridge, tuning, low_rank, piece),
        start,
    )
    scatter = piece_on_all(_scattered)
    alpha, gradient = scatter(program, alpha, gradient, places, start.point, end.point)
    return alpha, gradient, end.rounds


def _as_it_is(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


def _gathered(
    program: QuadraticProgram, alpha: Vector, gradient: Vector, *, slots: int
) -> tuple[Slots, Int[Array, " m"], Block]:
    """Return the first free variables in slots, their places, and where the step begins."""
    free = (alpha > program.lower) & (alpha < program.upper)
    places = first_places(free, slots)
    count = jnp.minimum(jnp.sum(free, dtype=jnp.int32), slots)
    filled = lax.iota(jnp.int32, slots) < count
    part = Slots(
        Q=square_at(program.hessian.matrix, places, count),
        lower=program.lower[places],
        upper=program.upper[places],
        members=_members(program, places),
    )
    scale = jnp.max(jnp.where(filled, jnp.abs(jnp.diagonal(part.Q)), 0.0))
    start = Block(
        point=Point(alpha[places], gradient[places], filled),
        ridge=jnp.where(scale > 0, scale, 1.0) * jnp.finfo(alpha.dtype).eps * 4 * slots,
        factors=jnp.int32(0),
        rounds=jnp.int32(0),
        go_on=jnp.sum(filled) > 1,
    )
    return part, places, start


def _scattered(
    program: QuadraticProgram,
    alpha: Vector,
    gradient: Vector,
    places: Int[Array, " m"],
    before: Point,
    after: Point,
) -> tuple[Vector, Vector]:
    """Return α and G after the step; before it all filled slots are free."""
    filled = before.free
    change = jnp.where(filled, after.alpha - before.alpha, 0.0)
    count = jnp.sum(filled, dtype=jnp.int32)
    gradient = add_rows(gradient, program.hessian.matrix, places, -change, count)
    return put(alpha, places, after.alpha, filled), gradient


def _use_factor(
    part: Slots,
    block: Block,
    least_ridge: Number,
    tuning: Tuning,
    low_rank: bool,
    piece: Callable[..., Any],
) -> Block:
    """Factorise; a first exact step, then hit after hit, then steps that remove rounding errors."""
    before = block.point
    factorise, step = partial(inverse_on, tuning=tuning), partial(_first_and_hits, tuning=tuning)
    inverse, ridge = piece(factorise)(part.Q, before.free, part.members, block.ridge)
    # PQd = d holds for Q plus the ridge: where the ridge matters, every hit needs its own inverse.
    exact = ridge <= tuning.ridge_that_matters * least_ridge
    point, removed, rounds, good, unfinished = piece(step)(part, inverse, before, exact)
    inverse = replace(inverse, removed=removed)
    if low_rank and not inverse.is_factor:  # a large P costs more than the pair steps that it saves
        singular = ridge > 2 * least_ridge  # it was raised
        point, inverse, moves = piece(_made_independent)(part, point, inverse, singular)
        good, unfinished, rounds = good | singular, unfinished & ~singular, rounds + moves
    refine = piece(partial(_refine, most=tuning.max_refinements))
    point, steps = refine(part, inverse, point, good & ~unfinished)
    return Block(
        point=point,
        ridge=ridge,
        factors=block.factors + 1,
        rounds=block.rounds + rounds + steps,
        go_on=unfinished & (jnp.sum(point.free) > 1),
    )


def _first_and_hits(
    part: Slots, inverse: Inverse, before: Point, exact: Bool[Array, ""], *, tuning: Tuning
) -> tuple[Point, Array, Array, Array, Array]:
    """Go along d, and on after every hit if P is `exact`; what does not descend is taken back.

    Return the point, W there, the number of rounds, if all is finite, and if bounds are in the way.
    """
    move = _newton_move(part, inverse, before)
    first, hit, good = move.point, move.hit, move.good
    following = good & jnp.any(hit) & exact
    path = _follow(part, inverse, before.free, move, following, tuning.max_hits)

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
    removed = jnp.where(lower_still, path.removed, inverse.removed)
    return point, removed, 1 + path.hits, good, unfinished


def _made_independent(
    part: Slots, point: Point, inverse: Inverse, singular: Bool[Array, ""]
) -> tuple[Point, Inverse, Int[Array, ""]]:
    """Where Q_FF is singular, return the point with independent free variables, and P on them."""
    point, P, moves = independent(part, point, singular)
    matrix = jnp.where(singular, P, inverse.matrix)
    return point, Inverse(matrix, jnp.where(singular, 0.0, inverse.removed)), moves


def _newton_move(part: Slots, inverse: Inverse, point: Point) -> NewtonMove:
    """Go along d = PG to the exact minimum or the first bound: descent, whatever the ridge."""
    centred, _ = _centred(part, point)
    direction = jnp.where(point.free, inverse.times(centred), 0.0)
    direction = _keep_sums(part, direction, point.free)
    direction = jnp.where(jnp.isfinite(jnp.sum(jnp.abs(direction))), direction, 0.0)
    towards = product(part.Q, direction)
    slope, curvature = jnp.dot(point.gradient, direction), jnp.dot(direction, towards)
    exact = jnp.where(curvature > 0, slope / jnp.where(curvature > 0, curvature, 1.0), jnp.inf)
    bounds = limits(part, point.alpha, direction, point.free)
    length = jnp.minimum(exact, jnp.min(bounds))
    # A ray to infinity is not followed: if it is real, the pair steps drive the objective down
    # until the solver says UNBOUNDED. A length that is not a number means that rounding has
    # taken over.
    good = (slope > 0) & (length >= 0) & jnp.isfinite(length)
    length = jnp.where(good, length, 0.0)
    hit = good & (bounds <= length)
    alpha = moved(part, point.alpha, direction, length, hit)
    gradient = point.gradient - length * towards
    return NewtonMove(Point(alpha, gradient, point.free & ~hit), direction, length, hit, good)


def _follow(
    part: Slots, inverse: Inverse, free: Mask, move: NewtonMove, following: Array, max_hits: int
) -> Path:
    """Go on along the bent path, hit after hit, until a whole step fits."""
    groups, places = part.members.shape[0], lax.iota(jnp.int32, free.shape[0])

    def drop(path: Path) -> Path:
        """Take the first variable that hit out of P and d; the next step may have length zero."""
        k = jnp.min(jnp.where(path.hit, places, places.shape[0] - 1))
        shrunk = replace(inverse, removed=path.removed)
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
        bounds = limits(part, path.alpha, path.direction, path.free)
        nearest = jnp.min(bounds)
        fine = path.go_on & jnp.isfinite(jnp.sum(jnp.abs(path.direction)))
        whole = nearest >= 1.0
        length = jnp.where(fine, jnp.minimum(1.0, nearest), 0.0)
        hit = fine & ~whole & (bounds <= length)
        return path._replace(
            alpha=moved(part, path.alpha, path.direction, length, hit),
            length=length,
            hit=hit,
            whole=whole & fine,
            go_on=fine & ~whole,
        )

    start = Path(
        alpha=move.point.alpha,
        free=free,
        direction=move.direction,
        length=move.length,
        hit=move.hit,
        removed=inverse.removed,
        hits=jnp.int32(0),
        whole=jnp.zeros((), bool),
        go_on=following,
    )
    path = lax.while_loop(lambda p: p.go_on & (p.hits < max_hits), one_hit, start)
    return path._replace(free=path.free & ~path.hit)


def _refine(
    part: Slots, inverse: Inverse, point: Point, wanted: Bool[Array, ""], *, most: int
) -> tuple[Point, Int[Array, ""]]:
    """Repeat exact Newton steps with the same P while each clears most of what is left of G."""

    def better(carry: tuple) -> Array:
        _, _, count, go_on = carry
        return go_on & (count < most)

    def step(carry: tuple) -> tuple:
        point, residual, count, _ = carry
        move = _newton_move(part, inverse, point)
        _, left = _centred(part, move.point)
        fine = move.good & ~jnp.any(move.hit) & (left < 0.25 * residual)
        return move.point, left, count + 1, fine

    inside = point.free & (point.alpha > part.lower) & (point.alpha < part.upper)
    point = point._replace(free=inside)
    _, residual = _centred(part, point)
    start = point, residual, jnp.int32(0), wanted & (jnp.sum(inside) > 1)
    point, _, count, _ = lax.while_loop(better, step, start)
    return point, count


def _members(program: QuadraticProgram, places: Int[Array, " n"]) -> Bool[Array, "g n"]:
    """Return which slots are in each group, one row a group."""
    if program.group_count == 1:
        return jnp.ones((1, places.shape[0]), bool)
    groups = jnp.asarray(program.groups, jnp.int32)[places]
    return groups[None, :] == jnp.arange(program.group_count, dtype=jnp.int32)[:, None]


def _centred(part: Slots, point: Point) -> tuple[Vector, Number]:
    """Return G on F without the mean of its group, which cannot matter, and the largest of it."""
    g = _keep_sums(part, jnp.where(point.free, point.gradient, 0.0), point.free)
    return g, jnp.max(jnp.abs(g))


def _keep_sums(part: Slots, values: Vector, free: Mask) -> Vector:
    """Return the values without the mean of their group: sums are kept to rounding."""
    for members in part.members:
        inside = members & free
        count = jnp.sum(inside.astype(values.dtype))
        mean = jnp.sum(jnp.where(inside, values, 0.0)) / jnp.maximum(count, 1.0)
        values = jnp.where(members, values - mean, values)
    return jnp.where(free, values, 0.0)
