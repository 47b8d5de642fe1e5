"""Pairwise data for the sine kernel sin(θ‖x − z‖) of 003, section 2.4.4."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Float

from jsvm._typing import Array
from jsvm.numerics.keys import as_key


def sine_rings(
    *, size: int, key: Any, theta: float = 4 * jnp.pi
) -> tuple[Float[Array, "size 2"], Float[Array, " size"]]:
    """Draw x uniform on [−1, 1]² with the class y = sign sin(θ‖x‖), a target-shaped pattern.

    The first object is the centre of the rings (and has y = +1 as sin 0 = 0): its column
    sin(θ‖xⁱ − x⁰‖) of the indefinite Gram matrix has the sign of every yᵢ, so one support
    feature can tell the classes apart.

    Parameters
    ----------
    size : int
        Number of examples, the centre among them.
    key : JAX random key or int
        An int is a seed.
    theta : float
        Frequency; each ring is π/θ wide.

    Examples
    --------
    >>> X, y = sine_rings(size=100, key=0)
    >>> column = jnp.sin(4 * jnp.pi * jnp.linalg.norm(X - X[:1], axis=1))
    >>> bool(jnp.all((column >= 0) == (y > 0)))
    True
    """
    if size < 1 or not theta > 0:
        raise ValueError(f"size={size} and theta={theta} must be positive")
    X = jax.random.uniform(as_key(key), (size, 2), minval=-1.0, maxval=1.0).at[0].set(0.0)
    return X, jnp.where(jnp.sin(theta * jnp.linalg.norm(X, axis=1)) >= 0, 1.0, -1.0)
