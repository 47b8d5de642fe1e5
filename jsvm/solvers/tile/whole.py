"""One tile for the whole problem: the matrix is in memory, and a compiled program does the rest.

A first program computes the matrix. It is small, and depends on the kernel; the second is large and
does not: all kernels and machines of a size share it. It solves and certifies, and returns after a
bounded number of steps, or when the number of free variables asks for another number of slots; the
next one goes on from there.
"""

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jsvm.numerics.checks import check_finite
from jsvm.numerics.memory import borrow, give_back
from jsvm.problems import QuadraticProgram, Tile
from jsvm.problems.certificate import Certificate, certify
from jsvm.solvers.config import SMO, Recipe
from jsvm.solvers.layout import Layout
from jsvm.solvers.status import Solution, Status
from jsvm.solvers.tile.loop import Progress, begin, best_point, compact, slots_for, turns

WORK_PER_TURN = 3e8  # pair steps times variables: about a second
SHORTEST_TURN = 1000  # pair steps


class Report(NamedTuple):
    """What the host needs to know after a turn, in two arrays: each has its price to fetch."""

    numbers: Any  # objective, primal objective, violation, one multiplier a group, α
    counts: Any  # status, steps, newton_steps, free, finite, groups

    @classmethod
    def of(cls, alpha: Any, certificate: Certificate, counts: tuple) -> "Report":
        """Return the report of a point."""
        c = certificate
        single = jnp.stack([c.objective, c.primal_objective, c.violation])
        counts = *counts, jnp.int32(c.multipliers.shape[0])
        return cls(
            numbers=jnp.concatenate([single, c.multipliers, alpha]),
            counts=jnp.stack([jnp.asarray(count, jnp.int32) for count in counts]),
        )

    @property
    def alpha(self) -> np.ndarray:
        """The point."""
        return self.numbers[3 + self.counts[5] :]

    @property
    def certificate(self) -> Certificate:
        """What was recomputed for it."""
        objective, primal, violation = self.numbers[:3]
        return Certificate(objective, primal, self.numbers[3 : 3 + self.counts[5]], violation)

    @property
    def status(self) -> Status:
        """How the turn ended."""
        return Status(int(self.counts[0]))

    @property
    def steps(self) -> int:
        """Pair steps so far."""
        return int(self.counts[1])

    @property
    def newton_steps(self) -> int:
        """Rounds of block steps so far."""
        return int(self.counts[2])

    @property
    def free(self) -> int:
        """Number of free variables that asks for another number of slots, else 0."""
        return int(self.counts[3])

    @property
    def finite(self) -> bool:
        """Whether the matrix is."""
        return bool(self.counts[4])


