"""The steps of Knebel et al. 2008 on one or two variables, and their block update.

Rows of Q are at hand only for variables that move. A variable stays on its side of zero during a
step: its box is [0, U] or [L, 0] by its sign, and a variable at zero tries both (eqs. 23, 24). F of
the paper is −G.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Float
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from jsvm._typing import Array
from jsvm.numerics.indexing import index_of_max

Two = tuple[Array, Array]  # what belongs to i, and to all k
HostVector = Float[np.ndarray, " n"]
MOST_BOUNDED = 4  # variables (Knebel et al. 2008, appendix B)


class RowCache(NamedTuple):
    """Rows of Q: `slot` tells where the row of a variable is, −1 for nowhere."""

    values: Array
    slot: Array
    diagonal: Array

    def row(self, j: Array) -> Array:
        """Return the row of variable j; any row if it is not there."""
        place = jnp.maximum(self.slot[j], 0)
        return lax.dynamic_index_in_dim(self.values, place, 0, keepdims=False)


class EpsilonBox(NamedTuple):
    """Bounds of the variables, and ε."""

    lower: Array
    upper: Array
    epsilon: Array

    def side(self, sign: float) -> tuple[Array, Array]:
        """Return the box on one side of zero (Knebel et al. 2008, eqs. 23, 24)."""
        zero = jnp.zeros_like(self.upper)
        return (zero, self.upper) if sign > 0 else (self.lower, zero)


class PaperState(NamedTuple):
    """The state between two steps."""

    alpha: Any
    gradient: Any
    changed: Any  # which variables changed since the last block optimisation
    bounded: Any  # which have hit ±C since then
    changed_count: Any = np.int32(0)
    bounded_count: Any = np.int32(0)
    since: Any = np.int32(0)  # steps since then
    steps: Any = np.int32(0)
    violation: Any = np.float64(np.inf)  # the largest d_j
    i: Any = np.int32(0)  # and where it is
    missing: Any = np.int32(-1)  # the variable whose row is wanted, or −1
    stuck: Any = np.bool_(False)  # whether the last step moved nothing


class PaperMove(NamedTuple):
    """New values of variables i and k; `missing` is a variable whose row is wanted first, or −1."""

    i: Array
    k: Array
    alpha_i: Array
    alpha_k: Array
    row_i: Array
    row_k: Array
    missing: Array


def single(rows: RowCache, box: EpsilonBox, state: PaperState, flat: float) -> PaperMove:
    """Minimise over α_i alone (Knebel et al. 2008, appendix A, eq. 28); `flat` is not used."""
    i, row = state.i, rows.row(state.i)
    now = best = state.alpha[i]
    for sign in (1.0, -1.0):
        low, high = box.side(sign)
        free = now + (state.gradient[i] - sign * box.epsilon) / rows.diagonal[i]
        new = jnp.clip(free, low[i], high[i])
        farther = jnp.abs(new - now) > jnp.abs(best - now)
        best = jnp.where((now * sign >= 0) & farther, new, best)
    missing = jnp.where(rows.slot[i] < 0, i, -1)
    return PaperMove(i, i, best, best, row, jnp.zeros_like(row), missing)


def dual(rows: RowCache, box: EpsilonBox, state: PaperState, flat: float) -> PaperMove:
    """Minimise over α_i and the α_k for which one of the two moves most (eqs. 22, 26)."""
    i, row, alpha, gradient = state.i, rows.row(state.i), state.alpha, state.gradient
    places = lax.iota(jnp.int32, alpha.shape[0])
    best = jnp.where(places == i, -1.0, 0.0), alpha[i] + 0.0 * alpha, alpha
    for sign_i in (1.0, -1.0):
        low, high = box.side(sign_i)
        for sign_k in (1.0, -1.0):
            new_i, new_k = minimise_pair(
                (alpha[i], alpha),
                (gradient[i] - sign_i * box.epsilon, gradient - sign_k * box.epsilon),
                (rows.diagonal[i], rows.diagonal, row),
                (low[i], high[i]),
                box.side(sign_k),
                flat,
            )
            allowed = (alpha[i] * sign_i >= 0) & (alpha * sign_k >= 0) & (places != i)
            far = jnp.maximum(jnp.abs(new_i - alpha[i]), jnp.abs(new_k - alpha))
            far = jnp.where(allowed, far, -1.0)
            better = far > best[0]
            best = tuple(
                jnp.where(better, new, old)
                for new, old in zip((far, new_i, new_k), best, strict=True)
            )
    k, _ = index_of_max(best[0])
    missing = jnp.where(rows.slot[i] < 0, i, jnp.where(rows.slot[k] < 0, k, -1))
    return PaperMove(i, k, best[1][k], best[2][k], row, rows.row(k), missing)


STEPS = {"single": single, "dual": dual}


def minimise_pair(
    alpha: Two, ascent: Two, Q: tuple[Array, ...], side_i: Two, side_k: Two, flat_pair: float
) -> Two:
    """Return the exact minimiser over two variables in their boxes, for one i and all k.

    `flat_pair` is the largest 1 − cos² at which the pair is moved one variable at a time. If the
    free minimum is inside (case A of Fig. 2) that is it. Otherwise the minimum is on the edge of a
    violated bound, with the other variable at its own optimum there, clipped to its box: one edge
    (B, C), or the better of two (D, E; both end in the same corner in F).
    """
    (a_i, a_k), (g_i, g_k), (Q_ii, Q_kk, Q_ik) = alpha, ascent, Q
    determinant = Q_ii * Q_kk - Q_ik**2
    flat = determinant <= flat_pair * Q_ii * Q_kk
    safe = jnp.where(flat, 1.0, determinant)
    free_i = a_i + jnp.where(flat, g_i / Q_ii, (g_i * Q_kk - g_k * Q_ik) / safe)
    free_k = a_k + jnp.where(flat, 0.0, (g_k * Q_ii - g_i * Q_ik) / safe)

    first_i = jnp.clip(free_i, *side_i)  # the edge of i
    first_k = jnp.clip(a_k + (g_k - Q_ik * (first_i - a_i)) / Q_kk, *side_k)
    second_k = jnp.clip(free_k, *side_k)  # the edge of k
    second_i = jnp.clip(a_i + (g_i - Q_ik * (second_k - a_k)) / Q_ii, *side_i)

    def value(new_i: Array, new_k: Array) -> Array:
        d_i, d_k = new_i - a_i, new_k - a_k
        half = 0.5 * (Q_ii * d_i**2 + Q_kk * d_k**2) + Q_ik * d_i * d_k
        return half - g_i * d_i - g_k * d_k

    outside_i, outside_k = first_i != free_i, second_k != free_k
    worse = value(second_i, second_k) < value(first_i, first_k)
    take_second = outside_k & (~outside_i | worse)
    inside = ~outside_i & ~outside_k & ~flat
    new_i = jnp.where(inside, free_i, jnp.where(take_second, second_i, first_i))
    new_k = jnp.where(inside, free_k, jnp.where(take_second, second_k, first_k))
    return new_i, new_k


def block_update(
    Q: np.ndarray, linear: HostVector, alpha: HostVector, lower: HostVector, upper: HostVector
) -> HostVector:
    """Return the minimiser of ½αᵀQα − lᵀα in the box, or α itself where that is given up.

    The recursion of Knebel et al. 2008, appendix B: the free minimum is found by Cholesky; if it
    leaves the box of at most four variables, one of them is fixed at its bound and the rest is
    solved again, and so on.

    Examples
    --------
    >>> one = np.ones(2)
    >>> block_update(np.eye(2), np.array([0.5, 3.0]), 0 * one, -one, one).tolist()
    [0.5, 1.0]
    """

    def value(alpha: np.ndarray) -> float:
        return float(0.5 * alpha @ Q @ alpha - linear @ alpha)

    def optimise(alpha: np.ndarray, members: list[int]) -> np.ndarray:
        """Solve for the members; the other variables keep their values."""
        if not members:
            return alpha
        others = [j for j in range(len(alpha)) if j not in members]
        right = linear[members] - Q[np.ix_(members, others)] @ alpha[others]
        factor = cho_factor(Q[np.ix_(members, members)], lower=True, check_finite=False)
        new = alpha.copy()
        new[members] = cho_solve(factor, right, check_finite=False)
        if not np.isfinite(new).all():
            raise LinAlgError
        cut = np.clip(new, lower, upper)
        bounded = [j for j in members if cut[j] != new[j]]
        if len(bounded) > MOST_BOUNDED:
            return alpha
        return reoptimise(cut, members, bounded, bounded[0]) if bounded else cut

    def reoptimise(
        alpha: np.ndarray, members: list[int], bounded: list[int], fixed: int
    ) -> np.ndarray:
        """Solve again with one variable fixed; another one that stays at its bound is tried too."""
        new = optimise(alpha, [j for j in members if j != fixed])
        rest = [j for j in bounded if j != fixed]
        stays = next((j for j in rest if new[j] == alpha[j]), None)
        return new if stays is None else reoptimise(alpha, members, rest, stays)

    try:
        found = optimise(alpha, list(range(len(alpha))))
    except LinAlgError:  # singular: leave it to pair steps
        return alpha
    # The recursion as printed may return a value of a branch that was given up.
    return found if value(found) <= value(alpha) else alpha
