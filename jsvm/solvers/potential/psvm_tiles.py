"""The library's own solver of the P-SVM: tiles of all non-zero and the worst other variables.

Every round a tile is minimised to a fraction of the present violation (`newton.py`), and the
gradient G = Kᵀ(y − Kα) of all variables is computed afresh, in float64 whatever the tile works in.
So nothing accumulates, and the violation that decides is a true one. The tile holds every
non-zero variable, and grows with their number: one that cannot would never come to an end. A
variable at a bound that wants to stay there is left out, as is one at zero.

**Screening.** The dual problem is strongly concave: with a duality gap δ, ‖Kα − Kα*‖ ≤ √(2δ), so
|G_j| + ‖k_j‖√(2δ) < ε proves that α_j = 0 in the optimum, and j is forgotten.
"""

from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jsvm.numerics.checks import check_finite
from jsvm.problems.matrix_data import DenseMatrix, MatrixData
from jsvm.problems.potential import potential_primal
from jsvm.solvers.potential.psmo import PSMO, Annealing
from jsvm.solvers.potential.row_objects import Tile, WholeTile, combine, improve, size_of
from jsvm.solvers.potential.violation import violations
from jsvm.solvers.status import Status

WHOLE = 256  # variables that are one tile from the beginning
FIRST = 128  # variables of the first tile of more
NEW, GROWTH = 64, 0.3  # new variables in a round: at least so many, or a part of the non-zero ones
FRACTION = 0.2  # of the violation, to which a tile is solved
NEARLY = 100.0  # times the tolerance: from there a tile of all that violates goes to the end
TURN = 40  # Newton steps in a round: the host has to look up now and then
POLISHING = 3  # rounds after the tolerance is reached
FINE = 1e-11  # of the largest gradient: what polishing aims at
SEVERAL = 0.2  # of the row objects: so many are not gathered, a product with all of them is quicker
PATIENCE = 8  # rounds without progress


class Vectors(NamedTuple):
    """The program apart from K, padded; the first `size` variables are the user's."""

    size: int
    target: np.ndarray
    linear: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    epsilon: float


