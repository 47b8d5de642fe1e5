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
For the same reason a tile on which pair steps alone are taken is one of float32 as long as the gap
is not small: half the bytes are half the time.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.tree_util import register_dataclass

from jsvm._typing import Leaf
from jsvm.numerics.checks import check_finite
from jsvm.problems import QuadraticProgram
from jsvm.solvers.config import SMO
from jsvm.solvers.layout import Layout
from jsvm.solvers.status import Status
from jsvm.solvers.tile.engine import Part, newton_part, relax_part
from jsvm.solvers.tile.inverse import LARGEST_EXPLICIT
from jsvm.solvers.tile.loop import FINE
from jsvm.solvers.tiles.rows import EXPENSIVE, Rows
from jsvm.solvers.tiles.square import Square
from jsvm.solvers.tiles.working_set import Vectors, View, choose, look

TILES = 512, 768, 1024, 1536, 2048, 3072, 4096, 8192
LARGE_TILE = 4096
LARGEST_NEWTON = 2048  # free variables for which all of them are solved for at once
FEWEST_NEWCOMERS = 256
MANY_FEATURES = 100
NEWTON_GAP = 1e-3
SLOT_STEP = 256
SLOTS = (128, 256)  # of block steps within a tile
ROUGH = np.dtype("float32")
ROUGH_GAP = 1e-4  # of the largest linear term, down to which a tile of it is of use
SPARE = 1.2  # slots for each free variable
FRACTION = 0.1  # of the gap, to which a tile is solved
NEARLY = 300.0  # times the tolerance: from there a tile of all that violates goes to the end
WORST = 0.25  # of the newcomers of a tile; the others violate less
POLISHING = 4  # times that a gap which has passed is brought down further
PATIENCE = 20  # rounds without progress before the gradient is refreshed, or given up
MAX_REFRESHES = 20


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
        exact_sum: Callable[..., np.ndarray] | None,
        solver: SMO,
        layout: Layout,
    ) -> None:
        self.vectors, self.rows, self.ridge, self.solver = vectors, rows, ridge, solver
        self.layout = layout
        self.exact_sum = rows.sum if exact_sum is None else exact_sum
        self.square = self.rough = Square(rows, rows.dtype)
        if rows.dtype != ROUGH:
            self.rough = Square(rows, ROUGH)
        self.status = Status.RUNNING
        self.steps = self.newton_steps = 0
        self._free_solved, self._newton_gap, self._polishes = False, NEWTON_GAP, 0
        self._crowd, self._least = 2 * len(vectors.alpha) + 1, TILES[0]
        self._refreshes = self._idle = 0
        self._random = np.random.default_rng(0)
        self._smallest_gap = np.inf
        self._best = np.inf, np.inf, vectors.alpha.copy()  # objective, gap, point
        self.refresh()

    @property
    def gap(self) -> float:
        """The violation of the KKT conditions."""
        return self._view.gap

    def refresh(self) -> None:
        """Compute the gradient from scratch."""
        v = self.vectors
        v.restore_sums()
        used = np.flatnonzero(v.alpha)
        v.gradient = v.linear.copy()
        self._subtract(used, v.alpha[used], self.exact_sum, np.ones(len(used), bool))
        self._fresh = True
        self._view = self._look()
        if v.objective < self._best[0]:
            self._best = v.objective, self.gap, v.alpha.copy()

    def round(self) -> None:
        """Solve one tile, or pass judgement."""
        view, before = self._view, self.vectors.objective
        if view.gap <= self.solver.tol:
            self._finish(view)
        elif self.steps >= self.solver.step_budget:
            self.status = Status.MAX_STEPS
        elif self._newton_is_better(view):
            self._newton_gap = 0.1 * view.gap
            self._solve_free(view)
        else:
            self._solve_tile(view, max(FRACTION * view.gap, 0.5 * self.solver.tol))
        self._view = self._look()
        after = self.vectors.objective
        if self._is_unbounded(after):
            self.status = Status.UNBOUNDED
        lower = after < before - 4 * np.finfo(float).eps * abs(before)
        # Near the end the objective is flat to rounding where the gap is not yet.
        nearer = self.gap < self._smallest_gap
        self._smallest_gap = min(self._smallest_gap, self.gap)
        self._idle = 0 if lower or nearer else self._idle + 1
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

    def release(self) -> None:
        """Leave the memory of rows, tiles and points to others."""
        for holder in {self.rows, self.square, self.rough}:
            holder.release()
        self.rows.source.release()

    def _solve_tile(self, view: View, wanted: float) -> None:
        """Bring the gap of a working set down to `wanted`."""
        free = len(view.free)
        slots = next((s for s in SLOTS if s >= SPARE * free), SLOTS[-1] if free <= SLOTS[-1] else 0)
        square = self.rough if slots == 0 and view.gap > self._rough_gap else self.square
        size = self._tile_size(view, len(square.variables))
        # A variety of violators saves rounds, the worst ones alone save rows.
        worst = 1.0 if self.rows.source.features > EXPENSIVE else WORST
        some = square.arrange(choose(view, size, worst, self._random), size)
        complete = len(view.free) + len(view.outside) <= size
        if slots and complete and view.gap <= NEARLY * self.solver.tol:
            wanted = min(wanted, self._fine_tolerance)  # Newton steps go there at once
        limit = min(self.solver.step_budget - self.steps, 50 * size)
        recipe = self.solver.recipe(slots, elastic=False)
        recipe = recipe._replace(polish=False, largest=recipe.slots)
        tile = self._tile(square, view)
        aim = square.dtype.type(wanted)
        end = relax_part(tile, aim, np.int32(limit), recipe).fetched()
        self._move(some, end.change, tile)
        self._free_solved = False
        self.steps += end.steps
        self.newton_steps += end.newton_steps
        if end.status == Status.UNBOUNDED:
            self.status = Status.UNBOUNDED

    def _look(self) -> View:
        """Look at the point; what a tile leaves alone anyway is not worth many features."""
        return look(self.vectors, FRACTION * min(1.0, self.rows.source.features / MANY_FEATURES))

    def _tile_size(self, view: View, present: int) -> int:
        """Return the size of the next tile: room for the free variables and for violators.

        There are at least as many places for violators as for free variables, and more while the
        crowd of violators does not get smaller. The largest tile costs much memory: it is for free
        variables that find no place in the last but one.
        """
        crowd = len(view.outside)
        if crowd > 0.5 * self._crowd:
            self._least = tile_size(TILES[0] + 1)
        self._crowd = crowd
        free = len(view.free)
        size = tile_size(max(self._least, free + min(crowd, max(free, FEWEST_NEWCOMERS))))
        if free <= LARGE_TILE:
            size = min(size, LARGE_TILE)
        return present if present // 2 < size <= present else size  # a new matrix is expensive

    def _finish(self, view: View) -> None:
        """The gap passes: more exact steps where they are cheap, then the last word."""
        free, fine = len(view.free), self._fine_tolerance
        if view.gap > fine and self._polishes < POLISHING and self._newton_is_possible(view):
            self._polishes += 1
            if free <= LARGEST_EXPLICIT and not self._free_solved:
                self._solve_free(view)
                return
            if free <= SLOTS[-1]:  # some variable has to leave its bound
                self._solve_tile(view, fine)
                return
        self.refresh()
        self._refreshes += 1
        if self.gap <= self.solver.tol:
            self.status = Status.CONVERGED
        elif self._refreshes > MAX_REFRESHES:
            self.status = Status.STALLED

    @cached_property
    def _rough_gap(self) -> float:
        """The gap below which a tile of float32 is of no use."""
        return float(ROUGH_GAP * np.abs(self.vectors.linear).max())

    @property
    def _fine_tolerance(self) -> float:
        """The gap below which there is little but rounding."""
        largest = np.abs(self.vectors.alpha).max() * self._scale + np.abs(self.vectors.linear).max()
        return float(FINE * np.finfo(self.rows.dtype).eps * largest)

    def _newton_is_possible(self, view: View) -> bool:
        return self.solver.block and 2 <= len(view.free) <= min(LARGEST_NEWTON, TILES[-1])

    def _newton_is_better(self, view: View) -> bool:
        """Tell whether a Newton step on all free variables is due.

        It is where they are too many for block steps within a tile, once the gap is small, and
        again whenever it is ten times smaller.
        """
        many = len(view.free) > LARGEST_EXPLICIT
        return bool(many and self._newton_is_possible(view) and view.gap <= self._newton_gap)

    def _solve_free(self, view: View) -> None:
        """A Newton step on all free variables."""
        free = len(view.free)
        size = max(tile_size(free), len(self.square.variables))
        some = self.square.arrange(view.free, size)
        tile = self._tile(self.square, view)
        end = newton_part(tile, min(size, -(-free // SLOT_STEP) * SLOT_STEP)).fetched()
        self._move(some, end.change, tile)
        self.newton_steps += end.newton_steps
        self._free_solved = True

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

    def _is_unbounded(self, objective: float) -> bool:
        """Tell whether the objective has fallen below all that float64 can tell from −∞.

        As on one tile: −f has the unit l²/Q.
        """
        v = self.vectors
        if not self._open_box or self._matrix is None:
            return False
        unit = np.abs(v.linear).max() ** 2
        return bool(-objective * np.finfo(float).eps * self._scale > unit and self.gap > 0)

    @cached_property
    def _open_box(self) -> bool:
        """Whether some variable has an infinite bound and nothing but the kernel to hold it."""
        v = self.vectors
        return self.ridge is None and bool((np.isinf(v.upper) | np.isinf(v.lower)).any())

    @cached_property
    def _scale(self) -> float:
        """The largest entry of the diagonal of a working set, or of a few examples."""
        matrix = self._matrix
        if matrix is None:
            some = np.arange(min(16, self.rows.size))
            matrix = jnp.asarray(self.rows.part(some, some))
        return float(jnp.max(jnp.abs(jnp.diagonal(matrix))))

    @property
    def _matrix(self) -> Any:
        return self.rough.matrix if self.square.matrix is None else self.square.matrix

    def _tile(self, square: Square, view: View) -> Part:
        """Return the program of the change of the variables of a square."""
        v, dtype, some = self.vectors, square.dtype, square.variables
        present = some >= 0

        def pick(values: np.ndarray, kind: Any = dtype) -> np.ndarray:
            return np.where(present, values[some], 0).astype(kind)

        ridge = None
        if self.ridge is not None:
            examples = (some % self.rows.size).astype(np.int32)
            ridge = examples, self.ridge[examples].astype(dtype)
        return Part(
            matrix=square.matrix,
            linear=pick(view.distance),
            lower=pick(v.lower - v.alpha),
            upper=pick(v.upper - v.alpha),
            groups=pick(v.groups, np.int32),
            totals=np.zeros(len(v.totals), dtype),
            ridge=ridge,
        )

    def _move(self, some: np.ndarray, change: np.ndarray, tile: Part) -> None:
        """Add the change to α and its effect to G."""
        v = self.vectors
        moved = (change != 0) & (some >= 0)
        if not moved.any():  # no gain is larger than one that is not a number
            check_finite(tile.matrix)
        some, change = some[moved], change[moved].astype(float)
        old, lower, upper = v.alpha[some], v.lower[some], v.upper[some]
        new = np.clip(old + change, lower, upper)
        new = np.where(change >= tile.upper[moved], upper, new)
        new = np.where(change <= tile.lower[moved], lower, new)
        if tile.linear.dtype != self.rows.dtype:
            new = self._with_exact_sums(some, old, new)
        v.alpha[some] = new
        self._fresh = False
        # What arrives at a bound mostly stays there.
        self._subtract(some, new - old, self.rows.sum, (new == lower) | (new == upper))

    def _with_exact_sums(self, some: np.ndarray, old: np.ndarray, new: np.ndarray) -> np.ndarray:
        """Take from the variables between their bounds what a rough change adds to a sum."""
        v, new = self.vectors, new.copy()
        inside = (new > v.lower[some]) & (new < v.upper[some])
        for group in range(len(v.totals)):
            members = v.groups[some] == group
            free = members & inside
            if free.any():
                new[free] -= (new[members] - old[members]).sum() / free.sum()
        return np.clip(new, v.lower[some], v.upper[some])

    def _subtract(
        self, some: np.ndarray, change: np.ndarray, sum_of_rows: Callable, passing: np.ndarray
    ) -> None:
        """G ← G − Q change."""
        v, n = self.vectors, self.rows.size
        if len(some) == 0:
            return
        examples = some % n
        product = np.asarray(sum_of_rows(examples, change, passing), float)
        check_finite(product)
        if self.ridge is not None:
            product = product + self.ridge * np.bincount(examples, change, n)
        v.gradient -= np.tile(product, len(v.alpha) // n)


def tile_size(variables: int) -> int:
    """Return the size of a tile for so many variables."""
    return next((size for size in TILES if size >= variables), TILES[-1])


@register_dataclass
@dataclass(frozen=True, eq=False)
class RidgeOnly:
    """What a certificate asks of Q."""

    ridge: Leaf

    def ridge_vector(self) -> Any:
        """Return the part of the diagonal that is not the kernel's."""
        return self.ridge
