"""Places in arrays: where the largest entry is, and reading and writing at computed places.

On a CPU these are loops inside a kernel, elsewhere gathers and scatters.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax
from jaxtyping import Bool, Float, Int

from jsvm._typing import Array, Mask, Matrix, Number, Vector
from jsvm.numerics.arrays import product
from jsvm.numerics.kernel_call import in_one_kernel
from jsvm.precision import default_platform

SLICES = 16  # of a vector whose length is a multiple of it; every bucket is
SPAN = 64  # columns of a small matrix visited at a time: those not in use are left out
LARGEST_SQUARE = 256  # rows of a matrix that is looked up by one core
UNROLL = 4  # rows added in one pass over the sum: saves reads and writes of the sum


def repeat(count: Any, body: Callable[[Array, Any], Any], start: Any) -> Any:
    """Return ``start`` after body(0, ·), body(1, ·), …, `count` times; the index is an int32."""
    count = jnp.asarray(count, jnp.int32)
    return lax.fori_loop(
        jnp.int32(0), count, lambda k, c: body(jnp.asarray(k, jnp.int32), c), start
    )


def index_of_max(values: Vector) -> tuple[Int[Array, ""], Number]:
    """Return the first index of the largest value, and that value.

    XLA on a CPU reduces a vector entry by entry. Here whole slices are compared with each other,
    which uses vector instructions; only the entries of one slice are reduced one by one.
    """
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


def largest(values: Vector) -> Number:
    """Return the largest value."""
    return index_of_max(values)[1]


def first_places(mask: Mask, count: int) -> Int[Array, " {count}"]:
    """Return the first `count` indices where the mask holds; if it holds less often, any others."""
    size = mask.shape[0]
    if default_platform() != "cpu":
        return lax.sort(jnp.where(mask, 0, size) + lax.iota(jnp.int32, size))[:count] % size

    def one_by_one(mask: Array) -> Array:
        def look(i: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            # Written in any case, and overwritten by the next one if the mask does not hold.
            places, found = carry
            places = lax.dynamic_update_index_in_dim(places, i, found, 0)
            return places, jnp.minimum(found + mask[i].astype(jnp.int32), count)

        start = jnp.zeros(count + 1, jnp.int32), jnp.int32(0)
        return repeat(size, look, start)[0][:count]

    return in_one_kernel(one_by_one, reads_all=True)(mask)


def square_at(
    matrix: Matrix, places: Int[Array, " m"], count: Int[Array, ""]
) -> Float[Array, "m m"]:
    """Return the matrix at these places; only the first `count` rows and columns matter."""
    size = places.shape[0]
    if default_platform() != "cpu" or size > LARGEST_SQUARE or size % SPAN:
        return matrix[places[:, None], places[None, :]]

    def one_by_one(matrix: Array, places: Array, count: Array) -> Array:
        def look_up(row: Array, square: Array) -> Array:
            def part(k: Array, square: Array) -> Array:
                some = lax.dynamic_slice(places, (k * SPAN,), (SPAN,))
                values = matrix[places[row], some][None, :]
                return lax.dynamic_update_slice(square, values, (row, k * SPAN))

            return repeat((count + SPAN - 1) // SPAN, part, square)

        return repeat(count, look_up, jnp.zeros((size, size), matrix.dtype))

    return in_one_kernel(one_by_one, reads_all=True)(matrix, places, count)


def put(
    vector: Vector, places: Int[Array, " m"], values: Float[Array, " m"], present: Bool[Array, " m"]
) -> Vector:
    """Return the vector with the values that are present, the first ones, in their places."""
    if default_platform() != "cpu":
        targets = jnp.where(present, places, vector.shape[0])
        return jnp.asarray(vector).at[targets].set(values, mode="drop")

    def one_by_one(vector: Array, places: Array, values: Array, present: Array) -> Array:
        def write(k: Array, vector: Array) -> Array:
            return lax.dynamic_update_index_in_dim(vector, values[k], places[k], 0)

        return repeat(jnp.sum(present), write, vector)

    return in_one_kernel(one_by_one, reads_all=True)(vector, places, values, present)


def put_rows(
    matrix: Float[Array, "r n"], rows: Float[Array, "m n"], places: Int[Array, " m"]
) -> Float[Array, "r n"]:
    """Return the matrix with these rows in their places; equal places must have equal rows."""
    if default_platform() != "cpu":
        return jnp.asarray(matrix).at[places].set(rows)
    return in_one_kernel(_rows_one_by_one, reads_all=True)(matrix, rows, places)


def put_cross(matrix: Matrix, block: Float[Array, "m n"], places: Int[Array, " m"]) -> Matrix:
    """Return the matrix with the block in the rows and in the columns of these places."""
    if default_platform() != "cpu":
        return jnp.asarray(matrix).at[places].set(block).at[:, places].set(block.T)

    def one_by_one(matrix: Array, block: Array, columns: Array, places: Array) -> Array:
        def put_in_row(row: Array, matrix: Array) -> Array:
            def put(k: Array, matrix: Array) -> Array:
                entry = lax.dynamic_slice(columns, (row, k), (1, 1))
                return lax.dynamic_update_slice(matrix, entry, (row, places[k]))

            return repeat(places.shape[0], put, matrix)

        return repeat(matrix.shape[0], put_in_row, _rows_one_by_one(matrix, block, places))

    return in_one_kernel(one_by_one, reads_all=True)(matrix, block, block.T, places)


def _rows_one_by_one(matrix: Array, rows: Array, places: Array) -> Array:
    def put_row(k: Array, matrix: Array) -> Array:
        row = lax.dynamic_index_in_dim(rows, k, 0)
        return lax.dynamic_update_index_in_dim(matrix, row, places[k], 0)

    return repeat(places.shape[0], put_row, matrix)


def add_rows(
    total: Vector,
    matrix: Float[Array, "r n"],
    places: Int[Array, " m"],
    weights: Float[Array, " m"],
    count: Int[Array, ""] | int,
) -> Vector:
    """Return total + Σ_k weights[k] · matrix[places[k]]; from `count` on the weights are zero."""
    if default_platform() != "cpu":
        return total + product(weights, matrix[places])

    def one_by_one(total: Array, matrix: Array, places: Array, weights: Array, count: Any) -> Array:
        unroll = next(u for u in (UNROLL, 2, 1) if places.shape[0] % u == 0)

        def add(k: Array, total: Array) -> Array:
            for j in range(unroll):
                place = k * unroll + j
                row = lax.dynamic_index_in_dim(matrix, places[place], 0, keepdims=False)
                total = total + weights[place] * row
            return total

        return repeat((count + unroll - 1) // unroll, add, total)

    return in_one_kernel(one_by_one, reads_all=True)(total, matrix, places, weights, count)
