"""From two-class machines to classes: who wins, and the coefficients that users see.

Inside, one column belongs to each two-class problem, and the first class of a problem is the
positive one, as in LIBSVM. Outside, the attributes are scikit-learn's, where with two classes the
second one is positive: :func:`orientation` is the sign between the two.
"""

from itertools import combinations

import numpy as np

from jsvm.estimators.two_class import TwoClass


def orientation(classes: int) -> float:
    """Return the factor between decision values inside and those that users see."""
    return -1.0 if classes == 2 else 1.0


def packed(
    columns: list[np.ndarray], problems: list[TwoClass], codes: np.ndarray, classes: int, ovr: bool
) -> np.ndarray:
    """Return the rows of `dual_coef_` for all examples; `columns` are the coefficients by problem.

    Of pairs of classes, row r of a class's coefficients belongs to the r-th of the other classes;
    of classes against the rest, each has its row.
    """
    rows = classes if ovr and classes > 2 else classes - 1
    coefficients = np.zeros((rows, len(codes)))
    pairs = list(combinations(range(classes), 2))
    for k, (problem, beta) in enumerate(zip(problems, columns, strict=True)):
        if rows == classes:
            coefficients[k, problem.examples] = beta
        else:
            a, b = pairs[k]
            row = np.where(codes[problem.examples] == a, b - 1, a)
            coefficients[row, problem.examples] = beta
    return orientation(classes) * coefficients


def unpacked(dual_coef: np.ndarray, n_support: np.ndarray, ovr: bool) -> np.ndarray:
    """Return one column of coefficients for each two-class problem."""
    classes = len(n_support)
    if ovr or classes == 2:
        return orientation(classes) * dual_coef.T
    owner = np.repeat(np.arange(classes), n_support)
    columns = []
    for a, b in combinations(range(classes), 2):
        column = np.where(owner == a, dual_coef[b - 1], 0.0)
        columns.append(np.where(owner == b, dual_coef[a], column))
    return np.stack(columns, axis=1)


def votes_and_confidences(pairs: np.ndarray, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return votes of every class, and votes plus a share below one half of summed decisions."""
    votes, sums = np.zeros((2, len(pairs), classes))
    for decision, (a, b) in zip(pairs.T, combinations(range(classes), 2), strict=True):
        votes[:, a] += decision > 0
        votes[:, b] += decision <= 0
        sums[:, a] += decision
        sums[:, b] -= decision
    return votes, votes + sums / (3 * (np.abs(sums) + 1))
