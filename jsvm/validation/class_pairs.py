"""The two-class problems of several classes: each pair of classes, or each class and the rest."""

from itertools import combinations
from typing import NamedTuple

import numpy as np


class TwoClass(NamedTuple):
    """A two-class problem: some examples, +1 or −1."""

    examples: np.ndarray
    signs: np.ndarray

    def without(self, places: np.ndarray) -> "TwoClass":
        """Return the problem without the examples at these places."""
        return TwoClass(np.delete(self.examples, places), np.delete(self.signs, places))


def class_pairs(classes: int) -> list[tuple[int, int]]:
    """Return all pairs (a, b) of classes with a < b, in the order of LIBSVM.

    Examples
    --------
    >>> class_pairs(3)
    [(0, 1), (0, 2), (1, 2)]
    """
    return list(combinations(range(classes), 2))


def one_against_one(codes: np.ndarray, classes: int) -> list[TwoClass]:
    """Return the problems of all pairs of classes; the first class of a pair is +1."""
    problems = []
    for a, b in class_pairs(classes):
        examples = np.flatnonzero((codes == a) | (codes == b))
        problems.append(TwoClass(examples, np.where(codes[examples] == a, 1.0, -1.0)))
    return problems


def one_against_rest(codes: np.ndarray, classes: int) -> list[TwoClass]:
    """Return one problem for each class; the class is +1."""
    everyone = np.arange(len(codes))
    return [TwoClass(everyone, np.where(codes == a, 1.0, -1.0)) for a in range(classes)]
