"""Kernel rows on the device: computed in blocks, once, and kept within a budget of bytes.

Rows are kept in slabs, arrays of a fixed number of rows that are allocated when they are needed
and written in place. When the budget is full, the rows that were not used for the longest time are
overwritten. Sums of rows, Σ c_k K[k, :], are what the solver asks for; they are taken row by row
from the slabs, so that they cost one read of each row.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.tree_util import register_dataclass

from jsvm._typing import Leaf
from jsvm.kernels import Kernel

BLOCKS = (256, 64, 16)  # rows computed at once
BLOCK_BYTES = 2**27  # the largest block
UNROLL = 4  # rows added in one pass over the sum


@register_dataclass
@dataclass(frozen=True, eq=False)
class KernelSource:
    """k(X, X), from points prepared once."""

    kernel: Leaf
    points: Leaf
    features: int = field(metadata={"static": True})


@register_dataclass
@dataclass(frozen=True, eq=False)
class HostSource:
    """k(X, X) with a kernel that JAX cannot trace."""

    kernel: Leaf
    X: Leaf
    features: int = field(metadata={"static": True})


@register_dataclass
@dataclass(frozen=True, eq=False)
class MatrixSource:
    """A matrix in memory."""

    matrix: Leaf
    features: int = field(default=0, metadata={"static": True})


Source = KernelSource | HostSource | MatrixSource


def source_of(kernel: Kernel, X: Any) -> KernelSource | HostSource:
    """Return the source of the matrix of a kernel on points that are JAX arrays."""
    if kernel.runs_on_host():
        return HostSource(kernel, X, X.shape[1])
    return KernelSource(kernel, _prepare(kernel, X), X.shape[1])


class Rows:
    """The rows of one matrix.

    Parameters
    ----------
    source : Source
        Where rows come from.
    size : int
        Number of rows and columns.
    dtype : dtype
        Of the rows.
    budget : float
        Bytes for rows that are kept.
    """

    def __init__(self, source: Source, size: int, dtype: np.dtype, budget: float | int) -> None:
        self.source, self.size, self.dtype = source, size, dtype
        self.computed = 0
        row_bytes = size * dtype.itemsize
        affordable = min(max(int(budget / row_bytes), BLOCKS[-1]), size)
        self._height = min(affordable, BLOCKS[0])  # rows of a slab
        whole = affordable == size
        self._capacity = (affordable // self._height + whole) * self._height
        self._blocks = [b for b in BLOCKS if b * row_bytes <= BLOCK_BYTES]
        self._slabs: list[jax.Array] = []
        self._slot_of = np.full(size, -1)  # of an example
        self._example_in = np.full(self._capacity, -1)  # of a slot
        self._last_use = np.full(self._capacity, -1)
        self._clock = self._used = 0

    def part(self, some: np.ndarray, others: np.ndarray) -> jax.Array:
        """Return the part K[some, others] of the matrix."""
        if isinstance(self.source, HostSource):
            return self.source.kernel(self.source.X[some], self.source.X[others])
        return part(self.source, some, others)

    def sum(self, some: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        """Return Σ_k coefficients[k] · K[some[k], :]; an index may occur more than once."""
        self._clock += 1
        weights = np.bincount(some, coefficients, self.size)
        some = np.unique(some)
        weights = weights[some].astype(self.dtype)
        total = np.zeros(self.size, self.dtype)
        if isinstance(self.source, MatrixSource):
            return np.asarray(_add_rows(total, self.source.matrix, *_padded(some, weights)))
        slots = self._slot_of[some]
        total = self._add(total, slots[slots >= 0], weights[slots >= 0])
        some, weights = some[slots < 0], weights[slots < 0]
        while len(some):
            total, count = self._add_missing(total, some, weights)
            some, weights = some[count:], weights[count:]
        return np.asarray(total)

    def _add(self, total: Any, slots: np.ndarray, weights: np.ndarray) -> Any:
        """Add the rows in these slots, slab after slab."""
        self._last_use[slots] = self._clock
        homes, places = np.divmod(slots, self._height)
        for home in np.unique(homes):
            here = homes == home
            padded = _padded(places[here], weights[here], self._height)
            total = _add_rows(total, self._slabs[home], *padded)
        return total

    def _add_missing(self, total: Any, some: np.ndarray, weights: np.ndarray) -> tuple[Any, int]:
        """Compute, keep and add the first of these rows, at most a block; return how many."""
        home, places = self._room(block_of(len(some), self._blocks))
        count = block_of(len(places), self._blocks)
        places = places[:count]
        some, slots = some[:count], home * self._height + places
        lost = self._example_in[slots]
        self._slot_of[lost[lost >= 0]] = -1
        self._example_in[slots], self._slot_of[some] = some, slots
        self._last_use[slots] = self._clock
        self.computed += count
        # The padding writes the first row again, and adds nothing.
        some, places = filled(some), filled(places)
        weights = np.concatenate([weights[:count], np.zeros(len(some) - count, self.dtype)])
        if isinstance(self.source, HostSource):
            rows = self.source.kernel(self.source.X[some], self.source.X)
            self._slabs[home], total = _keep(self._slab(home), total, rows, places, weights)
        elif count == self._height and home == len(self._slabs):
            slab, total = _compute(total, self.source, some, weights)
            self._slabs.append(slab)
        else:
            slab = self._slab(home)
            self._slabs[home], total = _compute_and_keep(
                slab, total, self.source, some, places, weights
            )
        return total, count

    def _slab(self, home: int) -> jax.Array:
        """Return a slab, a new one if it is the next."""
        if home == len(self._slabs):
            self._slabs.append(jnp.zeros((self._height, self.size), self.dtype))
        return self._slabs[home]

    def _room(self, wanted: int) -> tuple[int, np.ndarray]:
        """Return a slab and at most `wanted` places in it: new ones, or those unused longest."""
        if self._used < self._capacity:
            home, begin = divmod(self._used, self._height)
            end = begin + block_of(min(wanted, self._height - begin), self._blocks)
            self._used += end - begin
            return home, np.arange(begin, end)
        wanted = min(wanted, self._capacity)
        oldest = np.argpartition(self._last_use, wanted - 1)[:wanted]
        homes, places = np.divmod(oldest, self._height)
        home = int(np.bincount(homes).argmax())
        return home, places[homes == home]


def block_of(count: int, blocks: Sequence[int] = BLOCKS) -> int:
    """Return how many of so many rows to compute at once: a whole block, or the few that remain."""
    return next((b for b in blocks if b <= count), count)


def filled(values: np.ndarray) -> np.ndarray:
    """Return the values with copies of the first one up to the size of a block."""
    size = next(b for b in reversed(BLOCKS) if len(values) <= b)
    return np.concatenate([values, np.full(size - len(values), values[0])])


def _padded(
    places: np.ndarray, weights: np.ndarray, size: int | None = None
) -> tuple[np.ndarray, np.ndarray, np.int32]:
    """Return both padded with zeros to `size` (a power of two if None), and their length."""
    count = len(places)
    size = 1 << (count - 1).bit_length() if size is None else size
    size = -(-size // UNROLL) * UNROLL
    padded_places, padded_weights = np.zeros(size, np.int32), np.zeros(size, weights.dtype)
    padded_places[:count], padded_weights[:count] = places, weights
    return padded_places, padded_weights, np.int32(count)


@jax.jit
def _prepare(kernel: Kernel, X: Any) -> Any:
    return kernel.prepare(X)


@jax.jit
def part(source: KernelSource | MatrixSource, some: Any, others: Any) -> Any:
    """Return the part K[some, others] of the matrix."""
    if isinstance(source, MatrixSource):
        return source.matrix[some[:, None], others[None, :]]
    return source.kernel.between(_take(source.points, some), _take(source.points, others))


def _take(points: Any, some: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf[some], points)


@jax.jit
def _compute(total: Any, source: KernelSource, some: Any, weights: Any) -> tuple[Any, Any]:
    rows = source.kernel.between(_take(source.points, some), source.points)
    return rows, total + jnp.matmul(weights, rows, precision=lax.Precision.HIGHEST)


@partial(jax.jit, donate_argnums=0)
def _compute_and_keep(
    slab: Any, total: Any, source: KernelSource, some: Any, places: Any, weights: Any
) -> tuple[Any, Any]:
    rows = source.kernel.between(_take(source.points, some), source.points)
    return _keep(slab, total, rows, places, weights)


@partial(jax.jit, donate_argnums=0)
def _keep(slab: Any, total: Any, rows: Any, places: Any, weights: Any) -> tuple[Any, Any]:
    """Write the rows to these places of the slab, and add their weighted sum to the total."""

    def put(k: Any, slab: Any) -> Any:
        row = lax.dynamic_index_in_dim(rows, k, 0)
        return lax.dynamic_update_index_in_dim(slab, row, places[k], 0)

    slab = lax.fori_loop(0, rows.shape[0], put, slab)
    return slab, total + jnp.matmul(weights, rows, precision=lax.Precision.HIGHEST)


@jax.jit
def _add_rows(total: Any, block: Any, places: Any, coefficients: Any, count: Any) -> Any:
    """Return total + Σ_k coefficients[k] · block[places[k]] over the first `count` places."""

    def add(k: Any, total: Any) -> Any:
        for j in range(UNROLL):
            place = k * UNROLL + j
            row = lax.dynamic_index_in_dim(block, places[place], 0, keepdims=False)
            total = total + coefficients[place] * row
        return total

    return lax.fori_loop(0, (count + UNROLL - 1) // UNROLL, add, total)
