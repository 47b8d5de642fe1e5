"""One tile for the whole problem: the matrix is in memory, and a compiled program does the rest.

A first program computes the matrix. It is small, and depends on the kernel; the second is large and
does not: all kernels and machines of a size share it. It solves and certifies, and returns after a
bounded number of steps, or when the number of free variables asks for another number of slots; the
next one goes on from there.
"""

import math
import time
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jsvm.numerics.arrays import check_finite
from jsvm.numerics.memory import borrow, give_back
from jsvm.problems import Dense, QuadraticProgram, Tile
from jsvm.problems.certificate import Certificate, certify
from jsvm.programs import program
from jsvm.solvers.canonical import Layout, canonical, has_low_rank, innermost
from jsvm.solvers.monitor import Facts, Pace, facts_of
from jsvm.solvers.smo import SMO
from jsvm.solvers.status import Solution, Status
from jsvm.solvers.tile.engine import CompiledLoop, Counts, unpacked_certificate
from jsvm.solvers.tile.loop import advance, best_point
from jsvm.solvers.tile.progress import Limits, Progress, begin, resumed
from jsvm.solvers.tile.steps import Recipe
from jsvm.solvers.tuning import DEFAULT, Tuning


class WholeTile:
    """The host loop around one padded program, whose matrix has so many kernel rows."""

    def __init__(
        self, program: QuadraticProgram, layout: Layout, start: Any, solver: SMO, kernel_rows: int
    ) -> None:
        self.status, self.kernel_rows = Status.RUNNING, kernel_rows
        self.steps = self.newton_steps = 0
        self._program, self._start, self._layout, self._solver = program, start, layout, solver
        slots = slots_for(2, program.size, solver.tuning)
        low_rank = has_low_rank(program)
        self._engine = CompiledLoop(solver.recipe(slots, elastic=True, low_rank=low_rank))
        self._tile: Any = None
        self._pace = Pace()
        self._progress: Any = None
        self._found: tuple[np.ndarray, Certificate] | None = None
        self._earlier = 0, 0  # pair and Newton steps

    def take_over(self, work: Any) -> None:
        """Go on counting where the work before has ended."""
        self._earlier = self.steps, self.newton_steps = work.steps, work.newton_steps
        self.kernel_rows += work.kernel_rows

    def round(self, seconds: float = math.inf) -> None:
        solver, tuning, begun = self._solver, self._solver.tuning, time.perf_counter()
        turn = self._pace.steps(seconds, turn_of(self._program.size, tuning))
        taken, budget = self.steps - self._earlier[0], solver.step_budget - self._earlier[0]
        limit = np.int32(min(taken, budget - turn) + turn)
        if self._tile is None:
            n = self._program.size
            memory = borrow((n, n), self._program.linear.dtype)
            self._tile = replace(self._program, hessian=_in_memory(memory, self._program.hessian))
        self._progress, numbers, counts = self._engine.advance(
            self._tile, self._start, self._progress, Limits(solver.tol, limit, budget)
        )
        counts = Counts.fetched(counts)
        self._pace.note(counts.steps - taken, time.perf_counter() - begun)
        self._found = unpacked_certificate(np.asarray(numbers), self._program.group_count)
        self.steps = self._earlier[0] + counts.steps
        self.newton_steps = self._earlier[1] + counts.newton_steps
        self.status = Status(counts.status)
        if not counts.finite:
            check_finite(self._tile.hessian.matrix)
        if counts.free:
            slots = slots_for(counts.free, self._program.size, tuning)
            self._engine = CompiledLoop(self._engine.recipe._replace(slots=slots))
        if self.status == Status.STALLED and self._may_have_low_rank():
            self._engine = CompiledLoop(self._engine.recipe._replace(low_rank=True))
            self._progress = resumed(self._progress)
            self.status = Status.RUNNING

    def _may_have_low_rank(self) -> bool:
        """Tell whether block steps have not looked for dependent variables of a given matrix."""
        given = isinstance(innermost(self._program.hessian), Dense)
        recipe = self._engine.recipe
        return given and recipe.slots > 0 and not recipe.low_rank

    def facts(self) -> Facts:
        alpha, certificate = self._last()
        return facts_of(self, certificate.violation, certificate.objective, alpha)

    def point(self) -> np.ndarray:
        return np.asarray(self._last()[0], float)[self._layout.places]

    def solution(self) -> Solution:
        alpha, certificate = self._last()
        alpha = alpha[self._layout.places]
        return Solution.of(alpha, certificate, self, self.kernel_rows, int(self.status))

    def release(self) -> None:
        """Return the matrix to the memory pool; do not use afterwards."""
        if self._tile is not None:
            give_back(self._tile.hessian.matrix)
            self._tile = None

    def _last(self) -> tuple[np.ndarray, Certificate]:
        if self._found is None:  # interrupted before the first turn was over
            status, self._solver = self.status, replace(self._solver, max_steps=0)
            self.round()
            self.status = status
        assert self._found is not None
        return self._found


def slots_for(free: int, n: int, tuning: Tuning = DEFAULT) -> int:
    """Return the number of slots for `free` free variables out of n."""
    choices = tuning.slots[n > tuning.few_variables :]
    return min(next((slots for slots in choices if free <= slots), n), n)


def turn_of(size: int, tuning: Tuning) -> int:
    """Return the number of pair steps between two looks of the host."""
    return max(tuning.shortest_turn, int(tuning.turn_work / size))


def solve_traced(problem: QuadraticProgram, solver: SMO, start: Any) -> Solution:
    """Solve as part of the caller's program, inside ``jit`` or ``vmap``."""
    program, restore = canonical(problem)
    tuning = solver.tuning
    if program.size > tuning.largest_traced:
        raise ValueError(
            f"a problem of {program.size} variables is too large for jit and vmap, whose limit is "
            f"{tuning.largest_traced}; call solve outside of them: jax.grad works there, too"
        )
    slots = min(program.size, solver.slots, tuning.traced_slots)
    recipe = solver.recipe(slots, elastic=False, low_rank=has_low_rank(program))
    alpha = None if start is None else restore.split(jnp.asarray(start))
    tile, progress = start_whole(program, alpha, recipe)
    budget = jnp.int32(solver.step_budget)
    progress = advance(tile, progress, Limits(solver.tol, budget, budget), recipe)
    alpha = best_point(tile, progress)
    certificate = certify(tile, alpha, tile.gradient(alpha))
    solution = Solution.of(alpha, certificate, progress, jnp.int32(0), progress.status)
    return restore.join(solution)


def start_whole(
    program: QuadraticProgram, alpha: Any, recipe: Recipe
) -> tuple[QuadraticProgram, Progress]:
    """Return the program with its matrix in memory, and the progress at the start."""
    tile = jax.tree.map(jnp.asarray, replace(program, hessian=Tile.of(program.hessian.dense())))
    return tile, begin(tile, tile.feasible_point() if alpha is None else alpha, recipe)


@program(donate_argnums=0, keep_unused=True)
def _in_memory(memory: Any, hessian: Any) -> Tile:
    """Return the matrix, in the memory given."""
    return Tile.of(hessian.dense())
