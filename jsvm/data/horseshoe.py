"""Matrix data in the plane with a curved boundary, after 003, Fig. 3."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Float

from jsvm._typing import Array
from jsvm.numerics.keys import as_key


def horseshoe(
    *, key: Any, per_class: int = 17, rows: int = 50
) -> tuple[Float[Array, "columns 2"], Float[Array, " columns"], Float[Array, "rows 2"]]:
    """Draw a group of objects, a horseshoe of others around it, and row objects everywhere.

    003, Fig. 3 has 17 column objects x of each class and 50 row objects z uniform on
    [−2, 2]²; K_ij = k(xⁱ, zʲ) is what a machine sees. The paper does not say where the x
    are. Here class +1 is normal around the origin, with standard deviation 0.25, and
    class −1 lies at a distance of 1.2 from it, give or take 0.1, open below: no line
    separates them.

    Parameters
    ----------
    key : JAX random key or int
        An int is a seed.
    per_class, rows : int
        Number of column objects of each class, and of row objects.

    Returns
    -------
    X, y, Z
        Column objects, class +1 first, with their classes, and row objects.

    Examples
    --------
    >>> X, y, Z = horseshoe(key=0)
    >>> X.shape, float(y.sum()), Z.shape
    ((34, 2), 0.0, (50, 2))
    """
    if per_class < 1 or rows < 0:
        raise ValueError(f"per_class={per_class} must be positive and rows={rows} not negative")
    inside, angles, radii, places = jax.random.split(as_key(key), 4)
    angle = jax.random.uniform(angles, (per_class,), minval=-jnp.pi / 4, maxval=5 * jnp.pi / 4)
    radius = 1.2 + 0.1 * jax.random.normal(radii, (per_class,))
    around = jnp.stack([radius * jnp.cos(angle), radius * jnp.sin(angle)], axis=1)
    X = jnp.concatenate([0.25 * jax.random.normal(inside, (per_class, 2)), around])
    y = jnp.repeat(jnp.array([1.0, -1.0]), per_class)
    return X, y, jax.random.uniform(places, (rows, 2), minval=-2.0, maxval=2.0)
