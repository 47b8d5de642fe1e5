"""Positive definite systems without LAPACK, whose threads fight XLA's for the cores of a CPU.

Block elimination: with D = A_II⁻¹ for a block I and the others R,

    A_RR ← A_RR − A_RI D A_IR,   b_R ← b_R − A_RI D b_I,   and at the end   x_I = D(b_I − A_IR x_R).

Only the blocks below the diagonal are kept. The inverses of the blocks on it are found inside one
kernel, all the rest are matrix products on all cores: as fast as LAPACK on an idle machine, and a
hundred times faster where its threads have to share the cores. On other devices the Cholesky factor
is as good.
"""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Float

from jsvm._typing import Array
from jsvm.precision import default_platform
from jsvm.solvers.inverse import SWEEP, product, sweep_inverse
from jsvm.solvers.kernel_call import in_one_kernel

SMALL, BLOCK, LARGE_BLOCK = 512, 128, 256  # systems up to SMALL have small blocks


def solve_positive(A: Float[Array, "m m"], b: Float[Array, " m"]) -> Float[Array, " m"]:
    """Return A⁻¹b; not finite if A is not positive definite."""
    if default_platform() != "cpu":
        factor = lax.linalg.cholesky(jnp.asarray(A), symmetrize_input=False)
        half = lax.linalg.triangular_solve(factor, b[:, None], left_side=True, lower=True)
        return lax.linalg.triangular_solve(
            factor, half, left_side=True, lower=True, transpose_a=True
        )[:, 0]
    m = A.shape[0]
    size = -(-m // SWEEP) * SWEEP
    if size > m:
        unit = jnp.diag((jnp.arange(size) >= m).astype(A.dtype))
        A, b = jnp.pad(A, (0, size - m)) + unit, jnp.pad(b, (0, size - m))
    return _eliminate(A, b)[:m]


def _eliminate(A: Array, b: Array) -> Array:
    invert = in_one_kernel(sweep_inverse, reads_all=True)
    block = BLOCK if A.shape[0] <= SMALL else LARGE_BLOCK
    begins = range(0, A.shape[0], block)
    columns = [A[j:, j : j + block] for j in begins]  # from the diagonal downwards
    rights = [b[j : j + block] for j in begins]
    inverses, belows = [], []
    for k, column in enumerate(columns):
        width = column.shape[1]
        D, below = invert(column[:width], jnp.int32(width)), column[width:]
        scaled, rights[k] = product(below, D), product(D, rights[k])
        inverses.append(D)
        belows.append(below)
        for j in range(k + 1, len(columns)):
            here = (j - k - 1) * block
            rows = below[here : here + columns[j].shape[1]]
            columns[j] = columns[j] - product(scaled[here:], rows.T)
            rights[j] = rights[j] - product(rows, rights[k])
    x = rights[-1]
    for D, below, right in list(zip(inverses, belows, rights, strict=True))[-2::-1]:
        x = jnp.concatenate([right - product(D, product(x, below)), x])
    return x
