"""Independent witnesses: a generic QP solver and NumPy twins of the papers' algorithms.

Nothing here uses jsvm. The twins follow the printed algorithms line by line, with plain loops.
"""

from typing import Any, NamedTuple

import clarabel as clarabel_module
import numpy as np
from scipy import sparse

clarabel: Any = clarabel_module  # a compiled module without type stubs


def solve_qp(Q, linear, lower, upper, groups, totals, l1=0.0):
    """Minimise ½aᵀQa − lᵀa + ε‖a‖₁ by an interior-point method; returns (a, value)."""
    n = len(linear)
    Q = 0.5 * (Q + Q.T)
    split = l1 > 0
    size = 2 * n if split else n
    P = np.zeros((size, size))
    P[:n, :n] = Q + 1e-14 * np.trace(Q) / n * np.eye(n)
    q = np.concatenate([-linear, np.full(n, l1)]) if split else -linear
    rows, right, cones = [], [], []
    if groups is not None:
        equal = np.zeros((len(totals), size))
        for g in range(len(totals)):
            equal[g, :n] = groups == g
        rows.append(equal)
        right.append(np.asarray(totals, float))
        cones.append(clarabel.ZeroConeT(len(totals)))
    eye = np.eye(n, size)
    at_most = [eye[np.isfinite(upper)], -eye[np.isfinite(lower)]]
    bounds = [upper[np.isfinite(upper)], -lower[np.isfinite(lower)]]
    if split:  # |a| ≤ t
        t = np.eye(n, size, k=n)
        at_most += [eye - t, -eye - t]
        bounds += [np.zeros(n), np.zeros(n)]
    rows.append(np.concatenate(at_most))
    right.append(np.concatenate(bounds))
    cones.append(clarabel.NonnegativeConeT(len(right[-1])))
    A, b = sparse.csc_matrix(np.concatenate(rows)), np.concatenate(right)
    for tolerance in (1e-11, 1e-10, 1e-9, 1e-8):  # the tightest that is reached
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
        P_upper = sparse.csc_matrix(np.triu(P))
        result = clarabel.DefaultSolver(P_upper, q, A, b, cones, settings).solve()
        if result.status == clarabel.SolverStatus.Solved:
            break
    else:
        raise AssertionError(f"the reference solver failed: {result.status}")
    a = np.array(result.x)[:n]
    return a, 0.5 * a @ Q @ a - linear @ a + l1 * np.abs(a).sum()


class Trace(NamedTuple):
    """Where a twin arrived, by which pairs, and how many of them rounding had no say in.

    After a free step G_i = G_j up to rounding. When the two are then the largest, the choice of the
    next pair is a toss; from there on two right implementations part.
    """

    alpha: np.ndarray
    pairs: list[tuple[int, int]]
    stuck: bool
    certain: int


def is_toss(G, alpha, L, U):
    """Whether the largest G that can go up, or the smallest that can go down, is a near tie."""
    ups, downs = np.sort(G[alpha < U]), np.sort(G[alpha > L])
    ties = [ups[-1] - ups[-2] if len(ups) > 1 else 1.0]
    ties.append(downs[1] - downs[0] if len(downs) > 1 else 1.0)
    return min(ties) < 1e-12


def gap(G, alpha, L, U):
    return G[alpha < U].max(initial=-np.inf) - G[alpha > L].min(initial=np.inf)


def pair_values(K, G, alpha, L, U, i, j):
    """Slope, curvature and room of the pair (i, j)."""
    slope = G[i] - G[j]
    curvature = max(K[i, i] + K[j, j] - 2 * K[i, j], 1e-300)
    room = min(U[i] - alpha[i], alpha[j] - L[j])
    return slope, curvature, room


def true_gain(K, G, alpha, L, U, i, j):
    slope, curvature, room = pair_values(K, G, alpha, L, U, i, j)
    mu = min(slope / curvature, room)
    return mu * slope - 0.5 * curvature * mu**2


def newton_gain(K, G, alpha, L, U, i, j):
    slope, curvature, _ = pair_values(K, G, alpha, L, U, i, j)
    return 0.5 * slope**2 / curvature


def violating(G, alpha, L, U, i, j):
    return i != j and alpha[i] < U[i] and alpha[j] > L[j] and G[i] > G[j]


def best_pair(pairs, gain):
    best, largest = None, 0.0
    for pair in pairs:
        value = gain(*pair)
        if value > largest:
            best, largest = pair, value
    return best


def select(name, K, G, alpha, L, U, previous):
    """The pair that a selection rule of Glasmachers 2008 chooses, or None."""
    n = len(G)
    state = (G, alpha, L, U)
    up = [i for i in range(n) if alpha[i] < U[i]]
    down = [j for j in range(n) if alpha[j] > L[j]]
    steepest = max(up, key=lambda i: G[i])
    if name == "most_violating":
        return steepest, min(down, key=lambda j: G[j])
    if name == "greedy":
        pairs = [(i, j) for i in up for j in down if violating(*state, i, j)]
        return best_pair(pairs, lambda i, j: true_gain(K, *state, i, j))
    if name == "hybrid_maximum_gain" and previous is not None:
        inside = [
            L[k] + 1e-8 * (U[k] - L[k]) <= alpha[k] <= U[k] - 1e-8 * (U[k] - L[k]) for k in previous
        ]
        name = "maximum_gain" if any(inside) else "second_order"
    if name == "maximum_gain" and previous is not None:
        related = [(a, k) for a in previous for k in range(n)]
        related += [(k, a) for a in previous for k in range(n)]
        pairs = [pair for pair in related if violating(*state, *pair)]
        return best_pair(pairs, lambda i, j: true_gain(K, *state, i, j))
    pairs = [(steepest, j) for j in down if violating(*state, steepest, j)]
    return best_pair(pairs, lambda i, j: newton_gain(K, *state, i, j))


