"""Kernel rows on the device: computed in blocks, once, and kept within a budget of bytes.

A large block of rows is kept as it is, small ones fill a slab in place, one after the other. When
the budget is full, what was not used for the longest time makes room; where it cannot hold all,
rows that will hardly be asked for again are not kept at all. Sums of rows, Σ c_k K[k, :], are what
the solver asks for; they are taken row by row from the slabs, so that they cost one read of each
row.
"""

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
from jsvm.kernels.distances import DistanceKernel, Points
from jsvm.kernels.whole_numbers import prepared
from jsvm.numerics.indexing import UNROLL, add_rows
from jsvm.numerics.memory import SPARE

BLOCKS = (256, 128, 64, 32, 16)  # rows computed at once
BLOCK_BYTES = 2**23  # the largest block: more would not come from memory in use before
LARGE_BLOCK_BYTES = 2**25  # where blocks make room for others: small ones leave holes in memory
FEWEST_SLABS = 4
EXPENSIVE = 400  # features, for which to compute an entry again is too much
ROOMY = 0.5  # of the cache, up to which expensive rows are kept whatever they are for
SLAB, SLAB_BYTES = 512, 2**25  # the largest slab that is filled block after block
FULL = 0.6  # of a block, from which on the rest of it is not worth another program


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


def source_of(kernel: Kernel, X: Any, dtype: Any = None) -> KernelSource | HostSource:
    """Return the source of the matrix of a kernel, in `dtype`, which by default is that of X.

    Points in float32 for a source in float64 are whole numbers, see
    :mod:`jsvm.kernels.whole_numbers`.
    """
    features = X.shape[1]
    if kernel.runs_on_host():
        return HostSource(kernel, jnp.asarray(X, dtype), features)
    points = None
    if dtype is not None and X.dtype != dtype:
        points = prepared(SPARE.take(X.shape, X.dtype), X)
        X = jnp.asarray(X, dtype) if points is None else X
    if points is None and isinstance(kernel, DistanceKernel):
        points = _prepare_moved(SPARE.take(X.shape, X.dtype), kernel, X)
    return KernelSource(kernel, _prepare(kernel, X) if points is None else points, features)


def forget(source: Source) -> None:
    """Leave the memory of a source's points to others: nobody will ask it for rows any more."""
    if isinstance(source, KernelSource) and isinstance(source.points, Points):
        for coordinates in jax.tree.leaves(source.points.coordinates):
            SPARE.give(coordinates)


