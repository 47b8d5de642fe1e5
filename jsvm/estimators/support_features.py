"""The support features for one ε after another, and the ε that gives a wanted number of them.

For ε ≥ ‖Kᵀy‖∞ no feature has a larger correlation than ε, and all α are zero. For smaller ε
features enter one after the other, and some leave again: their number is not monotonic in ε, and
need not take every value. Each problem starts from the solution of the last ε.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from jsvm import problems
from jsvm.estimators.columns import Columns
from jsvm.solvers import PSMO, Solution, solve

SMALLEST_EPSILON = 2.0**-17  # of ‖Kᵀy‖∞: the search for ε ends there
BISECTIONS = 20  # of the logarithm of ε: its factor 2 becomes one of 1 + 7e-7


class Support(NamedTuple):
    """The machines at one ε; α has one row a machine."""

    epsilon: float
    solutions: list[Solution]
    alpha: np.ndarray

    @property
    def size(self) -> int:
        """The number of features that some machine uses."""
        return int(np.count_nonzero(self.alpha.any(axis=0)))


class SupportPath:
    """Potential SVMs on the same columns, one for each row of `targets`, for any ε.

    With `relative` the tolerance of the solver is a fraction of ε.
    """

    def __init__(
        self,
        columns: Columns,
        targets: np.ndarray,
        C: float,
        solver: PSMO,
        dtype: np.dtype,
        relative: bool,
    ) -> None:
        self._solver, self._dtype, self._relative = solver, dtype, relative
        self._columns = columns
        self._targets = [columns.target(y)[0] for y in targets]
        bounds = np.where(columns.scale > 0, C, 0.0)
        self._programs = [problems.psvm(columns.data, t, bounds, 0.0) for t in self._targets]
        self._last: list[Solution | None] = [None] * len(targets)
        self.steps = 0

    @property
    def largest(self) -> float:
        """‖Kᵀy‖∞; at this ε and above nothing is selected."""
        return max(float(np.abs(program.linear).max()) for program in self._programs)

    def at(self, epsilon: float) -> Support:
        """Return the machines at one ε."""
        solver = replace(self._solver, tol=self.tolerance(epsilon))
        solutions = [
            solve(replace(program, l1=epsilon), solver, last, dtype=self._dtype)
            for program, last in zip(self._programs, self._last, strict=True)
        ]
        self._last = [*solutions]
        self.steps += sum(solution.steps or solution.newton_steps for solution in solutions)
        return Support(epsilon, solutions, np.stack([solution.alpha for solution in solutions]))

    def tolerance(self, epsilon: float) -> float:
        """Return the tolerance at one ε."""
        unit = epsilon or self.largest or 1.0
        return self._solver.tol * (unit if self._relative else 1.0)

    def with_count(self, count: int) -> Support:
        """Return the machines at the largest ε found with at least `count` support features.

        ε is halved until there are so many, and then its logarithm is bisected until there are
        exactly so many. If no ε gives so many, the one with the most is taken.
        """
        low = most = self.at(self.largest)
        while low.size < count and low.epsilon > SMALLEST_EPSILON * self.largest:
            low = self.at(low.epsilon / 2)
            most = low if low.size > most.size else most
        if low.size < count:
            return most
        high = 2 * low.epsilon
        for _ in range(BISECTIONS):
            if low.size == count:
                break
            middle = self.at(float(np.sqrt(low.epsilon * high)))
            if middle.size >= count:
                low = middle
            else:
                high = middle.epsilon
        return low

    def correlations(self, support: Support) -> np.ndarray:
        """Return G = Kᵀ(y − Kα), one row a machine."""
        pairs = zip(support.alpha, self._targets, strict=True)
        return np.stack([self._columns.correlations(alpha, target) for alpha, target in pairs])
