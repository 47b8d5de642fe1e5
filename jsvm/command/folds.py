"""Folds of cross-validation, the same for ``train -v`` and ``select``."""

import numpy as np


def split(
    y: np.ndarray, folds: int, seed: int, *, stratified: bool
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return training and test examples of every fold, drawn at random.

    Parameters
    ----------
    y : array of shape (n,)
    folds, seed : int
    stratified : bool
        Give every fold the same share of every class.

    Examples
    --------
    >>> [test.tolist() for _, test in split(np.array([7, 7, 8, 8]), 2, 0, stratified=True)]
    [[0, 2], [1, 3]]
    """
    if folds > len(y):
        raise ValueError(f"--folds {folds}, but there are {len(y)} examples only")
    order = np.random.default_rng(seed).permutation(len(y))
    if stratified:
        order = order[np.argsort(y[order], kind="stable")]
    fold = np.empty(len(y), int)
    fold[order] = np.arange(len(y)) % folds
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(folds)]
