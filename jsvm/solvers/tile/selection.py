"""Which pair of variables to move: working-set selection.

Every rule is a function ``select(state, program) -> (i, j)``: α_i goes up and α_j down by the same
amount, so their group keeps its sum. With v = e_i − e_j, the quantities of Glasmachers (2008) are

    l = vᵀG = G_i − G_j            slope,
    q = vᵀQv = Q_ii + Q_jj − 2Q_ij  curvature,
    g̃ = ½ l²/q                     gain of the Newton step (4.6),
    g  = gain of the step truncated to the box.

`program` is a quadratic program on a tile: ``program.hessian.row(i)`` is one contiguous read.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import jax.numpy as jnp
from jax import lax
from jaxtyping import Float, Int

from jsvm._typing import Array, Number, Vector
from jsvm.numerics.indexing import index_of_max
from jsvm.problems import QuadraticProgram, Tile
from jsvm.problems.certificate import extremes

Index = Int[Array, ""]
Pair = tuple[Index, Index, Number]  # and its gain, or slope


class PlanningMemory(NamedTuple):
    """What planning ahead remembers of the last step (Glasmachers 2008, Algorithms 7.2, 7.3)."""

    planned: Array  # it was a planning step
    free: Array  # it was a standard step that met no bound
    trusted: Array  # its length was within 1 ± η of the Newton step


class State(NamedTuple):
    """What a selection may look at; `recent` has the last pairs, newest first, −1 for none."""

    alpha: Vector
    gradient: Vector
    recent: Int[Array, "m 2"]
    memory: PlanningMemory | None


Selection = Callable[[State, QuadraticProgram], tuple[Index, Index]]

Rule = TypeVar("Rule", bound=Callable[..., Any])


def runs_in_kernel(rule: Rule) -> Rule:
    """Declare that a selection or a step may run inside one kernel of machine code.

    It has to consist of plain operations on vectors (:mod:`jsvm.numerics.kernel_call`); a rule
    without this declaration runs as an ordinary program, which takes longer.

    Examples
    --------
    >>> @runs_in_kernel
    ... def first_and_last(state, program):
    ...     return jnp.int32(0), jnp.int32(program.size - 1)
    >>> first_and_last.runs_in_kernel
    True
    """
    rule.runs_in_kernel = True  # pyright: ignore[reportFunctionMemberAccess]
    return rule


def newton_gain(slope: Float[Array, "..."], curvature: Float[Array, "..."]) -> Float[Array, "..."]:
    """Return g̃ = ½ l²/q (Glasmachers 2008, eq. 4.6)."""
    return 0.5 * slope * slope / curvature


def truncated_gain(
    slope: Float[Array, "..."], curvature: Float[Array, "..."], room: Float[Array, "..."]
) -> Float[Array, "..."]:
    """Return g, the gain of the step μ = min(l/q, room) for l ≥ 0."""
    step = jnp.minimum(slope / curvature, room)
    return step * (slope - 0.5 * curvature * step)


@runs_in_kernel
def most_violating(state: State, program: QuadraticProgram) -> tuple[Index, Index]:
    """Most violating pair (Glasmachers 2008, eq. 4.5): the largest slope."""
    alpha, G = state.alpha, state.gradient

    def in_group(inside: Array | bool) -> Pair:
        i, up = index_of_max(jnp.where((alpha < program.upper) & inside, G, -jnp.inf))
        j, down = index_of_max(jnp.where((alpha > program.lower) & inside, -G, -jnp.inf))
        return i, j, up + down

    return _best_group(program, in_group)


@runs_in_kernel
def second_order(state: State, program: QuadraticProgram) -> tuple[Index, Index]:
    """Second order (Glasmachers 2008, eq. 4.7): steepest i, then the j of largest Newton gain."""
    return _second_order(
        state, program, lambda slope, curvature, room: newton_gain(slope, curvature)
    )


def second_order_truncated(state: State, program: QuadraticProgram) -> tuple[Index, Index]:
    """Second order with the true gain g in place of g̃ (Glasmachers 2008, Algorithm 7.2)."""
    return _second_order(state, program, truncated_gain)


@runs_in_kernel
def maximum_gain(state: State, program: QuadraticProgram) -> tuple[Index, Index]:
    """Maximum gain over pairs that share a variable with the last one (Glasmachers 2008, 6.1.2).

    Fast, and able to get stuck (6.1.4); :func:`hybrid_maximum_gain` is not.
    """
    first = state.recent[0, 0] < 0
    return lax.cond(first, second_order, _related_maximum_gain, state, program)


@runs_in_kernel
def hybrid_maximum_gain(
    state: State, program: QuadraticProgram, eta: float = 1e-8
) -> tuple[Index, Index]:
    """Hybrid maximum gain (Glasmachers 2008, Algorithm 6.1).

    Maximum gain unless both variables of the last pair are within η times the width of their box
    of a bound (or, where the box is infinite, within η); then second order. The paper has one
    equality constraint. With several, all related pairs are in one group, so the rule also falls
    back when the gap of that group is less than half of the largest.
    """
    pair = jnp.maximum(state.recent[0], 0)
    alpha, low, high = state.alpha[pair], program.lower[pair], program.upper[pair]
    width = high - low
    margin = eta * jnp.where(jnp.isfinite(width), width, 1.0)
    interior = (alpha >= low + margin) & (alpha <= high - margin)
    fall_back = (state.recent[0, 0] < 0) | ~jnp.any(interior)
    if program.group_count > 1:
        up, down = extremes(program, state.alpha, state.gradient)
        gaps = up - down
        fall_back = fall_back | (gaps[program.groups[pair[0]]] < 0.5 * jnp.max(gaps))
    return lax.cond(fall_back, second_order, _related_maximum_gain, state, program)


def greedy(state: State, program: QuadraticProgram) -> tuple[Index, Index]:
    """The pair of largest gain of all (Glasmachers 2008, 6.1.1): O(n²), for small problems."""
    Q, alpha, G = program.hessian.matrix, state.alpha, state.gradient
    diagonal = program.hessian.diagonal()
    slope = G[:, None] - G[None, :]
    curvature = diagonal[:, None] + diagonal[None, :] - 2.0 * Q
    room = jnp.minimum((program.upper - alpha)[:, None], (alpha - program.lower)[None, :])
    together = program.groups[:, None] == program.groups[None, :]
    floor = program.hessian.floor[:, None] + program.hessian.floor[None, :]
    gains = truncated_gain(slope, jnp.maximum(curvature, floor), room)
    gains = jnp.where((slope > 0) & (room > 0) & together, gains, -jnp.inf)
    best, _ = index_of_max(gains.reshape(-1))
    return best // program.size, best % program.size


SELECTIONS: dict[str, Selection] = {
    "most_violating": most_violating,
    "second_order": second_order,
    "maximum_gain": maximum_gain,
    "hybrid_maximum_gain": hybrid_maximum_gain,
    "greedy": greedy,
}


def _curvatures(hessian: Tile, i: Index) -> Vector:
    """Return the curvatures of all pairs with i, at least the rounding level."""
    diagonal = hessian.diagonal()
    curvature = diagonal[i] + diagonal - 2.0 * hessian.row(i)
    return jnp.maximum(curvature, hessian.floor[i] + hessian.floor)


def _second_order(
    state: State, program: QuadraticProgram, gain: Callable[..., Array]
) -> tuple[Index, Index]:
    alpha, G = state.alpha, state.gradient

    def in_group(inside: Array | bool) -> Pair:
        i, steepest = index_of_max(jnp.where((alpha < program.upper) & inside, G, -jnp.inf))
        slope = steepest - G
        room = jnp.minimum(program.upper[i] - alpha[i], alpha - program.lower)
        gains = gain(slope, _curvatures(program.hessian, i), room)
        usable = (alpha > program.lower) & (slope > 0) & inside
        j, best = index_of_max(jnp.where(usable, gains, -jnp.inf))
        return i, j, best

    return _best_group(program, in_group)


def _related_maximum_gain(state: State, program: QuadraticProgram) -> tuple[Index, Index]:
    hessian, alpha, G = program.hessian, state.alpha, state.gradient

    def with_partner(a: Index) -> Pair:
        slope = G[a] - G
        curvature = _curvatures(hessian, a)
        room_if_up = jnp.minimum(program.upper[a] - alpha[a], alpha - program.lower)
        room_if_down = jnp.minimum(program.upper - alpha, alpha[a] - program.lower[a])
        room = jnp.where(slope > 0, room_if_up, room_if_down)
        gains = truncated_gain(jnp.abs(slope), curvature, room)
        related = (lax.iota(jnp.int32, alpha.shape[0]) != a) & (room > 0)
        if program.group_count > 1:
            related = related & (program.groups == program.groups[a])
        n, best = index_of_max(jnp.where(related, gains, -jnp.inf))
        goes_up = slope[n] > 0
        return jnp.where(goes_up, a, n), jnp.where(goes_up, n, a), best

    return _better(with_partner(state.recent[0, 0]), with_partner(state.recent[0, 1]))[:2]


def _best_group(
    program: QuadraticProgram, in_group: Callable[[Array | bool], Pair]
) -> tuple[Index, Index]:
    best = in_group(program.members(0))
    for group in range(1, program.group_count):
        best = _better(best, in_group(program.members(group)))
    return best[:2]


def _better(one: Pair, other: Pair) -> Pair:
    first = one[2] >= other[2]
    i, j = jnp.where(first, one[0], other[0]), jnp.where(first, one[1], other[1])
    return i, j, jnp.where(first, one[2], other[2])
