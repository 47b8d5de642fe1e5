"""The working variables on the device: the values of their row objects, and Q between them.

Variables come and go, and only what is new is computed: a variable keeps its slot, one that leaves
makes its slot free. Sizes are few, so that few programs are compiled.
"""

from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jsvm.numerics.arrays import bucket, product, repeat_first
from jsvm.numerics.indexing import put_cross, put_rows
from jsvm.numerics.memory import aligned_empty, borrow, give_back
from jsvm.problems.matrix_data import DenseMatrix, MatrixData
from jsvm.programs import program
from jsvm.solvers.potential.prepared_psvm import combine, output_of
from jsvm.solvers.potential.psvm_tuning import PotentialTuning
from jsvm.solvers.potential.semismooth import TileProblem, minimise


class WholeMatrixTile:
    """All variables of a small problem, in their order; only Q is kept."""

    holds_all = True

    def __init__(self, matrix: MatrixData, dtype: np.dtype, tuning: PotentialTuning) -> None:
        self.matrix, self.dtype, self.tuning = matrix, dtype, tuning
        self.fetched = matrix.shape[1]

    @cached_property
    def Q(self) -> jax.Array:
        """Q of all variables, with zeros up to the size of a tile."""
        rows, count = self.matrix.all_objects(), self.matrix.shape[1]
        more = self.tuning.tile_size(count) - count
        return jnp.pad(jnp.asarray(combine(rows, rows.T), self.dtype), (0, more))

    def hold(self, wanted: np.ndarray) -> np.ndarray:
        """Return the slots of these variables."""
        return wanted

    def output_after(
        self, output: np.ndarray, alpha: np.ndarray, slots: np.ndarray, change: np.ndarray
    ) -> np.ndarray:
        """Return Kα."""
        return output_of(self.matrix, alpha, self.tuning)

    def release(self) -> None:
        """Do nothing: there are no buffers of the pool."""


class RowObjectTile:
    """Slots for variables of a large problem."""

    holds_all = False

    def __init__(self, matrix: MatrixData, dtype: np.dtype, tuning: PotentialTuning) -> None:
        self.matrix, self.dtype, self.tuning = matrix, dtype, tuning
        self.slots = np.full(0, -1)  # the variable in every slot
        self.values: Any = jnp.zeros((0, bucket(matrix.shape[0])), dtype)
        self.Q: Any = jnp.zeros((0, 0), dtype)
        self.fetched = 0
        self._staging: np.ndarray | None = None  # values on their way to the device

    def hold(self, wanted: np.ndarray) -> np.ndarray:
        """Make room for these variables; return their slots."""
        self.slots[~np.isin(self.slots, wanted)] = -1
        size = self.tuning.tile_size(len(wanted))
        if size > len(self.slots):
            self._grow(size)
        elif size < len(self.slots):
            self._shrink(size)
        new = np.setdiff1d(wanted, self.slots)
        free = np.flatnonzero(self.slots < 0)[: len(new)]
        most = self.tuning.fetch_sizes[-1]
        for begin in range(0, len(new), most):
            self._fetch(new[begin : begin + most], free[begin : begin + most])
        place = np.full(self.matrix.shape[1], -1)
        used = np.flatnonzero(self.slots >= 0)
        place[self.slots[used]] = used
        return place[wanted]

    def output_after(
        self, output: np.ndarray, alpha: np.ndarray, slots: np.ndarray, change: np.ndarray
    ) -> np.ndarray:
        """Return Kα after a change of α in some slots; computed afresh if the tile is float32."""
        if self.dtype != np.float64:
            return output_of(self.matrix, alpha, self.tuning)
        full = np.zeros(len(self.slots))
        full[slots] = change
        return output + np.asarray(combine(full, self.values))[: self.matrix.shape[0]]

    def release(self) -> None:
        """Return the buffers to the pool; do not use afterwards."""
        for array in (self.values, self.Q):
            give_back(array)
        self.slots = self.slots[:0]
        self.values, self.Q = self.values[:0], self.Q[:0, :0]

    def _grow(self, size: int) -> None:
        more = size - len(self.slots)
        self.slots = np.concatenate([self.slots, np.full(more, -1)])
        shapes = (size, self.values.shape[1]), (size, size)
        memory = tuple(borrow(shape, self.dtype) for shape in shapes)
        before = self.values, self.Q
        self.values, self.Q = _grown(memory, before)
        for array in before:
            give_back(array)

    def _shrink(self, size: int) -> None:
        kept = np.argsort(self.slots < 0, kind="stable")[:size]  # those in use first
        self.slots = self.slots[kept]
        self.values, self.Q = _keep(self.values, self.Q, kept)

    def _fetch(self, new: np.ndarray, free: np.ndarray) -> None:
        batch = next(size for size in self.tuning.fetch_sizes if len(new) <= size)
        values = self._values_of(repeat_first(new, batch))
        places = repeat_first(free, batch).astype(np.int32)
        self.values, self.Q = _insert(self.values, self.Q, values, places)
        self.slots[free] = new
        self.fetched += len(new)

    def _values_of(self, indices: np.ndarray) -> Any:
        """Return the values of some objects, with zeros up to the length of those in the tile."""
        length, full = self.matrix.shape[0], self.values.shape[1]
        rows = self.matrix.rows if isinstance(self.matrix, DenseMatrix) else None
        if not isinstance(rows, np.ndarray):
            values = jnp.asarray(self.matrix.objects(indices), self.dtype)
            return jnp.pad(values, ((0, 0), (0, full - length)))
        if self._staging is None:
            self._staging = aligned_empty((self.tuning.fetch_sizes[-1], full), self.dtype)
            self._staging[:, length:] = 0.0
        self.Q.block_until_ready()  # XLA has read the last ones from the same memory
        for place, index in enumerate(indices):
            self._staging[place, :length] = rows[index]
        return self._staging[: len(indices)]


