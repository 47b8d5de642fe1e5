"""The inverse of Q on the directions that keep the sums: P, and how it shrinks.

For the free slots F and the indicators e_g of their groups, P = M − WᵀW with

    M = (Q_FF + ridge)⁻¹,    and for every group    P ← P − c cᵀ/(e_gᵀc),  c = Pe_g,

so that d = PG is the Newton step that keeps the sums. The same update with a unit vector in place
of e_g removes a variable. Every update is one row of W.

M is computed explicitly by sweeps over small blocks of the matrix, written as sums of outer
products, so that on a CPU it runs inside one kernel. Above `largest_in_kernel` slots matrix
products on all cores are faster, above `largest_explicit` the Cholesky factor of LAPACK. (Below,
its threads compete with XLA's for the same cores and were measured to take a hundred times longer.)
"""

from dataclasses import field, replace
from functools import partial

import jax.numpy as jnp
from jax import lax
from jaxtyping import Bool, Float, Int

from jsvm._typing import Array, Leaf, Mask, Matrix, Number, Vector, pytree
from jsvm.numerics.arrays import product
from jsvm.numerics.elimination import outer_sum, solve_cholesky
from jsvm.numerics.indexing import SPAN, repeat
from jsvm.numerics.kernel_call import in_one_kernel
from jsvm.solvers.tuning import Tuning


@pytree
class Inverse:
    """P = M − WᵀW with M = L⁻ᵀL⁻¹ given by itself or by L."""

    matrix: Leaf
    removed: Leaf  # W
    is_factor: bool = field(default=False, metadata={"static": True})

    def times(self, v: Vector) -> Vector:
        """Return Pv."""
        Mv = solve_cholesky(self.matrix, v) if self.is_factor else product(self.matrix, v)
        return Mv - product(product(self.removed, v), self.removed)

    def column(self, k: Int[Array, ""]) -> Vector:
        """Return Pe_k."""
        if self.is_factor:
            unit = (lax.iota(jnp.int32, self.matrix.shape[0]) == k).astype(self.matrix.dtype)
            return self.times(unit)
        column = lax.dynamic_index_in_dim(self.matrix, k, 0, keepdims=False)
        past = lax.dynamic_index_in_dim(self.removed, k, 1, keepdims=False)
        return column - product(past, self.removed)

    def without(self, column: Vector, pivot: Number, place: Array) -> "Inverse":
        """Return P − c cᵀ/pivot, in row `place` of W."""
        # By comparison and not by index: under vmap the places of a batch differ.
        here = lax.iota(jnp.int32, self.removed.shape[0]) == place
        row = column / jnp.sqrt(pivot)
        return replace(self, removed=jnp.where(here[:, None], row[None, :], self.removed))


def inverse_on(
    Q: Matrix, free: Mask, members: Bool[Array, "g n"], ridge: Number, tuning: Tuning
) -> tuple[Inverse, Number]:
    """Return P with room for `max_hits` more rows in W, and the ridge that makes Q_FF definite."""
    masked = jnp.where(free[:, None] & free[None, :], Q, 0.0)
    is_factor = Q.shape[0] > tuning.largest_explicit
    decompose = _cholesky if is_factor else partial(_sweep_all, tuning=tuning)

    def failed(carry: tuple) -> Array:
        matrix, _, attempts = carry
        return ~jnp.isfinite(matrix[0, 0]) & (attempts < tuning.max_ridges)

    def attempt(carry: tuple) -> tuple:
        _, ridge, attempts = carry
        ridge = ridge * tuning.ridge_growth
        return decompose(masked, free, ridge), ridge, attempts + 1

    unknown = jnp.full_like(masked, jnp.inf)
    start = unknown, ridge / tuning.ridge_growth, 0
    matrix, ridge, _ = lax.while_loop(failed, attempt, start)

    groups, slots = members.shape
    removed = jnp.zeros((groups + tuning.max_hits, slots), Q.dtype)
    inverse = Inverse(matrix, removed, is_factor)
    for g in range(groups):
        indicator = (members[g] & free).astype(Q.dtype)
        column = inverse.times(indicator)
        pivot = jnp.dot(indicator, column)
        present = jnp.any(members[g] & free)  # a group without free variables drops out
        inverse = inverse.without(
            jnp.where(present, column, 0.0), jnp.where(present, pivot, 1.0), jnp.int32(g)
        )
    return inverse, ridge


def _cholesky(masked: Matrix, free: Mask, ridge: Number) -> Matrix:
    """Return L with LLᵀ = Q_FF + ridge; not finite throughout if that is not positive definite."""
    shifted = masked + jnp.diag(jnp.where(free, ridge, 1.0))
    factor = lax.linalg.cholesky(jnp.asarray(shifted), symmetrize_input=False)
    return factor + jnp.where(jnp.isfinite(factor[-1, -1]), 0.0, jnp.nan)


