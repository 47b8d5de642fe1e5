"""Model selection for two or more classes: objectives summed over all pairs of classes.

Each pair is a two-class problem with labels ±1. They are rows of common arrays, in which a label of
zero marks what only pads a row (:mod:`jsvm.objectives.splits`), and all belong to one kernel and
one C. For two classes the objectives are those of :mod:`jsvm.objectives`.
"""

import math
from itertools import combinations
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jsvm import problems
from jsvm.kernels import Kernel
from jsvm.objectives.alignment import alignment
from jsvm.objectives.holdout import mean_loss
from jsvm.objectives.likelihood import STEEPEST, likelihoods
from jsvm.objectives.losses import zero_one
from jsvm.objectives.span import bound
from jsvm.objectives.splits import Splits, padded
from jsvm.objectives.training import SOLVER, mapped

HELD_OUT = 0.2
FOLDS = 5


class Pairs(NamedTuple):
    """All pairs of classes, one row each: examples, their labels, how many train in a split.

    `trains` and `tests` only have shapes: the largest numbers of examples that train and that are
    held out.
    """

    examples: Any
    labels: Any
    trained: Any
    trains: Any
    tests: Any
    prior: Any = None


def pairs_of(codes: np.ndarray, size: int | None = None) -> Pairs:
    """Return the pairs of classes of examples with these numbers of classes.

    Rows are padded to `size`, if given. The first class of a pair is the negative one.
    """
    parts, labels, trained, tests = [], [], [], []
    for a, b in combinations(np.unique(codes), 2):
        some = np.flatnonzero((codes == a) | (codes == b))
        parts.append(some)
        labels.append(np.where(codes[some] == b, 1.0, -1.0))
        trained.append(min(len(some), max(2, math.floor((1 - HELD_OUT) * len(some)))))
        tests.append(len(some) - trained[-1])
    rows = _labelled(parts, labels, size)
    length = rows[0].shape[1]
    grown = math.floor((1 - HELD_OUT) * length)
    return Pairs(
        *rows,
        np.array(trained, np.int32),
        np.zeros(max(grown, *trained), bool),
        np.zeros(max(length - grown, *tests), bool),
    )


def likelihood(kernel: Kernel, X: Any, pairs: Pairs, *, C: Any, key: Any) -> Any:
    """Return the log-likelihood of a random hold-out set of every pair (004, section 9.2.2)."""
    splits = _random_splits(key, pairs)
    values = likelihoods(kernel, X, C, splits, STEEPEST, machine=problems.c_svc, solver=SOLVER)
    return jnp.sum(values)


def posterior(kernel: Kernel, X: Any, pairs: Pairs, *, C: Any, key: Any) -> Any:
    """Return that plus the logarithm of the prior (004, section 9.2.3)."""
    return likelihood(kernel, X, pairs, C=C, key=key) + pairs.prior(kernel, C)


def target_alignment(kernel: Kernel, X: Any, pairs: Pairs) -> Any:
    """Return the sum of the kernel target alignments (004, section 9.1.6)."""

    def one(pair: tuple) -> Any:
        return alignment(kernel(X[pair[0]]), pair[1])

    return jnp.sum(_of_each(one, pairs))


def span(kernel: Kernel, X: Any, pairs: Pairs, *, C: Any) -> Any:
    """Return the sum of the span bounds (004, section 9.1.5)."""

    def one(pair: tuple) -> Any:
        return bound(kernel, X[pair[0]], pair[1], C, problems.c_svc, SOLVER)

    return jnp.sum(_of_each(one, pairs))


def held_out_errors(kernel: Kernel, X: Any, splits: Splits, *, C: Any) -> Any:
    """Return the rate of errors of all pairs on examples held out (004, section 9.1.1)."""
    options: Any = {"loss": zero_one, "machine": problems.c_svc, "solver": SOLVER}
    return mean_loss(kernel, X, C, splits, **options)


def pair_folds(pairs: Pairs, seed: int) -> Splits:
    """Return the folds of all pairs, shuffled, with as many examples of each class as can be."""
    rng = np.random.default_rng(seed)
    train, labels, test, test_labels = [], [], [], []
    for examples, label in zip(pairs.examples, pairs.labels, strict=True):
        fold = np.full(len(label), -1)
        first = 0  # the second class goes on where the first ended, so that folds are of one size
        for sign in (-1, 1):
            own = rng.permutation(np.flatnonzero(label == sign))
            fold[own] = (first + np.arange(len(own))) % FOLDS
            first += len(own)
        for k in range(FOLDS):
            inside, outside = np.flatnonzero((fold >= 0) & (fold != k)), np.flatnonzero(fold == k)
            train.append(examples[inside])
            labels.append(label[inside])
            test.append(examples[outside])
            test_labels.append(label[outside])
    used = [k for k in range(len(test)) if len(test[k])]  # fewer examples than folds
    rows = [[part[k] for k in used] for part in (train, labels, test, test_labels)]
    trains = len(pairs.trains) if max(map(len, rows[0])) <= len(pairs.trains) else None
    tests = len(pairs.tests) if max(map(len, rows[2])) <= len(pairs.tests) else None
    return Splits(*_labelled(rows[0], rows[1], trains), *_labelled(rows[2], rows[3], tests))


def _of_each(function: Any, pairs: Pairs) -> Any:
    items = jnp.asarray(pairs.examples), jnp.asarray(pairs.labels)
    if items[0].shape[0] == 1:
        return function((items[0][0], items[1][0]))
    return mapped(function, items)


def _labelled(
    parts: list[np.ndarray], labels: list[np.ndarray], size: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return examples and their labels as rows of one array each; what pads has label zero."""
    examples, meant = padded(parts, size)
    return examples, padded(labels, size)[0] * meant


def _random_splits(key: Any, pairs: Pairs) -> Splits:
    """Draw a split of every pair."""
    trains, tests = pairs.trains.shape[0], pairs.tests.shape[0]

    def one(key: Any, examples: Any, labels: Any, trained: Any) -> Splits:
        absent = labels == 0
        order = jnp.argsort(jax.random.uniform(key, labels.shape) + absent)  # what pads comes last
        examples, labels = examples[order], labels[order]
        # From here on rows may be cut after their end.
        examples, labels = (jnp.pad(part, (0, tests)) for part in (examples, labels))
        inside = jnp.arange(trains) < trained
        return Splits(
            examples[:trains],
            jnp.where(inside, labels[:trains], 0.0),
            lax.dynamic_slice(examples, (trained,), (tests,)),
            lax.dynamic_slice(labels, (trained,), (tests,)),
        )

    keys = jax.random.split(key, pairs.labels.shape[0])
    rows = (jnp.asarray(part) for part in (pairs.examples, pairs.labels, pairs.trained))
    return jax.vmap(one)(keys, *rows)
