"""Splits of the examples into those that train and those that are held out.

Folds are an array with the fold of every example, made by :func:`deal`. Several splits are the rows
of common arrays, so that they can be trained in a batch; a label of zero marks padding: the box of
its variable is empty, and it is not counted.
"""

import math
import numbers
from typing import Any, NamedTuple

import jax
import numpy as np

from jsvm.numerics.arrays import as_key


def deal(order: np.ndarray, folds: int, size: int | None = None) -> np.ndarray:
    """Deal the examples in `order` to the folds in turn (by class: stratified); others get −1."""
    fold = np.full(len(order) if size is None else size, -1)
    fold[order] = np.arange(len(order)) % folds
    return fold


def train_and_test(fold: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the training and test examples of every fold that has any; −1 is in no fold."""
    present = fold >= 0
    names = np.unique(fold[present])
    return [(np.flatnonzero(present & (fold != k)), np.flatnonzero(fold == k)) for k in names]


class Splits(NamedTuple):
    """Indices and labels of the examples that train and of those held out, one row per split."""

    train: Any
    labels: Any
    test: Any
    test_labels: Any


def random_splits(key: Any, y: Any, fraction: float, count: int) -> Splits:
    """Draw splits; ⌊(1 − fraction) n⌋ examples train (Glasmachers 2008, section 9.1.7)."""
    trained = trained_size(y.shape[0], fraction)
    if count < 1:
        raise ValueError(f"splits={count!r} must be at least 1")
    keys = jax.random.split(as_key(key), count) if count > 1 else as_key(key)[None]
    order = jax.vmap(lambda key: jax.random.permutation(key, y.shape[0]))(keys)
    return _labelled(y, order[:, :trained], order[:, trained:])


def trained_size(n: int, fraction: float) -> int:
    """Return how many of n examples train; raise ValueError if these are too few."""
    if not 0 < fraction < 1:
        raise ValueError(f"fraction={fraction!r} of held-out examples must be between 0 and 1")
    trained = math.floor((1 - fraction) * n * (1 + 1e-12))
    if not 2 <= trained < n:
        raise ValueError(
            f"fraction={fraction!r} of {n} examples leaves {trained} to train and {n - trained} to "
            "hold out; at least 2 and 1 are needed"
        )
    return trained


def given_split(test: Any, y: Any) -> Splits:
    """Return the split that holds these examples out."""
    n, held = y.shape[0], np.unique(np.asarray(test))
    known = held.size and np.issubdtype(held.dtype, np.integer) and 0 <= held[0] <= held[-1] < n
    if not known or len(held) > n - 2:
        raise ValueError(f"test must hold indices below {n} and leave two examples to train")
    train = np.setdiff1d(np.arange(n), held)
    return _labelled(y, train[None], held[None])


def fold_splits(y: Any, folds: Any, key: Any = None) -> Splits:
    """Return one split per fold; with a key the examples are shuffled first."""
    n = y.shape[0]
    if np.ndim(folds) == 0:
        if not isinstance(folds, numbers.Integral) or not 2 <= int(folds) <= n:
            raise ValueError(f"folds={folds!r} must be a whole number from 2 to {n}")
        of_example = deal(np.arange(n), int(folds))
    else:
        of_example = np.asarray(folds)
        if of_example.shape != (n,):
            raise ValueError(f"folds must be a number or hold {n} of them, not {of_example.shape}")
    parts = train_and_test(np.unique(of_example, return_inverse=True)[1])
    if len(parts) < 2:
        raise ValueError("folds must name at least two different folds")
    (train, present), (test, counted) = (padded(list(side)) for side in zip(*parts, strict=True))
    if key is not None:
        order = jax.random.permutation(as_key(key), n)
        train, test = order[train], order[test]
    splits = _labelled(y, train, test)
    present, counted = present.astype(y.dtype), counted.astype(y.dtype)
    return splits._replace(labels=splits.labels * present, test_labels=splits.test_labels * counted)


def _labelled(y: Any, train: Any, test: Any) -> Splits:
    return Splits(train, y[train], test, y[test])


def padded(parts: list[np.ndarray], size: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return arrays as the rows of one, and 1 for each of their entries, 0 for padding."""
    size = max(len(part) for part in parts) if size is None else size
    rows = np.stack([np.pad(part, (0, size - len(part)), mode="edge") for part in parts])
    meant = np.stack([np.arange(size) < len(part) for part in parts])
    return rows, meant.astype(np.int8)
