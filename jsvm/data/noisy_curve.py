"""Noisy regression with an outlier, after 003, Fig. 5."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Float

from jsvm._typing import Array
from jsvm.numerics.keys import as_key


def curve(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Return sin(3πx/4), the true function below `noisy_curve`.

    003 prints its function as a dashed line only. This one has what the text speaks of: an
    extremum at x = −2, where smoothing shows, and no feature at x = 0, where the outlier is.

    Examples
    --------
    >>> curve(jnp.array([-2.0, 0.0])).round(6).tolist()
    [1.0, 0.0]
    """
    return jnp.sin(0.75 * jnp.pi * x)


def noisy_curve(
    *, key: Any, size: int = 50, noise: float = 0.2, outlier: float = 3.0
) -> tuple[Float[Array, "points 1"], Float[Array, " points"]]:
    """Draw x uniform on [−4, 4] with y = curve(x) + N(0, noise²), then add an outlier at 0.

    Parameters
    ----------
    key : JAX random key or int
        An int is a seed.
    size : int
        Number of points besides the outlier, which comes last.
    noise : float
        Standard deviation of the noise.
    outlier : float
        Target at x = 0, where the curve is 0.

    Examples
    --------
    >>> X, y = noisy_curve(key=0)
    >>> X.shape, float(X[-1, 0]), float(y[-1])
    ((51, 1), 0.0, 3.0)
    """
    if size < 0 or not noise >= 0:
        raise ValueError(f"size={size} and noise={noise} must not be negative")
    places, errors = jax.random.split(as_key(key), 2)
    x = jax.random.uniform(places, (size,), minval=-4.0, maxval=4.0)
    y = curve(x) + noise * jax.random.normal(errors, (size,))
    return jnp.append(x, 0.0)[:, None], jnp.append(y, outlier)
