"""The feature selection problem of 003, Fig. 6."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Float

from jsvm._typing import Array
from jsvm.numerics.keys import as_key


def four_clusters(
    *, key: Any, per_class: int = 25, rows: int = 100
) -> tuple[Float[Array, "columns 2"], Float[Array, " columns"], Float[Array, "rows 2"]]:
    """Draw column objects around the corners (±1, ±1) and row objects uniform on [−1.2, 1.2]².

    003, Fig. 6: a corner with equal probability, plus normal noise of standard deviation
    0.1 on each coordinate. Opposite corners belong together, y = sign x₁x₂ of the corner;
    the paper shows the classes in its figure only. Each class has `per_class` objects.

    Parameters
    ----------
    key : JAX random key or int
        An int is a seed.
    per_class : int
        Number of column objects of each class.
    rows : int
        Number of row objects: 100 below the figure of the paper, 50 in its text.

    Returns
    -------
    X, y, Z
        Column objects, class +1 first, with their classes, and row objects.

    Examples
    --------
    >>> X, y, Z = four_clusters(key=0)
    >>> X.shape, Z.shape, bool(jnp.all(jnp.sign(X[:, 0] * X[:, 1]) == y))
    ((50, 2), (100, 2), True)
    """
    if per_class < 1 or rows < 0:
        raise ValueError(f"per_class={per_class} must be positive and rows={rows} not negative")
    corners, errors, places = jax.random.split(as_key(key), 3)
    y = jnp.repeat(jnp.array([1.0, -1.0]), per_class)
    first = jax.random.rademacher(corners, y.shape, y.dtype)
    X = jnp.stack([first, first * y], axis=1) + 0.1 * jax.random.normal(errors, (len(y), 2))
    return X, y, jax.random.uniform(places, (rows, 2), minval=-1.2, maxval=1.2)