@dataclass
class Slab:
    """Some rows in memory: an array, how many of its places are used, and when they last were."""

    height: int
    rows: Any = None
    used: int = 0
    last_use: int = 0


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
        self._row_bytes, self._budget = size * dtype.itemsize, budget
        self._slabs: dict[int, Slab] = {}
        self._others: dict[Any, int] = {}
        self.share(None, 0)
        self._highest = min(SLAB, int(SLAB_BYTES / self._row_bytes))
        self._passing_block = self._rows_of(BLOCK_BYTES)
        self._block = self._rows_of(BLOCK_BYTES if self._affordable > size else LARGE_BLOCK_BYTES)
        self._open = -1  # the slab with room for more
        self._home = np.full(size, -1)  # the slab of an example
        self._place = np.zeros(size, np.int32)  # and its place there
        self._clock = self._count = 0

    def _rows_of(self, count: int) -> int:
        """Return the number of rows in a block of so many bytes."""
        return next((b for b in BLOCKS if b * self._row_bytes <= count), BLOCKS[-1])

    def share(self, other: Any, count: int) -> None:
        """Leave so many bytes of the budget to another, in place of what was left to it."""
        self._others[other] = count
        rest = self._budget - sum(self._others.values())
        affordable = max(int(rest / self._row_bytes), BLOCKS[-1])  # rows
        # All of them fit, whatever places of the last slabs stay empty.
        all_of_them = self.size + BLOCKS[0] + SLAB
        self._affordable = all_of_them if affordable >= self.size else affordable
        self._make_room(0)

    def part(self, some: np.ndarray, others: np.ndarray) -> jax.Array:
        """Return the part K[some, others] of the matrix."""
        if isinstance(self.source, HostSource):
            return self.source.kernel(self.source.X[some], self.source.X[others])
        return part(self.source, some, others)

    def sum(
        self, some: np.ndarray, coefficients: np.ndarray, passing: np.ndarray | None = None
    ) -> np.ndarray:
        """Return Σ_k coefficients[k] · K[some[k], :]; an index may occur more than once.

        `passing` tells of which of them the rows will hardly be asked for again.
        """
        self._clock += 1
        self._forget_what_is_lost()
        weights = np.bincount(some, coefficients, self.size)
        kept = np.ones(self.size, bool)
        if passing is not None and self._is_picky(len(some)):
            kept = np.bincount(some, ~passing, self.size) > 0
        some = np.unique(some)
        weights = weights[some].astype(self.dtype)
        total = np.zeros(self.size, self.dtype)
        if isinstance(self.source, MatrixSource):
            return np.asarray(_add_rows(total, self.source.matrix, *_padded(some, weights)))
        known = self._home[some] >= 0
        total = self._add_known(total, some[known], weights[known])
        for wanted, add in ((kept, self._add_missing), (~kept, self._add_passing)):
            here = ~known & wanted[some]
            missing, shares = some[here], weights[here]
            while len(missing):
                total, count = add(total, missing, shares)
                missing, shares = missing[count:], shares[count:]
        return np.asarray(total)

    def _forget_what_is_lost(self) -> None:
        """Drop slabs that an interruption found on their way into a program."""
        for home, slab in list(self._slabs.items()):
            if slab.rows is not None and slab.rows.is_deleted():
                self._home[self._home == home] = -1
                del self._slabs[home]

    def _is_picky(self, more: int) -> bool:
        """Tell whether so many rows more are kept only if they will be asked for again.

        To get memory for an entry costs as much time as to compute it from some hundred features.
        """
        used = sum(slab.height for slab in self._slabs.values())
        roomy = self.source.features > EXPENSIVE and used + more <= ROOMY * self._affordable
        return self._affordable < self.size and not roomy

    def _add_known(self, total: Any, some: np.ndarray, weights: np.ndarray) -> Any:
        """Add rows that are there, slab after slab."""
        homes = self._home[some]
        for home in np.unique(homes):
            here, slab = homes == home, self._slabs[home]
            slab.last_use = self._clock
            padded = _padded(self._place[some[here]], weights[here], slab.height)
            total = _add_rows(total, slab.rows, *padded)
        return total

    def _add_missing(self, total: Any, some: np.ndarray, weights: np.ndarray) -> tuple[Any, int]:
        """Compute, keep and add the first of these rows, at most a block; return how many."""
        count = min(len(some), self._block, self._affordable)
        home = self._new_slab(count) if count == self._block else self._slab_with_room()
        slab = self._slabs[home]
        begin, room = slab.used, slab.height - slab.used
        if count < self._block:
            count = block_of(min(count, room, next((b for b in BLOCKS if b <= room), room)))
        some, weights = some[:count], weights[:count]
        # The padding computes the first row again, adds nothing, and is overwritten later.
        examples = filled(some) if count < self._block else some
        weights = np.concatenate([weights, np.zeros(len(examples) - count, self.dtype)])
        if isinstance(self.source, HostSource):
            rows = jnp.asarray(self.source.kernel(self.source.X[examples], self.source.X))
            if slab.rows is None:
                slab.rows, total = rows, _plus(total, rows, weights)
            else:
                slab.rows, total = _keep(slab.rows, total, rows, np.int32(begin), weights)
        elif slab.rows is None:
            memory = SPARE.take((len(examples), self.size), self.dtype)
            slab.rows, total = _compute(memory, total, self.source, examples, weights)
        else:
            slab.rows, total = _compute_and_keep(
                slab.rows, total, self.source, examples, np.int32(begin), weights
            )
        self._home[some], self._place[some] = home, np.arange(begin, begin + count)
        slab.used, slab.last_use = begin + count, self._clock
        self.computed += count
        return total, count

    def _add_passing(self, total: Any, some: np.ndarray, weights: np.ndarray) -> tuple[Any, int]:
        """Compute and add the first of these rows, at most a block; return how many."""
        count = block_of(min(len(some), self._passing_block))
        some, weights = some[:count], weights[:count]
        examples = filled(some)
        weights = np.concatenate([weights, np.zeros(len(examples) - count, self.dtype)])
        if isinstance(self.source, HostSource):
            rows = jnp.asarray(self.source.kernel(self.source.X[examples], self.source.X))
            total = _plus(total, rows, weights)
        else:
            memory = SPARE.take((len(examples), self.size), self.dtype)
            rows, total = _compute(memory, total, self.source, examples, weights)
            SPARE.give(rows)
        self.computed += count
        return total, count

    def release(self) -> None:
        """Leave the memory of all rows to others: nobody will ask for these any more."""
        for slab in self._slabs.values():
            if slab.rows is not None:
                SPARE.give(slab.rows)
        self._slabs.clear()
        self._home[:] = -1

    def _slab_with_room(self) -> int:
        """Return the slab that is filled block after block; a new one if it is full."""
        if self._open in self._slabs:
            slab = self._slabs[self._open]
            if slab.used < slab.height:
                return self._open
        height = max(BLOCKS[-1], min(self._highest, self._affordable // FEWEST_SLABS))
        self._open = self._new_slab(height)
        # The padding of the last block goes beyond the last place.
        rows = SPARE.take((height + BLOCKS[-1], self.size), self.dtype)
        self._slabs[self._open].rows = rows
        return self._open

    def _new_slab(self, height: int) -> int:
        """Return a new slab, without rows as yet."""
        self._make_room(height)
        self._count += 1
        self._slabs[self._count] = Slab(height, last_use=self._clock)
        return self._count

    def _make_room(self, height: int) -> None:
        """Make room for rows, at the cost of those that were not used for the longest time."""
        while self._slabs and height > self._affordable - sum(
            slab.height for slab in self._slabs.values()
        ):
            oldest = min(self._slabs, key=lambda home: self._slabs[home].last_use)
            self._home[self._home == oldest] = -1
            rows = self._slabs.pop(oldest).rows
            if rows is not None:
                SPARE.give(rows)


def block_of(count: int) -> int:
    """Return how many of so many rows to compute at once: a block, whole or nearly so."""
    above = next((b for b in reversed(BLOCKS) if b >= count), None)
    if above is not None and count > FULL * above:
        return count
    return next((b for b in BLOCKS if b <= count), count)


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


@partial(jax.jit, donate_argnums=0, keep_unused=True)
def _prepare_moved(memory: Any, kernel: DistanceKernel, X: Any) -> Points:
    """Prepare points that are moved to a centre, in the memory given."""
    return kernel.prepare(X)


@jax.jit
def part(source: KernelSource | MatrixSource, some: Any, others: Any) -> Any:
    """Return the part K[some, others] of the matrix."""
    if isinstance(source, MatrixSource):
        return source.matrix[some[:, None], others[None, :]]
    return source.kernel.between(_take(source.points, some), _take(source.points, others))


def _take(points: Any, some: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf[some], points)


@partial(jax.jit, donate_argnums=0, keep_unused=True)
def _compute(
    memory: Any, total: Any, source: KernelSource, some: Any, weights: Any
) -> tuple[Any, Any]:
    """Compute rows, in the memory given, and add their weighted sum to the total."""
    rows = source.kernel.between(_take(source.points, some), source.points)
    return rows, _plus(total, rows, weights)


@partial(jax.jit, donate_argnums=0)
def _compute_and_keep(
    slab: Any, total: Any, source: KernelSource, some: Any, begin: Any, weights: Any
) -> tuple[Any, Any]:
    rows = source.kernel.between(_take(source.points, some), source.points)
    return _keep(slab, total, rows, begin, weights)


@partial(jax.jit, donate_argnums=0)
def _keep(slab: Any, total: Any, rows: Any, begin: Any, weights: Any) -> tuple[Any, Any]:
    """Write the rows to the slab, and add their weighted sum to the total."""
    return lax.dynamic_update_slice(slab, rows, (begin, jnp.int32(0))), _plus(total, rows, weights)


@jax.jit
def _plus(total: Any, rows: Any, weights: Any) -> Any:
    return total + jnp.matmul(weights, rows, precision=lax.Precision.HIGHEST)


_add_rows = jax.jit(add_rows)
