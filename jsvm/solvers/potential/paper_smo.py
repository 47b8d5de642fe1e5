"""The SMO of 000: steps inside a compiled loop, rows of Q computed for variables that move.

The loop returns to the host when it wants a row of Q that is not there, when a block optimisation
is due (section 3.2), when the violation is small enough, or after a number of steps.
"""

import time
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jsvm.numerics.checks import check_finite
from jsvm.numerics.reductions import index_of_max
from jsvm.problems.matrix_data import MatrixData
from jsvm.solvers.potential.paper_block import block_update
from jsvm.solvers.potential.paper_steps import STEPS, Box, Rows
from jsvm.solvers.potential.psmo import PSMO, Annealing
from jsvm.solvers.potential.psvm_tiles import Vectors, lengths_of, output_of
from jsvm.solvers.potential.violation import violations
from jsvm.solvers.status import Status

TURN = 100_000  # steps before the host looks up
ROUND_SECONDS = 0.2
MOST_CONFIRMATIONS = 5
BLOCK_SIZES = (32, 128, 512, 2048, 8192, 32768)


class Run(NamedTuple):
    """The state of the loop."""

    alpha: Any
    gradient: Any
    violation: Any  # the largest d_j
    i: Any  # and where it is
    steps: Any
    since: Any  # steps since the last block optimisation
    changed: Any  # which variables changed since then
    changed_count: Any
    bounded: Any  # which have hit ±C
    bounded_count: Any
    missing: Any  # the variable whose row is wanted, or −1
    stuck: Any  # whether the last step moved nothing


