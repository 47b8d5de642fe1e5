"""The matrix of a working set, kept from round to round.

Most variables of a working set were in the last one too. They keep their places, so only the rows
and columns of newcomers are computed.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jsvm.solvers.rows import HostSource, Rows, Source, part

NEWCOMERS = (32, 128, 512)  # computed at once


class Square:
    """K on the examples of a working set, in an order of its own.

    Parameters
    ----------
    rows : Rows
        Where the entries come from.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.variables = np.empty(0, np.int64)  # in every place; −1 where there is none
        self.matrix: Any = None

    def arrange(self, some: np.ndarray, size: int) -> np.ndarray:
        """Bring in the variables `some`; return the variable in each of `size` places, −1 if none.

        The example of a variable is its index modulo the number of examples.
        """
        if size != len(self.variables):
            self._resize(size)
        staying = np.isin(self.variables, some)
        newcomers = np.setdiff1d(some, self.variables)
        places = np.flatnonzero(~staying)
        self.variables[places] = -1
        places = places[: len(newcomers)]
        self.variables[places] = newcomers
        self._compute(places)
        return self.variables

    def _resize(self, size: int) -> None:
        kept = self.variables[self.variables >= 0][:size]
        places = np.flatnonzero(self.variables >= 0)[:size]
        self.variables = np.full(size, -1)
        if len(kept) and len(kept) >= size // 8:
            source = np.zeros(size, np.int32)
            source[: len(kept)] = places
            self.matrix = _rearrange(self.matrix, source)
            self.variables[: len(kept)] = kept
        else:
            self.matrix = jnp.zeros((size, size), self.rows.dtype)

    def _compute(self, places: np.ndarray) -> None:
        size = len(self.variables)
        examples = np.maximum(self.variables, 0) % self.rows.size
        if len(places) > size // 2:
            self.matrix = self.rows.part(examples, examples)
            return
        while len(places):
            count = next((k for k in NEWCOMERS if len(places) <= k), NEWCOMERS[-1])
            now, places = places[:count], places[count:]
            now = np.concatenate([now, np.full(count - len(now), now[0])]).astype(np.int32)
            if isinstance(self.rows.source, HostSource):
                block = self.rows.part(examples[now], examples)
                self.matrix = _write_cross(self.matrix, block, now)
            else:
                self.matrix = _compute_cross(self.matrix, self.rows.source, examples, now)


@jax.jit
def _rearrange(matrix: Any, source: Any) -> Any:
    return matrix[source][:, source]


@partial(jax.jit, donate_argnums=0)
def _compute_cross(matrix: Any, source: Source, examples: Any, places: Any) -> Any:
    return _write_cross(matrix, part(source, examples[places], examples), places)


@partial(jax.jit, donate_argnums=0)
def _write_cross(matrix: Any, block: Any, places: Any) -> Any:
    """Return the matrix with the block in the rows and in the columns of these places."""

    def put(k: Any, matrix: Any) -> Any:
        row = lax.dynamic_index_in_dim(block, k, 0)
        matrix = lax.dynamic_update_index_in_dim(matrix, row, places[k], 0)
        return lax.dynamic_update_index_in_dim(matrix, row.T, places[k], 1)

    return lax.fori_loop(0, block.shape[0], put, matrix)
