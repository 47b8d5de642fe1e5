"""Probabilities of a classifier, fitted to decision values of examples left out of training."""

from typing import Any

import numpy as np

from jsvm.estimators.sigmoid import Logistic, couple, fit_platt, fit_slope
from jsvm.estimators.two_class import Training
from jsvm.evaluate import decision_values
from jsvm.kernels.sparse import is_sparse
from jsvm.solvers import Solution
from jsvm.validation.class_pairs import TwoClass
from jsvm.validation.splits import deal, train_and_test

METHODS = {"platt": fit_platt, "sigmoid": fit_slope}
FOLDS = 5  # as in LIBSVM


def fit_sigmoids(
    method: str, X: Any, training: Training, problems: list[TwoClass], seed: Any
) -> list[Logistic]:
    """Return a sigmoid for each problem; `X` are the points of the training."""
    parts, held_out, kinds = [], [], row_kinds(X)
    decisions = [np.zeros(len(problem.examples)) for problem in problems]
    for k, problem in enumerate(problems):
        folds = _folds(kinds[problem.examples], problem.signs, seed)
        for _, held in train_and_test(folds):
            part = problem.without(held)
            if abs(part.signs.sum()) == len(part.signs):  # one class: a margin of one, as in LIBSVM
                decisions[k][held] = part.signs[:1]
            else:
                parts.append(part)
                held_out.append((k, held))
    solutions = training.solve(parts) if parts else []
    for part, solution, (k, held) in zip(parts, solutions, held_out, strict=True):
        others = problems[k].examples[held]
        decisions[k][held] = _decisions(training, part, solution, others)
    return [
        METHODS[method](f, problem.signs, training.weights[problem.examples])
        for f, problem in zip(decisions, problems, strict=True)
    ]


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


def _decisions(
    training: Training, problem: TwoClass, solution: Solution, others: np.ndarray
) -> np.ndarray:
    """Return the decision values of other examples."""
    K, (beta, bias) = training.K, training.function(problem, solution)
    used = np.flatnonzero(beta)
    points = problem.examples[used]
    if isinstance(K, tuple):
        kernel, X = K
        columns = beta[used, None], np.array([bias])
        return decision_values(kernel, X[points], *columns, X[others], training.dtype)[:, 0]
    return K[np.ix_(others, points)] @ beta[used] + bias


def probabilities(
    decisions: np.ndarray, sigmoids: list[Logistic], classes: int, pairs: bool
) -> np.ndarray:
    """Return the probability of every class.

    The columns are the decision values of pairs of classes, whose probabilities are coupled, or of
    classes against the rest, whose probabilities are divided by their sum.
    """
    each = np.stack([s.probability(f) for s, f in zip(sigmoids, decisions.T, strict=True)], axis=1)
    if classes == 2:
        return np.concatenate([each, 1.0 - each], axis=1)
    if pairs:
        return np.asarray(couple(each, classes))
    sums = each.sum(axis=1, keepdims=True)
    return np.where(sums > 0, each / np.where(sums > 0, sums, 1.0), 1.0 / classes)
