"""Probabilities of a classifier, fitted to decision values of examples left out of training.

    P(positive | f) = 1 / (1 + exp(A f + B))

Platt's sigmoid has two parameters (Glasmachers 2008, section 9.2.1), fitted by maximum likelihood
on targets that his uniform prior moves away from 0 and 1,

    t₊ = (N₊ + 1) / (N₊ + 2),    t₋ = 1 / (N₋ + 2),

so that there is a finite optimum also where the decision values separate the classes. The sigmoid
of section 9.2.2 there has B = 0: σ(0) = ½, and the probability never contradicts the sign of f. The
negative log-likelihood is convex, and Newton's method with backtracking finds its minimum.
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Real

from jsvm._typing import Array
from jsvm.estimators.two_class import Training
from jsvm.numerics.arrays import is_sparse
from jsvm.validation.parts import Part, values_of_some
from jsvm.validation.splits import deal, train_and_test

FOLDS = 5  # as in LIBSVM

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
        """Return P(positive) of decision values."""
        return _logistic(-(self.slope * np.asarray(decisions, np.float64) + self.offset))


def fit_platt(values: np.ndarray, signs: np.ndarray, weight: np.ndarray | None = None) -> Logistic:
    """Fit both parameters to decision values of examples with labels ±1."""
    f, targets, weight, (positives, negatives) = _prepared(values, signs, weight)
    design = np.stack([f, np.ones_like(f)], axis=1)
    start = np.array([0.0, np.log((negatives + 1.0) / (positives + 1.0))])
    slope, offset = _newton(design, targets, weight, start)
    return Logistic(float(slope), float(offset))


def fit_slope(values: np.ndarray, signs: np.ndarray, weight: np.ndarray | None = None) -> Logistic:
    """Fit A < 0 alone; B = 0."""
    f, targets, weight, _ = _prepared(values, signs, weight)
    (slope,) = _newton(f[:, None], targets, weight, np.zeros(1))
    largest = np.abs(f).max(initial=0.0)
    return Logistic(float(min(slope, -LEAST_SLOPE / largest if largest > 0 else -1.0)), 0.0)


METHODS = {"platt": fit_platt, "sigmoid": fit_slope}


def fit_sigmoids(
    method: str, X: Any, training: Training, problems: list[Part], seed: Any
) -> list[Logistic]:
    """Return a sigmoid for each problem; `X` are the points of the training."""
    parts, held_out, kinds = [], [], row_kinds(X)
    decisions = [np.zeros(len(problem.examples)) for problem in problems]
    for k, problem in enumerate(problems):
        folds = _folds(kinds[problem.examples], problem.targets, seed)
        for _, held in train_and_test(folds):
            part = problem.without(held)
            if abs(part.targets.sum()) == len(part.targets):  # one class
                decisions[k][held] = part.targets[:1]  # a margin of one, as in LIBSVM
            else:
                parts.append(part)
                held_out.append((k, held))
    solutions = training.solve(parts) if parts else []
    for part, solution, (k, held) in zip(parts, solutions, held_out, strict=True):
        beta, bias = training.function(part, solution)
        given = part.examples, beta, problems[k].examples[held]
        decisions[k][held] = values_of_some(training.K, *given, training.dtype) + bias
    pairs = zip(decisions, problems, strict=True)
    return [METHODS[method](f, problem.targets, problem.weights) for f, problem in pairs]


def row_kinds(X: Any) -> np.ndarray:
    """Return a number for each row of X, the same for equal rows; their order is the rows'."""
    if is_sparse(X):
        X = X.tocsr(copy=True)
        X.sum_duplicates()
        X.eliminate_zeros()
        ends = zip(X.indptr[:-1], X.indptr[1:], strict=True)
        rows = [X.indices[a:b].tobytes() + X.data[a:b].tobytes() for a, b in ends]
    else:
        rows = [row.tobytes() for row in X + 0.0]  # −0 is 0
    numbers = {row: k for k, row in enumerate(sorted(set(rows)))}
    return np.array([numbers[row] for row in rows])


def _folds(kinds: np.ndarray, signs: np.ndarray, seed: int) -> np.ndarray:
    """Return the fold of every example: stratified, drawn at random, copies in the same one.

    So the sigmoid is never fitted to a copy of a training example, an example of weight w counts as
    w copies of it, and the order of the examples does not matter.
    """
    distinct = [np.unique(kinds[signs == sign]) for sign in (1, -1)]
    count = max(2, min(FOLDS, *(len(some) for some in distinct)))
    rng = np.random.default_rng(seed)
    first, second = (np.argsort(rng.permutation(len(some))) for some in distinct)
    fold = deal(np.concatenate([first, len(first) + second]), count)
    places = [np.searchsorted(some, kinds) for some in distinct]
    return fold[np.where(signs > 0, places[0], len(first) + places[1])]


def probabilities(
    decisions: np.ndarray, sigmoids: list[Logistic], classes: int, pairs: bool
) -> np.ndarray:
    """Return the probability of every class; those of pairs are coupled, others normalised."""
    each = np.stack([s.probability(f) for s, f in zip(sigmoids, decisions.T, strict=True)], axis=1)
    if classes == 2:
        return np.concatenate([each, 1.0 - each], axis=1)
    if pairs:
        return np.asarray(couple(each, classes))
    sums = each.sum(axis=1, keepdims=True)
    return np.where(sums > 0, each / np.where(sums > 0, sums, 1.0), 1.0 / classes)


def couple(pairwise: Float[Array, "n pairs"], classes: int) -> Float[Array, "n classes"]:
    """Return the probabilities of the classes from those of all pairs of them.

    With r_ab that of a against b, p ≥ 0 of sum one minimises Σ_{a≠b} (r_ba p_a − r_ab p_b)² (the
    second method of Wu, Lin and Weng 2004, also LIBSVM's); one linear system for each example.
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
    decisions: np.ndarray, signs: np.ndarray, weight: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[float, float]]:
    """Return decisions, Platt's targets, weights, and the weights of both classes."""
    f, positive = np.asarray(decisions, np.float64), np.asarray(signs) > 0
    if not np.isfinite(f).all():
        raise ValueError("decisions must be finite")
    weight = np.ones_like(f) if weight is None else np.asarray(weight, np.float64)
    positives, negatives = float(weight[positive].sum()), float(weight[~positive].sum())
    targets = np.where(positive, (positives + 1) / (positives + 2), 1 / (negatives + 2))
    return f, targets, weight, (positives, negatives)


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
