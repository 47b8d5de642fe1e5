"""Free variables made independent: where Q_FF is singular, all but a basis of F go to bounds.

A linear kernel in d dimensions has at most d + 1 independent free variables, pair steps leave
hundreds. Then Q_FF has no inverse, and along its null space the objective is linear: its minimum is
at bounds. The basis B grows one variable k at a time. With P the inverse of Q_BB on the directions
that keep the sums, and r any member of B in the group of k,

    v = (I − PQ)(e_k − e_r),    P ← P + v vᵀ/vᵀQv,

v is conjugate to all directions within B. The point moves along v to the minimum or to the first
bound; what arrives there leaves B by P ← P − c cᵀ/c_b, c = Pe_b. Where vᵀQv is within its rounding
error, k depends on B: then some variable must arrive at a bound, and k gets its place or is there.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Bool, Float, Int

from jsvm._typing import Array
from jsvm.numerics.arrays import product
from jsvm.solvers.tile.slots import Point, Slots, limits, moved

CURVATURE_ULPS = 16.0  # units of rounding of vᵀQv within which there is no curvature
SLOPE_ULPS = 16.0  # the same for Gᵀv


class Basis(NamedTuple):
    """What the insertions carry."""

    point: Point
    P: Array
    members: Array  # of the basis
    pending: Array  # free, and not looked at yet
    moves: Array


def independent(
    part: Slots, point: Point, wanted: Bool[Array, ""]
) -> tuple[Point, Float[Array, "m m"], Int[Array, ""]]:
    """Return the point with independent free variables, P on them, and the number of moves."""
    m = point.alpha.shape[0]
    places = lax.iota(jnp.int32, m)
    eps = jnp.finfo(point.alpha.dtype).eps
    diagonal = jnp.diagonal(part.Q)

    def insert(basis: Basis) -> Basis:
        point, P = basis.point, basis.P
        k = jnp.min(jnp.where(basis.pending, places, m - 1))
        is_k = places == k
        own = jnp.any(part.members & is_k[None, :], axis=1)  # the group of k
        group = jnp.any(part.members & own[:, None], axis=0)
        partner = jnp.min(jnp.where(basis.members & group, places, m))
        alone = partner == m
        partner = jnp.minimum(partner, m - 1)
        pair = is_k.astype(P.dtype) - (places == partner).astype(P.dtype)
        v = pair - product(P, _row(part.Q, k) - _row(part.Q, partner))
        v = jnp.where((basis.members | is_k) & ~alone, v, 0.0)
        towards = product(part.Q, v)
        curvature, slope = jnp.dot(v, towards), jnp.dot(point.gradient, v)
        size = jnp.sum(jnp.abs(v))
        scale = jnp.max(jnp.where(v != 0, jnp.abs(diagonal), 0.0))
        curved = curvature > CURVATURE_ULPS * eps * scale * size**2
        flat = jnp.abs(slope) <= SLOPE_ULPS * eps * jnp.dot(jnp.abs(point.gradient), jnp.abs(v))

        up, down = (limits(part, point.alpha, d, v != 0) for d in (v, -v))
        upwards = jnp.where(flat, jnp.min(up) <= jnp.min(down), slope > 0)
        sides = jnp.where(upwards, up, down)
        exact = jnp.abs(slope) / jnp.where(curved, curvature, 1.0)
        nearest = jnp.min(sides)
        length = jnp.where(curved, jnp.minimum(exact, nearest), nearest)
        fine = jnp.isfinite(length) & ~alone
        length = jnp.where(fine, length, 0.0)
        hit = fine & (sides <= length)
        direction = jnp.where(upwards, v, -v)
        alpha = moved(part, point.alpha, direction, length, hit)
        gradient = point.gradient - jnp.where(upwards, length, -length) * towards

        # One of the basis leaves at a time: others at their bound stop the next move at once.
        b = jnp.min(jnp.where(hit & basis.members, places, m))
        leaves = (b < m) & fine
        b = jnp.minimum(b, m - 1)
        column = _row(P, b)
        pivot = column[b]
        shrunk = column / jnp.sqrt(jnp.where(pivot > 0, pivot, 1.0))
        joins = alone | (fine & curved & ~jnp.any(hit))
        grown = v / jnp.sqrt(jnp.where(curved, curvature, 1.0))
        grown = jnp.where(joins & ~alone, grown, 0.0)
        shrunk = jnp.where(leaves & (pivot > 0), shrunk, 0.0)
        P = P + grown[:, None] * grown[None, :] - shrunk[:, None] * shrunk[None, :]
        is_b = leaves & (places == b)
        P = jnp.where(is_b[:, None] | is_b[None, :], 0.0, P)
        done = joins | ~leaves | hit[k]
        return Basis(
            point=Point(alpha, gradient, point.free & ~is_b & ~(is_k & hit)),
            P=P,
            members=(basis.members & ~is_b) | (is_k & joins),
            pending=basis.pending & ~(is_k & done),
            moves=basis.moves + 1,
        )

    start = Basis(
        point,
        P=jnp.zeros_like(part.Q),
        members=jnp.zeros_like(point.free),
        pending=point.free & wanted,
        moves=jnp.int32(0),
    )
    end = lax.while_loop(
        lambda basis: jnp.any(basis.pending) & (basis.moves < 3 * m), insert, start
    )
    return end.point, end.P, end.moves


def _row(A: Float[Array, "m m"], k: Int[Array, ""]) -> Float[Array, " m"]:
    return lax.dynamic_index_in_dim(A, k, 0, keepdims=False)