def _sweep_all(masked: Matrix, free: Mask, ridge: Number, tuning: Tuning) -> Matrix:
    """Return (Q_FF + ridge)⁻¹, zero elsewhere; NaN throughout if that is not positive definite."""
    m = masked.shape[0]
    wide = m > tuning.largest_in_kernel
    width = tuning.wide_sweep if wide else tuning.sweep
    size = -(-m // width) * width
    diagonal = jnp.pad(jnp.where(free, ridge, 1.0), (0, size - m), constant_values=1.0)
    places = lax.iota(jnp.int32, size)
    same = places[:, None] == places[None, :]
    shifted = jnp.pad(masked, (0, size - m)) + jnp.where(same, diagonal[:, None], 0.0)
    last = jnp.max(jnp.where(free, lax.iota(jnp.int32, m), 0))
    sweep = _sweep_wide if wide else _sweep
    swept = sweep(shifted, last + 1, tuning)[:m, :m]
    inverse = jnp.where(free[:, None] & free[None, :], swept, 0.0)
    positive = jnp.all(jnp.where(free, jnp.diagonal(swept), 1.0) > 0)  # false for NaN
    return jnp.where(positive, inverse, jnp.nan)


def _sweep(A: Matrix, count: Int[Array, ""], tuning: Tuning) -> Matrix:
    """Return the inverse of the first `count` rows and columns, which the others do not touch.

    Sweeping a block I of a symmetric A replaces, with D = A_II⁻¹ and the other columns R,
    A_RR by A_RR − A_RI D A_IR, A_IR by D A_IR, and A_II by −D; after all of them A is −A⁻¹.
    """

    def sweep(k: Array, A: Array) -> Array:
        begin, rows, block = _block_rows(A, k, width)
        D = _sweep_block(block)
        scaled = outer_sum(D, rows)

        def subtract(k: Array, A: Array) -> Array:
            zero = jnp.int32(0)
            factors = lax.dynamic_slice(scaled, (zero, k * width), (width, width))

            def subtract_part(c: Array, A: Array) -> Array:
                start = k * width, c * span
                part = lax.dynamic_slice(A, start, (width, span))
                some = lax.dynamic_slice(rows, (zero, c * span), (width, span))
                for r in range(width):
                    part = part - factors[r][:, None] * some[r][None, :]
                return lax.dynamic_update_slice(A, part, start)

            return repeat((count + span - 1) // span, subtract_part, A)

        return _write_block(repeat(blocks, subtract, A), scaled, D, begin)

    width = tuning.sweep
    span = SPAN if A.shape[0] % SPAN == 0 else A.shape[0]
    blocks = (count + width - 1) // width
    return -repeat(blocks, sweep, A)


def _sweep_wide(A: Matrix, count: Int[Array, ""], tuning: Tuning) -> Matrix:
    """Do what :func:`_sweep` does with matrix products, for many cores."""
    width = tuning.wide_sweep
    invert = in_one_kernel(partial(_sweep, tuning=tuning), reads_all=True)

    def sweep(k: Array, A: Array) -> Array:
        begin, rows, block = _block_rows(A, k, width)
        D = invert(block, jnp.int32(width))
        scaled = product(D, rows)
        return _write_block(A - product(scaled.T, rows), scaled, D, begin)

    return -repeat((count + width - 1) // width, sweep, A)


def _block_rows(A: Matrix, k: Array, width: int) -> tuple[Array, Array, Array]:
    """Return where block k begins, its rows with zeros in the block, and the block."""
    begin, zero = k * width, jnp.int32(0)
    places = lax.iota(jnp.int32, A.shape[0])
    rows = lax.dynamic_slice(A, (begin, zero), (width, A.shape[0]))
    block = lax.dynamic_slice(rows, (zero, begin), (width, width))
    others = (places < begin) | (places >= begin + width)
    return begin, jnp.where(others[None, :], rows, 0.0), block


def _write_block(A: Array, scaled: Array, D: Array, begin: Array) -> Matrix:
    zero = jnp.int32(0)
    A = lax.dynamic_update_slice(A, scaled, (begin, zero))
    A = lax.dynamic_update_slice(A, scaled.T, (zero, begin))
    return lax.dynamic_update_slice(A, -D, (begin, begin))


def _sweep_block(A: Float[Array, "b b"]) -> Float[Array, "b b"]:
    """Return A⁻¹ of a small symmetric matrix, one pivot after the other; NaN if not positive."""
    places = lax.iota(jnp.int32, A.shape[0])

    def sweep(k: Array, A: Array) -> Array:
        row = lax.dynamic_index_in_dim(A, k, 0, keepdims=False)
        pivot = 1.0 / jnp.where(row[k] > 0, row[k], jnp.nan)
        scaled = row * pivot
        here = places == k
        A = A - scaled[:, None] * row[None, :]
        A = jnp.where(here[:, None], scaled[None, :], A)
        A = jnp.where(here[None, :], scaled[:, None], A)
        return jnp.where(here[:, None] & here[None, :], -pivot, A)

    return -repeat(A.shape[0], sweep, A)
