"""NoisyRprop: descent with gradients that are right on average (Glasmachers 2008, chapter 11).

Every coordinate walks by itself. It adds M gradients to G, makes a step −sign(G) δ, and repeats.
After an episode of N steps it adapts. With x(k) its places and t = 0, …, I,

    S₁ = |x(N) − x(0)| / (δ√N)                                     does it have a direction?
    S₂ = (max x(⌊tN/I⌋) − min x(⌊tN/I⌋)) / (δ√N)                   or does it go to and fro?
    S₃ = √N |R/r − L/l| / ((R + L)/N)                              is G as far right as left?

where R, L are the sums of |G| over the r steps to the right and the l steps to the left. For a walk
without any drift, and a normal G, S₁ is below 0.25 (above 1.64) in 20 % (10 %) of all cases, S₂
below 0.95 (above 1.77) in 10 % (25 %), S₃ below 0.29 (above 2.5) in 15 % (10 %). Then

    if S₁ < 0.25 and N > N_min:  N ← N/2
    else:  if S₁ > 1.64:  N ← 2N
           if S₂ < 0.95:  δ ← δ/2, N ← 2N        if S₂ > 1.77:  δ ← 2δ, N ← N/2
    if S₃ < 0.29 and M > 1:  M ← M/2, N ← 2N     if S₃ > 2.5:   M ← 2M, N ← N/2

and N ← max(N, N_min). Without averaging, M = 1, the walk would end where the median of the
derivative is zero; growing M leads to the zero of its mean.

**How this differs from Algorithm 11.2.** S₃ is that of section 11.3.3, and the places are those of
the formula of S₂ with N/I for I/N (as printed, only the beginning of a long episode counts). The
counter k is reset. The conditions on S₁ are printed the other way round: N/2 for a large S₁ and
otherwise 2N for a small one, then S₂; the text says that δ should also change with S₁, and N the
opposite way. Steps until |x| < 1e-309 in test case f⁽¹⁾, where Figure 11.1 has "about 230,000"
(mean ± standard deviation of 40 runs from 1.0 to 1.1, δ = 0.01):

    as printed                                              never (median 4e-4 after 300,000)
    δ after S₁, too (section 11.3.2)                        never (median 1e-5 after 300,000)
    S₁ interchanged, S₂ always                              never (median 3e-59 after 300,000)
    S₁ interchanged, S₂ only in the else branch             252,000 ± 5,000
    the same, with the condition N > N_min as above         185,000 ± 7,000

Near the optimum S₁ and S₂ are small in a long episode: the first two readings double N each time.
The fourth, the only one of some 3,900 combinations of rules that is near to the figure and to the
print, can get stuck: where the gradient has little noise the coordinate jumps to and fro over the
optimum, S₁ is 0, N cannot become shorter and S₂ is never tested. For (x − m)² with a standard
deviation of m of 0.01, 10⁶ steps leave a median distance of 3e-2, and 3e-5 with the rule above. On
f⁽²⁾, f⁽³⁾, f⁽⁴⁾ all five converge, as the captions of Figures 11.2 and 11.3 say. The 75 % quantile
of S₂ is 1.75 if it is simulated with I = 100; 1.77 is kept.

**Numbers.** Places are counted in steps from the beginning of the episode, so that S₁ and S₂ have
no rounding errors, and only the extreme ones are kept. N and M are at most 2²⁷. δ does not fall
below the smallest normal number; on a plateau only `largest` stops it. A derivative that is not
finite is not counted, as if there had been no call for this coordinate. A statistic that is not
defined (no step to the left, say) changes nothing.
"""

import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from jsvm.optim.rprop import (
    at_least_single,
    check_steps,
    clip_step,
    coordinatewise,
    filled,
    finite_or_zero,
)

# Below the first and above the second number a statistic is extreme: quantiles of a walk without
# drift (Glasmachers 2008, section 11.3.4).
DRIFT = (0.25, 1.64)  # S₁
RANGE = (0.95, 1.77)  # S₂
ASYMMETRY = (0.29, 2.5)  # S₃

LONGEST = 2**27  # steps of an episode, gradients of a step: three doublings at once fit 32 bits


class NoisyRpropState(NamedTuple):
    """Pytrees like the parameters: strategy, gradients added so far, and the episode so far."""

    step: Any  # δ
    length: Any  # N
    averages: Any  # M
    total: Any  # G
    drawn: Any  # gradients in G
    taken: Any  # steps k of this episode
    phase: Any  # k I modulo N
    place: Any  # x(k) − x(0) in units of δ
    lowest: Any
    highest: Any
    left: Any  # L, l, R and r
    left_count: Any
    right: Any
    right_count: Any


