"""The library's own solver of the P-SVM: tiles of all non-zero and the worst other variables.

Every round a tile is minimised to a fraction of the present violation (`semismooth.py`), and the
gradient G = Kᵀ(y − Kα) of all variables is computed afresh, in float64 whatever the tile works in.
So rounding errors do not accumulate. The tile holds every non-zero variable and grows with their
number, or the rounds might never end; what its gradient keeps at a bound or at zero is left out.

**Screening.** The dual problem is strongly concave: with a duality gap δ, ‖Kα − Kα*‖ ≤ √(2δ), so
|G_j| + ‖k_j‖√(2δ) < ε proves that α_j = 0 in the optimum, and j is left out from then on.
"""

import math
from functools import cached_property

import numpy as np

from jsvm.numerics.arrays import check_finite
from jsvm.precision import DOUBLE
from jsvm.problems.potential import objective, primal_objective, violations
from jsvm.solvers.monitor import Facts, facts_of
from jsvm.solvers.potential.prepared_psvm import PreparedPsvm, certified, lengths_of, output_of
from jsvm.solvers.potential.psmo import PSMO, Annealing
from jsvm.solvers.potential.row_object_tile import PsvmTile, improve, tile_of
from jsvm.solvers.potential.semismooth import TileProblem
from jsvm.solvers.status import Solution, Status