def smo(K, y, L, U, *, selection="second_order", factor=1.0, tol=1e-3, max_steps=100_000):
    """Algorithm 4.2 of Glasmachers 2008."""
    alpha, G, pairs, certain = np.zeros(len(y)), y.astype(float).copy(), [], None
    while gap(G, alpha, L, U) > tol and len(pairs) < max_steps:
        if pairs and certain is None and is_toss(G, alpha, L, U):
            certain = len(pairs)
        pair = select(selection, K, G, alpha, L, U, pairs[-1] if pairs else None)
        if pair is None:
            break
        i, j = pair
        slope, curvature, room = pair_values(K, G, alpha, L, U, i, j)
        mu = min(factor * slope / curvature, room)
        move(K, G, alpha, L, U, i, j, mu)
        pairs.append(pair)
    stuck = gap(G, alpha, L, U) > tol and len(pairs) < max_steps
    return Trace(alpha, pairs, stuck, len(pairs) if certain is None else certain)


def move(K, G, alpha, L, U, i, j, mu):
    """Move a pair in place; exactly to the bound where the step ends there."""
    new_i = U[i] if mu == U[i] - alpha[i] else alpha[i] + mu
    new_j = L[j] if mu == alpha[j] - L[j] else alpha[j] - mu
    alpha[i], alpha[j] = new_i, new_j
    G -= mu * (K[i] - K[j])


def planning_ahead_smo(K, y, L, U, *, recent=1, eta=0.9, tol=1e-3, max_steps=100_000):
    """Algorithms 7.2 and 7.3 of Glasmachers 2008 with the `recent` last working sets (7.2.4)."""
    alpha, G = np.zeros(len(y)), y.astype(float).copy()
    pairs: list[tuple[int, int]] = []
    was_planned = was_free = False
    ratio, certain = 1.0, None
    while gap(G, alpha, L, U) > tol and len(pairs) < max_steps:
        if pairs and certain is None and is_toss(G, alpha, L, U):
            certain = len(pairs)
        state = (G, alpha, L, U)
        steepest = max((i for i in range(len(y)) if alpha[i] < U[i]), key=lambda i: G[i])
        trusted = not was_planned or 1 - eta <= ratio <= 1 + eta
        gain = newton_gain if trusted else true_gain
        candidates = [(steepest, j) for j in range(len(y)) if violating(*state, steepest, j)]
        chosen = best_pair(candidates, lambda a, b, gain=gain, state=state: gain(K, *state, a, b))
        assert chosen is not None  # the gap is positive
        i, j = chosen
        if was_planned:
            best = gain(K, *state, i, j)
            for a, b in pairs[-2 : -2 - recent : -1]:
                a, b = (a, b) if G[a] >= G[b] else (b, a)
                if violating(*state, a, b) and gain(K, *state, a, b) > best:
                    (i, j), best = (a, b), gain(K, *state, a, b)
        slope, curvature, high = pair_values(K, *state, i, j)
        low = max(L[i] - alpha[i], alpha[j] - U[j])
        newton = slope / curvature
        mu, planned, double_gain = min(newton, high), False, -np.inf
        if was_free:
            for a, b in pairs[-1 : -1 - recent : -1]:
                w2 = G[a] - G[b]
                q22 = K[a, a] + K[b, b] - 2 * K[a, b]
                q12 = K[i, a] - K[i, b] - K[j, a] + K[j, b]
                determinant = curvature * q22 - q12**2
                if determinant <= 1e-14 * curvature * q22:
                    continue
                step = (q22 * slope - q12 * w2) / determinant
                after = alpha.copy()
                after[i] += step
                after[j] -= step
                then = (w2 - q12 * step) / q22
                fits = low < step < high
                fits = fits and max(L[a] - after[a], after[b] - U[b]) < then
                fits = fits and then < min(U[a] - after[a], after[b] - L[b])
                value = slope * step + w2 * then
                value -= 0.5 * (curvature * step**2 + 2 * q12 * step * then + q22 * then**2)
                if fits and certain is None and abs(value - double_gain) < 1e-12 * abs(value):
                    certain = len(pairs)  # two sets that span the same plane promise the same
                if fits and value > double_gain:
                    mu, planned, double_gain = step, True, value
        was_planned, was_free, ratio = planned, not planned and mu == newton, mu / newton
        move(K, G, alpha, L, U, i, j, mu)
        pairs.append((i, j))
    return Trace(alpha, pairs, False, len(pairs) if certain is None else certain)
