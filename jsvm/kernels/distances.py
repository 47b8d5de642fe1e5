"""Distances between rows by matrix products, with gradients that stay finite at zero."""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Float

from jsvm._typing import Array
from jsvm.kernels.dot import inner_products


def squared_distances(
    X: Float[Array, "n d"], Z: Float[Array, "m d"], weights: Float[Array, " d"] | None = None
) -> Float[Array, "n m"]:
    """Return Σ_d w_d (x_d − z_d)² for all pairs of rows, as ‖x‖² + ‖z‖² − 2⟨x, z⟩.

    The expansion cancels: its error is a few units in the last place of ‖x‖² + ‖z‖². So the points
    are moved to the centre of `Z` first, and what is below that error counts as zero, which makes
    coincident points coincide also for kernels that take a square root. The centre is the median of
    some of the points: a mean would follow a single outlier.
    """
    some = Z[:: max(1, Z.shape[0] // 64)]
    centre = lax.stop_gradient(jnp.sort(some, axis=0)[some.shape[0] // 2])[None, :]
    X, Z = X - centre, Z - centre
    weighted = X if weights is None else X * weights[None, :]
    x_norms = jnp.sum(X * weighted, axis=1)
    z_norms = jnp.sum(Z * (Z if weights is None else Z * weights[None, :]), axis=1)
    norms = x_norms[:, None] + z_norms[None, :]
    squares = norms - 2.0 * inner_products(weighted, Z)
    rounding = 8.0 * jnp.finfo(squares.dtype).eps * norms
    return jnp.where(squares > lax.stop_gradient(rounding), squares, 0.0)


def safe_root(squares: Float[Array, "..."]) -> Float[Array, "..."]:
    """Return √s with derivative 0, not ∞, at s = 0."""
    # Both `where`s are needed: the derivative of the branch not taken must be finite too.
    positive = squares > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, squares, 1.0)), 0.0)


def absolute_distances(X: Float[Array, "n d"], Z: Float[Array, "m d"]) -> Float[Array, "n m"]:
    """Return Σ_d |x_d − z_d| for all pairs of rows, one coordinate at a time."""
    start = jnp.zeros((X.shape[0], Z.shape[0]), jnp.result_type(X, Z))
    return lax.scan(_add_coordinate, start, (X.T, Z.T))[0]


# At the top of the module: scan compiles anew for every new function object.
def _add_coordinate(total: Float[Array, "n m"], columns: tuple) -> tuple[Float[Array, "n m"], None]:
    x, z = columns
    return total + jnp.abs(x[:, None] - z[None, :]), None