class Tiles:
    """One solution of a program; see :class:`jsvm.solvers.monitor.Work`."""

    def __init__(
        self,
        data: MatrixData,
        vectors: Vectors,
        solver: PSMO,
        dtype: np.dtype,
        start: np.ndarray,
        tile: Tile | WholeTile | None = None,
    ) -> None:
        self.data, self.vectors, self.solver = data, vectors, solver
        self._whole = data.shape[1] <= WHOLE
        self.alpha = start.astype(np.float64)
        largest = float(np.abs(vectors.linear).max(initial=0.0))
        self.annealing = Annealing(vectors.epsilon, largest, solver.tol, solver.annealing)
        self.fine = FINE * max(largest, vectors.epsilon)
        self.possible = vectors.upper > vectors.lower
        self.newton_steps = self._idle = self._polished = 0
        self._width, self._complete = 0.0, False
        self.status = Status.RUNNING
        self.output = output_of(data, self.alpha)
        self._measure_gradient()
        check_finite(self.gradient)
        self.tile = tile or (WholeTile if self._whole else Tile)(data, dtype)
        self._judge(np.inf, np.inf)

    @property
    def kernel_rows(self) -> int:
        """Values of row objects that were fetched into the tile."""
        return self.tile.fetched

    def round(self) -> None:
        """Minimise over one tile."""
        before = self.violation, self.objective
        polishing = self._polished > 0
        wanted = self._choose()
        slots = self.tile.hold(wanted)
        budget = min(TURN, self.solver.step_budget - self.newton_steps)
        vectors, last = self.vectors, self.alpha[wanted]
        best, steps, self._width = improve(
            self.tile.Q,
            slots,
            last,
            self.gradient[wanted],
            vectors.lower[wanted],
            vectors.upper[wanted],
            self.annealing.epsilon,
            self._width,
            self._aim(),
            budget,
        )
        self.newton_steps += steps
        self.alpha[wanted] = best
        if isinstance(self.tile, Tile) and self.tile.dtype == np.float64:
            self.output = self.output + self.tile.combine(slots, best - last)
        else:
            self.output = output_of(self.data, self.alpha)
        self._measure_gradient()
        if polishing and self.violation > before[0]:  # rounding is reached: what was before is best
            self.alpha[wanted] = last
            self.output = output_of(self.data, self.alpha)
            self._measure_gradient()
        self._judge(*before)
        if self.solver.screening and self.annealing.done:
            self._screen()

    def facts(self) -> dict[str, Any]:
        """Return the numbers of this round."""
        return {
            "violation": self.violation,
            "objective": self.objective,
            "support_vectors": int(np.count_nonzero(self.alpha)),
            "kernel_rows": self.kernel_rows,
            "steps": 0,
            "newton_steps": self.newton_steps,
        }

    def release(self) -> None:
        """Leave the memory of the tile to others."""
        if isinstance(self.tile, Tile):
            self.tile.release()

    def point(self) -> np.ndarray:
        """Return α of the user's variables."""
        return self.alpha[: self.vectors.size]

    def _measure_gradient(self) -> None:
        """Compute G from Kα, the violations and the objective."""
        self.gradient = np.asarray(self.data.correlations(self.vectors.target - self.output))
        self._measure()

    def _measure(self) -> None:
        """Compute the violations and the objective for the present ε."""
        vectors, epsilon = self.vectors, self.annealing.epsilon
        self.violations = violations(
            self.alpha, self.gradient, vectors.lower, vectors.upper, epsilon
        )
        self.violation = max(float(np.max(np.where(self.possible, self.violations, 0.0))), 0.0)
        self.objective = float(value_of(vectors.target, self.output, self.alpha, epsilon))

    def _choose(self) -> np.ndarray:
        """Return the variables of the next tile."""
        vectors, possible = self.vectors, self.possible
        if self._whole:
            return np.flatnonzero(possible)
        inside = (self.alpha > vectors.lower) & (self.alpha < vectors.upper)
        moving = inside | (self.violations > -self.violation)
        kept = np.flatnonzero((self.alpha != 0) & possible & moving)
        asking = np.flatnonzero((self.alpha == 0) & possible & (self.violations > 0))
        size = max(FIRST, size_of(len(kept) + max(NEW, int(GROWTH * len(kept)))))
        count = size - len(kept)
        self._complete = len(asking) <= count
        if not self._complete:
            asking = asking[np.argpartition(-self.violations[asking], count)[:count]]
        return np.concatenate([kept, asking])

    def _aim(self) -> float:
        """Return the violation to which the next tile is solved."""
        if self._polished > 0 or (self._whole and self.annealing.done):
            return self.fine
        if self._complete and self.annealing.done and self.violation <= NEARLY * self.solver.tol:
            return self.fine
        return max(0.5 * self.annealing.tol, FRACTION * self.violation)

    def _judge(self, violation: float, objective: float) -> None:
        """Decide how to go on, knowing violation and objective before this round."""
        while self.violation <= self.annealing.tol and not self.annealing.done:
            self.annealing.lower()
            self._measure()
            self._idle = 0
        if self.violation <= self.solver.tol and self.annealing.done:
            slow = self._polished > 0 and self.violation > 0.5 * violation
            if self._polished >= POLISHING or self.violation <= self.fine or slow:
                self.status = Status.CONVERGED
            self._polished += 1
        elif self.newton_steps >= self.solver.step_budget:
            self.status = Status.MAX_STEPS
        else:
            lower = objective - self.objective > 1e-13 * abs(objective)
            self._idle = 0 if lower or self.violation < 0.9 * violation else self._idle + 1
            if self._idle >= PATIENCE:
                self.status = Status.STALLED

    def _screen(self) -> None:
        vectors = self.vectors
        primal = potential_primal(
            vectors.target,
            self.output,
            np.where(self.possible, self.gradient, 0.0),
            vectors.lower,
            vectors.upper,
            vectors.epsilon,
        )
        radius = np.sqrt(2 * max(float(primal) + self.objective, 0.0))
        zero = np.abs(self.gradient) + self._lengths * radius < vectors.epsilon
        self.possible &= ~(zero & (self.alpha == 0))

    @cached_property
    def _lengths(self) -> np.ndarray:
        return lengths_of(self.data)


def output_of(data: MatrixData, alpha: np.ndarray) -> np.ndarray:
    """Return Kα, from the row objects that are used."""
    used = np.flatnonzero(alpha)
    if len(used) == 0:
        return np.zeros(data.shape[0])
    if isinstance(data, DenseMatrix) and len(used) > SEVERAL * data.shape[1]:
        return np.asarray(_combine(data.rows, alpha))
    size = min(size_of(len(used)), data.shape[1])
    padded = np.concatenate([used, np.zeros(size - len(used), used.dtype)])
    coefficients = np.pad(alpha[used], (0, size - len(used)))
    return np.asarray(_combine(data.objects(padded), coefficients))


def lengths_of(data: MatrixData) -> np.ndarray:
    """Return ‖k_j‖ of all row objects, some of them at a time."""
    count, some = data.shape[1], 256
    parts = []
    for begin in range(0, count, some):
        indices = np.minimum(np.arange(begin, begin + some), count - 1)
        parts.append(np.asarray(_lengths(jnp.asarray(data.objects(indices)))))
    return np.concatenate(parts)[:count]


def value_of(target: Any, output: Any, alpha: Any, epsilon: Any) -> Any:
    """Return ½‖Kα‖² − yᵀKα + ε‖α‖₁."""
    return (output * (0.5 * output - target)).sum() + epsilon * abs(alpha).sum()


def _combine(values: Any, coefficients: np.ndarray) -> Any:
    on_host = isinstance(values, np.ndarray)
    return coefficients @ values if on_host else combine(coefficients, values)


@jax.jit
def _lengths(values: Any) -> Any:
    return jnp.sqrt(jnp.sum(values**2, axis=1))
