"""The chess-board distribution of Glasmachers 2008, section 3.4."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Float

from jsvm._typing import Array
from jsvm.numerics.keys import as_key


def chess_board(
    n: int, d: int, *, size: int, key: Any, noise: float = 0.0
) -> tuple[Float[Array, "size d"], Float[Array, " size"]]:
    """Draw from the chess board: x uniform on [0, n)^d, y = (−1)^Σ⌊x_i⌋.

    Parameters
    ----------
    n, d : int
        Fields along a side, and dimension; the thesis uses 4 and 2.
    size : int
        Number of examples.
    key : JAX random key or int
    noise : float
        Probability of a *random* label (half of which are right).

    Examples
    --------
    >>> X, y = chess_board(4, 2, size=5, key=0)
    >>> X.shape, sorted({float(label) for label in y} | {-1.0, 1.0})
    ((5, 2), [-1.0, 1.0])
    """
    if n < 1 or d < 1 or size < 0:
        raise ValueError(f"n={n}, d={d} must be positive and size={size} not negative")
    if not 0.0 <= noise <= 1.0:
        raise ValueError(f"noise={noise} is a probability and must be in [0, 1]")
    places, which, labels = jax.random.split(as_key(key), 3)
    X = n * jax.random.uniform(places, (size, d))
    y = 1.0 - 2.0 * (jnp.sum(jnp.floor(X), axis=1) % 2)
    random = jax.random.rademacher(labels, (size,), y.dtype)
    return X, jnp.where(jax.random.uniform(which, (size,)) < noise, random, y)


def chess_board_bayes_error(noise: float = 0.0) -> float:
    """Return the Bayes error of the chess board: half the probability of a random label.

    Examples
    --------
    >>> chess_board_bayes_error(noise=0.2)
    0.1
    """
    return noise / 2
