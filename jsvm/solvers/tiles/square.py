"""The matrix of a working set, kept from round to round.

Most variables of a working set were in the last one too. They keep their places, so only the rows
and columns of newcomers are computed.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jsvm.numerics.indexing import put_cross
from jsvm.numerics.memory import borrow, give_back
from jsvm.programs import program
from jsvm.solvers.tiles.rows import Rows


class Square:
    """K on the examples of a working set, in an order of its own."""

    def __init__(self, rows: Rows, dtype: np.dtype) -> None:
        self.rows, self.dtype = rows, dtype
        self.variables = np.empty(0, np.int64)  # in every place; −1 where there is none
        self.matrix: Any = None

    def arrange(self, some: np.ndarray, size: int) -> np.ndarray:
        """Bring in some variables; return the one in each of `size` places, −1 for none."""
        wanted = np.zeros(1 + max(some.max(initial=0), self.variables.max(initial=0)), bool)
        wanted[some] = True
        if size != len(self.variables):
            self._resize(size, wanted)
        staying = (self.variables >= 0) & wanted[self.variables]
        wanted[self.variables[staying]] = False
        newcomers = np.flatnonzero(wanted)
        places = np.flatnonzero(~staying)
        self.variables[places] = -1
        places = places[: len(newcomers)]
        self.variables[places] = newcomers
        self._compute(places)
        return self.variables

    def _resize(self, size: int, wanted: np.ndarray) -> None:
        """Grow around what is there, or keep what is wanted; reserve its bytes among the rows."""
        self.rows.reserve(self, size * size * self.dtype.itemsize)
        present, resized, before = len(self.variables), np.full(size, -1), self.matrix
        if 0 < present < size:
            resized[:present] = self.variables
            self.matrix = _grow(self._memory(size), self.matrix)
        elif present > 0:
            kept = np.flatnonzero((self.variables >= 0) & wanted[self.variables])[:size]
            resized[: len(kept)] = self.variables[kept]
            places = np.zeros(size, np.int32)
            places[: len(kept)] = kept
            self.matrix = _gather(self._memory(size), self.matrix, places)
        self.variables = resized
        if before is not None:
            give_back(before)

    def _compute(self, places: np.ndarray) -> None:
        size, apply = len(self.variables), self.rows.source.apply
        examples = np.maximum(self.variables, 0) % self.rows.size
        # Nanoseconds an entry: 3 to compute it, 0.04 more for every feature, 5 to write a column.
        product = 0.04 * self.rows.source.features
        if self.matrix is None or len(places) * (8 + product) > size * (3 + product):
            self._compute_all(examples)
            return
        while len(places):
            now, places = np.split(places, [self.rows.block_of(len(places))])
            now = self.rows.padded_to_block(now).astype(np.int32)
            self.matrix = apply(_with_cross, self.matrix, examples[now], examples, now)

    def _compute_all(self, examples: np.ndarray) -> None:
        """Compute the whole matrix, a large one in strips."""
        size, apply = len(examples), self.rows.source.apply
        if self.matrix is None:
            self.matrix = self._memory(size)
        height = min(size, self.rows.tuning.strip_rows)
        for begin in range(0, size, height):
            begin = min(begin, size - height)
            some = examples[begin : begin + height]
            self.matrix = apply(_with_strip, self.matrix, some, examples, np.int32(begin))

    def _memory(self, size: int) -> jax.Array:
        return borrow((size, size), self.dtype)

    def release(self) -> None:
        """Return the memory of the matrix to the pool; do not use it afterwards."""
        if self.matrix is not None:
            give_back(self.matrix)
        self.matrix, self.variables = None, np.empty(0, np.int64)


@program(donate_argnums=0, keep_unused=True)
def _grow(memory: Any, matrix: Any) -> Any:
    return jnp.pad(matrix, (0, memory.shape[0] - matrix.shape[0]))


@program(donate_argnums=0, keep_unused=True)
def _gather(memory: Any, matrix: Any, places: Any) -> Any:
    return matrix[places][:, places]


def _with_strip(matrix: Any, strip: Any, begin: Any) -> Any:
    """Return the matrix with a strip of rows in their place."""
    return lax.dynamic_update_slice(matrix, strip.astype(matrix.dtype), (begin, jnp.int32(0)))


def _with_cross(matrix: Any, block: Any, places: Any) -> Any:
    """Return the matrix with the block in the rows and in the columns of these places."""
    return put_cross(matrix, block.astype(matrix.dtype), places)