def noisy_rprop(
    step: float,
    *,
    shortest: int = 40,
    intervals: int = 100,
    smallest: float = 0.0,
    largest: float = 50.0,
) -> optax.GradientTransformationExtraArgs:
    """Make NoisyRprop (Glasmachers 2008, Algorithm 11.2, as corrected above).

    Parameters
    ----------
    step : float
        Initial step size δ of every coordinate.
    shortest : int
        Length of the first episode, and of the shortest, N_min.
    intervals : int
        Number I of places of an episode at which its range is taken; the quantiles are for 100.
    smallest, largest : float
        Bounds of the step sizes.

    Returns a transformation of a random gradient, whose mean is that of a function to be minimised;
    its updates are to be added. Most of them are zero once averages are taken.

    Examples
    --------
    >>> import jax, optax
    >>> optimiser = noisy_rprop(0.01)
    >>> def descend(carry, key):
    ...     x, state = carry
    ...     noise = jax.random.normal(key, x.shape, x.dtype)
    ...     update, state = optimiser.update(2 * (x - 3.0) + noise, state)
    ...     return (optax.apply_updates(x, update), state), None
    >>> x = jax.numpy.array([0.0, 10.0])
    >>> keys = jax.random.split(jax.random.key(0), 20_000)
    >>> (x, _), _ = jax.lax.scan(descend, (x, optimiser.init(x)), keys)
    >>> bool(abs(x - 3.0).max() < 0.1)
    True
    """
    check_steps(step, smallest, largest)
    for name, count in (("shortest", shortest), ("intervals", intervals)):
        if not (isinstance(count, int) and 1 <= count <= 2**20):
            raise ValueError(f"{name}={count} has to be an integer from 1 to 2**20")
    longest = shortest * 2 ** int(math.log2(LONGEST / shortest))

    def init(params: Any) -> NoisyRpropState:
        def counts(value: int) -> Any:
            return jax.tree.map(lambda leaf: jnp.full(leaf.shape, value, jnp.int32), steps)

        steps = filled(params, step)
        values = {name: filled(params, 0.0) for name in ("total", "left", "right")}
        values |= {name: counts(0) for name in NoisyRpropState._fields if name not in values}
        values |= {"step": steps, "length": counts(shortest), "averages": counts(1)}
        return NoisyRpropState(**values)

    def move(gradient: jax.Array, old: NoisyRpropState) -> tuple[jax.Array, NoisyRpropState]:
        walked, change = _walk(gradient, old, intervals)
        return change, _adapt(walked, shortest, longest, smallest, largest)

    return coordinatewise(init, move)


def _walk(
    gradient: jax.Array, old: NoisyRpropState, intervals: int
) -> tuple[NoisyRpropState, jax.Array]:
    """Add a gradient, make a step where there are M of them, and update the statistics."""
    counted = jnp.isfinite(gradient)
    total = old.total + finite_or_zero(gradient)
    drawn = old.drawn + _one(counted)
    ready = counted & (drawn >= old.averages)
    to_left, to_right = ready & (total > 0), ready & (total < 0)
    place = old.place - _one(to_left) + _one(to_right)
    phase = jnp.where(ready, (old.phase + intervals) % old.length, old.phase)
    # Some t has ⌊tN/I⌋ = k if a multiple of N is among kI, …, (k + 1)I − 1.
    seen = ready & ((phase == 0) | (phase + intervals > old.length))
    new = old._replace(
        total=jnp.where(ready, 0, total),
        drawn=jnp.where(ready, 0, drawn),
        taken=old.taken + _one(ready),
        phase=phase,
        place=place,
        lowest=jnp.where(seen, jnp.minimum(old.lowest, place), old.lowest),
        highest=jnp.where(seen, jnp.maximum(old.highest, place), old.highest),
        left=old.left + jnp.where(to_left, total, 0),
        left_count=old.left_count + _one(to_left),
        right=old.right - jnp.where(to_right, total, 0),
        right_count=old.right_count + _one(to_right),
    )
    return new, jnp.where(to_left, -old.step, jnp.where(to_right, old.step, 0))


def _adapt(
    old: NoisyRpropState, shortest: int, longest: int, smallest: float, largest: float
) -> NoisyRpropState:
    """Change δ, N and M where an episode has ended, and begin the next one there."""
    ended = old.taken >= old.length
    # Half precision cannot represent the counts of a long episode.
    root = jnp.sqrt(old.length.astype(at_least_single(old.step)))
    drift = jnp.abs(old.place).astype(root.dtype) / root
    extent = (old.highest - old.lowest).astype(root.dtype) / root
    asymmetry, defined = _asymmetry(old, root)

    shorten = (drift < DRIFT[0]) & (old.length > shortest)
    finer, coarser = ~shorten & (extent < RANGE[0]), ~shorten & (extent > RANGE[1])
    more = defined & (asymmetry > ASYMMETRY[1])
    fewer = defined & (asymmetry < ASYMMETRY[0]) & (old.averages > 1)
    longer = _one(drift > DRIFT[1]) + _one(finer) + _one(fewer)
    shorter = _one(shorten) + _one(coarser) + _one(more)

    step = jnp.where(finer, old.step / 2, jnp.where(coarser, 2 * old.step, old.step))
    strategy = {
        "step": clip_step(step, smallest, largest),
        "length": jnp.clip(_doubled(old.length, longer - shorter), shortest, longest),
        "averages": jnp.minimum(_doubled(old.averages, _one(more) - _one(fewer)), LONGEST),
    }
    zero = jax.tree.map(jnp.zeros_like, old)  # all else starts again
    return jax.tree.map(partial(jnp.where, ended), zero._replace(**strategy), old)


def _one(condition: jax.Array) -> jax.Array:
    return condition.astype(jnp.int32)


def _doubled(count: jax.Array, times: jax.Array) -> jax.Array:
    """Double a count, or halve it if `times` is negative."""
    return (count << jnp.maximum(times, 0)) >> jnp.maximum(-times, 0)


def _asymmetry(old: NoisyRpropState, root: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return |S₃| and where it is defined: steps to both sides, sums that did not overflow."""
    left, right = old.left.astype(root.dtype), old.right.astype(root.dtype)
    defined = (old.left_count > 0) & (old.right_count > 0) & jnp.isfinite(left + right)
    # Zero over one where it is not defined, so that no NaN ever appears.
    left, right = (jnp.where(defined, part, 0) for part in (left, right))
    left_mean = left / jnp.maximum(old.left_count, 1).astype(root.dtype)
    right_mean = right / jnp.maximum(old.right_count, 1).astype(root.dtype)
    mean = jnp.where(defined, (left + right) / old.length.astype(root.dtype), 1)
    defined &= mean > 0
    return root * jnp.abs(right_mean - left_mean) / jnp.where(mean > 0, mean, 1), defined
