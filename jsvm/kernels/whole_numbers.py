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


def prepared(X: Float[Array, "n d"]) -> Points | None:
    """Return whole numbers in float32 as points in as few parts as are exact; None if none are."""
    points, lengths = _prepare(X)
    found = zip(widths(X.shape[1]), jax.device_get(lengths), strict=True)
    width = next((w for w, length in found if length <= LARGEST_EXACT), None)
    if width is None:
        return None
    if width >= X.shape[1]:
        return points._replace(coordinates=(points.coordinates,))
    return _split(points, width)


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


@jax.jit
def _prepare(X: Float[Array, "n d"]) -> tuple[Points, Array]:
    """Return the points around a centre, and for every width the longest part, squared."""
    centre = centre_of(X)[None, :]
    moved = X.astype(float) - centre.astype(float)
    lengths = [jnp.max(_longest(moved, width)) for width in widths(X.shape[1])]
    squares = jnp.sum(moved * moved, axis=1)
    return Points(X - centre, squares), jnp.stack(lengths)


_split = partial(jax.jit, static_argnames="width")(split)


def _is_whole(X: Float[Array, "n d"]) -> Array:
    return jnp.all(jnp.round(X) == X)


def _longest(X: Float[Array, "n d"], width: int) -> Float[Array, " parts"]:
    """Return the squared length of the longest row of every part."""
    return jnp.stack([jnp.max(jnp.sum(part * part, axis=1)) for part in _parts(X, width)])


def _parts(X: Float[Array, "n d"], width: int) -> tuple[Array, ...]:
    return tuple(X[:, begin : begin + width] for begin in range(0, X.shape[1], width))