class PaperSMO:
    """One solution of a program; see :class:`jsvm.solvers.monitor.Work`."""

    def __init__(
        self,
        data: MatrixData,
        vectors: Vectors,
        solver: PSMO,
        dtype: np.dtype,
        start: np.ndarray,
    ) -> None:
        self.data, self.vectors, self.solver = data, vectors, solver
        self.annealing = Annealing(
            vectors.epsilon, float(np.abs(vectors.linear).max()), solver.tol, solver.annealing
        )
        self.kernel_rows = self.newton_steps = self.steps = self._confirmations = 0
        self.status = Status.RUNNING
        self._run = self._begin(start.astype(np.float64))
        size = len(vectors.linear)
        self._capacity = int(np.clip(solver.cache_size * 1e6 / (8 * size), 4, size))
        self._slot = np.full(size, -1, np.int32)
        self._owner = np.full(self._capacity, -1)
        self._next = 0
        # A variable without width, as padding is, may have no length.
        lengths = np.where(vectors.upper > vectors.lower, lengths_of(data), 1.0)
        self._rows = Rows(
            jnp.zeros((self._capacity, size)), self._slot, np.where(lengths > 0, lengths, 1.0) ** 2
        )

    @property
    def alpha(self) -> np.ndarray:
        """α, padding included."""
        return np.array(self._run.alpha)

    def round(self) -> None:
        """Go on for a short time."""
        end = time.perf_counter() + ROUND_SECONDS
        while self.status == Status.RUNNING and time.perf_counter() < end:
            self._turn()

    def facts(self) -> dict[str, Any]:
        """Return the numbers of this round."""
        alpha, run = self.alpha, self._run
        smooth = -0.5 * float(alpha @ (self.vectors.linear + np.asarray(run.gradient)))
        return {
            "violation": max(float(run.violation), 0.0),
            "objective": smooth + self.annealing.epsilon * float(np.abs(alpha).sum()),
            "support_vectors": int(np.count_nonzero(alpha)),
            "kernel_rows": self.kernel_rows,
            "steps": self.steps,
            "newton_steps": self.newton_steps,
        }

    def point(self) -> np.ndarray:
        """Return α of the user's variables."""
        return self.alpha[: self.vectors.size]

    def _box(self) -> Box:
        vectors = self.vectors
        return Box(vectors.lower, vectors.upper, np.asarray(self.annealing.epsilon))

    def _begin(self, alpha: np.ndarray) -> Run:
        """Return the state at a point, with a fresh gradient."""
        residual = self.vectors.target - output_of(self.data, alpha)
        gradient = jnp.asarray(self.data.correlations(residual))
        check_finite(gradient)
        return _selected(_fresh(jnp.asarray(alpha), gradient), self._box())

    def _turn(self) -> None:
        """Let the loop run until it wants something, and see to it."""
        solver = self.solver
        budget = min(TURN, solver.step_budget - self.steps)
        triggers = solver.bounded, solver.changed, solver.repeated
        run = _loop(
            self._rows._replace(slot=self._slot),
            self._box(),
            self._run._replace(steps=np.int32(0)),
            np.float64(self.annealing.tol),
            np.int32(budget),
            triggers if solver.block == "paper" else None,
            solver.step,
        )
        self._run = run
        violation, missing, stuck, steps = jax.device_get(
            (run.violation, run.missing, run.stuck, run.steps)
        )
        self.steps += int(steps)
        if missing >= 0:
            self._fetch(int(missing))
        elif violation <= self.annealing.tol:
            self._reached()
        elif stuck:
            self._confirm(Status.STALLED)
        elif self.steps >= solver.step_budget:
            self.status = Status.MAX_STEPS
        elif solver.block == "paper" and steps < budget:
            self._optimise_block()

    def _fetch(self, j: int) -> None:
        """Compute row j of Q; when there is no room, the oldest one goes."""
        place = self._next % self._capacity
        self._next += 1
        if self._owner[place] >= 0:
            self._slot[self._owner[place]] = -1
        row = jnp.asarray(self.data.correlations(self.data.objects(np.array([j]))[0]))
        rows = _write(self._rows.values, row, np.int32(place))
        self._rows = self._rows._replace(values=rows)
        self._owner[place], self._slot[j] = j, place
        self.kernel_rows += 1
        self._run = self._run._replace(missing=np.int32(-1))

    def _reached(self) -> None:
        if self.annealing.done:
            self._confirm(Status.CONVERGED)
            return
        self.annealing.lower()
        self._run = _selected(self._run, self._box())

    def _confirm(self, status: Status) -> None:
        """Compute the gradient afresh, and accept the status if it still holds."""
        self._run = self._begin(self.alpha)
        self._confirmations += 1
        holds = self._run.violation <= self.solver.tol
        if holds:
            self.status = Status.CONVERGED if self.annealing.done else Status.RUNNING
        elif self._confirmations > MOST_CONFIRMATIONS:
            self.status = Status.STALLED if status == Status.CONVERGED else status

    def _optimise_block(self) -> None:
        """Minimise over all non-zero variables that have changed since the last time."""
        alpha, gradient, changed = jax.device_get(
            (self._run.alpha, self._run.gradient, self._run.changed)
        )
        block = np.flatnonzero(changed & (alpha != 0) & (self._slot >= 0))
        vectors, new = self.vectors, alpha[block]
        size = next(s for s in BLOCK_SIZES if len(block) <= s)
        members = np.pad(block, (0, size - len(block)))
        slots = self._slot[members]
        if len(block):
            Q = np.asarray(_between(self._rows.values, slots, members))[: len(block), : len(block)]
            side = np.sign(new)
            linear = Q @ new + gradient[block] - self.annealing.epsilon * side
            lower = np.where(side > 0, 0.0, vectors.lower[block])
            upper = np.where(side > 0, vectors.upper[block], 0.0)
            new = block_update(Q, linear, new, lower, upper)
        change = np.pad(new - alpha[block], (0, size - len(block)))
        alpha = alpha.copy()
        alpha[block] = new
        gradient = _moved(jnp.asarray(gradient), self._rows.values, slots, change)
        self._run = _selected(_fresh(jnp.asarray(alpha), gradient), self._box())
        self.newton_steps += 1


