"""Answers recomputed independently, in NumPy and in blocks of rows.

With signed coefficients α (α_i ≥ 0 where y_i = 1, α_i ≤ 0 where y_i = −1, Σα = 0):

    f(α) = ½ αᵀKα − yᵀα            objective, to be minimised
    G    = y − Kα                  minus its gradient
    ψ    = max{G_i : α_i < U_i} − min{G_i : α_i > L_i}        gap of the KKT conditions

with the box [L_i, U_i] between 0 and y_i C.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

BLOCK = 512
# A coefficient this close to C is at the bound; solvers round there.
AT_BOUND = 1 - 1e-12


class Answer(NamedTuple):
    """The recomputed figures of a solution; `infeasible` is relative to C."""

    objective: float
    gap: float
    support: int
    bounded: int
    infeasible: float


def signed_alpha(model: Any, n: int) -> np.ndarray:
    """Return α of a fitted two-class estimator; scikit-learn's dual_coef_ holds the signs."""
    alpha = np.zeros(n)
    alpha[model.support_] = np.ravel(model.dual_coef_)
    return alpha


def gaussian(X: np.ndarray, Z: np.ndarray, gamma: float) -> np.ndarray:
    """Return exp(−γ‖x − z‖²); from differences where that is cheap: less cancellation."""
    if X.shape[1] <= 32:
        distances = cdist(X, Z, "sqeuclidean")
    else:
        squares = (X**2).sum(1)[:, None] + (Z**2).sum(1)[None, :]
        distances = np.maximum(squares - 2 * X @ Z.T, 0)
    return np.exp(-gamma * distances)


def kernel_product(X: np.ndarray, alpha: np.ndarray, gamma: float) -> np.ndarray:
    """Return Kα, touching columns of support vectors only."""
    used = np.flatnonzero(alpha)
    Z, coefficients = X[used], alpha[used]
    blocks = [
        gaussian(X[start : start + BLOCK], Z, gamma) @ coefficients
        for start in range(0, len(X), BLOCK)
    ]
    return np.concatenate(blocks)


def judge(X: np.ndarray, y: np.ndarray, alpha: np.ndarray, C: float, gamma: float) -> Answer:
    G = y - kernel_product(X, alpha, gamma)
    at_bound = np.abs(alpha) >= C * AT_BOUND
    positive = y > 0
    may_rise = np.where(positive, ~at_bound, alpha < 0)
    may_fall = np.where(positive, alpha > 0, ~at_bound)
    outside = max(float((np.abs(alpha) - C).max()), float((-y * alpha).max()), 0.0)
    return Answer(
        objective=float(-alpha @ (G + y) / 2),
        gap=float(G[may_rise].max() - G[may_fall].min()),
        support=int(np.count_nonzero(alpha)),
        bounded=int(at_bound.sum()),
        infeasible=max(outside, abs(float(alpha.sum()))) / C,
    )
