"""Model selection for two or more classes: objectives summed over all pairs of classes.

Each pair is a two-class problem with labels ±1, a row of common arrays in which a label of zero
marks padding (:mod:`jsvm.validation.splits`). All pairs have the same kernel and C. For two classes
the objectives are those of :mod:`jsvm.objectives`. Sections are those of Glasmachers 2008.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jsvm import problems
from jsvm.kernels import Kernel
from jsvm.objectives.alignment import alignment
from jsvm.objectives.holdout import mean_loss
from jsvm.objectives.inputs import SOLVER
from jsvm.objectives.leave_one_out import bound
from jsvm.objectives.likelihood import STEEPEST, likelihoods
from jsvm.objectives.training import mapped, zero_one
from jsvm.validation.parts import one_against_one
from jsvm.validation.splits import Splits, deal, padded, train_and_test

HELD_OUT = 0.2  # fraction of the examples of a random split (Glasmachers 2008, section 9.1.7)
FOLDS = 5  # of the cross-validation error (Glasmachers 2008, section 12.1)


class Pairs(NamedTuple):
    """All pairs of classes, one row each: examples, their labels, how many train in a split.

    Only the shapes of `trains` and `tests` matter: the largest numbers of examples that train and
    that are held out.
    """

    examples: Any
    labels: Any
    trained: Any
    trains: Any
    tests: Any
    prior: Any = None


def pairs_of(codes: np.ndarray, size: int | None = None) -> Pairs:
    """Return the pairs of classes, padded to `size`; the first class of a pair is negative."""
    names, codes = np.unique(codes, return_inverse=True)
    problems = one_against_one(codes, len(names), np.ones(len(codes)))
    counts = [len(problem.examples) for problem in problems]
    trained = [min(n, max(2, math.floor((1 - HELD_OUT) * n))) for n in counts]
    tests = [n - own for n, own in zip(counts, trained, strict=True)]
    rows = _labelled([p.examples for p in problems], [-p.targets for p in problems], size)
    length = rows[0].shape[1]
    grown = math.floor((1 - HELD_OUT) * length)
    return Pairs(
        *rows,
        np.array(trained, np.int32),
        np.zeros(max(grown, *trained), bool),
        np.zeros(max(length - grown, *tests), bool),
    )


def likelihood(kernel: Kernel, X: Any, pairs: Pairs, *, C: Any, key: Any) -> Any:
    """Return the log-likelihood of random hold-out sets, one per pair (section 9.2.2)."""
    splits = _random_splits(key, pairs)
    values = likelihoods(kernel, X, C, splits, STEEPEST, machine=problems.c_svc, solver=SOLVER)
    return jnp.sum(values)


def posterior(kernel: Kernel, X: Any, pairs: Pairs, *, C: Any, key: Any) -> Any:
    """Return the log-likelihood plus the logarithm of the prior (section 9.2.3)."""
    return likelihood(kernel, X, pairs, C=C, key=key) + pairs.prior(kernel, C)


def target_alignment(kernel: Kernel, X: Any, pairs: Pairs) -> Any:
    """Return the sum of the kernel target alignments (section 9.1.6)."""
    return jnp.sum(_of_each(lambda some, y: alignment(kernel(X[some]), y), pairs))


def span(kernel: Kernel, X: Any, pairs: Pairs, *, C: Any) -> Any:
    """Return the sum of the span bounds (section 9.1.5)."""
    each = _of_each(lambda some, y: bound(kernel, X[some], y, C, problems.c_svc, SOLVER), pairs)
    return jnp.sum(each)


def held_out_errors(kernel: Kernel, X: Any, splits: Splits, *, C: Any) -> Any:
    """Return the rate of errors of all pairs on examples held out (section 9.1.1)."""
    options: Any = {"loss": zero_one, "machine": problems.c_svc, "solver": SOLVER}
    return mean_loss(kernel, X, C, splits, **options)


def pair_folds(pairs: Pairs, seed: int) -> Splits:
    """Return the folds of all pairs, shuffled and stratified."""
    rng = np.random.default_rng(seed)
    rows = []
    for examples, label in zip(pairs.examples, pairs.labels, strict=True):
        order = [rng.permutation(np.flatnonzero(label == sign)) for sign in (-1, 1)]
        for train, test in train_and_test(deal(np.concatenate(order), FOLDS, len(label))):
            rows.append((examples[train], label[train], examples[test], label[test]))
    train, labels, test, test_labels = map(list, zip(*rows, strict=True))
    trains = len(pairs.trains) if max(map(len, train)) <= len(pairs.trains) else None
    tests = len(pairs.tests) if max(map(len, test)) <= len(pairs.tests) else None
    return Splits(*_labelled(train, labels, trains), *_labelled(test, test_labels, tests))


def _of_each(function: Any, pairs: Pairs) -> Any:
    items = jnp.asarray(pairs.examples), jnp.asarray(pairs.labels)
    if items[0].shape[0] == 1:
        return function(items[0][0], items[1][0])
    return mapped(lambda pair: function(*pair), items)


def _labelled(
    parts: list[np.ndarray], labels: list[np.ndarray], size: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return examples and their labels as rows of one array each; padding has label zero."""
    examples, meant = padded(parts, size)
    return examples, padded(labels, size)[0] * meant


def _random_splits(key: Any, pairs: Pairs) -> Splits:
    """Draw a split of every pair."""
    trains, tests = pairs.trains.shape[0], pairs.tests.shape[0]

    def one(key: Any, examples: Any, labels: Any, trained: Any) -> Splits:
        absent = labels == 0
        order = jnp.argsort(jax.random.uniform(key, labels.shape) + absent)  # padding last
        examples, labels = examples[order], labels[order]
        # Pad, so that a slice never reaches beyond the end.
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
