"""Positive definite systems without LAPACK, whose threads compete with XLA's for the cores.

A = LLᵀ by blocks, with the inverses of the diagonal blocks of L in the place of these blocks: with
W = L_II⁻¹ for a block I and the others R,

    L_RI = A_RI Wᵀ,   A_RR ← A_RR − L_RI L_RIᵀ,   y_I = W b_I,   b_R ← b_R − L_RI y_I,

and at the end x_I = Wᵀ(y_I − L_RIᵀ x_R). Only the blocks below the diagonal are kept. W is computed
inside one kernel, the rest are matrix products on all cores: as fast as LAPACK on an idle machine,
and a hundred times faster where its threads have to share the cores. Other devices use the Cholesky
factor of the library.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from jsvm._typing import Array, Matrix, Vector
from jsvm.numerics.arrays import product
from jsvm.numerics.indexing import repeat
from jsvm.numerics.kernel_call import in_one_kernel
from jsvm.precision import default_platform

# The largest size of a system, and the size of its blocks: smaller ones run faster, compile longer.
BLOCKS = ((256, 64), (512, 96))
LARGE_BLOCK = 256  # of larger systems
ROWS = 8  # eliminated at a time inside a block


class Factor(NamedTuple):
    """A = LLᵀ: the inverses of diagonal blocks of L and what is below them; or L alone."""

    inverses: tuple[Array, ...]
    below: tuple[Array, ...]


def solve_positive(A: Matrix, b: Vector) -> Vector:
    """Return A⁻¹b; not finite if A is not positive definite."""
    return solve_factored(factored(A), b)


def factored(A: Matrix) -> Factor:
    """Return the factor of A; not finite if A is not positive definite."""
    if default_platform() != "cpu":
        return Factor((), (lax.linalg.cholesky(jnp.asarray(A), symmetrize_input=False),))
    m = A.shape[0]
    size = -(-m // ROWS) * ROWS
    if size > m:
        unit = jnp.diag((jnp.arange(size) >= m).astype(A.dtype))
        A = jnp.pad(A, (0, size - m)) + unit
    invert = in_one_kernel(inverse_factor, reads_all=True)
    block = next((block for largest, block in BLOCKS if size <= largest), LARGE_BLOCK)
    columns = [A[j:, j : j + block] for j in range(0, size, block)]  # from the diagonal downwards
    inverses, factors = [], []
    for k, column in enumerate(columns):
        width = column.shape[1]
        W = invert(column[:width])
        factor = product(column[width:], W.T)
        inverses.append(W)
        factors.append(factor)
        for j in range(k + 1, len(columns)):
            here = (j - k - 1) * block
            rows = factor[here : here + columns[j].shape[1]]
            columns[j] = columns[j] - product(factor[here:], rows.T)
    return Factor(tuple(inverses), tuple(factors))


def solve_factored(A: Factor, b: Vector) -> Vector:
    """Return A⁻¹b."""
    if not A.inverses:
        return solve_cholesky(A.below[0], b)
    m = b.shape[0]
    widths = [W.shape[0] for W in A.inverses]
    b = jnp.pad(b, (0, sum(widths) - m))
    rights, rest = [], b
    for W, factor, width in zip(*A, widths, strict=True):
        rights.append(product(W, rest[:width]))
        rest = rest[width:] - product(factor, rights[-1])
    x = product(rights[-1], A.inverses[-1])
    for W, factor, right in list(zip(*A, rights, strict=True))[-2::-1]:
        x = jnp.concatenate([product(right - product(x, factor), W), x])
    return x[:m]


def solve_cholesky(L: Matrix, b: Vector) -> Vector:
    """Return (LLᵀ)⁻¹b."""
    lower: Any = {"left_side": True, "lower": True}
    half = lax.linalg.triangular_solve(L, b[:, None], **lower)
    return lax.linalg.triangular_solve(L, half, transpose_a=True, **lower)[:, 0]


def inverse_factor(A: Matrix) -> Matrix:
    """Return L⁻¹ for A = LLᵀ, eliminating some rows at a time; NaN if A is not positive definite.

    The same row operations turn A into Lᵀ and the unit matrix into L⁻¹.
    """
    m = A.shape[0]
    places = lax.iota(jnp.int32, m)
    unit = (places[:, None] == places[None, :]).astype(A.dtype)
    zero = jnp.int32(0)

    def eliminate(k: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        A, W = carry
        begin = k * ROWS
        rows = lax.dynamic_slice(A, (begin, zero), (ROWS, m))
        w = _small_factor(lax.dynamic_slice(rows, (zero, begin), (ROWS, ROWS)))
        upper = outer_sum(w, rows)
        inverse = outer_sum(w, lax.dynamic_slice(W, (begin, zero), (ROWS, m)))

        def subtract(i: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            A, W = carry
            start = (k + 1 + i) * ROWS, zero
            factors = lax.dynamic_slice(upper, start[::-1], (ROWS, ROWS))
            part = lax.dynamic_slice(A, start, (ROWS, m))
            other = lax.dynamic_slice(W, start, (ROWS, m))
            for r in range(ROWS):
                part = part - factors[r][:, None] * upper[r][None, :]
                other = other - factors[r][:, None] * inverse[r][None, :]
            return (
                lax.dynamic_update_slice(A, part, start),
                lax.dynamic_update_slice(W, other, start),
            )

        A, W = repeat(m // ROWS - k - 1, subtract, (A, W))
        return A, lax.dynamic_update_slice(W, inverse, (begin, zero))

    return repeat(m // ROWS, eliminate, (A, unit))[1]


def outer_sum(w: Array, rows: Array) -> Array:
    """Return w·rows as sums of outer products."""
    total = w[:, 0, None] * rows[0][None, :]
    for r in range(1, rows.shape[0]):
        total = total + w[:, r, None] * rows[r][None, :]
    return total


def _small_factor(A: Array) -> Array:
    """Return L⁻¹ of a few rows, one pivot after the other."""
    places = lax.iota(jnp.int32, ROWS)
    unit = (places[:, None] == places[None, :]).astype(A.dtype)

    def eliminate(k: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        A, W = carry
        row = lax.dynamic_index_in_dim(A, k, 0, keepdims=False)
        pivot = lax.rsqrt(jnp.where(row[k] > 0, row[k], jnp.nan))
        row, inverse = row * pivot, lax.dynamic_index_in_dim(W, k, 0, keepdims=False) * pivot
        below = jnp.where(places > k, row, 0.0)  # A is symmetric
        A = A - below[:, None] * row[None, :]
        W = W - below[:, None] * inverse[None, :]
        return A, jnp.where((places == k)[:, None], inverse[None, :], W)

    return repeat(ROWS, eliminate, (A, unit))[1]
