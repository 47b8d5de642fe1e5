"""One tile for the whole problem: the matrix is in memory, and a compiled program does the rest.

The first program computes the matrix, solves, and certifies; a small problem needs no other. It
returns after a bounded number of steps, and when the number of free variables asks for another
number of slots; the next one goes on from there.
"""

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jsvm.problems import QuadraticProgram, Tile
from jsvm.problems.certificate import Certificate, certify
from jsvm.solvers.config import SMO, Recipe
from jsvm.solvers.prepare import Layout, check_finite
from jsvm.solvers.smo import Progress, advance, begin, best_point, slots_for
from jsvm.solvers.status import Solution, Status

WORK_PER_TURN = 3e8  # pair steps times variables: about a second
SHORTEST_TURN = 1000  # pair steps


class Report(NamedTuple):
    """What the host needs to know after a turn."""

    alpha: Any
    certificate: Certificate
    status: Any
    steps: Any
    newton_steps: Any
    free: Any
    finite: Any


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
        taken = 0 if self.report is None else int(self.report.steps)
        limits = self._solver.tol, np.int32(min(taken, budget - self._turn) + self._turn), budget
        if self._tile is None:
            self._tile, self._progress, report = _first(
                self._program, self._alpha, *limits, self._recipe
            )
        else:
            self._progress, report = _next(self._tile, self._progress, *limits, self._recipe)
        self.report = report = jax.device_get(report)
        if not report.finite:
            check_finite(self._tile.hessian.matrix)
        self.status = Status(int(report.status))
        if report.free:
            slots = slots_for(int(report.free), self._program.size)
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
            "steps": int(report.steps),
            "newton_steps": int(report.newton_steps),
        }

    def point(self) -> np.ndarray:
        """Return α in the order of the variables."""
        return np.asarray(self._last().alpha, float)[self._layout.places]

    def solution(self) -> Solution:
        """Return what was reached, in the padded layout."""
        report = self._last()
        rows = len(self._layout.order)
        return Solution.of(report.alpha, report.certificate, report, rows, int(self.status))

    def _last(self) -> Report:
        if self.report is None:  # interrupted before the first turn was over
            status, self._solver = self.status, replace(self._solver, max_steps=0)
            self.round()
            self.status = status
        assert self.report is not None
        return self.report


@partial(jax.jit, static_argnames="recipe")
def _first(
    program: QuadraticProgram, alpha: Any, tol: Any, limit: Any, budget: Any, recipe: Recipe
) -> tuple[QuadraticProgram, Progress, Report]:
    tile, progress = start_whole(program, alpha, recipe)
    return tile, *_next(tile, progress, tol, limit, budget, recipe)


@partial(jax.jit, static_argnames="recipe")
def _next(
    tile: QuadraticProgram, progress: Progress, tol: Any, limit: Any, budget: Any, recipe: Recipe
) -> tuple[Progress, Report]:
    progress = advance(tile, progress, tol, limit, budget, recipe)
    alpha = best_point(tile, progress)
    report = Report(
        alpha=alpha,
        certificate=certify(tile, alpha, tile.gradient(alpha)),
        status=progress.status,
        steps=progress.steps,
        newton_steps=progress.newton_steps,
        free=progress.free,
        finite=jnp.all(jnp.isfinite(tile.hessian.matrix)),
    )
    return progress, report


def start_whole(
    program: QuadraticProgram, alpha: Any, recipe: Recipe
) -> tuple[QuadraticProgram, Progress]:
    """Return the program with its matrix in memory, and the progress at the start."""
    tile = jax.tree.map(jnp.asarray, replace(program, hessian=Tile.of(program.hessian.dense())))
    return tile, begin(tile, tile.feasible_point() if alpha is None else alpha, recipe)
