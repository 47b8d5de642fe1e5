"""The recursive block update of Knebel et al. 2008, appendix B: a few variables at once.

The free minimum of the block is found by Cholesky; if it leaves the box of at most four variables,
one of them is fixed at its bound and the rest is solved again, and so on. If more leave, the update
is given up.
"""

import numpy as np
from jaxtyping import Float
from scipy.linalg import LinAlgError, cho_factor, cho_solve

MOST_BOUNDED = 4  # variables (Knebel et al. 2008, appendix B)


def block_update(
    Q: Float[np.ndarray, "m m"],
    linear: Float[np.ndarray, " m"],
    alpha: Float[np.ndarray, " m"],
    lower: Float[np.ndarray, " m"],
    upper: Float[np.ndarray, " m"],
) -> Float[np.ndarray, " m"]:
    """Return the minimiser of ½αᵀQα − lᵀα in the box, or α itself where that is given up.

    Examples
    --------
    >>> one = np.ones(2)
    >>> block_update(np.eye(2), np.array([0.5, 3.0]), 0 * one, -one, one).tolist()
    [0.5, 1.0]
    """
    block = _Block(Q, linear, lower, upper)
    try:
        found = block.optimise(alpha, list(range(len(alpha))))
    except LinAlgError:  # singular: leave it to pair steps
        return alpha
    # The recursion as printed may return a value of a branch that was given up.
    return found if block.value(found) <= block.value(alpha) else alpha


class _Block:
    def __init__(
        self, Q: np.ndarray, linear: np.ndarray, lower: np.ndarray, upper: np.ndarray
    ) -> None:
        self.Q, self.linear, self.lower, self.upper = Q, linear, lower, upper

    def value(self, alpha: np.ndarray) -> float:
        return float(0.5 * alpha @ self.Q @ alpha - self.linear @ alpha)

    def optimise(self, alpha: np.ndarray, members: list[int]) -> np.ndarray:
        """Solve for the members; the other variables keep their values."""
        if not members:
            return alpha
        others = [j for j in range(len(alpha)) if j not in members]
        right = self.linear[members] - self.Q[np.ix_(members, others)] @ alpha[others]
        factor = cho_factor(self.Q[np.ix_(members, members)], lower=True, check_finite=False)
        new = alpha.copy()
        new[members] = cho_solve(factor, right, check_finite=False)
        if not np.isfinite(new).all():
            raise LinAlgError
        cut = np.clip(new, self.lower, self.upper)
        bounded = [j for j in members if cut[j] != new[j]]
        if len(bounded) > MOST_BOUNDED:
            return alpha
        return self.reoptimise(cut, members, bounded, bounded[0]) if bounded else cut

    def reoptimise(
        self, alpha: np.ndarray, members: list[int], bounded: list[int], fixed: int
    ) -> np.ndarray:
        """Solve again with one variable fixed; another one that stays at its bound is tried too."""
        new = self.optimise(alpha, [j for j in members if j != fixed])
        rest = [j for j in bounded if j != fixed]
        for j in rest:
            if new[j] == alpha[j]:
                return self.reoptimise(alpha, members, rest, j)
        return new
