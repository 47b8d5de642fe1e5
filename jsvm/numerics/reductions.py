"""The largest entry of a vector, and where it is.

XLA on a CPU reduces a vector entry by entry, and `argmax` is slower still. Here whole slices of the
vector are compared with each other, which uses vector instructions; only the entries of one slice
are reduced one by one.
"""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Float, Int

from jsvm._typing import Array

SLICES = 16  # of a vector whose length is a multiple of it; every bucket is


def index_of_max(values: Float[Array, " n"]) -> tuple[Int[Array, ""], Float[Array, ""]]:
    """Return the first index of the largest value, and that value."""
    size = values.shape[0]
    slices = SLICES if size % SLICES == 0 else 1
    width = size // slices
    top, where = values[:width], jnp.zeros(width, jnp.int32)
    for k in range(1, slices):
        other = values[k * width : (k + 1) * width]
        higher = other > top
        top, where = jnp.where(higher, other, top), jnp.where(higher, k, where)
    highest = jnp.max(top)
    places = where * width + lax.iota(jnp.int32, width)
    return jnp.min(jnp.where(top == highest, places, size - 1)), highest


def largest(values: Float[Array, " n"]) -> Float[Array, ""]:
    """Return the largest value."""
    return index_of_max(values)[1]
