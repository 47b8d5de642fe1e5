"""Configuration of the P-SVM solver."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jsvm.problems import Normal, QuadraticProgram
from jsvm.solvers.monitor import Work, check_limits
from jsvm.solvers.potential.psvm_tuning import PotentialTuning
from jsvm.solvers.status import Solution

STEPS, BLOCKS = ("dual", "single"), ("newton", "paper", None)
MAX_STEPS, MAX_NEWTON_STEPS = 1_000_000_000, 100_000  # where max_steps is None


@dataclass(frozen=True)
class PSMO:
    """Configuration of the solver of programs without equality constraints, as the P-SVM is.

    Parameters
    ----------
    step : {'dual', 'single'}
        Two variables at a time (Knebel et al. 2008, section 3.1) or one (appendix A). Ignored with
        block='newton', which takes no such steps.
    block : {'newton', 'paper', None}
        'newton', the library's own: tiles of all non-zero and the worst other variables, solved by
        a semismooth Newton method. 'paper': steps with the block optimisation of Knebel et al. 2008
        (section 3.2 and appendix B). None: steps only.
    annealing : bool
        Start with ε = 0.1‖Kᵀy‖∞, multiply it by 0.9 whenever the violation is below 4·tol
        (Knebel et al. 2008, section 3.3).
    screening : bool
        With 'newton': leave out variables for good that the duality gap proves to be zero.
    tol : float
        λ, the largest violation d_j of the KKT conditions (Knebel et al. 2008, eq. 25).
    max_steps : int or None
        Budget of steps, of Newton steps with block='newton'; None is a large, finite one.
    time_limit : float or None
        Seconds; those spent on compiling and on the certificate at the end do not count.
    cache_size : float
        Megabytes for K, or for rows of Q with the steps of the paper.
    bounded, changed, repeated : int
        b_c, b_n and b_f of Knebel et al. 2008 (section 3.2): a block optimisation is made when so
        many variables have hit a bound since the last one, so many have changed, or so many times
        as many steps were made as variables changed.
    tuning : PotentialTuning
        Numbers that decide about speed only.

    Examples
    --------
    >>> PSMO(step="single", block=None).tol
    0.001
    """

    step: str = "dual"
    block: str | None = "newton"
    annealing: bool = False
    screening: bool = False
    tol: float = 1e-3
    max_steps: int | None = None
    time_limit: float | None = None
    cache_size: float | int = 2000
    bounded: int = 4
    changed: int = 21
    repeated: int = 3
    tuning: PotentialTuning = field(default=PotentialTuning(), repr=False, kw_only=True)

    def __post_init__(self) -> None:
        for name, value, known in (("step", self.step, STEPS), ("block", self.block, BLOCKS)):
            if value not in known:
                raise ValueError(f"{name}={value!r} is unknown; use one of {known}")
        if self.screening and self.block != "newton":
            raise ValueError("screening=True belongs to block='newton'")
        for name in ("bounded", "changed", "repeated"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)!r} must be at least 1")
        check_limits(self)

    @property
    def step_budget(self) -> int:
        """The largest number of steps."""
        most = MAX_NEWTON_STEPS if self.block == "newton" else MAX_STEPS
        return most if self.max_steps is None else min(self.max_steps, most)

    def accepts(self, problem: QuadraticProgram) -> bool:
        return isinstance(problem.hessian, Normal)

    def precision(self, dtype: np.dtype) -> np.dtype:
        return np.dtype("float64")  # of gradients, whatever the tiles work in

    def begin(self, problem: QuadraticProgram, start: Any, dtype: np.dtype) -> Work:
        from jsvm.solvers.potential.solve_psvm import PsvmFamily  # it needs this configuration

        return PsvmFamily(problem.hessian.data, self, dtype).begin(problem, start)

    def solve_traced(self, problem: QuadraticProgram, start: Any) -> Solution:
        from jsvm.solvers.potential.solve_psvm import solve_traced

        return solve_traced(problem, self, start)


class Annealing:
    """ε from 0.1‖Kᵀy‖∞ down to its final value (Knebel et al. 2008, section 3.3)."""

    START, FACTOR, TOLERANCE = 0.1, 0.9, 4.0

    def __init__(self, epsilon: float, largest: float, solver: PSMO) -> None:
        self.final, self._tol = epsilon, solver.tol
        self.epsilon = max(self.START * largest, epsilon) if solver.annealing else epsilon

    @property
    def done(self) -> bool:
        """Whether ε has its final value."""
        return self.epsilon <= self.final

    @property
    def tol(self) -> float:
        """The violation at which ε is lowered, or the tolerance."""
        return self._tol if self.done else self.TOLERANCE * self._tol

    def lower(self) -> None:
        """Go on to the next ε."""
        self.epsilon = max(self.FACTOR * self.epsilon, self.final)