class Tiles:
    """One solution of a program."""

    steps = 0  # no pair steps are taken

    def __init__(
        self, program: PreparedPsvm, solver: PSMO, start: np.ndarray, tile: PsvmTile
    ) -> None:
        self.program, self.solver, self.tile = program, solver, tile
        self.alpha = start.astype(np.float64)
        self.annealing = Annealing(program.epsilon, program.largest, solver)
        largest = max(program.largest, program.epsilon)
        self.fine = solver.tuning.polishing_target * largest
        self.possible = program.upper > program.lower
        self.newton_steps = self._idle = self._polished = 0
        self._width, self._complete = 0.0, False
        self.status = Status.RUNNING
        self._set_output(self._fresh_output())
        check_finite(self.gradient)
        self._judge(np.inf, np.inf)

    @property
    def kernel_rows(self) -> int:
        """Row objects that were fetched into the tile, by all problems that have used it."""
        return self.tile.fetched

    def round(self, seconds: float = math.inf) -> None:
        """Minimise over one tile."""
        before = self.violation, self.objective
        polishing = self._polished > 0
        wanted = self._choose()
        slots = self.tile.hold(wanted)
        program, tuning, last = self.program, self.solver.tuning, self.alpha[wanted]
        vectors = last, *(v[wanted] for v in (self.gradient, program.lower, program.upper))
        problem = TileProblem(*vectors, epsilon=self.annealing.epsilon)
        budget = min(tuning.newton_steps_per_round, self.solver.step_budget - self.newton_steps)
        best, steps, self._width = improve(
            self.tile.Q, slots, problem, self._width, self._aim(), budget, tuning
        )
        self.newton_steps += steps
        self.alpha[wanted] = best
        self._set_output(self.tile.output_after(self.output, self.alpha, slots, best - last))
        if polishing and self.violation > before[0]:  # the limit of rounding: undo this round
            self.alpha[wanted] = last
            self._set_output(self._fresh_output())
        self._judge(*before)
        if self.solver.screening and self.annealing.done:
            self._screen()

    def facts(self) -> Facts:
        return facts_of(self, self.violation, self.objective, self.alpha)

    def point(self) -> np.ndarray:
        return self.alpha[: self.program.size]

    def solution(self) -> Solution:
        return certified(self)

    def release(self) -> None:
        self.tile.release()

    def _fresh_output(self) -> np.ndarray:
        return output_of(self.program.matrix, self.alpha, self.solver.tuning)

    def _set_output(self, output: np.ndarray) -> None:
        """Take Kα; compute the gradient, the violations and the objective from it."""
        self.output, self.gradient = output, self.program.gradient(output)
        self._measure()

    def _measure(self) -> None:
        """Compute the violations and the objective for the present ε."""
        program, epsilon = self.program, self.annealing.epsilon
        box = program.lower, program.upper, epsilon
        self.violations = np.asarray(violations(self.alpha, self.gradient, *box))
        self.violation = max(float(np.max(np.where(self.possible, self.violations, 0.0))), 0.0)
        self.objective = float(objective(program.target, self.output, self.alpha, epsilon))

    def _choose(self) -> np.ndarray:
        """Return the variables of the next tile."""
        program, possible, tuning = self.program, self.possible, self.solver.tuning
        if self.tile.holds_all:
            return np.flatnonzero(possible)
        inside = (self.alpha > program.lower) & (self.alpha < program.upper)
        moving = inside | (self.violations > -self.violation)
        kept = np.flatnonzero((self.alpha != 0) & possible & moving)
        asking = np.flatnonzero((self.alpha == 0) & possible & (self.violations > 0))
        more = max(tuning.new_variables, int(tuning.new_share * len(kept)))
        count = max(tuning.first_tile, tuning.tile_size(len(kept) + more)) - len(kept)
        self._complete = len(asking) <= count
        if not self._complete:
            asking = asking[np.argpartition(-self.violations[asking], count)[:count]]
        return np.concatenate([kept, asking])

    def _aim(self) -> float:
        """Return the violation to which the next tile is solved."""
        tuning, tol, done = self.solver.tuning, self.annealing.tol, self.annealing.done
        near = self._complete and self.violation <= tuning.finish_from * self.solver.tol
        if self._polished > 0 or (done and (self.tile.holds_all or near)):
            return self.fine
        return max(tuning.tile_accuracy_limit * tol, tuning.tile_accuracy * self.violation)

    def _judge(self, violation: float, objective: float) -> None:
        """Decide how to go on, knowing violation and objective before this round."""
        tuning = self.solver.tuning
        while self.violation <= self.annealing.tol and not self.annealing.done:
            self.annealing.lower()
            self._measure()
            self._idle = 0
        if self.violation <= self.solver.tol and self.annealing.done:
            slow = self._polished > 0 and self.violation > tuning.polishing_gain * violation
            spent = self._polished >= tuning.polishing_rounds
            if spent or self.violation <= self.fine or slow:
                self.status = Status.CONVERGED
            self._polished += 1
        elif self.newton_steps >= self.solver.step_budget:
            self.status = Status.MAX_STEPS
        else:
            lower = objective - self.objective > tuning.least_decrease * abs(objective)
            progress = lower or self.violation < tuning.progress * violation
            self._idle = 0 if progress else self._idle + 1
            if self._idle >= tuning.idle_rounds:
                self._give_up()

    def _give_up(self) -> None:
        """Nothing moves any more; a tile of float32 is followed by one of float64."""
        if self.tile.dtype == DOUBLE:
            self.status = Status.STALLED
            return
        fetched, self._idle, self._width = self.tile.fetched, 0, 0.0
        self.tile = tile_of(self.program.matrix, DOUBLE, self.solver.tuning)
        self.tile.fetched += fetched

    def _screen(self) -> None:
        """Leave out variables that the duality gap proves to be zero."""
        program = self.program
        gradient = np.where(self.possible, self.gradient, 0.0)
        box = program.lower, program.upper, program.epsilon
        primal = primal_objective(program.target, self.output, gradient, box)
        radius = np.sqrt(2 * max(float(primal) + self.objective, 0.0))
        zero = np.abs(self.gradient) + self._lengths * radius < program.epsilon
        self.possible &= ~(zero & (self.alpha == 0))

    @cached_property
    def _lengths(self) -> np.ndarray:
        return lengths_of(self.program.matrix, self.solver.tuning)