def _fresh(alpha: Any, gradient: Any) -> Run:
    nobody, zero = np.zeros(alpha.shape, bool), np.int32(0)
    return Run(
        alpha=alpha,
        gradient=gradient,
        violation=np.float64(np.inf),
        i=zero,
        steps=zero,
        since=zero,
        changed=nobody,
        changed_count=zero,
        bounded=nobody,
        bounded_count=zero,
        missing=np.int32(-1),
        stuck=np.bool_(False),
    )


def _worst(alpha: Any, gradient: Any, box: Box) -> tuple[Any, Any]:
    """Return the variable with the largest violation, and that (000, eq. 25)."""
    return index_of_max(violations(alpha, gradient, box.lower, box.upper, box.epsilon))


@jax.jit
def _selected(run: Run, box: Box) -> Run:
    i, violation = _worst(run.alpha, run.gradient, box)
    return run._replace(i=i, violation=violation, stuck=jnp.bool_(False))


@partial(jax.jit, static_argnames=("triggers", "step"))
def _loop(
    rows: Rows,
    box: Box,
    run: Run,
    tol: Any,
    budget: Any,
    triggers: tuple[int, int, int] | None,
    step: str,
) -> Run:
    places = lax.iota(jnp.int32, run.alpha.shape[0])

    def due(run: Run) -> Any:
        """Tell whether a block optimisation is due (000, section 3.2)."""
        if triggers is None:
            return jnp.bool_(False)
        bounded, changed, repeated = triggers
        count = run.changed_count
        often = (count > 0) & (run.since >= repeated * count)
        return (run.bounded_count >= bounded) | (count >= changed) | often

    def goes_on(run: Run) -> Any:
        wants = (run.missing >= 0) | run.stuck | due(run)
        return (run.violation > tol) & (run.steps < budget) & ~wants

    def take(run: Run) -> Run:
        move = STEPS[step](rows, box, run.alpha, run.gradient, run.i)
        ready = move.missing < 0
        d_i = jnp.where(ready, move.alpha_i - run.alpha[move.i], 0.0)
        d_k = jnp.where(ready & (move.k != move.i), move.alpha_k - run.alpha[move.k], 0.0)
        at_i, at_k = places == move.i, places == move.k
        alpha = jnp.where(ready & at_k, move.alpha_k, run.alpha)
        alpha = jnp.where(ready & at_i, move.alpha_i, alpha)
        gradient = run.gradient - d_i * move.row_i - d_k * move.row_k
        i, violation = _worst(alpha, gradient, box)
        run = _noted(run, box, (move.i, at_i, d_i, move.alpha_i), places)
        run = _noted(run, box, (move.k, at_k, d_k, move.alpha_k), places)
        return run._replace(
            alpha=alpha,
            gradient=gradient,
            violation=jnp.where(ready, violation, run.violation),
            i=jnp.where(ready, i, run.i),
            steps=run.steps + ready,
            since=run.since + ready,
            missing=move.missing,
            stuck=ready & (d_i == 0) & (d_k == 0),
        )

    return lax.while_loop(goes_on, take, run)


def _noted(run: Run, box: Box, moved: tuple[Any, Any, Any, Any], places: Any) -> Run:
    """Note that a variable has changed, and whether it is at ±C now."""
    j, here, change, value = moved
    changes = change != 0
    at_bound = changes & ((value == box.upper[j]) | (value == box.lower[j]))
    new, hit = changes & ~run.changed[j], at_bound & ~run.bounded[j]
    return run._replace(
        changed=run.changed | (here & changes),
        changed_count=run.changed_count + new,
        bounded=run.bounded | (here & at_bound),
        bounded_count=run.bounded_count + hit,
    )


@partial(jax.jit, donate_argnums=0)
def _write(values: Any, row: Any, place: Any) -> Any:
    return lax.dynamic_update_index_in_dim(values, row, place, 0)


@jax.jit
def _between(values: Any, slots: Any, members: Any) -> Any:
    return values[slots][:, members]


@jax.jit
def _moved(gradient: Any, values: Any, slots: Any, change: Any) -> Any:
    return gradient - jnp.matmul(change, values[slots], precision=lax.Precision.HIGHEST)
