"""Many tiles: problems whose matrix is larger than one tile should be.

A host loop (design of all decomposition methods since Osuna, Freund and Girosi; 004, Algorithm 4.1
with large working sets):

    repeat
        choose a working set: all free variables, then the worst violators of both sides
        solve the problem on it, with its part of the matrix, to a fraction of the gap
        G ← G − Σ Δα_i K[i, :]      over the variables that moved
    until the gap passes `tol`, and still does so with a gradient computed from scratch

Rows of the kernel matrix are computed only for variables that moved, and kept (`rows.py`). The tile
is solved in the *change* of α, so its rounding errors are those of the change. α and G live on the
host in float64; the device works in the dtype asked for. In float32 the last word has a gradient
computed in float64: what it contradicts is solved again from there, which is iterative refinement.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jsvm.problems import QuadraticProgram, Tile
from jsvm.solvers.config import SMO
from jsvm.solvers.newton import block_step
from jsvm.solvers.rows import Rows
from jsvm.solvers.smo import relax
from jsvm.solvers.status import Status

FIRST_TILE, LARGEST_TILE = 256, 4096
LARGEST_NEWTON = 2048  # free variables for which all of them are solved for at once
FRACTION = 0.1  # of the gap, to which a tile is solved
PATIENCE = 5  # rounds without progress before the gradient is refreshed, or given up
MAX_REFRESHES = 20


@dataclass
class Vectors:
    """The program without its matrix, and the point, all in float64 on the host."""

    linear: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    groups: np.ndarray
    totals: np.ndarray
    alpha: np.ndarray
    gradient: np.ndarray

    @property
    def objective(self) -> float:
        """½αᵀQα − lᵀα."""
        return float(-0.5 * np.dot(self.alpha, self.linear + self.gradient))

    def members(self, group: int) -> Any:
        """Return an index of the variables of a group."""
        return slice(None) if len(self.totals) == 1 else self.groups == group

    def restore_sums(self) -> None:
        """Bring the sums of the groups to rounding level by moving the free variables."""
        free = (self.alpha > self.lower) & (self.alpha < self.upper)
        for group, total in enumerate(self.totals):
            inside = np.flatnonzero(free & (self.groups == group))
            if len(inside):
                missing = total - self.alpha[self.members(group)].sum()
                self.alpha[inside] += missing / len(inside)
        np.clip(self.alpha, self.lower, self.upper, out=self.alpha)


class View(NamedTuple):
    """What a look at the point tells."""

    gap: float
    free: np.ndarray  # indices
    distance: np.ndarray  # G − λ, with λ in the middle of what is asked of it
    can_up: np.ndarray
    can_down: np.ndarray


def look(v: Vectors) -> View:
    """Measure the violations."""
    can_up, can_down = v.alpha < v.upper, v.alpha > v.lower
    distance, gap = np.empty_like(v.gradient), -np.inf
    for group in range(len(v.totals)):
        inside = v.members(group)
        G = v.gradient[inside]
        highest = np.max(G, where=can_up[inside], initial=-np.inf)
        lowest = np.min(G, where=can_down[inside], initial=np.inf)
        gap = max(gap, highest - lowest)
        ends = [end for end in (highest, lowest) if np.isfinite(end)]
        distance[inside] = G - (sum(ends) / len(ends) if ends else 0.0)
    return View(gap, np.flatnonzero(can_up & can_down), distance, can_up, can_down)


def choose(view: View, size: int) -> np.ndarray:
    """Return at most `size` variables: the free ones, then the worst violators of both sides.

    Where the free ones would fill more than three quarters of the tile, those farthest from λ are
    taken.
    """
    free = view.free
    if len(free) > 3 * size // 4:
        free = free[_largest(np.abs(view.distance[free]), 3 * size // 4)]
    room = size - len(free)
    ups = np.flatnonzero(view.can_up & ~view.can_down & (view.distance > 0))
    downs = np.flatnonzero(view.can_down & ~view.can_up & (view.distance < 0))
    ups = ups[_largest(view.distance[ups], max(room // 2, room - len(downs)))]
    downs = downs[_largest(-view.distance[downs], room - len(ups))]
    return np.concatenate([free, ups, downs])


def _largest(values: np.ndarray, count: int) -> np.ndarray:
    """Return the places of the `count` largest values, in no order."""
    if len(values) <= count:
        return np.arange(len(values))
    return np.argpartition(values, len(values) - count)[len(values) - count :]


class Decomposition:
    """The state of the host loop; :meth:`round` is one turn of it.

    Parameters
    ----------
    vectors : Vectors
        The program and a feasible start; its gradient is computed here.
    rows : Rows
        The kernel part of Q, for one variable per example.
    ridge : array of shape (number of examples,) or None
        The rest of Q.
    exact_sum : function or None
        Like ``rows.sum``, in higher precision; None where the rows have it already.
    solver : SMO
    """

    def __init__(
        self,
        vectors: Vectors,
        rows: Rows,
        ridge: np.ndarray | None,
        exact_sum: Callable[[np.ndarray, np.ndarray], np.ndarray] | None,
        solver: SMO,
    ) -> None:
        self.vectors, self.rows, self.ridge, self.solver = vectors, rows, ridge, solver
        self.exact_sum = rows.sum if exact_sum is None else exact_sum
        self.status = Status.RUNNING
        self.steps = self.newton_steps = 0
        self._polished = False
        self._refreshes = self._idle = 0
        self._best = np.inf, np.inf, vectors.alpha.copy()  # objective, gap, point
        self.refresh()

    def refresh(self) -> None:
        """Compute the gradient from scratch."""
        v = self.vectors
        v.restore_sums()
        used = np.flatnonzero(v.alpha)
        v.gradient = v.linear.copy()
        self._subtract(used, v.alpha[used], self.exact_sum)
        self.gap = look(v).gap
        if v.objective < self._best[0]:
            self._best = v.objective, self.gap, v.alpha.copy()

    def round(self) -> None:
        """Solve one tile, or pass judgement."""
        view = look(self.vectors)
        before = self.vectors.objective
        if view.gap <= self.solver.tol:
            self._finish(view)
        elif self.steps >= self.solver.step_budget:
            self.status = Status.MAX_STEPS
        else:
            self._polished = False
            self._solve_tile(view)
        self.gap = look(self.vectors).gap
        after = self.vectors.objective
        progress = after < before - 4 * np.finfo(float).eps * abs(before)
        self._idle = 0 if progress else self._idle + 1
        if self.status == Status.RUNNING and self._idle > PATIENCE:
            self._judge_stall()

    def _solve_tile(self, view: View) -> None:
        v = self.vectors
        size = tile_size(len(view.free))
        some = choose(view, min(size, len(v.alpha)))
        wanted = max(FRACTION * view.gap, 0.5 * self.solver.tol)
        limit = min(self.solver.step_budget - self.steps, 50 * size)
        recipe = self.solver.recipe(min(size // 2, 512), elastic=False)._replace(polish=False)
        recipe = recipe._replace(largest=recipe.slots)
        tile = self._tile(some, view, size)
        progress = relax(tile, wanted, np.int32(limit), recipe)
        self._move(some, np.asarray(progress.state.alpha), tile)
        self.steps += int(progress.steps)
        self.newton_steps += int(progress.newton_steps)
        if int(progress.status) == Status.UNBOUNDED:
            self.status = Status.UNBOUNDED

    def _finish(self, view: View) -> None:
        """The gap passes: a Newton step on all free variables, then the last word."""
        free = len(view.free)
        if self.solver.block and not self._polished and 2 <= free <= LARGEST_NEWTON:
            self._polished = True
            size = tile_size(free // 2)
            tile = self._tile(view.free, view, size)
            change, rounds = _newton(tile, size)
            self._move(view.free, np.asarray(change), tile)
            self.newton_steps += int(rounds)
            return
        self.refresh()
        self._refreshes += 1
        if self.gap <= self.solver.tol:
            self.status = Status.CONVERGED
        elif self._refreshes > MAX_REFRESHES:
            self.status = Status.STALLED

    def _judge_stall(self) -> None:
        """Nothing moves: refresh the gradient; if that was done before, it is the end."""
        gap = self._best[1]
        self.refresh()
        self._refreshes += 1
        self._idle = 0
        if self.gap <= self.solver.tol:
            self.status = Status.CONVERGED
        elif self.gap >= 0.5 * gap or self._refreshes > MAX_REFRESHES:
            self.status = Status.STALLED

    def _tile(self, some: np.ndarray, view: View, size: int) -> QuadraticProgram:
        """Return the program of the change of these variables, padded to `size`."""
        v, dtype = self.vectors, self.rows.dtype
        examples = np.zeros(size, np.int32)
        examples[: len(some)] = some % self.rows.size
        matrix = self.rows.square(examples)
        ridge = np.zeros(size, dtype)
        if self.ridge is not None:
            ridge = self.ridge[examples].astype(dtype)

        def pick(values: np.ndarray, kind: Any = dtype) -> np.ndarray:
            picked = np.zeros(size, kind)
            picked[: len(some)] = values[some]
            return picked

        return _tile_program(
            matrix,
            examples,
            ridge,
            pick(view.distance),
            pick(v.lower - v.alpha),
            pick(v.upper - v.alpha),
            pick(v.groups, np.int32),
            np.zeros(len(v.totals), dtype),
        )

    def _move(self, some: np.ndarray, change: np.ndarray, tile: QuadraticProgram) -> None:
        """Add the change to α and its effect to G."""
        v = self.vectors
        change = change[: len(some)].astype(float)
        old = v.alpha[some]
        new = np.clip(old + change, v.lower[some], v.upper[some])
        new = np.where(change >= np.asarray(tile.upper)[: len(some)], v.upper[some], new)
        new = np.where(change <= np.asarray(tile.lower)[: len(some)], v.lower[some], new)
        new = np.where(change == 0, old, new)
        v.alpha[some] = new
        moved = new != old
        self._subtract(some[moved], (new - old)[moved], self.rows.sum)

    def _subtract(self, some: np.ndarray, change: np.ndarray, sum_of_rows: Callable) -> None:
        """G ← G − Q change."""
        v, n = self.vectors, self.rows.size
        if len(some) == 0:
            return
        examples = some % n
        product = np.asarray(sum_of_rows(examples, change), float)
        if self.ridge is not None:
            product = product + self.ridge * np.bincount(examples, change, n)
        v.gradient -= np.tile(product, len(v.alpha) // n)


def tile_size(free: int) -> int:
    """Return the size of a tile for so many free variables: a power of two, half of it for them."""
    size = FIRST_TILE
    while size < 2 * free and size < LARGEST_TILE:
        size *= 2
    return size


@jax.jit
def _tile_program(
    matrix: Any,
    examples: Any,
    ridge: Any,
    linear: Any,
    lower: Any,
    upper: Any,
    groups: Any,
    totals: Any,
) -> QuadraticProgram:
    same = examples[:, None] == examples[None, :]
    matrix = matrix + jnp.where(same, ridge[:, None], 0.0)
    return QuadraticProgram(Tile.whole(matrix), linear, lower, upper, groups, totals)


@partial(jax.jit, static_argnames="slots")
def _newton(tile: QuadraticProgram, slots: int) -> tuple[Any, Any]:
    change, _, rounds = block_step(tile, jnp.zeros_like(tile.linear), tile.linear, slots)
    return change, rounds
