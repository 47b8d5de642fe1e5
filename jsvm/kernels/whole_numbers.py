"""Products of whole numbers in float32 that are exact, at half the price of float64.

Pixels, counts and indicators are small whole numbers. Whatever the order of the terms, every sum on
the way to ⟨x, z⟩ is a whole number of at most ‖x‖‖z‖, and float32 has all of these up to 2²⁴. Where
points are too long for that, they are cut into parts with some of the columns each.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from jsvm._typing import Array
from jsvm.kernels.base import Kernel
from jsvm.kernels.distances import DistanceKernel, Points, centre_of

MANY_FEATURES = 32  # with fewer, products are a small part of the work
LARGEST_EXACT = 2.0**24
LARGEST_ENTRY = 2.0**12
STEP, MOST_PARTS = 16, 8
BLOCK = 1024  # rows looked at together


def gains_from_whole(kernel: Kernel, features: int, dtype: object) -> bool:
    """Tell whether products in float32, where they are exact, save most of the work."""
    if not isinstance(kernel, DistanceKernel) or kernel.weights(features) is not None:
        return False
    return dtype == jnp.float64 and features >= MANY_FEATURES


def widths(features: int) -> list[int]:
    """Return the numbers of columns of a part that are tried, the largest first."""
    parts = [p for p in (1, 2, 4, 8) if p <= max(1, min(MOST_PARTS, features // STEP))]
    return [-(-features // (p * STEP)) * STEP for p in parts]


def are_whole(X: np.ndarray) -> bool:
    """Tell whether a matrix holds nothing but small whole numbers."""
    blocks = (X[begin : begin + BLOCK] for begin in range(0, len(X), BLOCK))
    return all(bool(((np.rint(B) == B) & (np.abs(B) <= LARGEST_ENTRY)).all()) for B in blocks)


def prepared(memory: Float[Array, "n d"], X: Float[Array, "n d"]) -> Points | None:
    """Return whole numbers in float32 as points in as few parts as are exact; None if none are.

    The points of one part are written to the memory given, which is donated.
    """
    points, longest = _prepare(memory, X)
    if longest <= LARGEST_EXACT:
        return points._replace(coordinates=(points.coordinates,))
    narrow = widths(X.shape[1])[1:]
    found = zip(narrow, jax.device_get(_lengths(points)), strict=True)
    width = next((w for w, length in found if length <= LARGEST_EXACT), None)
    return None if width is None else _split(points, width)


def split(points: Points, width: int) -> Points:
    """Return points with whole coordinates in float32, some columns at a time."""
    X = jnp.asarray(points.coordinates, jnp.float32)
    return points._replace(coordinates=_parts(X, width))


def whole_points(X: Float[Array, "n d"]) -> Points:
    """Return points as they are: moved to a centre they might be no whole numbers."""
    return Points(X, jnp.sum(X * X, axis=1))


def is_exact(P: Points, R: Points, width: int) -> Array:
    """Tell whether products of parts of this width are exact."""
    lengths = [_longest(points.coordinates, width) for points in (P, R)]
    whole = _is_whole(P.coordinates) & _is_whole(R.coordinates)
    return whole & jnp.all(lengths[0] * lengths[1] <= LARGEST_EXACT**2)


@partial(jax.jit, donate_argnums=0, keep_unused=True)
def _prepare(memory: Float[Array, "n d"], X: Float[Array, "n d"]) -> tuple[Points, Array]:
    """Return the points around a centre, and the squared length of the longest."""
    moved = X - centre_of(X)[None, :]
    squares = _squares(moved)
    return Points(moved, squares), jnp.max(squares)


@jax.jit
def _lengths(points: Points) -> Array:
    """Return for every width but the first the squared length of the longest part."""
    X = points.coordinates
    return jnp.stack([jnp.max(_longest(X, width)) for width in widths(X.shape[1])[1:]])


_split = partial(jax.jit, static_argnames="width")(split)


def _is_whole(X: Float[Array, "n d"]) -> Array:
    return jnp.all(jnp.round(X) == X)


def _longest(X: Float[Array, "n d"], width: int) -> Float[Array, " parts"]:
    """Return the squared length of the longest row of every part."""
    return jnp.stack([jnp.max(_squares(part)) for part in _parts(X, width)])


def _squares(X: Float[Array, "n d"]) -> Float[Array, " n"]:
    """Return the squared lengths of rows in float64, whatever these are in."""
    return jnp.sum(X.astype(float) ** 2, axis=1)


def _parts(X: Float[Array, "n d"], width: int) -> tuple[Array, ...]:
    return tuple(X[:, begin : begin + width] for begin in range(0, X.shape[1], width))
