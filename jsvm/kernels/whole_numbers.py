"""Products of whole numbers in float32 that are exact, at half the price of float64.

Pixels, counts and indicators are small whole numbers. Whatever the order of the terms, every sum on
the way to ⟨x, z⟩ is a whole number of at most ‖x‖‖z‖, and float32 has all of these up to 2²⁴. Where
points are too long for that, they are cut into parts with some of the columns each.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from jsvm._typing import Array
from jsvm.kernels.base import Kernel
from jsvm.kernels.distances import Points, SquaredDistance, centre_of
from jsvm.numerics.memory import borrow
from jsvm.programs import program

FEWEST_FEATURES = 32  # with fewer, products are a small part of the work
LARGEST_EXACT = 2.0**24  # float32 has all whole numbers up to this one
LARGEST_ENTRY = 2.0**12  # whose square is the one above
PART_STEP = 16  # the width of a part is a multiple of so many columns
MOST_PARTS = 8  # points that need more parts are multiplied in float64
BLOCK = 1024  # rows tested at a time, which keeps the temporaries small


def exact_widths(kernel: Kernel, features: int, dtype: object) -> list[int]:
    """Return the widths of parts to try, the largest first; none if the kernel cannot gain."""
    of_squares = isinstance(kernel.basis, SquaredDistance)
    gains = of_squares and dtype == np.float64 and features >= FEWEST_FEATURES
    return _widths(features) if gains else []


def are_whole(X: np.ndarray) -> bool:
    """Tell whether a matrix holds nothing but small whole numbers."""
    blocks = (X[begin : begin + BLOCK] for begin in range(0, len(X), BLOCK))
    return all(bool(((np.rint(B) == B) & (np.abs(B) <= LARGEST_ENTRY)).all()) for B in blocks)


def exact_points(X: Float[Array, "n d"]) -> Points | None:
    """Return whole numbers in float32 as points in as few parts as are exact; None if none are."""
    points, longest = _moved(borrow(X.shape, X.dtype), X)
    if longest <= LARGEST_EXACT:
        return points._replace(coordinates=(points.coordinates,))
    lengths = zip(_widths(X.shape[1])[1:], jax.device_get(_lengths(points)), strict=True)
    width = next((w for w, length in lengths if length <= LARGEST_EXACT), None)
    return None if width is None else _split_compiled(points, width)


def exact_matrix(
    kernel: Kernel, X: Float[Array, "n d"], Z: Float[Array, "m d"], width: int
) -> tuple[Float[Array, "n m"], Bool[Array, ""]]:
    """Return k(X, Z) with products in float32, and whether they are exact; to be traced."""
    # Not moved to a centre: the points might be no whole numbers any more.
    P, R = (Points(A, jnp.sum(A * A, axis=1)) for A in (X, Z))
    lengths = [_longest(A, width) for A in (X, Z)]
    whole = jnp.all(jnp.round(X) == X) & jnp.all(jnp.round(Z) == Z)
    exact = whole & jnp.all(lengths[0] * lengths[1] <= LARGEST_EXACT**2)
    return kernel.between(_split(P, width), _split(R, width)), exact


def _widths(features: int) -> list[int]:
    parts = [p for p in (1, 2, 4, 8) if p <= max(1, min(MOST_PARTS, features // PART_STEP))]
    return [-(-features // (p * PART_STEP)) * PART_STEP for p in parts]


@program(donate_argnums=0, keep_unused=True)
def _moved(memory: Float[Array, "n d"], X: Float[Array, "n d"]) -> tuple[Points, Array]:
    """Return the points around a centre, and the squared length of the longest."""
    moved = X - centre_of(X)[None, :]
    squares = _squares(moved)
    return Points(moved, squares), jnp.max(squares)


@program
def _lengths(points: Points) -> Array:
    """Return for every width but the first the squared length of the longest part."""
    X = points.coordinates
    return jnp.stack([jnp.max(_longest(X, width)) for width in _widths(X.shape[1])[1:]])


def _split(points: Points, width: int) -> Points:
    """Return the points with their coordinates in float32, some columns at a time."""
    return points._replace(coordinates=_parts(jnp.asarray(points.coordinates, jnp.float32), width))


_split_compiled = program(_split, static_argnames="width")


def _longest(X: Float[Array, "n d"], width: int) -> Float[Array, " parts"]:
    """Return the squared length of the longest row of every part."""
    return jnp.stack([jnp.max(_squares(part)) for part in _parts(X, width)])


def _squares(X: Float[Array, "n d"]) -> Float[Array, " n"]:
    """Return the squared lengths of rows in float64, whatever their own dtype."""
    return jnp.sum(X.astype(float) ** 2, axis=1)


def _parts(X: Float[Array, "n d"], width: int) -> tuple[Array, ...]:
    return tuple(X[:, begin : begin + width] for begin in range(0, X.shape[1], width))
