"""The engine of a tile: pair steps and block steps on a dense problem, run by a compiled program.

`relax` brings the violation of a working set down, in the change of α, and leaves the verdict to
the host loop around it. `advance` solves a whole problem: it goes on from where the last call
ended, computes fresh gradients, and decides when to stop. What the host needs is packed into two
arrays, because every array that it fetches costs time.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Float, Int

from jsvm._typing import Array, Scalar, Vector
from jsvm.problems import QuadraticProgram, Tile
from jsvm.problems.certificate import Certificate, certify
from jsvm.programs import program
from jsvm.solvers.status import Status
from jsvm.solvers.tile.block_step import block_step
from jsvm.solvers.tile.loop import best_point, compact, relax, turns
from jsvm.solvers.tile.progress import Limits, Progress, begin, no_progress
from jsvm.solvers.tile.steps import Recipe
from jsvm.solvers.tuning import Tuning


class WorkingSet(NamedTuple):
    """The problem of a working set; the bounds are those of the change of α, `linear` is its G."""

    matrix: Any
    linear: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    groups: np.ndarray
    totals: np.ndarray
    ridge: tuple[np.ndarray, np.ndarray] | None  # examples, and what Q has more than K for each

    def program(self) -> QuadraticProgram:
        """Return it as a quadratic program on a tile."""
        matrix = self.matrix
        if self.ridge is not None:
            examples, ridge = self.ridge
            same = examples[:, None] == examples[None, :]
            matrix = matrix + jnp.where(same, ridge[:, None], 0.0)
        tile = Tile.whole(matrix)
        return QuadraticProgram(tile, self.linear, self.lower, self.upper, self.groups, self.totals)


class Counts(NamedTuple):
    """What an engine counts; one integer array on the device."""

    status: Any
    steps: Any
    newton_steps: Any
    free: Any = 0  # number of free variables that asks for another number of slots, else 0
    finite: Any = True  # whether the matrix is

    def packed(self) -> Int[Array, " 5"]:
        """Return the counts as one array, inside of a program."""
        return jnp.stack([jnp.asarray(count, jnp.int32) for count in self])

    @classmethod
    def fetched(cls, packed: Any) -> "Counts":
        """Return the counts as Python numbers."""
        return cls(*np.asarray(packed).tolist())


@runtime_checkable
class Engine(Protocol):
    """What runs a tile; another platform may have another one."""

    def relax(self, problem: WorkingSet, start: Any, tol: Scalar, limit: Scalar) -> tuple[Any, Any]:
        """From `start` (None is zero) take at most `limit` steps; return change and packed counts.

        It ends when the violation is at most `tol`, or when nothing moves.
        """
        ...

    def advance(
        self, program: QuadraticProgram, start: Any, progress: Any, limits: Limits
    ) -> tuple[Any, Any, Any]:
        """Go on to the limits; return the progress, packed numbers and packed counts.

        `progress` is that of the last call, None for the first one, which begins at `start`, or at
        a feasible point if that is None.
        """
        ...


@dataclass(frozen=True)
class CompiledLoop:
    """The loops of a recipe as one program of XLA; on a CPU one kernel if the recipe allows it."""

    recipe: Recipe

    def relax(self, problem: WorkingSet, start: Any, tol: Scalar, limit: Scalar) -> tuple[Any, Any]:
        return _relax(problem, start, tol, limit, self.recipe)

    def advance(
        self, program: QuadraticProgram, start: Any, progress: Any, limits: Limits
    ) -> tuple[Any, Any, Any]:
        if progress is None:
            progress = no_progress(program.size, program.linear.dtype, self.recipe.planning)
        start = progress.state.alpha if start is None else start
        return _advance(program, start, progress, limits, self.recipe)


@program(static_argnames="recipe")
def _relax(
    problem: WorkingSet, start: Any, tol: Scalar, limit: Scalar, recipe: Recipe
) -> tuple[Any, Any]:
    program = problem.program()
    end = relax(program, start, tol, limit, recipe=recipe)
    return end.state.alpha, Counts(end.status, end.steps, end.newton_steps).packed()


@program(static_argnames="recipe")
def _advance(
    program: QuadraticProgram, start: Array, progress: Progress, limits: Limits, recipe: Recipe
) -> tuple[Any, Any, Any]:
    """Begin and go on: one program for both, as compiling takes seconds."""

    def first(program: QuadraticProgram, start: Array, last: Progress) -> Progress:
        missing = jnp.isnan(start[0])
        alpha = lax.cond(missing, program.feasible_point, lambda: start + 0.0)
        return lax.cond(last.steps < 0, partial(begin, program, alpha, recipe), lambda: last)

    def verdict(program: QuadraticProgram, end: Progress) -> tuple[Any, Any]:
        alpha = best_point(program, end)
        gradient = program.gradient(alpha)
        finite = jnp.isfinite(jnp.sum(gradient))  # zero times infinity is not a number
        counts = Counts(end.status, end.steps, end.newton_steps, end.free, finite)
        return packed_certificate(alpha, certify(program, alpha, gradient)), counts.packed()

    def piece(function: Any) -> Any:
        return compact(function, recipe, program.size)

    end = turns(program, piece(first)(program, start, progress), limits, recipe=recipe)
    return end, *piece(verdict)(program, end)


def packed_certificate(alpha: Vector, certificate: Certificate) -> Float[Array, " m"]:
    """Return objective, primal objective, violation, the multipliers and α as one array."""
    objective, primal, multipliers, violation = certificate
    return jnp.concatenate([jnp.stack([objective, primal, violation]), multipliers, alpha])


def unpacked_certificate(numbers: np.ndarray, groups: int) -> tuple[np.ndarray, Certificate]:
    """Return α and its certificate."""
    objective, primal, violation = numbers[:3]
    return numbers[3 + groups :], Certificate(objective, primal, numbers[3 : 3 + groups], violation)


@program(static_argnames=("slots", "tuning"))
def newton_on_all(problem: WorkingSet, slots: int, tuning: Tuning) -> tuple[Any, Any]:
    """Take one block step on all free variables; return change and packed counts."""
    program, zero = problem.program(), jnp.zeros_like(problem.linear)
    change, _, rounds = block_step(program, zero, program.linear, slots, tuning)
    return change, Counts(Status.RUNNING, 0, rounds).packed()
