"""The working variables on the device: the values of their row objects, and Q between them.

Variables come and go, and only what is new is computed: a variable keeps its slot, one that leaves
makes its slot free. Sizes are few, so that few programs are compiled.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jsvm.numerics.indexing import put_cross, put_rows
from jsvm.numerics.memory import aligned_empty, borrow, give_back
from jsvm.numerics.padding import bucket
from jsvm.numerics.products import product
from jsvm.problems.matrix_data import DenseMatrix, MatrixData
from jsvm.solvers.potential.semismooth import Box, advance, begin

# Multiples of 512 beyond.
SIZES = (16, 32, 64, 128, 192, 256, 320, 384, 448, 512, 768, 1024, 1280, 1536, 2048)
BATCHES = (16, 32, 64, 96, 128, 192, 256)  # new variables at a time


class WholeTile:
    """All variables of a small problem, in their order; only Q is kept.

    Parameters
    ----------
    data : MatrixData
        Where the values of row objects come from.
    dtype : dtype
        Of Q.
    """

    def __init__(self, data: MatrixData, dtype: np.dtype) -> None:
        self.fetched = data.shape[1]
        rows = data.all_objects()
        products = rows @ rows.T if isinstance(rows, np.ndarray) else combine(rows, rows.T)
        more = size_of(data.shape[1]) - data.shape[1]
        self.Q: Any = jnp.pad(jnp.asarray(products, dtype), (0, more))

    def hold(self, wanted: np.ndarray) -> np.ndarray:
        """Return the slots of these variables."""
        return wanted


class Tile:
    """Slots for variables of a large problem.

    Parameters
    ----------
    data : MatrixData
        Where the values of row objects come from.
    dtype : dtype
        Of the tile.
    """

    def __init__(self, data: MatrixData, dtype: np.dtype) -> None:
        self.data, self.dtype = data, dtype
        self.slots = np.full(0, -1)  # the variable in every slot
        self.values: Any = jnp.zeros((0, bucket(data.shape[0])), dtype)
        self.Q: Any = jnp.zeros((0, 0), dtype)
        self.fetched = 0
        self._memory: np.ndarray | None = None  # of values on their way to the tile

    def hold(self, wanted: np.ndarray) -> np.ndarray:
        """Make room for these variables; return their slots."""
        self.slots[~np.isin(self.slots, wanted)] = -1
        size = size_of(len(wanted))
        if size > len(self.slots):
            self._grow(size)
        elif size < len(self.slots):
            self._shrink(size)
        new = np.setdiff1d(wanted, self.slots)
        free = np.flatnonzero(self.slots < 0)[: len(new)]
        for begin_ in range(0, len(new), BATCHES[-1]):
            some = slice(begin_, begin_ + BATCHES[-1])
            self._fetch(new[some], free[some])
        place = np.full(self.data.shape[1], -1)
        used = np.flatnonzero(self.slots >= 0)
        place[self.slots[used]] = used
        return place[wanted]

    def combine(self, slots: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        """Return Σ_j c_j k_j over the variables in these slots."""
        full = np.zeros(len(self.slots), self.dtype)
        full[slots] = coefficients
        return np.asarray(combine(full, self.values))[: self.data.shape[0]]

    def _grow(self, size: int) -> None:
        more = size - len(self.slots)
        self.slots = np.concatenate([self.slots, np.full(more, -1)])
        shapes = (size, self.values.shape[1]), (size, size)
        memory = tuple(borrow(shape, self.dtype) for shape in shapes)
        before = self.values, self.Q
        self.values, self.Q = _grown(memory, before)
        for array in before:
            give_back(array)

    def release(self) -> None:
        """Leave the memory of the tile to others: nobody will ask for it any more."""
        for array in (self.values, self.Q):
            give_back(array)
        self.slots = self.slots[:0]
        self.values, self.Q = self.values[:0], self.Q[:0, :0]

    def _shrink(self, size: int) -> None:
        kept = np.argsort(self.slots < 0, kind="stable")[:size]  # those in use first
        self.slots = self.slots[kept]
        self.values, self.Q = _keep(self.values, self.Q, kept)

    def _fetch(self, new: np.ndarray, free: np.ndarray) -> None:
        batch = next(b for b in BATCHES if len(new) <= b)
        values = self._values_of(_filled(new, batch))
        places = _filled(free, batch).astype(np.int32)
        self.values, self.Q = _insert(self.values, self.Q, values, places)
        self.slots[free] = new
        self.fetched += len(new)

    def _values_of(self, indices: np.ndarray) -> Any:
        """Return the values of some objects, with zeros up to the length of those in the tile."""
        length, full = self.data.shape[0], self.values.shape[1]
        rows = self.data.rows if isinstance(self.data, DenseMatrix) else None
        if not isinstance(rows, np.ndarray):
            values = jnp.asarray(self.data.objects(indices), self.dtype)
            return jnp.pad(values, ((0, 0), (0, full - length)))
        if self._memory is None:
            self._memory = aligned_empty((BATCHES[-1], full), self.dtype)
            self._memory[:, length:] = 0.0
        self.Q.block_until_ready()  # the last ones have been read
        for place, index in enumerate(indices):
            self._memory[place, :length] = rows[index]
        return self._memory[: len(indices)]


def improve(
    Q: Any,
    slots: np.ndarray,
    alpha: np.ndarray,
    gradient: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    epsilon: float,
    width: float,
    tol: float,
    budget: int,
) -> tuple[np.ndarray, int, float]:
    """Minimise over the variables in some slots of a tile.

    Returns their values, the number of Newton steps, and the width to go on with.
    """

    def spread(values: np.ndarray) -> np.ndarray:
        full = np.zeros(Q.shape[0], Q.dtype)
        full[slots] = values
        return full

    vectors = (spread(v) for v in (alpha, gradient, lower, upper))
    change, at_zero, at_lower, at_upper, steps, width = jax.device_get(
        _improve(Q, *vectors, epsilon, width, tol, np.int32(budget))
    )
    new = alpha + change[slots]
    for where, bound in ((at_zero, 0.0), (at_lower, lower), (at_upper, upper)):
        new = np.where(where[slots], bound, new)
    return np.clip(new, lower, upper), int(steps), float(width)


def size_of(count: int) -> int:
    """Return the size of a tile for so many variables."""
    return next((size for size in SIZES if count <= size), -(-count // 512) * 512)


def _filled(indices: np.ndarray, size: int) -> np.ndarray:
    """Return the indices with copies of the first one up to a size."""
    return np.concatenate([indices, np.full(size - len(indices), indices[0])])


@partial(jax.jit, donate_argnums=0, keep_unused=True)
def _grown(memory: tuple[Any, Any], tile: tuple[Any, Any]) -> tuple[Any, Any]:
    """Return values and Q with zeros in the slots that are new, in the memory given."""
    more = memory[0].shape[0] - tile[0].shape[0]
    return jnp.pad(tile[0], ((0, more), (0, 0))), jnp.pad(tile[1], (0, more))


@partial(jax.jit, donate_argnums=(0, 1))
def _insert(values: Any, Q: Any, new: Any, places: Any) -> tuple[Any, Any]:
    values = put_rows(values, new, places)
    return values, put_cross(Q, product(new, values.T), places)


@jax.jit
def combine(coefficients: Any, values: Any) -> Any:
    """Return Σ_j c_j k_j, for one or several rows of coefficients."""
    return product(coefficients, values)


@jax.jit
def _keep(values: Any, Q: Any, kept: Any) -> tuple[Any, Any]:
    return values[kept], Q[kept][:, kept]


@jax.jit
def _improve(
    Q: Any,
    alpha: Any,
    gradient: Any,
    lower: Any,
    upper: Any,
    epsilon: Any,
    width: Any,
    tol: Any,
    budget: Any,
) -> tuple[Any, ...]:
    """Return the change of α, where it leads to zero or a bound exactly, Newton steps and width."""
    dtype = Q.dtype
    box = Box(alpha, gradient, lower, upper, jnp.asarray(epsilon, dtype))
    search = begin(Q, box, jnp.asarray(width, dtype))
    search = advance(Q, box, search, jnp.asarray(tol, dtype), budget)
    exactly = (search.best == bound - alpha for bound in (0.0, lower, upper))
    return search.best, *exactly, search.steps, search.width
