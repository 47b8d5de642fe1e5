"""Which quadratic program a machine solves, and the decision function of its solution."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jsvm.problems import QuadraticProgram
from jsvm.solvers import Solution


def as_solved(
    solution: Solution, targets: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, float]:
    """Return coefficients and offset of a solution; the variables of an example are added up."""
    return solution.alpha.reshape(-1, len(targets)).sum(axis=0), float(solution.bias)


class Formulation(NamedTuple):
    """A machine as a program and as a function.

    ``build(K, targets, weights, *parameters)`` is compiled in, the parameters are not;
    ``function(solution, targets, weights)`` gives coefficients and offset of the decision function.
    """

    build: Callable[..., QuadraticProgram]
    parameters: tuple[float, ...] = ()
    function: Callable[[Solution, np.ndarray, np.ndarray], tuple[np.ndarray, float]] = as_solved

    def program(self, K: Any, targets: Any, weights: Any) -> QuadraticProgram:
        """Return the program of some examples."""
        return self.build(K, targets, weights, *self.parameters)
