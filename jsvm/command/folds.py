"""Folds of cross-validation, the same for ``train -v`` and ``select``."""

import numpy as np

from jsvm.validation.splits import deal, train_and_test


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
    return train_and_test(deal(order, folds))
