"""How far to move a chosen pair: α_i + μ, α_j − μ.

Every rule is a function ``step(state, program, select) -> Move`` that chooses the pair by `select`.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Float, Int

from jsvm._typing import Array, Number, Vector
from jsvm.numerics.indexing import index_of_max
from jsvm.problems import QuadraticProgram
from jsvm.problems.certificate import gap, joachims
from jsvm.solvers.tile.selection import (
    Index,
    PlanningMemory,
    Selection,
    State,
    newton_gain,
    runs_in_kernel,
    second_order_truncated,
    truncated_gain,
)
from jsvm.solvers.tuning import Tuning

ETA = 0.9  # Glasmachers 2008, Algorithm 7.2
OVERSHOOT = 1.1  # Glasmachers 2008, section 7.2.3


class Move(NamedTuple):
    """A pair, its step μ, and the memory of planning ahead (None for other steps)."""

    i: Array
    j: Array
    mu: Array
    memory: PlanningMemory | None


Measure = Callable[[QuadraticProgram, Vector, Vector], Number]
Step = Callable[[State, QuadraticProgram, Selection], Move]


class Line(NamedTuple):
    """The line along e_i − e_j: slope, curvature (rounding below `floor`), interval of μ."""

    slope: Array
    curvature: Array
    floor: Array
    low: Array
    high: Array


def line(state: State, program: QuadraticProgram, i: Index, j: Index) -> Line:
    """Return slope, curvature and interval of a pair (Glasmachers 2008, section 4.3.3)."""
    alpha, hessian = state.alpha, program.hessian
    diagonal = hessian.diagonal()
    return Line(
        slope=state.gradient[i] - state.gradient[j],
        curvature=diagonal[i] + diagonal[j] - 2.0 * hessian.row(i)[j],
        floor=hessian.floor[i] + hessian.floor[j],
        low=jnp.maximum(program.lower[i] - alpha[i], alpha[j] - program.upper[j]),
        high=jnp.minimum(program.upper[i] - alpha[i], alpha[j] - program.lower[j]),
    )


def newton_step(line: Line) -> Number:
    """Return μ̂ = l/q; ±∞ along a line without curvature (Glasmachers 2008, 4.3.3)."""
    curved = line.curvature > line.floor
    flat = jnp.where(line.slope == 0, 0.0, jnp.sign(line.slope) * jnp.inf)
    return jnp.where(curved, line.slope / jnp.where(curved, line.curvature, 1.0), flat)


@runs_in_kernel
def plain(state: State, program: QuadraticProgram, select: Selection) -> Move:
    """Truncated Newton step μ* = max{min{μ̂, high}, low} (Glasmachers 2008, eq. 4.4)."""
    return _scaled_newton(state, program, select, 1.0)


@runs_in_kernel
def overshoot(state: State, program: QuadraticProgram, select: Selection) -> Move:
    """Truncated step of 1.1 μ̂, which keeps 99 % of the gain (Glasmachers 2008, 7.2.3)."""
    return _scaled_newton(state, program, select, OVERSHOOT)


@runs_in_kernel
def planning_ahead(state: State, program: QuadraticProgram, select: Selection) -> Move:
    """Plan ahead with the N last working sets (Glasmachers 2008, Algorithms 7.2, 7.3; 7.2.4)."""
    memory = state.memory
    assert memory is not None
    i, j = _select_with_candidates(state, program, select, memory)
    now = line(state, program, i, j)
    newton = newton_step(now)
    standard = jnp.clip(newton, now.low, now.high)

    planned, possible = _plan(state, program, i, j, now)
    plan = memory.free & possible
    mu = jnp.where(plan, planned, standard)
    finite = jnp.where(jnp.isfinite(newton) & (newton != 0), newton, 1.0)
    free, trusted = ~plan & (standard == newton), jnp.abs(mu / finite - 1.0) <= ETA
    return Move(i, j, mu, PlanningMemory(plan, free, trusted))


STEPS: dict[str, Step] = {"plain": plain, "overshoot": overshoot, "planning_ahead": planning_ahead}
MEASURES: dict[str, Measure] = {"gap": gap, "joachims": joachims}


def _scaled_newton(
    state: State, program: QuadraticProgram, select: Selection, factor: float
) -> Move:
    i, j = select(state, program)
    now = line(state, program, i, j)
    newton = newton_step(now)
    return Move(i, j, jnp.clip(factor * newton, now.low, now.high), state.memory)


def _select_with_candidates(
    state: State, program: QuadraticProgram, select: Selection, memory: PlanningMemory
) -> tuple[Index, Index]:
    """Algorithm 7.2: after a planning step, offer the sets it planned with as candidates."""
    by_newton_gain = ~memory.planned | memory.trusted
    i, j = lax.cond(by_newton_gain, select, second_order_truncated, state, program)

    pairs = jnp.concatenate([jnp.stack([i, j])[None, :], state.recent[1:]])
    known = pairs[:, 0] >= 0
    pairs = jnp.maximum(pairs, 0)
    slope = state.gradient[pairs[:, 0]] - state.gradient[pairs[:, 1]]
    pairs = jnp.where((slope < 0)[:, None], pairs[:, ::-1], pairs)
    a, b = pairs[:, 0], pairs[:, 1]
    diagonal, floor = program.hessian.diagonal(), program.hessian.floor
    curvature = diagonal[a] + diagonal[b] - 2.0 * program.hessian.matrix[a, b]
    curvature = jnp.maximum(curvature, floor[a] + floor[b])
    room = jnp.minimum(program.upper[a] - state.alpha[a], state.alpha[b] - program.lower[b])
    slope = jnp.abs(slope)
    gains = jnp.where(
        by_newton_gain, newton_gain(slope, curvature), truncated_gain(slope, curvature, room)
    )
    gains = jnp.where(known & (room > 0) & (slope > 0), gains, -jnp.inf)
    best, _ = index_of_max(gains)  # the first of equals: a candidate must be strictly better
    best = jnp.where(memory.planned, best, 0)
    return pairs[best, 0], pairs[best, 1]


def _plan(
    state: State, program: QuadraticProgram, i: Index, j: Index, now: Line
) -> tuple[Number, Array]:
    """Return the step of the best double step in the box (eqs. 7.3, 7.4), and if there is one."""
    pairs: Int[Array, "m 2"] = state.recent[:-1]
    known = pairs[:, 0] >= 0
    a, b = jnp.maximum(pairs[:, 0], 0), jnp.maximum(pairs[:, 1], 0)
    matrix, diagonal = program.hessian.matrix, program.hessian.diagonal()
    floor, eps = program.hessian.floor, jnp.finfo(matrix.dtype).eps
    w1, w2 = now.slope, state.gradient[a] - state.gradient[b]
    q11 = now.curvature
    q22 = diagonal[a] + diagonal[b] - 2.0 * matrix[a, b]
    q12 = matrix[i, a] - matrix[i, b] - matrix[j, a] + matrix[j, b]
    determinant = q11 * q22 - q12 * q12
    regular = (q11 > now.floor) & (q22 > floor[a] + floor[b])
    regular = regular & (determinant > 32 * eps * q11 * q22)
    safe_determinant = jnp.where(regular, determinant, 1.0)
    safe_q22 = jnp.where(regular, q22, 1.0)
    mu1 = (q22 * w1 - q12 * w2) / safe_determinant
    mu2 = (w2 - q12 * mu1) / safe_q22
    gain = (
        -0.5 * determinant / safe_q22 * mu1 * mu1
        + (w1 - q12 * w2 / safe_q22) * mu1
        + 0.5 * w2 * w2 / safe_q22
    )

    def moved(n: Int[Array, " m"]) -> Float[Array, " m"]:
        return state.alpha[n] + mu1 * ((n == i).astype(mu1.dtype) - (n == j).astype(mu1.dtype))

    low2 = jnp.maximum(program.lower[a] - moved(a), moved(b) - program.upper[b])
    high2 = jnp.minimum(program.upper[a] - moved(a), moved(b) - program.lower[b])
    inside = (now.low < mu1) & (mu1 < now.high) & (low2 < mu2) & (mu2 < high2)
    best, largest = index_of_max(jnp.where(known & regular & inside, gain, -jnp.inf))
    return mu1[best], largest > -jnp.inf


class Recipe(NamedTuple):
    """The strategies, and the number of slots of a block step."""

    select: Selection
    step: Step
    measure: Measure
    planning: int  # working sets that planning ahead looks back at
    run: int  # pair steps between two block steps
    slots: int  # 0: no block steps
    largest: int  # free variables for which a block step is taken before the last one
    elastic: bool  # stop and ask for other slots where they do not fit; else use the first ones
    polish: bool  # a block step also when the violation has passed
    low_rank: bool  # block steps look for free variables that depend on others
    tuning: Tuning

    @property
    def runs_in_kernel(self) -> bool:
        """Whether selection and step declare that a kernel of machine code may hold them."""
        return all(getattr(rule, "runs_in_kernel", False) for rule in (self.select, self.step))
