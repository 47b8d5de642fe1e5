"""Many tiles: problems whose matrix is larger than one tile should be.

A host loop, as in all decomposition methods since Osuna, Freund and Girosi (1997); Algorithm 4.1 of
Glasmachers (2008) with large working sets:

    repeat
        choose a working set: all free variables, then the worst violators of both sides
        solve the problem on it, with its part of the matrix, to a fraction of the gap
        G ← G − Σ Δα_i K[i, :]      over the variables that moved
    until the gap passes `tol`, and still does so with a gradient computed from scratch

Rows of the kernel matrix are computed only for variables that moved, and kept (`rows.py`). The tile
is solved in the *change* of α, so its rounding errors are those of the change. α and G live on the
host in float64; success is declared only on a gradient computed in float64, and if that violates,
the loop goes on from it: iterative refinement. So a tile without block steps may be one of float32
as long as the gap is not small: half the bytes are half the time.
"""

import math
import time
from collections.abc import Callable
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jsvm.numerics.arrays import check_finite
from jsvm.precision import scope
from jsvm.problems import QuadraticProgram, Tile
from jsvm.problems.certificate import (
    certify,
    fine_tolerance,
    gap_unit,
    is_better,
    is_endless,
    is_unbounded,
    objective_rounding,
)
from jsvm.problems.program import restored_sums
from jsvm.programs import program
from jsvm.solvers.canonical import Layout, innermost
from jsvm.solvers.monitor import Facts, Pace, facts_of
from jsvm.solvers.smo import SMO
from jsvm.solvers.status import Solution, Status
from jsvm.solvers.tile.engine import CompiledLoop, Counts, WorkingSet, newton_on_all
from jsvm.solvers.tiles.rows import ExactSum, Rows
from jsvm.solvers.tiles.sources import source_of
from jsvm.solvers.tiles.square import Square
from jsvm.solvers.tiles.working_set import Vectors, View, choose, look

ROUGH, DOUBLE = np.dtype("float32"), np.dtype("float64")
STEPS_PER_VARIABLE = 50  # pair steps on one tile: rounds are cheaper than a stubborn tile


