"""The inverse of Q on the directions that keep the sums: P, and how it shrinks.

For the free slots F and the indicators E of their groups,

    P = M − B(EᵀB)⁻¹Bᵀ,    M = (Q_FF + ridge)⁻¹,    B = ME,

so that d = PG is the Newton step with Eᵀd = 0. It is kept as P = M − WWᵀ: the first columns of W
are the groups, further ones remove variables, P ← P − c cᵀ/c_k with c = Pe_k.

M is computed explicitly by sweeps over small blocks of the matrix, in matrix products that run in
XLA's own threads and stop at the last free slot. A library call is no faster at these sizes, and
where its threads meet XLA's on the same cores it was seen to take a hundred times longer. Above
`LARGEST_EXPLICIT` slots the Cholesky factor of LAPACK is the cheaper one.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Bool, Float, Int

from jsvm._typing import Array

LARGEST_EXPLICIT = 512
SWEEP = 16  # size of a block of the sweeps
LEADING = 64, 128, 256  # sizes of the part that is inverted, if it is not all
RIDGE_GROWTH = 100.0
MAX_RIDGES = 12


class Inverse(NamedTuple):
    """P = M − WWᵀ with M = L⁻ᵀL⁻¹ given by itself or by L."""

    matrix: Array
    is_factor: bool
    removed: Array  # W

    def times(self, v: Float[Array, " m"]) -> Float[Array, " m"]:
        """Return Pv."""
        return apply(self.matrix, self.is_factor, v[:, None])[:, 0] - product(
            self.removed, product(self.removed.T, v)
        )

    def column(self, k: Int[Array, ""]) -> Float[Array, " m"]:
        """Return Pe_k."""
        if self.is_factor:
            unit = (lax.iota(jnp.int32, self.matrix.shape[0]) == k).astype(self.matrix.dtype)
            return self.times(unit)
        column = lax.dynamic_index_in_dim(self.matrix, k, 0, keepdims=False)
        return column - product(self.removed, self.removed[k])


def inverse_on(
    Q: Float[Array, "m m"],
    free: Bool[Array, " m"],
    members: Float[Array, "m g"],
    ridge: Float[Array, ""],
    spare: int,
) -> tuple[Inverse, Float[Array, ""]]:
    """Return P of the free slots with `spare` columns in W, and the ridge that it took.

    The ridge is raised until Q_FF is positive definite.
    """
    masked = jnp.where(free[:, None] & free[None, :], Q, 0.0)
    is_factor = Q.shape[0] > LARGEST_EXPLICIT
    decompose = _cholesky if is_factor else _sweep_all

    def failed(carry: tuple) -> Array:
        matrix, _, attempts = carry
        return ~jnp.isfinite(matrix[0, 0]) & (attempts < MAX_RIDGES)

    def attempt(carry: tuple) -> tuple:
        _, ridge, attempts = carry
        ridge = ridge * RIDGE_GROWTH
        return decompose(masked, free, ridge), ridge, attempts + 1

    unknown = jnp.full_like(masked, jnp.inf)
    matrix, ridge, _ = lax.while_loop(failed, attempt, (unknown, ridge / RIDGE_GROWTH, 0))

    E = members * free[:, None].astype(Q.dtype)
    B = apply(matrix, is_factor, E)
    empty = jnp.sum(E, axis=0) == 0  # a group without free variables drops out
    schur = product(E.T, B) + jnp.diag(empty.astype(Q.dtype))
    removed = jnp.concatenate(
        [_times_inverse_root(B, schur), jnp.zeros((Q.shape[0], spare), Q.dtype)], axis=1
    )
    return Inverse(matrix, is_factor, removed), ridge


def apply(matrix: Float[Array, "m m"], is_factor: bool, V: Float[Array, "m k"]) -> Array:
    """Return MV."""
    if not is_factor:
        return product(matrix, V)
    half = lax.linalg.triangular_solve(matrix, V, left_side=True, lower=True)
    return lax.linalg.triangular_solve(matrix, half, left_side=True, lower=True, transpose_a=True)


def product(A: Array, B: Array) -> Array:
    """Return the matrix product in the full precision of the dtype, also on a GPU."""
    return jnp.matmul(A, B, precision=lax.Precision.HIGHEST)


def _cholesky(
    masked: Float[Array, "m m"], free: Bool[Array, " m"], ridge: Float[Array, ""]
) -> Float[Array, "m m"]:
    """Return L with LLᵀ = Q_FF + ridge; not finite throughout if that is not positive definite."""
    shifted = masked + jnp.diag(jnp.where(free, ridge, 1.0))
    factor = lax.linalg.cholesky(jnp.asarray(shifted), symmetrize_input=False)
    return factor + jnp.where(jnp.isfinite(factor[-1, -1]), 0.0, jnp.nan)


def _sweep_all(
    masked: Float[Array, "m m"], free: Bool[Array, " m"], ridge: Float[Array, ""]
) -> Float[Array, "m m"]:
    """Return (Q_FF + ridge)⁻¹ by sweeps; NaN throughout if that is not positive definite.

    Every sweep costs the square of the size, so only the leading part with free slots is touched.
    """
    m = masked.shape[0]
    sizes = [size for size in LEADING if size < m] + [m]

    def leading(size: int) -> Callable[[], Float[Array, "m m"]]:
        return lambda: jnp.pad(
            _sweep_leading(masked[:size, :size], free[:size], ridge), (0, m - size)
        )

    last = jnp.max(jnp.where(free, lax.iota(jnp.int32, m), 0))
    which = sum((last >= size).astype(jnp.int32) for size in sizes[:-1])
    return lax.switch(which, [leading(size) for size in sizes]) if sizes[:-1] else leading(m)()


def _sweep_leading(
    masked: Float[Array, "m m"], free: Bool[Array, " m"], ridge: Float[Array, ""]
) -> Float[Array, "m m"]:
    """Return the inverse on the free slots, zero elsewhere; NaN if not positive definite.

    Sweeping a block I of a symmetric A replaces, with D = A_II⁻¹ and the other rows R,
    A_RR by A_RR − A_RI D A_IR, A_RI by A_RI D, and A_II by −D; after all of them A is −A⁻¹.
    """
    m = masked.shape[0]
    width = min(SWEEP, m)
    places = lax.iota(jnp.int32, m)
    shifted = masked + jnp.diag(jnp.where(free, ridge, 1.0))
    if m % width:
        padded = m + width - m % width
        shifted = jnp.pad(shifted, (0, padded - m)) + jnp.diag(jnp.arange(padded) >= m)
        places = lax.iota(jnp.int32, padded)

    def sweep(k: Array, A: Array) -> Array:
        begin, zero = k * width, jnp.int32(0)
        columns = lax.dynamic_slice(A, (zero, begin), (A.shape[0], width))
        D = _sweep_block(lax.dynamic_slice(columns, (begin, zero), (width, width)))
        others = (places < begin) | (places >= begin + width)
        columns = jnp.where(others[:, None], columns, 0.0)
        scaled = product(columns, D)
        A = A - product(scaled, columns.T)
        A = lax.dynamic_update_slice(A, scaled.T, (begin, zero))
        A = lax.dynamic_update_slice(A, scaled, (zero, begin))
        return lax.dynamic_update_slice(A, -D, (begin, begin))

    last = jnp.max(jnp.where(free, lax.iota(jnp.int32, m), 0))
    swept = -lax.fori_loop(jnp.int32(0), last // width + 1, sweep, shifted)[:m, :m]
    inverse = jnp.where(free[:, None] & free[None, :], swept, 0.0)
    positive = jnp.all(jnp.where(free, jnp.diagonal(swept), 1.0) > 0)  # false for NaN
    return jnp.where(positive, inverse, jnp.nan)


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

    return -lax.fori_loop(jnp.int32(0), jnp.int32(A.shape[0]), sweep, A)


def _times_inverse_root(B: Float[Array, "m g"], schur: Float[Array, "g g"]) -> Float[Array, "m g"]:
    """Return BR⁻ᵀ with RRᵀ = schur, so that its square is B schur⁻¹ Bᵀ; one group is a division."""
    if B.shape[1] == 1:
        return B / jnp.sqrt(schur)
    R = lax.linalg.cholesky(jnp.asarray(schur), symmetrize_input=False)
    return lax.linalg.triangular_solve(R, B, lower=True, transpose_a=True)
