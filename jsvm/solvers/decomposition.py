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
from jax.tree_util import register_dataclass

from jsvm._typing import Leaf
from jsvm.problems import QuadraticProgram, Tile
from jsvm.solvers.config import SMO, Recipe
from jsvm.solvers.inverse import LARGEST_EXPLICIT
from jsvm.solvers.newton import block_step
from jsvm.solvers.prepare import Layout, check_finite
from jsvm.solvers.rows import Rows
from jsvm.solvers.smo import relax
from jsvm.solvers.square import Square
from jsvm.solvers.status import Status

FIRST_TILE, LARGEST_TILE = 256, 4096
LARGEST_NEWTON = 2048  # free variables for which all of them are solved for at once
LARGEST_WELCOME = 1024  # violators in a tile, unless there are more free variables
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
    layout : Layout
        Where the variables are.
    """

    def __init__(
        self,
        vectors: Vectors,
        rows: Rows,
        ridge: np.ndarray | None,
        exact_sum: Callable[[np.ndarray, np.ndarray], np.ndarray] | None,
        solver: SMO,
        layout: Layout,
    ) -> None:
        self.vectors, self.rows, self.ridge, self.solver = vectors, rows, ridge, solver
        self.layout = layout
        self.exact_sum = rows.sum if exact_sum is None else exact_sum
        self.square = Square(rows)
        self.status = Status.RUNNING
        self.steps = self.newton_steps = 0
        self._polished = False
        self._crowd, self._welcome = 2 * len(vectors.alpha) + 1, FIRST_TILE
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
        self._fresh = True
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

    def facts(self) -> dict[str, Any]:
        """Return the numbers of the last round."""
        return {
            "violation": self.gap,
            "objective": self.vectors.objective,
            "support_vectors": int(np.count_nonzero(self.vectors.alpha)),
            "kernel_rows": self.rows.computed,
            "steps": self.steps,
            "newton_steps": self.newton_steps,
        }

    def point(self) -> np.ndarray:
        """Return α in the order of the variables."""
        return self.vectors.alpha[self.layout.places]

    def best(self) -> tuple[QuadraticProgram, np.ndarray, np.ndarray]:
        """Return the program without its kernel part, the best point, and its fresh gradient."""
        v = self.vectors
        if not self._fresh:
            self.refresh()
        objective, _, alpha = self._best
        if self.status != Status.CONVERGED and objective < v.objective:
            v.alpha = alpha
            self.refresh()
        doubled = self.ridge is None or len(v.alpha) > self.rows.size
        hessian = RidgeOnly(np.zeros_like(v.alpha) if doubled else self.ridge)
        program = QuadraticProgram(hessian, v.linear, v.lower, v.upper, v.groups, v.totals)
        return program, v.alpha, v.gradient

    def _solve_tile(self, view: View) -> None:
        size = tile_size(len(view.free) + self._newcomers(view))
        some = self.square.arrange(choose(view, size), size)
        wanted = max(FRACTION * view.gap, 0.5 * self.solver.tol)
        limit = min(self.solver.step_budget - self.steps, 50 * size)
        recipe = self.solver.recipe(min(size, LARGEST_EXPLICIT), elastic=False)
        recipe = recipe._replace(polish=False, largest=recipe.slots)
        tile = self._tile(some, view)
        end = jax.device_get(_relax(tile, wanted, np.int32(limit), recipe))
        self._move(some, end.change, tile)
        self.steps += int(end.steps)
        self.newton_steps += int(end.newton_steps)
        if end.status == Status.UNBOUNDED:
            self.status = Status.UNBOUNDED

    def _newcomers(self, view: View) -> int:
        """Return for how many violators there should be room.

        As many as there are free variables; more while their number does not fall.
        """
        outside = np.where(view.can_up, view.distance, -view.distance)
        crowd = int(np.sum((outside > 0.5 * self.solver.tol) & (view.can_up != view.can_down)))
        if crowd > 0.5 * self._crowd:
            self._welcome = min(2 * self._welcome, LARGEST_WELCOME)
        self._crowd = crowd
        return min(crowd, max(self._welcome, len(view.free)))

    def _finish(self, view: View) -> None:
        """The gap passes: a Newton step on all free variables, then the last word."""
        free = len(view.free)
        if self.solver.block and not self._polished and 2 <= free <= LARGEST_NEWTON:
            self._polished = True
            size = tile_size(free)
            some = self.square.arrange(view.free, size)
            tile = self._tile(some, view)
            end = jax.device_get(_newton(tile, size))
            self._move(some, end.change, tile)
            self.newton_steps += int(end.newton_steps)
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

    def _tile(self, some: np.ndarray, view: View) -> "Part":
        """Return the program of the change of these variables; −1 stands for none."""
        v, dtype = self.vectors, self.rows.dtype
        present = some >= 0

        def pick(values: np.ndarray, kind: Any = dtype) -> np.ndarray:
            return np.where(present, values[some], 0).astype(kind)

        ridge = None
        if self.ridge is not None:
            examples = (some % self.rows.size).astype(np.int32)
            ridge = examples, self.ridge[examples].astype(dtype)
        return Part(
            matrix=self.square.matrix,
            linear=pick(view.distance),
            lower=pick(v.lower - v.alpha),
            upper=pick(v.upper - v.alpha),
            groups=pick(v.groups, np.int32),
            totals=np.zeros(len(v.totals), dtype),
            ridge=ridge,
        )

    def _move(self, some: np.ndarray, change: np.ndarray, tile: "Part") -> None:
        """Add the change to α and its effect to G."""
        v = self.vectors
        moved = (change != 0) & (some >= 0)
        some, change = some[moved], change[moved].astype(float)
        old, lower, upper = v.alpha[some], v.lower[some], v.upper[some]
        new = np.clip(old + change, lower, upper)
        new = np.where(change >= tile.upper[moved], upper, new)
        new = np.where(change <= tile.lower[moved], lower, new)
        v.alpha[some] = new
        self._fresh = False
        self._subtract(some, new - old, self.rows.sum)

    def _subtract(self, some: np.ndarray, change: np.ndarray, sum_of_rows: Callable) -> None:
        """G ← G − Q change."""
        v, n = self.vectors, self.rows.size
        if len(some) == 0:
            return
        examples = some % n
        product = np.asarray(sum_of_rows(examples, change), float)
        check_finite(product)
        if self.ridge is not None:
            product = product + self.ridge * np.bincount(examples, change, n)
        v.gradient -= np.tile(product, len(v.alpha) // n)


def tile_size(variables: int) -> int:
    """Return the size of a tile for so many variables: a power of two between the limits."""
    size = FIRST_TILE
    while size < variables and size < LARGEST_TILE:
        size *= 2
    return size


@register_dataclass
@dataclass(frozen=True, eq=False)
class RidgeOnly:
    """What a certificate asks of Q."""

    ridge: Leaf

    def ridge_vector(self) -> Any:
        """Return the part of the diagonal that is not the kernel's."""
        return self.ridge