PsvmTile = RowObjectTile | WholeMatrixTile


def tile_of(matrix: MatrixData, dtype: np.dtype, tuning: PotentialTuning) -> PsvmTile:
    """Return an empty tile of the kind that fits the number of variables."""
    kind = WholeMatrixTile if matrix.shape[1] <= tuning.whole_problem else RowObjectTile
    return kind(matrix, dtype, tuning)


def improve(
    Q: jax.Array,
    slots: np.ndarray,
    problem: TileProblem,
    width: float,
    tol: float,
    budget: int,
    tuning: PotentialTuning,
) -> tuple[np.ndarray, int, float]:
    """Minimise over some slots; return their values, the Newton steps, and the next width."""

    def spread(values: Any) -> np.ndarray:
        full = np.zeros(Q.shape[0], Q.dtype)
        full[slots] = values
        return full

    alpha, _, lower, upper, epsilon = problem
    full = TileProblem(*map(spread, problem[:4]), epsilon=epsilon)
    change, at_zero, at_lower, at_upper, steps, width = jax.device_get(
        _improve(Q, full, width, tol, np.int32(budget), tuning)
    )
    new = alpha + change[slots]
    for where, bound in ((at_zero, 0.0), (at_lower, lower), (at_upper, upper)):
        new = np.where(where[slots], bound, new)
    return np.clip(new, lower, upper), int(steps), float(width)


@program(donate_argnums=0, keep_unused=True)
def _grown(memory: tuple[Any, Any], tile: tuple[Any, Any]) -> tuple[Any, Any]:
    """Return values and Q with zeros in the slots that are new, in the memory given."""
    more = memory[0].shape[0] - tile[0].shape[0]
    return jnp.pad(tile[0], ((0, more), (0, 0))), jnp.pad(tile[1], (0, more))


@program(donate_argnums=(0, 1))
def _insert(values: Any, Q: Any, new: Any, places: Any) -> tuple[Any, Any]:
    values = put_rows(values, new, places)
    return values, put_cross(Q, product(new, values.T), places)


@program
def _keep(values: Any, Q: Any, kept: Any) -> tuple[Any, Any]:
    return values[kept], Q[kept][:, kept]


@program(static_argnames="tuning")
def _improve(
    Q: Any, problem: TileProblem, width: Any, tol: Any, budget: Any, tuning: PotentialTuning
) -> tuple[Any, ...]:
    """Return the change of α, where it leads to zero or a bound exactly, Newton steps and width."""
    epsilon, width, tol = (jnp.asarray(v, Q.dtype) for v in (problem.epsilon, width, tol))
    problem = problem._replace(epsilon=epsilon)
    found = minimise(Q, problem, width, tol, budget, tuning)
    ends = (0.0, problem.lower, problem.upper)
    exactly = (found.best == bound - problem.origin for bound in ends)
    return found.best, *exactly, found.newton_steps, found.width
