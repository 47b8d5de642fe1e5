"""How far a tile has come: the point, and everything needed to go on from it."""

from functools import lru_cache
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from jsvm._typing import Array, Scalar, Vector
from jsvm.problems import QuadraticProgram
from jsvm.solvers.status import Status
from jsvm.solvers.tile.selection import PlanningMemory, State
from jsvm.solvers.tile.steps import Recipe


class Anchor(NamedTuple):
    """The best point with a fresh gradient so far, and when it was looked for."""

    alpha: Array
    objective: Array
    violation: Array
    steps: Array  # at the last look
    vain: Array  # looks since the last better point


class Limits(NamedTuple):
    """When to return: violation, and pair steps in this call and in all calls."""

    tol: Scalar
    steps: Scalar  # counted from the beginning
    budget: Scalar


class Progress(NamedTuple):
    """The point and everything needed to go on from it."""

    state: State
    violation: Array
    steps: Array
    newton_steps: Array
    attempts: Array
    stalled: Array
    free: Array  # number of free variables that asks for another number of slots, else 0
    anchor: Anchor
    status: Array


def begin(
    program: QuadraticProgram, alpha: Vector, recipe: Recipe, gradient: Vector | None = None
) -> Progress:
    """Return the progress at a feasible start."""
    gradient = _gradient_at_start(program, alpha) if gradient is None else gradient
    state = State(
        alpha=alpha,
        gradient=gradient,
        recent=jnp.full((recipe.planning + 1, 2), -1, jnp.int32),
        memory=no_memory() if recipe.planning else None,
    )
    infinite = jnp.asarray(jnp.inf, alpha.dtype)
    objective = program.objective(alpha, state.gradient)
    return Progress(
        state=state,
        violation=infinite,
        steps=jnp.int32(0),
        newton_steps=jnp.int32(0),
        attempts=jnp.int32(0),
        stalled=jnp.zeros((), bool),
        free=jnp.int32(0),
        anchor=Anchor(alpha, objective, infinite, jnp.int32(0), jnp.int32(0)),
        status=jnp.int32(Status.RUNNING),
    )


def _gradient_at_start(program: QuadraticProgram, alpha: Vector) -> Array:
    """Return G; most runs begin at zero, where the product with Q can be saved."""
    away = jnp.any(alpha != 0)
    return lax.cond(away, program.gradient, lambda alpha: program.linear + alpha, alpha)


def resumed(progress: Progress) -> Progress:
    """Return the progress of a run that had stalled, to go on by another recipe."""
    none = jnp.zeros_like(progress.attempts)
    return progress._replace(
        attempts=none,
        anchor=progress.anchor._replace(vain=none),
        status=jnp.full_like(progress.status, Status.RUNNING),
    )


def no_memory() -> PlanningMemory:
    """Return what planning ahead remembers before the first step."""
    return PlanningMemory(*(jnp.zeros((), bool) for _ in PlanningMemory._fields))


@lru_cache(maxsize=16)
def no_progress(size: int, dtype: np.dtype, planning: int) -> Progress:
    """Return what stands for progress before the first step: a number of steps below zero."""
    unknown, nothing = np.full(size, np.nan, dtype), np.zeros((), dtype)
    zero, no = np.zeros((), np.int32), np.zeros((), bool)
    recent = np.full((planning + 1, 2), -1, np.int32)
    memory = PlanningMemory(no, no, no) if planning else None
    return Progress(
        state=State(unknown, unknown, recent, memory),
        violation=nothing,
        steps=np.full((), -1, np.int32),
        newton_steps=zero,
        attempts=zero,
        stalled=no,
        free=zero,
        anchor=Anchor(unknown, nothing, nothing, zero, zero),
        status=zero,
    )
