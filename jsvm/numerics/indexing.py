"""Reading and writing at computed places: loops inside a kernel on a CPU, gathers elsewhere."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax
from jaxtyping import Bool, Float, Int

from jsvm._typing import Array
from jsvm.numerics.kernel_call import in_one_kernel

UNROLL = 4  # rows added in one pass over the sum: saves reads and writes of the sum


def repeat(count: Any, body: Callable[[Array, Any], Any], start: Any) -> Any:
    """Return ``start`` after body(0, ·), body(1, ·), …, `count` times; the index is an int32."""
    count = jnp.asarray(count, jnp.int32)
    return lax.fori_loop(
        jnp.int32(0), count, lambda k, c: body(jnp.asarray(k, jnp.int32), c), start
    )


def first_places(mask: Bool[Array, " n"], count: int) -> Int[Array, " {count}"]:
    """Return the first `count` indices where the mask holds; if it holds less often, any others."""

    def one_by_one(mask: Array) -> Array:
        def look(i: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            # Written in any case, and overwritten by the next one if the mask does not hold.
            places, found = carry
            places = lax.dynamic_update_index_in_dim(places, i, found, 0)
            return places, jnp.minimum(found + mask[i], count)

        start = jnp.zeros(count + 1, jnp.int32), jnp.int32(0)
        return repeat(mask.shape[0], look, start)[0][:count]

    def by_sorting(mask: Array) -> Array:
        order = jnp.where(mask, 0, mask.shape[0]) + lax.iota(jnp.int32, mask.shape[0])
        return lax.sort(order)[:count] % mask.shape[0]

    return in_one_kernel(one_by_one, by_sorting, reads_all=True)(mask)


def put(
    vector: Float[Array, " n"],
    places: Int[Array, " m"],
    values: Float[Array, " m"],
    present: Bool[Array, " m"],
) -> Float[Array, " n"]:
    """Return the vector with the values that are present, the first ones, in their places."""

    def one_by_one(vector: Array, places: Array, values: Array, present: Array) -> Array:
        def write(k: Array, vector: Array) -> Array:
            return lax.dynamic_update_index_in_dim(vector, values[k], places[k], 0)

        return repeat(jnp.sum(present), write, vector)

    def scattered(vector: Array, places: Array, values: Array, present: Array) -> Array:
        targets = jnp.where(present, places, vector.shape[0])
        return jnp.asarray(vector).at[targets].set(values, mode="drop")

    return in_one_kernel(one_by_one, scattered, reads_all=True)(
        jnp.asarray(vector), places, values, present
    )


def put_rows(
    matrix: Float[Array, "r n"], rows: Float[Array, "m n"], places: Int[Array, " m"]
) -> Float[Array, "r n"]:
    """Return the matrix with these rows in their places; equal places must have equal rows."""

    def scattered(matrix: Array, rows: Array, places: Array) -> Array:
        return jnp.asarray(matrix).at[places].set(rows)

    return in_one_kernel(_rows_one_by_one, scattered, reads_all=True)(matrix, rows, places)


def put_cross(
    matrix: Float[Array, "n n"], block: Float[Array, "m n"], places: Int[Array, " m"]
) -> Float[Array, "n n"]:
    """Return the matrix with the block in the rows and in the columns of these places."""

    def one_by_one(matrix: Array, block: Array, columns: Array, places: Array) -> Array:
        def put_in_row(row: Array, matrix: Array) -> Array:
            def put(k: Array, matrix: Array) -> Array:
                entry = lax.dynamic_slice(columns, (row, k), (1, 1))
                return lax.dynamic_update_slice(matrix, entry, (row, places[k]))

            return repeat(places.shape[0], put, matrix)

        return repeat(matrix.shape[0], put_in_row, _rows_one_by_one(matrix, block, places))

    def scattered(matrix: Array, block: Array, columns: Array, places: Array) -> Array:
        return jnp.asarray(matrix).at[places].set(block).at[:, places].set(columns)

    return in_one_kernel(one_by_one, scattered, reads_all=True)(matrix, block, block.T, places)


def _rows_one_by_one(matrix: Array, rows: Array, places: Array) -> Array:
    def put_row(k: Array, matrix: Array) -> Array:
        row = lax.dynamic_index_in_dim(rows, k, 0)
        return lax.dynamic_update_index_in_dim(matrix, row, places[k], 0)

    return repeat(places.shape[0], put_row, matrix)


def add_rows(
    total: Float[Array, " n"],
    matrix: Float[Array, "r n"],
    places: Int[Array, " m"],
    weights: Float[Array, " m"],
    count: Int[Array, ""] | int,
) -> Float[Array, " n"]:
    """Return total + Σ_k weights[k] · matrix[places[k]]; from `count` on the weights are zero."""

    def one_by_one(total: Array, matrix: Array, places: Array, weights: Array, count: Any) -> Array:
        unroll = next(u for u in (UNROLL, 2, 1) if places.shape[0] % u == 0)

        def add(k: Array, total: Array) -> Array:
            for j in range(unroll):
                place = k * unroll + j
                row = lax.dynamic_index_in_dim(matrix, places[place], 0, keepdims=False)
                total = total + weights[place] * row
            return total

        return repeat((count + unroll - 1) // unroll, add, total)

    def gathered(total: Array, matrix: Array, places: Array, weights: Array, count: Any) -> Array:
        return total + jnp.matmul(weights, matrix[places], precision=lax.Precision.HIGHEST)

    return in_one_kernel(one_by_one, gathered, reads_all=True)(
        total, matrix, places, weights, count
    )
