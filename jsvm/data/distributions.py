"""The distributions of Glasmachers 2008, section 3.4: chess board and sparse coordinates."""

from math import comb
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Float

from jsvm._typing import Array
from jsvm.numerics.arrays import as_key


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


def sparse_coordinates(
    n: int, m: int, k: int, *, size: int, key: Any
) -> tuple[Float[Array, "size coordinates"], Float[Array, " size"]]:
    """Draw vectors of zeros and k ones, one of them at a place that determines the class.

    For y = +1 one of the first n coordinates is 1, for y = −1 one of the next n; k − 1 of all
    others, the last m included, are 1 too. Every choice is uniform.

    Parameters
    ----------
    n, m, k : int
        Coordinates of each class, of neither, and ones in a vector; the thesis uses (3, 14, 3) and
        (3, 14, 5).
    size : int
        Number of examples.

    Examples
    --------
    >>> X, y = sparse_coordinates(3, 14, 5, size=4, key=0)
    >>> X.shape, X.sum(axis=1).tolist()
    ((4, 20), [5.0, 5.0, 5.0, 5.0])
    """
    _check(n, m, k)
    if size < 0:
        raise ValueError(f"size={size} must not be negative")
    labels, places, others = jax.random.split(as_key(key), 3)
    scores = jax.random.uniform(others, (size, 2 * n + m))
    y = jax.random.rademacher(labels, (size,), scores.dtype)
    place = jax.random.randint(places, (size,), 0, n) + jnp.where(y > 0, 0, n)
    example = jnp.arange(size)
    # The k highest scores are a uniform choice; the random ones are below 1.
    _, ones = jax.lax.top_k(scores.at[example, place].set(1.0), k)
    return jnp.zeros_like(scores).at[example[:, None], ones].set(1.0), y


def sparse_coordinates_bayes_error(n: int, m: int, k: int) -> float:
    """Return the Bayes error of the sparse coordinates.

    With a ones among the first n coordinates and b among the next n,

        P(x | +1) = a / (n C(2n+m−1, k−1)),   P(x | −1) = b / (n C(2n+m−1, k−1)),

    as each of the a ones can be the one drawn first. So the larger count decides, and the error is
    Σ_{a,b} C(n, a) C(n, b) C(m, k−a−b) min(a, b) / (2n C(2n+m−1, k−1)).

    Examples
    --------
    >>> sparse_coordinates_bayes_error(3, 14, 3) == 144 / 1026
    True
    """
    _check(n, m, k)
    counts = [(a, b) for a in range(1, n + 1) for b in range(1, n + 1) if a + b <= k]
    wrong = sum(comb(n, a) * comb(n, b) * comb(m, k - a - b) * min(a, b) for a, b in counts)
    return wrong / (2 * n * comb(2 * n + m - 1, k - 1))


def _check(n: int, m: int, k: int) -> None:
    """Raise an error for numbers that describe no distribution."""
    if n < 1 or m < 0:
        raise ValueError(f"n={n} must be positive and m={m} not negative")
    if not 1 <= k <= 2 * n + m:
        raise ValueError(f"k={k} must be between 1 and 2n+m={2 * n + m}")