class Part(NamedTuple):
    """The problem of a working set: find the change of α."""

    matrix: Any
    linear: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    groups: np.ndarray
    totals: np.ndarray
    ridge: tuple[np.ndarray, np.ndarray] | None  # examples, and what Q has more than K for each

    def program(self) -> QuadraticProgram:
        """Return it as a quadratic program."""
        matrix = self.matrix
        if self.ridge is not None:
            examples, ridge = self.ridge
            same = examples[:, None] == examples[None, :]
            matrix = matrix + jnp.where(same, ridge[:, None], 0.0)
        tile = Tile.whole(matrix)
        return QuadraticProgram(tile, self.linear, self.lower, self.upper, self.groups, self.totals)


class End(NamedTuple):
    """What became of a working set."""

    change: Any
    steps: Any
    newton_steps: Any
    status: Any


@partial(jax.jit, static_argnames="recipe")
def _relax(part: Part, tol: Any, limit: Any, recipe: Recipe) -> End:
    end = relax(part.program(), tol, limit, recipe)
    return End(end.state.alpha, end.steps, end.newton_steps, end.status)


@partial(jax.jit, static_argnames="slots")
def _newton(part: Part, slots: int) -> End:
    program = part.program()
    change, _, rounds = block_step(program, jnp.zeros_like(part.linear), program.linear, slots)
    return End(change, jnp.int32(0), rounds, jnp.int32(Status.RUNNING))