class WholeTile:
    """The state of the host loop around one tile; :meth:`round` is one turn.

    Parameters
    ----------
    program : QuadraticProgram
        Padded.
    layout : Layout
        Where its variables are.
    alpha : array or None
        A feasible start, padded.
    solver : SMO
    """

    def __init__(self, program: QuadraticProgram, layout: Layout, alpha: Any, solver: SMO) -> None:
        self.status = Status.RUNNING
        self.report: Report | None = None
        self._program, self._alpha, self._layout, self._solver = program, alpha, layout, solver
        self._recipe = solver.recipe(slots_for(2, program.size), elastic=True)
        self._turn = max(SHORTEST_TURN, int(WORK_PER_TURN / program.size))
        self._tile: Any = None
        self._progress: Any = None

    def round(self) -> None:
        """Advance by one turn."""
        budget = self._solver.step_budget
        taken = 0 if self.report is None else self.report.steps
        limits = self._solver.tol, np.int32(min(taken, budget - self._turn) + self._turn), budget
        if self._tile is None:
            n = self._program.size
            memory = borrow((n, n), self._program.linear.dtype)
            self._tile = replace(self._program, hessian=_tile(memory, self._program.hessian))
            self._progress, report = _first(self._tile, self._alpha, *limits, self._recipe)
        else:
            self._progress, report = _next(self._tile, self._progress, *limits, self._recipe)
        self.report = report = Report(*(np.asarray(part) for part in report))
        if not report.finite:
            check_finite(self._tile.hessian.matrix)
        self.status = report.status
        if report.free:
            slots = slots_for(report.free, self._program.size)
            self._recipe = self._recipe._replace(slots=slots)

    def facts(self) -> dict[str, Any]:
        """Return the numbers of the last turn."""
        report = self.report
        assert report is not None
        return {
            "violation": float(report.certificate.violation),
            "objective": float(report.certificate.objective),
            "support_vectors": int(np.count_nonzero(report.alpha)),
            "kernel_rows": len(self._layout.order),
            "steps": report.steps,
            "newton_steps": report.newton_steps,
        }

    def point(self) -> np.ndarray:
        """Return α in the order of the variables."""
        return np.asarray(self._last().alpha, float)[self._layout.places]

    def solution(self) -> Solution:
        """Return what was reached, in the padded layout."""
        report = self._last()
        rows = len(self._layout.order)
        return Solution.of(report.alpha, report.certificate, report, rows, int(self.status))

    def release(self) -> None:
        """Leave the memory of the matrix to others: there will be no further turn."""
        if self._tile is not None:
            give_back(self._tile.hessian.matrix)
            self._tile = None

    def _last(self) -> Report:
        if self.report is None:  # interrupted before the first turn was over
            status, self._solver = self.status, replace(self._solver, max_steps=0)
            self.round()
            self.status = status
        assert self.report is not None
        return self.report


@partial(jax.jit, static_argnames="recipe")
def _first(
    tile: QuadraticProgram, alpha: Any, tol: Any, limit: Any, budget: Any, recipe: Recipe
) -> tuple[Progress, Report]:
    def both(tile: QuadraticProgram, alpha: Any, *limits: Any) -> tuple[Progress, Report]:
        return _onward(tile, begin_whole(tile, alpha, recipe), *limits, recipe=recipe)

    return compact(both, recipe, tile.size)(tile, alpha, tol, limit, budget)


@partial(jax.jit, static_argnames="recipe")
def _next(
    tile: QuadraticProgram, progress: Progress, tol: Any, limit: Any, budget: Any, recipe: Recipe
) -> tuple[Progress, Report]:
    onward = compact(partial(_onward, recipe=recipe), recipe, tile.size)
    return onward(tile, progress, tol, limit, budget)


def _onward(
    tile: QuadraticProgram,
    progress: Progress,
    tol: Any,
    limit: Any,
    budget: Any,
    *,
    recipe: Recipe,
) -> tuple[Progress, Report]:
    progress = turns(tile, progress, tol, limit, budget, recipe=recipe)
    alpha = best_point(tile, progress)
    gradient = tile.gradient(alpha)
    finite = jnp.isfinite(jnp.sum(gradient))  # zero times what is not finite is not a number
    counts = progress.status, progress.steps, progress.newton_steps, progress.free, finite
    return progress, Report.of(alpha, certify(tile, alpha, gradient), counts)


def in_memory(program: QuadraticProgram) -> QuadraticProgram:
    """Return the program with its matrix in memory."""
    return jax.tree.map(jnp.asarray, replace(program, hessian=Tile.of(program.hessian.dense())))


@partial(jax.jit, donate_argnums=0, keep_unused=True)
def _tile(memory: Any, hessian: Any) -> Tile:
    """Return the matrix, in the memory given."""
    return Tile.of(hessian.dense())


def begin_whole(tile: QuadraticProgram, alpha: Any, recipe: Recipe) -> Progress:
    """Return the progress at a given start, or at a feasible point."""
    return begin(tile, tile.feasible_point() if alpha is None else alpha, recipe)


def start_whole(
    program: QuadraticProgram, alpha: Any, recipe: Recipe
) -> tuple[QuadraticProgram, Progress]:
    """Return the program with its matrix in memory, and the progress at the start."""
    tile = in_memory(program)
    return tile, begin_whole(tile, alpha, recipe)
