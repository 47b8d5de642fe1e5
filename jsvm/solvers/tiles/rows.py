"""Kernel rows on the device: computed in blocks, once, and kept within a budget of bytes.

A large block of rows becomes a slab of its own, small ones fill a slab one after the other. When
the budget is full, the slab that was not used for the longest time makes room. If it does not hold
all rows, those that will hardly be asked for again are not kept. The solver asks for sums of rows,
Σ c_k K[k, :], at the cost of one read of each row.
"""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from jsvm._typing import Array
from jsvm.numerics.arrays import product, repeat_first
from jsvm.numerics.indexing import UNROLL, add_rows
from jsvm.numerics.memory import borrow, give_back
from jsvm.precision import DOUBLE, scope
from jsvm.programs import program
from jsvm.solvers.canonical import Layout
from jsvm.solvers.tiles.sources import Source, source_of
from jsvm.solvers.tuning import DEFAULT, Tuning


@dataclass
class Slab:
    """An array with room for `height` rows, how many are used, and when they last were."""

    height: int
    rows: Any = None
    used: int = 0
    last_use: int = 0


class Rows:
    """The rows of one square matrix; `budget` is in bytes of rows that are kept."""

    def __init__(
        self, source: Source, size: int, dtype: np.dtype, budget: float, tuning: Tuning = DEFAULT
    ) -> None:
        self.source, self.size, self.dtype, self.tuning = source, size, dtype, tuning
        self.computed = 0
        self._row_bytes, self._budget = size * dtype.itemsize, budget
        self._slabs: dict[int, Slab] = {}
        self._reserved: dict[Any, int] = {}
        self.reserve(None, 0)
        self._highest = min(tuning.slab_rows, int(tuning.slab_bytes / self._row_bytes))
        self._passing_block = self._rows_of(tuning.block_bytes)
        roomy = self._affordable > size
        self._block = self._rows_of(tuning.block_bytes if roomy else tuning.large_block_bytes)
        self._open = -1  # the slab with room for more
        self._home = np.full(size, -1)  # the slab of an example
        self._place = np.zeros(size, np.int32)  # and its place there
        self._clock = self._count = 0

    def _rows_of(self, count: int) -> int:
        """Return the number of rows in a block of so many bytes."""
        blocks = self.tuning.row_blocks
        return next((b for b in blocks if b * self._row_bytes <= count), blocks[-1])

    def block_of(self, count: int) -> int:
        """Return how many of `count` rows to compute at once: as many as nearly fill a block."""
        above = next((b for b in reversed(self.tuning.row_blocks) if b >= count), None)
        if above is not None and count > self.tuning.full_share * above:
            return count
        return self._largest_block(count)

    def padded_to_block(self, indices: np.ndarray) -> np.ndarray:
        """Return the indices with copies of the first one up to the size of a block."""
        sizes = reversed(self.tuning.row_blocks)
        return repeat_first(indices, next(b for b in sizes if len(indices) <= b))

    def _largest_block(self, count: int) -> int:
        return next((b for b in self.tuning.row_blocks if b <= count), count)

    def reserve(self, owner: Any, count: int) -> None:
        """Reserve bytes of the budget for `owner`; replaces its earlier reservation."""
        self._reserved[owner] = count
        blocks = self.tuning.row_blocks
        rest = self._budget - sum(self._reserved.values())
        affordable = max(int(rest / self._row_bytes), blocks[-1])  # rows
        # Some places of the last slabs stay empty.
        all_of_them = self.size + blocks[0] + self.tuning.slab_rows
        self._affordable = all_of_them if affordable >= self.size else affordable
        self._make_room(0)

    def part(self, some: np.ndarray, others: np.ndarray) -> Array:
        """Return the part K[some, others] of the matrix."""
        return self.source.part(some, others)

    def sum(
        self, some: np.ndarray, coefficients: np.ndarray, passing: np.ndarray | None = None
    ) -> np.ndarray:
        """Return Σ_k coefficients[k] · K[some[k], :]; rows marked `passing` need not be kept."""
        self._clock += 1
        self._drop_deleted()
        weights = np.bincount(some, coefficients, self.size)
        kept = np.ones(self.size, bool)
        if passing is not None and self._is_tight(len(some)):
            kept = np.bincount(some, ~passing, self.size) > 0
        some = np.unique(some)
        weights = weights[some].astype(self.dtype)
        total = np.zeros(self.size, self.dtype)
        if self.source.matrix is not None:
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

    def _drop_deleted(self) -> None:
        """Drop deleted slabs: Ctrl-C after their donation."""
        for home, slab in list(self._slabs.items()):
            if slab.rows is not None and slab.rows.is_deleted():
                self._home[self._home == home] = -1
                del self._slabs[home]

    def _is_tight(self, more: int) -> bool:
        """Tell whether passing rows should not be kept; `more` is the number of all new ones."""
        # New memory for an entry costs as much time as computing it from some hundred features.
        expensive = self.source.features > self.tuning.expensive_features
        roomy = expensive and self._used() + more <= self.tuning.roomy_share * self._affordable
        return self._affordable < self.size and not roomy

    def _add_known(self, total: Any, some: np.ndarray, weights: np.ndarray) -> Any:
        """Add rows that are kept, slab after slab."""
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
            count = self.block_of(min(count, room, self._largest_block(room)))
        some = some[:count]
        if slab.rows is None:
            slab.rows, total = self._new_rows(total, some, weights[:count])
        else:  # the padding of this block is overwritten by the next one
            examples, weights = self._padded_block(some, weights[:count])
            slab.rows, total = self.source.apply(
                _written, slab.rows, examples, None, total, weights, np.int32(begin)
            )
        # In this order: wherever an interruption comes, every row with a home is in its place.
        slab.used, slab.last_use = begin + count, self._clock
        self._place[some] = np.arange(begin, begin + count)
        self._home[some] = home
        self.computed += count
        return total, count

    def _add_passing(self, total: Any, some: np.ndarray, weights: np.ndarray) -> tuple[Any, int]:
        """Compute and add the first of these rows, at most a block; return how many."""
        count = self.block_of(min(len(some), self._passing_block))
        rows, total = self._new_rows(total, some[:count], weights[:count])
        give_back(rows)
        self.computed += count
        return total, count

    def _new_rows(self, total: Any, some: np.ndarray, weights: np.ndarray) -> tuple[Any, Any]:
        """Return these rows, padded to a block, and the total with their weighted sum added."""
        examples, weights = self._padded_block(some, weights)
        memory = borrow((len(examples), self.size), self.dtype)
        return self.source.apply(_written, memory, examples, None, total, weights, None)

    def _padded_block(self, some: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return both padded to a block; the padding has no weight."""
        examples = self.padded_to_block(some)
        return examples, np.pad(weights, (0, len(examples) - len(some)))

    def release(self) -> None:
        """Return the memory of all rows to the pool; do not use them afterwards."""
        for slab in self._slabs.values():
            if slab.rows is not None:
                give_back(slab.rows)
        self._slabs.clear()
        self._home[:] = -1

    def _slab_with_room(self) -> int:
        """Return the slab that is filled block after block; a new one if the last is full."""
        if self._open in self._slabs:
            slab = self._slabs[self._open]
            if slab.used < slab.height and slab.rows is not None:
                return self._open
        least = self.tuning.row_blocks[-1]
        height = max(least, min(self._highest, self._affordable // self.tuning.fewest_slabs))
        self._open = self._new_slab(height)
        # The padding of the last block goes beyond the last place.
        rows = borrow((height + least, self.size), self.dtype)
        self._slabs[self._open].rows = rows
        return self._open

    def _new_slab(self, height: int) -> int:
        """Return a new slab, still without an array."""
        self._make_room(height)
        self._count += 1
        self._slabs[self._count] = Slab(height, last_use=self._clock)
        return self._count

    def _used(self) -> int:
        return sum(slab.height for slab in self._slabs.values())

    def _make_room(self, height: int) -> None:
        """Make room for rows: drop the slabs that were not used for the longest time."""
        while self._slabs and self._used() + height > self._affordable:
            oldest = min(self._slabs, key=lambda home: self._slabs[home].last_use)
            self._home[self._home == oldest] = -1
            rows = self._slabs.pop(oldest).rows
            if rows is not None:
                give_back(rows)


class ExactSum:
    """Computes the rows anew from the user's data; they are not kept, as they would fill memory."""

    def __init__(self, hessian: Any, layout: Layout, tuning: Tuning) -> None:
        self._hessian, self._layout, self._tuning = hessian, layout, tuning
        self._source: Source | None = None

    def sum(self, some: np.ndarray, coefficients: np.ndarray, passing: np.ndarray) -> np.ndarray:
        """Return Σ_k coefficients[k] · K[some[k], :]."""
        with scope(DOUBLE):
            if self._source is None:
                self._source = source_of(self._hessian, self._layout, DOUBLE)
            budget = self._tuning.exact_bytes
            rows = Rows(self._source, self._layout.examples, DOUBLE, budget, self._tuning)
            total = rows.sum(some, coefficients, passing)
            rows.release()
            return total


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


def _written(slab: Any, rows: Any, total: Any, weights: Any, begin: Any) -> tuple[Any, Any]:
    """Return the slab with the rows from `begin` on, and the total with their weighted sum added.

    If `begin` is None the slab is nothing but memory for the rows.
    """
    written = rows if begin is None else lax.dynamic_update_slice(slab, rows, (begin, jnp.int32(0)))
    return written, total + product(weights, rows)


_add_rows = program(add_rows)
