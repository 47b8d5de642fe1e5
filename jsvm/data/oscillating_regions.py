"""Regions whose class oscillates with the distance from a point, after 003, Fig. 4."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Float

from jsvm._typing import Array
from jsvm.numerics.keys import as_key

REGIONS = 5


def oscillating_regions(
    *, key: Any, per_region: int = 14
) -> tuple[Float[Array, "size 2"], Float[Array, " size"]]:
    """Draw from five half rings, of width 1/5 around the origin, whose classes alternate.

    003, Fig. 4 has 28 objects of class 1 and 42 of class 2 in "oscillatory" regions, which
    the paper shows without a formula. Two rings of 14 and three of 14 make these numbers:
    y = −sign sin(5π‖x‖), x₁ ≥ 0, and ‖x‖ is uniform on [0, 1). So the sine kernel with
    θ = 5π suits them better than a Gaussian, with fewer support vectors.

    Parameters
    ----------
    key : JAX random key or int
        An int is a seed.
    per_region : int
        Number of examples in each of the five rings.

    Returns
    -------
    X, y
        Examples from the inner ring to the outer, and their classes; class 1 is +1.

    Examples
    --------
    >>> X, y = oscillating_regions(key=0)
    >>> X.shape, int((y > 0).sum()), int((y < 0).sum())
    ((70, 2), 28, 42)
    """
    if per_region < 1:
        raise ValueError(f"per_region={per_region} must be positive")
    radii, angles = jax.random.split(as_key(key), 2)
    region = jnp.repeat(jnp.arange(REGIONS), per_region)
    radius = (region + jax.random.uniform(radii, region.shape)) / REGIONS
    angle = jax.random.uniform(angles, region.shape, minval=-jnp.pi / 2, maxval=jnp.pi / 2)
    X = jnp.stack([radius * jnp.cos(angle), radius * jnp.sin(angle)], axis=1)
    return X, jnp.where(region % 2 == 1, 1.0, -1.0)
