"""One tile: sequential minimal optimisation with block steps, as one compiled program.

Algorithm 4.2 of Glasmachers (2008), in two nested loops:

    repeat
        a run of pair steps (select a pair, move it, update G)
        a block step on the free variables, if asked for
    until the violation passes `tol`, and still does so with a fresh gradient

When the violation passes `tol`, a few more turns on the final active set take the answer to
rounding level, or as near as they get. With ``block=False`` these are the papers' algorithms, step
by step.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jsvm._typing import Array, Scalar, Vector
from jsvm.numerics.indexing import SLICES
from jsvm.numerics.kernel_call import LONG_REDUCTION, in_one_kernel
from jsvm.problems import QuadraticProgram
from jsvm.problems.certificate import (
    fine_tolerance,
    gap,
    gap_unit,
    is_better,
    is_endless,
    is_unbounded,
    objective_rounding,
)
from jsvm.problems.program import restored_sums
from jsvm.solvers.status import Status
from jsvm.solvers.tile.block_step import block_step
from jsvm.solvers.tile.progress import Anchor, Limits, Progress, begin, no_memory
from jsvm.solvers.tile.selection import State
from jsvm.solvers.tile.steps import Recipe
from jsvm.solvers.tuning import DEFAULT, Tuning


class Judgement(NamedTuple):
    """Tolerance, that of polishing, pair steps at the next look, and pair steps of all calls."""

    tol: Scalar
    fine: Scalar
    look: Scalar
    budget: Scalar


@partial(jax.jit, static_argnames="recipe")
def advance(
    program: QuadraticProgram, progress: Progress, limits: Limits, recipe: Recipe
) -> Progress:
    """Go on to the end, the limits, or until other slots are needed; there is at least one turn."""
    loop = compact(partial(turns, recipe=recipe), recipe, program.size)
    return loop(program, progress, limits)


def compact(loop: Callable[..., Any], recipe: Recipe, size: int) -> Callable[..., Any]:
    """Return a loop over pair and block steps as one kernel of machine code, if it can be one."""
    few = recipe.slots <= recipe.tuning.most_in_kernel and size < LONG_REDUCTION
    return in_one_kernel(loop) if few and recipe.runs_in_kernel else loop


def turns(
    program: QuadraticProgram, progress: Progress, limits: Limits, *, recipe: Recipe
) -> Progress:
    """Do what :func:`advance` does, as part of a larger program."""

    def one_turn(carry: tuple[Progress, Array]) -> tuple[Progress, Array]:
        turned = _turn(program, carry[0], limits, recipe)
        running = (turned.status == Status.RUNNING) & (turned.free == 0)
        return turned, running & (turned.steps < limits.steps)

    start = progress._replace(free=jnp.int32(0)), progress.status == Status.RUNNING
    return lax.while_loop(lambda carry: carry[1], one_turn, start)[0]


def relax(
    program: QuadraticProgram, alpha: Any, tol: Scalar, limit: Any, *, recipe: Recipe
) -> Progress:
    """Bring the violation below `tol`, or take `limit` pair steps; no verdict. None starts at zero.

    This is for a part of a larger problem: `linear` is its G, the bounds are those of the change of
    α, and the host loop over the larger problem judges what was reached.
    """
    at_zero = alpha is None
    alpha = jnp.zeros_like(program.linear) if at_zero else alpha
    start = begin(program, alpha, recipe, gradient=program.linear if at_zero else None)
    start = start._replace(violation=recipe.measure(program, alpha, start.state.gradient))
    present = jnp.sum(program.upper > program.lower, dtype=jnp.int32)
    first = jnp.maximum(recipe.run, present // 2)

    def one_turn(progress: Progress) -> Progress:
        length = jnp.where(progress.steps == 0, first, recipe.run)
        stop = jnp.minimum(limit, progress.steps + length)
        progress = _run(program, progress, tol, stop, recipe)
        if not recipe.slots:
            return progress
        progress = _block(program, progress, progress.violation <= tol, recipe)
        state = progress.state
        return progress._replace(violation=recipe.measure(program, state.alpha, state.gradient))

    def going(progress: Progress) -> Array:
        running = (progress.status == Status.RUNNING) & ~progress.stalled
        return running & (progress.violation > tol) & (progress.steps < limit)

    return lax.while_loop(going, one_turn, start)


def _turn(
    program: QuadraticProgram, progress: Progress, limits: Limits, recipe: Recipe
) -> Progress:
    """A run of pair steps, a block step, and the verdict."""
    before, tuning, (tol, limit, budget) = progress, recipe.tuning, limits
    tol = tol * gap_unit(program.linear, program.totals, program.hessian.scale())
    look = before.anchor.steps + max(tuning.look_steps, tuning.look_sweeps * program.size)
    limit = jnp.minimum(jnp.minimum(limit, budget), look)
    if recipe.slots:
        # The first run finds out which variables are at bounds; a block step before that is lost.
        length = jnp.where(before.steps == 0, max(recipe.run, program.size), recipe.run)
        limit = jnp.minimum(limit, before.steps + length)
    fine, alpha = tol, before.state.alpha
    if recipe.slots and recipe.polish:
        scale, unit = program.hessian.scale(), tuning.polish_ulps * jnp.finfo(alpha.dtype).eps
        fine = jnp.minimum(tol, fine_tolerance(alpha, program.linear, scale, unit))
    wanted = jnp.where((before.attempts > 0) & (before.violation <= tol), fine, tol)
    progress = _run(program, before, wanted, limit, recipe)
    passed = progress.violation <= tol
    if recipe.slots:
        progress = _block(program, progress, passed, recipe)
    judge = compact(partial(_judged, recipe=recipe), recipe, program.size)
    return judge(program, before, progress, passed, Judgement(tol, fine, look, budget))


def _judged(
    program: QuadraticProgram,
    before: Progress,
    progress: Progress,
    passed: Array,
    judgement: Judgement,
    *,
    recipe: Recipe,
) -> Progress:
    """Return the progress with its violation and status, on a fresh gradient where that is due."""
    tuning, (tol, fine, look, budget) = recipe.tuning, judgement
    finishing = (passed | progress.stalled) & (progress.free == 0)
    due = finishing | (progress.steps >= look)
    progress = lax.cond(due, partial(_refresh, program), lambda p: p, progress)

    state = progress.state
    violation = recipe.measure(program, state.alpha, state.gradient)
    objective = program.objective(state.alpha, state.gradient)
    anchor = before.anchor
    better = _is_better(program, state.alpha, objective, violation, anchor)
    looked = Anchor(
        alpha=jnp.where(better, state.alpha, anchor.alpha),
        objective=jnp.where(better, objective, anchor.objective),
        violation=jnp.where(better, violation, anchor.violation),
        steps=progress.steps,
        vain=jnp.where(better, 0, anchor.vain + 1),
    )
    anchor = jax.tree.map(lambda new, old: jnp.where(due, new, old), looked, anchor)
    # With a fresh gradient in hand nothing is better than before: what moves is rounding error.
    vain = due & (anchor.vain > 0)
    useless = due & (anchor.vain >= tuning.vain_looks)
    idle = (progress.steps == before.steps) & (progress.newton_steps == before.newton_steps)
    attempts = progress.attempts + finishing.astype(jnp.int32)
    done = (violation <= fine) | vain | idle
    done = done | (attempts >= tuning.polish_turns) | (progress.steps >= budget)
    status = progress.status
    for condition, verdict in (  # later ones win
        ((progress.steps >= budget) & (progress.free == 0), Status.MAX_STEPS),
        (useless | (finishing & (idle | (attempts > tuning.max_attempts))), Status.STALLED),
        (_is_unbounded(program, state, objective, due), Status.UNBOUNDED),
        (finishing & (violation <= tol) & done & jnp.isfinite(objective), Status.CONVERGED),
    ):
        status = jnp.where(condition, jnp.int32(verdict), status)
    status = jnp.where(progress.status == Status.RUNNING, status, progress.status)
    # A point that passed before is the answer where the present one does not.
    stopped = (status == Status.STALLED) | (status == Status.MAX_STEPS)
    earlier = stopped & (anchor.violation <= tol)
    state = state._replace(alpha=jnp.where(earlier, anchor.alpha, state.alpha))
    return progress._replace(
        state=state,
        violation=jnp.where(earlier, anchor.violation, violation),
        attempts=attempts,
        status=jnp.where(earlier, jnp.int32(Status.CONVERGED), status),
        anchor=anchor,
    )


def _is_better(
    program: QuadraticProgram, alpha: Array, objective: Array, violation: Array, anchor: Anchor
) -> Any:
    scale, eps = program.hessian.scale(), jnp.finfo(alpha.dtype).eps
    rounding = objective_rounding(alpha, program.linear, scale, eps)
    return is_better(objective, violation, anchor.objective, anchor.violation, rounding)


def _run(
    program: QuadraticProgram, progress: Progress, tol: Scalar, limit: Any, recipe: Recipe
) -> Progress:
    """Take pair steps until the violation passes, nothing moves any more, or `limit`."""
    loop = partial(_pair_steps, recipe=recipe)
    # The gap and the selections reduce in slices, if there are such.
    sliced = recipe.measure is gap and program.size % SLICES == 0
    if recipe.runs_in_kernel and (program.size < LONG_REDUCTION or sliced):
        loop = in_one_kernel(loop)
    return loop(program, progress, tol, limit)


def _pair_steps(
    program: QuadraticProgram, progress: Progress, tol: Scalar, limit: Any, *, recipe: Recipe
) -> Progress:
    places = lax.iota(jnp.int32, program.size)

    def pair_step(carry: Progress) -> Progress:
        state = carry.state
        alpha, G = state.alpha, state.gradient
        violation = recipe.measure(program, alpha, G)
        i, j, mu, memory = recipe.step(state, program, recipe.select)
        endless = jnp.isinf(mu)
        # The violation is that of the point before the step: when it passes, the step is void.
        mu = jnp.where((violation > tol) & ~endless, mu, 0.0)
        new_i = jnp.where(mu == program.upper[i] - alpha[i], program.upper[i], alpha[i] + mu)
        new_j = jnp.where(mu == alpha[j] - program.lower[j], program.lower[j], alpha[j] - mu)
        # A slope within the rounding error of G is no violation: rules that look at few pairs only
        # would turn in circles there.
        scale = jnp.abs(G[i]) + jnp.abs(G[j]) + jnp.abs(program.linear[i] - program.linear[j])
        violating = G[i] - G[j] > 4 * jnp.finfo(G.dtype).eps * scale
        moved = ((new_i != alpha[i]) | (new_j != alpha[j])) & violating
        rows = program.hessian.row(i) - program.hessian.row(j)
        new_state = State(
            alpha=jnp.where(places == i, new_i, jnp.where(places == j, new_j, alpha)),
            gradient=G - mu * rows,
            recent=jnp.concatenate([jnp.stack([i, j])[None, :], state.recent[:-1]]),
            memory=memory,
        )
        return carry._replace(
            state=new_state,
            violation=violation,
            steps=carry.steps + moved.astype(jnp.int32),
            stalled=~moved,
            status=jnp.where(endless, jnp.int32(Status.UNBOUNDED), carry.status),
        )

    def going(carry: Progress) -> Array:
        return (carry.steps < limit) & ~carry.stalled & (carry.status == Status.RUNNING)

    start = progress._replace(stalled=jnp.zeros((), bool))
    end = lax.while_loop(going, pair_step, start)
    return end._replace(violation=recipe.measure(program, end.state.alpha, end.state.gradient))


def _block(
    program: QuadraticProgram, progress: Progress, passed: Array, recipe: Recipe
) -> Progress:
    """Take a block step, or ask for another number of slots, or do nothing."""
    state = progress.state
    free = jnp.sum((state.alpha > program.lower) & (state.alpha < program.upper))
    last = passed & (progress.attempts < recipe.tuning.max_attempts // 2) & recipe.polish
    wanted = (last | (~passed & (free <= recipe.largest))) & (free > 1)
    if recipe.elastic:
        misfit = wanted & ~fits(recipe.slots, free, recipe.tuning)
        progress = progress._replace(free=jnp.where(misfit, free, 0).astype(jnp.int32))
        wanted = wanted & ~misfit

    def step(alpha: Array, gradient: Array) -> tuple[Array, Array, Array]:
        return block_step(program, alpha, gradient, recipe.slots, recipe.tuning, recipe.low_rank)

    def skip(alpha: Array, gradient: Array) -> tuple[Array, Array, Array]:
        return alpha, gradient, jnp.int32(0)

    alpha, gradient, rounds = lax.cond(wanted, step, skip, state.alpha, state.gradient)
    # The last working sets say nothing about the new point.
    memory = None if state.memory is None else no_memory()
    return progress._replace(
        state=state._replace(alpha=alpha, gradient=gradient, memory=memory),
        newton_steps=progress.newton_steps + rounds,
    )


def best_point(program: QuadraticProgram, progress: Progress) -> Vector:
    """Return the point to hand back: where it did not converge, the best one that was seen."""
    anchor = progress.anchor

    def better(alpha: Array) -> Array:
        alpha = _with_sums(program, alpha)
        gradient = program.gradient(alpha)
        objective, violation = program.objective(alpha, gradient), gap(program, alpha, gradient)
        better = _is_better(program, alpha, objective, violation, anchor)
        return jnp.where(better, alpha, anchor.alpha)

    converged = progress.status == Status.CONVERGED
    return lax.cond(converged, lambda alpha: alpha, better, progress.state.alpha)


def fits(slots: int, free: Any, tuning: Tuning = DEFAULT) -> Any:
    """Tell whether all free variables find a slot, and a quarter of the slots (if many) is used."""
    roomy = slots > 2 * tuning.slots[0]
    return (free <= slots) & ((4 * free > slots) | (not roomy))


def _refresh(program: QuadraticProgram, progress: Progress) -> Progress:
    """Restore the sums of the groups to rounding level and compute G from scratch."""
    alpha = _with_sums(program, progress.state.alpha)
    state = progress.state._replace(alpha=alpha, gradient=program.gradient(alpha))
    return progress._replace(state=state)


def _with_sums(program: QuadraticProgram, alpha: Array) -> Array:
    members = [program.members(group) for group in range(program.group_count)]
    return restored_sums(alpha, program.lower, program.upper, members, program.totals)


def _is_unbounded(program: QuadraticProgram, state: State, objective: Array, fresh: Array) -> Array:
    hessian, alpha, gradient = program.hessian, state.alpha, state.gradient
    endless = jnp.isinf(program.upper) | jnp.isinf(program.lower)
    scale, ridge, eps = hessian.scale(), hessian.ridge_vector(), jnp.finfo(alpha.dtype).eps
    # A ridge bounds the objective; a variable without cost (a slack) does not change it.
    neutral = (hessian.diagonal() == 0) & (program.linear == 0)
    open_box = jnp.any(endless & (ridge == 0) & ~neutral)
    largest, violation = jnp.max(jnp.abs(program.linear)), gap(program, alpha, gradient)
    fallen = open_box & is_unbounded(objective, violation, largest, scale, eps)
    overflown = jnp.any(endless) & ~jnp.isfinite(objective)
    proven = fresh & is_endless(program, alpha, gradient, scale, ridge, eps)
    return fallen | overflown | proven
