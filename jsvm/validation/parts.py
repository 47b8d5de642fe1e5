"""What an estimator tells of itself so that its grids are trained in batches."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from jsvm.numerics.arrays import bucket
from jsvm.problems import QuadraticProgram
from jsvm.solvers import SMO


class Part(NamedTuple):
    """A problem of a fold: some examples, their targets, and what an error costs at C = 1."""

    examples: np.ndarray
    targets: np.ndarray
    weights: np.ndarray


class GridTask(NamedTuple):
    """An estimator and its data, as :func:`jsvm.search.cross_validate` needs them.

    Attributes
    ----------
    X : array or sparse matrix of shape (n, d)
        The points, or the kernel matrix.
    kernel : function
        From γ (None for the estimator's own) to a Kernel, or to 'precomputed'.
    folds : list of (train, test)
    parts : function
        From the training examples of a fold to its problems.
    build : function
        ``build(K, targets, costs, *parameters)`` is the program of a part; it is compiled in.
    parameters : tuple of float
    copies : int
        Variables per example.
    score : function
        From test examples and their decision values, one column per part, to the score.
    solver : SMO
    dtype : dtype
    """

    X: Any
    kernel: Callable[[Any], Any]
    folds: list[tuple[np.ndarray, np.ndarray]]
    parts: Callable[[np.ndarray], list[Part]]
    build: Callable[..., QuadraticProgram]
    parameters: tuple[float, ...]
    copies: int
    score: Callable[[np.ndarray, np.ndarray], float]
    solver: SMO
    dtype: np.dtype


def stacked(parts: Sequence[Part], dtype: np.dtype) -> Part:
    """Return all parts as one, a row each; padding has no weight, so its box is empty."""
    shape = len(parts), bucket(max(len(part.examples) for part in parts))
    stack = Part(np.zeros(shape, np.int32), np.ones(shape, dtype), np.zeros(shape, dtype))
    for p, part in enumerate(parts):
        for whole, own in zip(stack, part, strict=True):
            whole[p, : len(own)] = own
    return stack
