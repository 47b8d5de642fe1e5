"""Parts of the examples that are trained by themselves: pairs of classes, or folds."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from jsvm.evaluate import decision_values
from jsvm.numerics.arrays import bucket


class Part(NamedTuple):
    """A problem of some examples: their targets, and what an error costs at C = 1."""

    examples: np.ndarray
    targets: np.ndarray
    weights: np.ndarray

    def without(self, places: np.ndarray) -> "Part":
        """Return the problem without the examples at these places."""
        return Part(*(np.delete(values, places) for values in self))


def one_against_one(codes: np.ndarray, classes: int, weights: np.ndarray) -> list[Part]:
    """Return the problems of all pairs of classes a < b, in LIBSVM's order; a is +1, b is −1."""
    parts = []
    for a, b in combinations(range(classes), 2):
        some = np.flatnonzero((codes == a) | (codes == b))
        parts.append(Part(some, np.where(codes[some] == a, 1.0, -1.0), weights[some]))
    return parts


def one_against_rest(codes: np.ndarray, classes: int, weights: np.ndarray) -> list[Part]:
    """Return one problem for each class; the class is +1."""
    everyone = np.arange(len(codes))
    return [Part(everyone, np.where(codes == a, 1.0, -1.0), weights) for a in range(classes)]


def stacked(parts: Sequence[Part], dtype: np.dtype) -> Part:
    """Return all parts as one, a row each; padding has no weight, so its box is empty."""
    shape = len(parts), bucket(max(len(part.examples) for part in parts))
    stack = Part(np.zeros(shape, np.int32), np.ones(shape, dtype), np.zeros(shape, dtype))
    for p, part in enumerate(parts):
        for whole, own in zip(stack, part, strict=True):
            whole[p, : len(own)] = own
    return stack


def size_of(K: Any) -> int:
    """Return the number of examples of a kernel matrix or a pair ``(kernel, X)``."""
    return (K[1] if isinstance(K, tuple) else K).shape[0]


def of_some(K: Any, some: np.ndarray) -> Any:
    """Return the kernel of some of the examples; nothing is copied if these are all."""
    if len(some) == size_of(K):
        return K
    return (K[0], K[1][some]) if isinstance(K, tuple) else K[np.ix_(some, some)]


def values_of_some(
    K: Any, some: np.ndarray, beta: np.ndarray, others: np.ndarray, dtype: np.dtype
) -> np.ndarray:
    """Return Σ_i β_i k(x, x_i), the sum over some of the examples, for other examples x."""
    used = np.flatnonzero(beta)
    points, beta = some[used], beta[used]
    if not isinstance(K, tuple):
        return K[np.ix_(others, points)] @ beta
    kernel, X = K
    return decision_values(kernel, X[points], beta[:, None], np.zeros(1), X[others], dtype)[:, 0]
