"""From decision values to probabilities: P(positive | f) = 1 / (1 + exp(A f + B)).

Platt's sigmoid has two parameters (Glasmachers 2008, section 9.2.1), fitted by maximum likelihood
on targets that his uniform prior moves away from 0 and 1,

    t₊ = (N₊ + 1) / (N₊ + 2),    t₋ = 1 / (N₋ + 2),

so that there is a finite optimum also where the decision values separate the classes. The sigmoid
of section 9.2.2 there has B = 0: σ(0) = ½, and the probability never contradicts the sign of f. The
negative log-likelihood is convex, and Newton's method with backtracking finds its minimum.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Real

from jsvm._typing import Array

# Of Newton's method, as in LIBSVM where it has the same parameter.
MOST_STEPS = 100
SHORTEST_STEP = 1e-10  # relative to Newton's
SUFFICIENT_DECREASE = 1e-4  # relative to what the slope promises
GRADIENT_TOLERANCE = 1e-10  # relative to the weight of all examples
LEAST_SLOPE = 1e-3  # of −A times the largest |f|: the sigmoid of one parameter stays increasing


class Logistic(NamedTuple):
    """A sigmoid P(positive | f) = 1 / (1 + exp(A f + B)): A is the slope, B the offset."""

    slope: float
    offset: float

    def probability(self, decisions: Real[Array, "*n"]) -> Float[Array, "*n"]:
        """Return P(positive) of decision values.

        Examples
        --------
        >>> float(Logistic(-1.0, 0.0).probability(np.zeros(1))[0])
        0.5
        """
        return _logistic(-(self.slope * np.asarray(decisions, np.float64) + self.offset))


def fit_platt(
    decisions: Real[Array, " n"], signs: Real[Array, " n"], weight: Real[Array, " n"] | None = None
) -> Logistic:
    """Fit both parameters.

    Parameters
    ----------
    decisions : array of shape (n,)
        Decision values of examples that the machine was not trained on.
    signs : array of shape (n,), labels −1 and +1
    weight : array of shape (n,), optional

    Examples
    --------
    >>> f = np.array([-2.0, -1.0, -0.5, 0.4, 1.0, 2.0])
    >>> sigmoid = fit_platt(f, np.array([-1.0, -1.0, 1.0, -1.0, 1.0, 1.0]))
    >>> bool(sigmoid.slope < 0)
    True
    """
    f, positive, weight = _prepared(decisions, signs, weight)
    targets, (positives, negatives) = _targets(positive, weight)
    design = np.stack([f, np.ones_like(f)], axis=1)
    start = np.array([0.0, np.log((negatives + 1.0) / (positives + 1.0))])
    slope, offset = _newton(design, targets, weight, start)
    return Logistic(float(slope), float(offset))


def fit_slope(
    decisions: Real[Array, " n"], signs: Real[Array, " n"], weight: Real[Array, " n"] | None = None
) -> Logistic:
    """Fit A < 0 alone; B = 0.

    Examples
    --------
    >>> fit_slope(np.array([-1.0, 1.0]), np.array([-1.0, 1.0])).offset
    0.0
    """
    f, positive, weight = _prepared(decisions, signs, weight)
    targets, _ = _targets(positive, weight)
    (slope,) = _newton(f[:, None], targets, weight, np.zeros(1))
    largest = np.abs(f).max(initial=0.0)
    return Logistic(float(min(slope, -LEAST_SLOPE / largest if largest > 0 else -1.0)), 0.0)


def couple(pairwise: Float[Array, "n pairs"], classes: int) -> Float[Array, "n classes"]:
    """Return the probabilities of the classes from those of all pairs of them.

    With r_ab the probability of a against b, the p ≥ 0 of sum one that minimises
    Σ_{a≠b} (r_ba p_a − r_ab p_b)² (the second method of Wu, Lin and Weng 2004, also LIBSVM's); one
    linear system for each example.

    Examples
    --------
    >>> [round(float(p), 3) for p in couple(np.full((1, 3), 0.5), 3)[0]]
    [0.333, 0.333, 0.333]
    """
    n = pairwise.shape[0]
    r = np.zeros((n, classes, classes))
    first, second = np.triu_indices(classes, 1)
    clipped = np.clip(pairwise, 1e-7, 1.0 - 1e-7)
    r[:, first, second], r[:, second, first] = clipped, 1.0 - clipped
    system = np.zeros((n, classes + 1, classes + 1))
    inner = system[:, :classes, :classes]
    inner[:] = -r * np.swapaxes(r, 1, 2)
    diagonal = np.arange(classes)
    inner[:, diagonal, diagonal] = (r**2).sum(axis=1)  # Σ_b r_ba²
    system[:, :classes, classes] = system[:, classes, :classes] = 1.0
    right = np.zeros((n, classes + 1, 1))
    right[:, classes] = 1.0
    p = np.maximum(np.linalg.solve(system, right)[:, :classes, 0], 0.0)
    return p / p.sum(axis=1, keepdims=True)


def _prepared(
    decisions: Real[Array, " n"], signs: Real[Array, " n"], weight: Real[Array, " n"] | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    f, positive = np.asarray(decisions, np.float64), np.asarray(signs) > 0
    if not np.isfinite(f).all():
        raise ValueError("decisions must be finite")
    return f, positive, np.ones_like(f) if weight is None else np.asarray(weight, np.float64)


def _targets(positive: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, tuple[float, float]]:
    positives, negatives = float(weight[positive].sum()), float(weight[~positive].sum())
    return np.where(positive, (positives + 1) / (positives + 2), 1 / (negatives + 2)), (
        positives,
        negatives,
    )


def _newton(
    design: np.ndarray, targets: np.ndarray, weight: np.ndarray, start: np.ndarray
) -> np.ndarray:
    """Minimise Σ w (t z + log(1 + exp(−z))) with z = design @ parameters, from `start`."""
    # Columns of one scale: the system below is then well conditioned whatever the unit of f.
    unit = np.maximum(np.abs(design).max(axis=0, initial=0.0), np.finfo(float).tiny)
    design, parameters = design / unit, start * unit
    ridge = 1e-12 * np.eye(len(start))

    def loss(parameters: np.ndarray) -> float:
        z = design @ parameters
        return float(weight @ (targets * z + np.logaddexp(0.0, -z)))

    value = loss(parameters)
    for _ in range(MOST_STEPS):
        p = _logistic(-(design @ parameters))  # P(positive)
        gradient = design.T @ (weight * (targets - p))
        if np.abs(gradient).max() <= GRADIENT_TOLERANCE * weight.sum():
            break
        hessian = design.T @ (design * (weight * p * (1.0 - p))[:, None])
        scale = np.trace(hessian) + np.finfo(float).tiny
        step = -np.linalg.solve(hessian + scale * ridge, gradient)
        length, slope = 1.0, float(gradient @ step)
        while length >= SHORTEST_STEP:
            tried = loss(parameters + length * step)
            if tried <= value + SUFFICIENT_DECREASE * length * slope:
                break
            length /= 2.0
        else:
            break  # the limit of rounding: no step decreases the loss
        parameters, value = parameters + length * step, tried
    return parameters / unit


def _logistic(z: np.ndarray) -> np.ndarray:
    """Return 1 / (1 + exp(−z)) without overflow."""
    return np.exp(-np.logaddexp(0.0, -z))
