"""How a solver ended, and what it hands back."""

from enum import IntEnum
from typing import Any

import jax
import numpy as np

from jsvm._typing import Leaf, pytree
from jsvm.problems.certificate import Certificate

_MESSAGES = {
    "CONVERGED": "the KKT conditions hold to the tolerance",
    "RUNNING": "not finished",
    "MAX_STEPS": "the budget of pair steps ran out; raise max_steps (max_iter), raise tol, "
    "or scale the features",
    "STALLED": "no pair step moves the point any more although the gap is above tol: the limit of "
    "the working precision, or of the selection rule; scale the features, lower C, raise tol, use "
    "dtype='float64', or another selection",
    "UNBOUNDED": "the objective falls without limit; for a hard margin: the classes are not "
    "separable by this kernel, to the working precision; use a finite C, or dtype='float64'",
    "TIME_LIMIT": "the time limit was reached; raise time_limit or continue from this solution",
    "INTERRUPTED": "interrupted; continue from this solution with start=",
}


class Status(IntEnum):
    """Why a solver stopped; an integer inside programs.

    Examples
    --------
    >>> Status(0).message
    'the KKT conditions hold to the tolerance'
    """

    CONVERGED = 0
    RUNNING = 1
    MAX_STEPS = 2
    STALLED = 3
    UNBOUNDED = 4
    TIME_LIMIT = 5
    INTERRUPTED = 6

    @property
    def message(self) -> str:
        """What happened and what to do about it."""
        return _MESSAGES[self.name]


@pytree
class Solution:
    """A point with its certificate, recomputed from a fresh gradient.

    Attributes
    ----------
    alpha : array of shape (n,)
        The variables of the quadratic program.
    bias : float
        b, the mean of the multipliers; zero if there are none.
    multipliers : array of shape (number of groups,)
        λ, one for each equality constraint.
    objective, primal_objective : float
        The minimised value and the primal one; their sum is the duality gap, ≥ 0 for a positive
        semi-definite kernel.
    violation : float
        The largest violation of the KKT conditions, ψ(α).
    steps, newton_steps, kernel_rows : int
        Pair steps, rounds of block steps, and rows of the kernel matrix that were computed.
    history : tuple of dict
        One entry for each round of the host loop.
    status : int
        See :class:`Status`.
    """

    alpha: Leaf
    bias: Leaf
    multipliers: Leaf
    objective: Leaf
    primal_objective: Leaf
    violation: Leaf
    steps: Leaf
    newton_steps: Leaf
    kernel_rows: Leaf
    history: Leaf
    status: Leaf

    @property
    def duality_gap(self) -> Any:
        """Primal plus dual objective."""
        return self.primal_objective + self.objective

    @classmethod
    def of(
        cls, alpha: Any, found: Certificate, counts: Any, rows: Any, status: Any, bias: Any = None
    ) -> "Solution":
        """Return a point with its certificate; by default the bias is the mean multiplier."""
        return cls(
            alpha=alpha,
            bias=found.multipliers.mean(-1) if bias is None else bias,
            **found._asdict(),
            steps=counts.steps,
            newton_steps=counts.newton_steps,
            kernel_rows=rows,
            history=(),
            status=status,
        )


def to_numpy(solution: Solution) -> Solution:
    """Return the solution with NumPy arrays and Python numbers."""

    def convert(leaf: Any) -> Any:
        leaf = np.asarray(leaf)
        return leaf.item() if leaf.ndim == 0 else leaf

    return jax.tree.map(convert, solution)