class Decomposition:
    """The host loop over tiles of a canonical program; rows and tiles are in `dtype`."""

    def __init__(
        self, program: QuadraticProgram, layout: Layout, start: Any, solver: SMO, dtype: np.dtype
    ) -> None:
        self.solver, self.layout, self.tuning = solver, layout, solver.tuning
        self.vectors = vectors = Vectors.of(program, layout, start)
        inner = innermost(program.hessian)
        ridge = layout.ridge(inner)
        self.ridge = ridge if ridge.any() else None
        budget = solver.cache_size * 1e6
        source = source_of(inner, layout, dtype)
        self.rows = rows = Rows(source, layout.examples, dtype, budget, solver.tuning)
        exact = rows if dtype == DOUBLE else ExactSum(inner, layout, solver.tuning)
        self.exact_sum: Callable[..., np.ndarray] = exact.sum
        self.square = self.rough = Square(rows, rows.dtype)
        if rows.dtype != ROUGH:
            self.rough = Square(rows, ROUGH)
        self.status = Status.RUNNING
        self.steps = self.newton_steps = 0
        self._free_solved, self._newton_gap, self._polishes = False, self.tuning.newton_gap, 0
        self._crowd, self._least = 2 * len(vectors.alpha) + 1, self.tuning.tiles[0]
        self._refreshes, self._idle, self._pace = 0, 0, Pace()
        self._random = np.random.default_rng(0)
        self._smallest_gap = np.inf
        self._best = np.inf, np.inf, vectors.alpha.copy()  # objective, gap, point
        self.refresh()

    @property
    def kernel_rows(self) -> int:
        return self.rows.computed

    @property
    def gap(self) -> float:
        """The violation of the KKT conditions."""
        return self._view.gap

    def take_over(self, work: Any) -> None:
        """Go on counting where the work before has ended."""
        self.steps, self.newton_steps = work.steps, work.newton_steps
        self.rows.computed = work.kernel_rows

    def refresh(self) -> None:
        """Compute the gradient from scratch."""
        self._fresh = False
        v = self.vectors
        members = [v.members(group) for group in range(len(v.totals))]
        v.alpha = restored_sums(v.alpha, v.lower, v.upper, members, v.totals)
        used = np.flatnonzero(v.alpha)
        v.gradient = v.linear.copy()
        self._subtract(used, v.alpha[used], self.exact_sum, np.ones(len(used), bool))
        self._fresh = True
        self._view = self._look()
        if self._is_better():
            self._best = v.objective, self.gap, v.alpha.copy()

    def _is_better(self) -> bool:
        """Tell whether the present point is better than the best one so far."""
        v, (objective, gap, _) = self.vectors, self._best
        if math.isinf(objective):
            return True
        rounding = objective_rounding(v.alpha, v.linear, self._scale, np.finfo(float).eps)
        return bool(is_better(v.objective, self.gap, objective, gap, rounding))

    def round(self, seconds: float = math.inf) -> None:
        """Solve one tile, or pass judgement."""
        view, before = self._view, self.vectors.objective
        begun, steps = time.perf_counter(), self.steps
        if view.gap <= self._tol:
            self._finish(view)
        elif self.steps >= self.solver.step_budget:
            self.status = Status.MAX_STEPS
        elif self._newton_is_better(view):
            self._newton_gap = 0.1 * view.gap
            self._solve_free(view)
        else:
            wanted = max(self.tuning.tile_fraction * view.gap, 0.5 * self._tol)
            self._solve_tile(view, wanted, seconds)
            self._pace.note(self.steps - steps, time.perf_counter() - begun)
        self._view = self._look()
        after = self.vectors.objective
        if self._is_unbounded(after):
            self.status = Status.UNBOUNDED
        lower = after < before - 4 * float(np.finfo(self.rows.dtype).eps) * abs(before)
        # Near the end the objective is flat to rounding where the gap is not yet.
        nearer = self.gap < self._smallest_gap
        self._smallest_gap = min(self._smallest_gap, self.gap)
        self._idle = 0 if lower or nearer else self._idle + 1
        if self.status == Status.RUNNING and self._idle > self.tuning.patience:
            self._judge_stall()

    def facts(self) -> Facts:
        return facts_of(self, self.gap, self.vectors.objective, self.vectors.alpha)

    def point(self) -> np.ndarray:
        return self.vectors.alpha[self.layout.places]

    def solution(self) -> Solution:
        with scope(DOUBLE):
            certificate = jax.device_get(_certify(*self._best_point()))
        return Solution.of(self.point(), certificate, self, self.kernel_rows, int(self.status))

    def _best_point(self) -> tuple[QuadraticProgram, np.ndarray, np.ndarray]:
        """Return the program without its kernel part, the best point, and its fresh gradient."""
        v = self.vectors
        if not self._fresh:
            self.refresh()
        objective, gap, alpha = self._best
        if self.status != Status.CONVERGED and (objective, gap) != (v.objective, self.gap):
            v.alpha = alpha
            self.refresh()
        doubled = self.ridge is None or len(v.alpha) > self.rows.size
        ridge = np.zeros_like(v.alpha) if doubled else self.ridge
        hessian = Tile(None, None, ridge, None)  # a certificate asks for nothing else
        program = QuadraticProgram(hessian, v.linear, v.lower, v.upper, v.groups, v.totals)
        return program, v.alpha, v.gradient

    def release(self) -> None:
        for holder in {self.rows, self.square, self.rough}:
            holder.release()
        self.rows.source.release()

    def _solve_tile(self, view: View, wanted: float, seconds: float = math.inf) -> None:
        """Bring the gap of a working set down to `wanted`."""
        free = len(view.free)
        tuning, most = self.tuning, self.tuning.tile_slots[-1]
        fitting = (s for s in tuning.tile_slots if s >= tuning.slots_per_free * free)
        # Where a basis of the free variables finds room, the others go to bounds.
        low_rank = self.rows.source.rank + len(self.vectors.totals) < most
        slots = next(fitting, most if free <= most or low_rank else 0)
        rough = view.gap > tuning.rough_gap * np.abs(self.vectors.linear).max()  # float32 is enough
        square = self.rough if slots == 0 and rough else self.square
        size = self._tile_size(view, len(square.variables))
        # A variety of violators saves rounds, the worst ones alone save rows.
        expensive = self.rows.source.features > tuning.expensive_features
        worst = 1.0 if expensive else tuning.worst_share
        some = square.arrange(choose(view, size, worst, self._random), size)
        complete = len(view.free) + len(view.outside) <= size
        if slots and complete and view.gap <= tuning.finishing_gap * self._tol:
            wanted = min(wanted, self._fine_tolerance)  # Newton steps go there at once
        in_time = self._pace.steps(seconds, STEPS_PER_VARIABLE * size)
        limit = min(self.solver.step_budget - self.steps, in_time)
        recipe = self.solver.recipe(slots, elastic=False, low_rank=low_rank)
        recipe = recipe._replace(polish=False, largest=size if low_rank else recipe.slots)
        tile = self._tile(square, view)
        aim = square.dtype.type(wanted)
        change, counts = CompiledLoop(recipe).relax(tile, None, aim, np.int32(limit))
        self._move(some, change, counts, tile)
        self._free_solved = False

    def _look(self) -> View:
        """Measure the violations; with many features ignore those below the tile's own target."""
        costly = min(1.0, self.rows.source.features / self.tuning.many_features)
        return look(self.vectors, self.tuning.tile_fraction * costly)

    def _tile_size(self, view: View, present: int) -> int:
        """Return the size of the next tile: room for the free variables and for violators.

        There are at least as many places for violators as for free variables, and more while the
        number of violators does not halve from round to round. The largest tile costs much memory:
        it is for free variables that find no place in the last but one.
        """
        tuning, crowd, free = self.tuning, len(view.outside), len(view.free)
        if crowd > 0.5 * self._crowd:
            self._least = self._size_for(tuning.tiles[0] + 1)
        self._crowd = crowd
        newcomers = min(crowd, max(free, tuning.fewest_newcomers))
        size = self._size_for(max(self._least, free + newcomers))
        if free <= tuning.large_tile:
            size = min(size, tuning.large_tile)
        return present if present // 2 < size <= present else size  # a new matrix is expensive

    def _size_for(self, variables: int) -> int:
        """Return the size of a tile for so many variables."""
        tiles = self.tuning.tiles
        return next((size for size in tiles if size >= variables), tiles[-1])

    def _finish(self, view: View) -> None:
        """The gap passes: polish where Newton steps are cheap, then judge on a fresh gradient."""
        free, fine, tuning = len(view.free), self._fine_tolerance, self.tuning
        polishing = self._polishes < tuning.polish_rounds
        if view.gap > fine and polishing and self._newton_is_possible(view):
            self._polishes += 1
            if free <= tuning.largest_explicit and not self._free_solved:
                self._solve_free(view)
                return
            if free <= tuning.tile_slots[-1]:  # some variable has to leave its bound
                self._solve_tile(view, fine)
                return
        self.refresh()
        self._refreshes += 1
        if self.gap <= self._tol:
            self.status = Status.CONVERGED
        elif self._refreshes > tuning.max_refreshes:
            self.status = Status.STALLED

    @cached_property
    def _tol(self) -> float:
        v, tol = self.vectors, self.solver.tol
        if v.linear.any():  # the unit is one; the scale of Q is not known yet
            return tol
        return tol * float(gap_unit(v.linear, v.totals, self._scale))

    @property
    def _fine_tolerance(self) -> float:
        v, eps = self.vectors, np.finfo(self.rows.dtype).eps
        return float(fine_tolerance(v.alpha, v.linear, self._scale, self.tuning.polish_ulps * eps))

    def _newton_is_possible(self, view: View) -> bool:
        most = min(self.tuning.largest_newton, self.tuning.tiles[-1])
        return self.solver.block and 2 <= len(view.free) <= most

    def _newton_is_better(self, view: View) -> bool:
        """Tell whether a Newton step is due: too many free for block steps, and a small gap."""
        many = len(view.free) > self.tuning.largest_explicit
        return bool(many and self._newton_is_possible(view) and view.gap <= self._newton_gap)

    def _solve_free(self, view: View) -> None:
        """A Newton step on all free variables."""
        free, step = len(view.free), self.tuning.newton_slot_step
        size = max(self._size_for(free), len(self.square.variables))
        some = self.square.arrange(view.free, size)
        tile = self._tile(self.square, view)
        change, counts = newton_on_all(tile, min(size, -(-free // step) * step), self.tuning)
        self._move(some, change, counts, tile)
        self._free_solved = True

    def _judge_stall(self) -> None:
        """Nothing moves: refresh the gradient, and give up if that does not help."""
        gap = self._best[1]
        self.refresh()
        self._refreshes += 1
        self._idle = 0
        if self.gap <= self._tol:
            self.status = Status.CONVERGED
        elif self.gap >= 0.5 * gap or self._refreshes > self.tuning.max_refreshes:
            self.status = Status.STALLED

    def _is_unbounded(self, objective: float) -> bool:
        v, eps = self.vectors, float(np.finfo(float).eps)
        if not self._endless or self._matrix is None:
            return False
        ridge = 0.0 if self.ridge is None else np.tile(self.ridge, len(v.alpha) // self.rows.size)
        for fresh in (self._fresh, True):  # what a running G says is to be confirmed
            if not is_endless(v, v.alpha, v.gradient, self._scale, ridge, eps):
                break
            if fresh:
                return True
            self.refresh()
        largest = np.abs(v.linear).max()
        fallen = is_unbounded(objective, self.gap, largest, self._scale, eps)
        return bool(self.ridge is None and fallen)

    @cached_property
    def _endless(self) -> bool:
        """Whether some variable has an infinite bound."""
        v = self.vectors
        return bool((np.isinf(v.upper) | np.isinf(v.lower)).any())

    @cached_property
    def _scale(self) -> float:
        """The largest entry of the diagonal of a working set, or of a few examples."""
        matrix = self._matrix
        if matrix is None:
            some = np.arange(min(16, self.rows.size))
            matrix = jnp.asarray(self.rows.part(some, some))
        return float(_largest_on_diagonal(matrix))

    @property
    def _matrix(self) -> Any:
        both = self.square.matrix, self.rough.matrix
        # Ctrl-C after donation: the buffer is deleted.
        return next((m for m in both if m is not None and not m.is_deleted()), None)

    def _tile(self, square: Square, view: View) -> WorkingSet:
        """Return the program of the change of the variables of a square."""
        v, dtype, some = self.vectors, square.dtype, square.variables
        present = some >= 0

        def pick(values: np.ndarray, kind: Any = dtype) -> np.ndarray:
            return np.where(present, values[some], 0).astype(kind)

        ridge = None
        if self.ridge is not None:
            examples = (some % self.rows.size).astype(np.int32)
            ridge = examples, self.ridge[examples].astype(dtype)
        return WorkingSet(
            matrix=square.matrix,
            linear=pick(view.distance),
            lower=pick(v.lower - v.alpha),
            upper=pick(v.upper - v.alpha),
            groups=pick(v.groups, np.int32),
            totals=np.zeros(len(v.totals), dtype),
            ridge=ridge,
        )

    def _move(self, some: np.ndarray, change: Any, counts: Any, tile: WorkingSet) -> None:
        """Add the change that an engine found to α, and its effect to G."""
        v, change, counts = self.vectors, np.asarray(change), Counts.fetched(counts)
        self.steps += counts.steps
        self.newton_steps += counts.newton_steps
        if counts.status == Status.UNBOUNDED:
            self.status = Status.UNBOUNDED
        moved = (change != 0) & (some >= 0)
        if not moved.any():  # comparisons with NaN are false, so nothing moves
            check_finite(tile.matrix)
        some, change = some[moved], change[moved].astype(float)
        old, lower, upper = v.alpha[some], v.lower[some], v.upper[some]
        if tile.linear.dtype != self.rows.dtype:  # a rough change does not keep the sums
            members = [v.groups[some] == group for group in range(len(v.totals))]
            bounds = tile.lower[moved].astype(float), tile.upper[moved].astype(float)
            change = restored_sums(change, *bounds, members, np.zeros(len(v.totals)))
        new = np.clip(old + change, lower, upper)
        new = np.where(change >= tile.upper[moved], upper, new)
        new = np.where(change <= tile.lower[moved], lower, new)
        self._fresh = False  # before anything changes: an interruption may follow
        v.alpha[some] = new
        # What arrives at a bound mostly stays there: its row is not worth keeping.
        self._subtract(some, new - old, self.rows.sum, (new == lower) | (new == upper))

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


@program
def _certify(program: QuadraticProgram, alpha: Any, gradient: Any) -> Any:
    return certify(jax.tree.map(jnp.asarray, program), alpha, gradient)


@program
def _largest_on_diagonal(matrix: Any) -> Any:
    return jnp.max(jnp.abs(jnp.diagonal(matrix)))
