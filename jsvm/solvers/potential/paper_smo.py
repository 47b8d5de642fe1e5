"""The SMO of Knebel et al. 2008: steps inside a compiled loop, rows of Q for variables that move.

The loop returns to the host when it wants a row of Q that is not there, when a block optimisation
is due (section 3.2), when the violation is small enough, or after a number of steps.
"""

import math
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jsvm.numerics.arrays import check_finite
from jsvm.numerics.indexing import index_of_max
from jsvm.problems.potential import violations
from jsvm.programs import program
from jsvm.solvers.monitor import Facts, facts_of
from jsvm.solvers.potential.paper_steps import STEPS, EpsilonBox, PaperState, RowCache, block_update
from jsvm.solvers.potential.prepared_psvm import PreparedPsvm, certified, lengths_of, output_of
from jsvm.solvers.potential.psmo import PSMO, Annealing
from jsvm.solvers.status import Solution, Status


class PaperSMO:
    """One solution of a program by the steps of the papers."""

    def __init__(self, program: PreparedPsvm, solver: PSMO, start: np.ndarray) -> None:
        self.program, self.solver = program, solver
        self.annealing = Annealing(program.epsilon, program.largest, solver)
        self.kernel_rows = self.newton_steps = self.steps = self._confirmations = 0
        self.status = Status.RUNNING
        self._refresh(start.astype(np.float64))
        size = len(program.linear)
        self._capacity = int(np.clip(solver.cache_size * 1e6 / (8 * size), 4, size))
        self._slot = np.full(size, -1, np.int32)
        self._owner = np.full(self._capacity, -1)
        self._next = 0
        # A variable without width, as padding is, may have no length.
        lengths = lengths_of(program.matrix, solver.tuning)
        lengths = np.where((program.upper > program.lower) & (lengths > 0), lengths, 1.0)
        self._rows = RowCache(jnp.zeros((self._capacity, size)), self._slot, lengths**2)

    @property
    def alpha(self) -> np.ndarray:
        """α, padding included."""
        return np.array(self._state.alpha)

    def round(self, seconds: float = math.inf) -> None:
        end = time.perf_counter() + min(seconds, self.solver.tuning.round_seconds)
        while self.status == Status.RUNNING and time.perf_counter() < end:
            self._turn()

    def facts(self) -> Facts:
        alpha, state = self.alpha, self._state
        smooth = -0.5 * float(alpha @ (self.program.linear + np.asarray(state.gradient)))
        objective = smooth + self.annealing.epsilon * float(np.abs(alpha).sum())
        return facts_of(self, max(float(state.violation), 0.0), objective, alpha)

    def point(self) -> np.ndarray:
        return self.alpha[: self.program.size]

    def solution(self) -> Solution:
        return certified(self)

    def release(self) -> None:
        """Do nothing: the rows of Q are not from the pool."""

    def _set_point(self, alpha: Any, gradient: Any) -> None:
        """Go on from a point, with all counts since the last block optimisation at zero."""
        nobody = np.zeros(alpha.shape, bool)
        self._state = PaperState(jnp.asarray(alpha), gradient, nobody, nobody)
        self._select()

    def _select(self) -> None:
        """Find the variable with the largest violation for the present ε."""
        lower, upper, epsilon = self.program.lower, self.program.upper, self.annealing.epsilon
        self._box = EpsilonBox(lower, upper, np.asarray(epsilon))
        self._state = _selected(self._state, self._box)

    def _refresh(self, alpha: np.ndarray) -> None:
        """Go on from a point with its gradient computed afresh."""
        output = output_of(self.program.matrix, alpha, self.solver.tuning)
        gradient = jnp.asarray(self.program.gradient(output))
        check_finite(gradient)
        self._set_point(alpha, gradient)

    def _turn(self) -> None:
        """Run the loop until it returns, and do what it asks for."""
        solver = self.solver
        budget = min(solver.tuning.steps_per_call, solver.step_budget - self.steps)
        triggers = solver.bounded, solver.changed, solver.repeated
        state = _loop(
            self._rows._replace(slot=self._slot),
            self._box,
            self._state._replace(steps=np.int32(0)),
            np.float64(self.annealing.tol),
            np.int32(budget),
            triggers if solver.block == "paper" else None,
            solver.step,
            solver.tuning.flat_pair,
        )
        self._state = state
        violation, missing, stuck, steps = jax.device_get(
            (state.violation, state.missing, state.stuck, state.steps)
        )
        self.steps += int(steps)
        if missing >= 0:
            self._fetch(int(missing))
        elif violation <= self.annealing.tol:
            self._reached()
        elif stuck:
            self._confirm()
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
        matrix = self.program.matrix
        row = jnp.asarray(matrix.correlations(matrix.objects(np.array([j]))[0]))
        rows = _write(self._rows.values, row, np.int32(place))
        self._rows = self._rows._replace(values=rows)
        self._owner[place], self._slot[j] = j, place
        self.kernel_rows += 1
        self._state = self._state._replace(missing=np.int32(-1))

    def _reached(self) -> None:
        if self.annealing.done:
            self._confirm()
        else:
            self.annealing.lower()
            self._select()

    def _confirm(self) -> None:
        """Compute the gradient afresh, and go on if the violation is not small enough with it."""
        self._refresh(self.alpha)
        self._confirmations += 1
        if self._state.violation <= self.solver.tol:
            self.status = Status.CONVERGED if self.annealing.done else Status.RUNNING
        elif self._confirmations > self.solver.tuning.confirmations:
            self.status = Status.STALLED

    def _optimise_block(self) -> None:
        """Minimise over all non-zero variables that have changed since the last time."""
        alpha, gradient, changed = jax.device_get(
            (self._state.alpha, self._state.gradient, self._state.changed)
        )
        block = np.flatnonzero(changed & (alpha != 0) & (self._slot >= 0))
        program, new = self.program, alpha[block]
        size = next(s for s in self.solver.tuning.block_sizes if len(block) <= s)
        members = np.pad(block, (0, size - len(block)))
        slots = self._slot[members]
        if len(block):
            Q = np.asarray(_between(self._rows.values, slots, members))[: len(block), : len(block)]
            side = np.sign(new)
            linear = Q @ new + gradient[block] - self.annealing.epsilon * side
            lower = np.where(side > 0, 0.0, program.lower[block])
            upper = np.where(side > 0, program.upper[block], 0.0)
            new = block_update(Q, linear, new, lower, upper)
        change = np.pad(new - alpha[block], (0, size - len(block)))
        alpha = alpha.copy()
        alpha[block] = new
        self._set_point(alpha, _moved(jnp.asarray(gradient), self._rows.values, slots, change))
        self.newton_steps += 1


def _worst(alpha: Any, gradient: Any, box: EpsilonBox) -> tuple[Any, Any]:
    """Return the variable with the largest violation, and that (Knebel et al. 2008, eq. 25)."""
    return index_of_max(violations(alpha, gradient, box.lower, box.upper, box.epsilon))


@program
def _selected(state: PaperState, box: EpsilonBox) -> PaperState:
    i, violation = _worst(state.alpha, state.gradient, box)
    return state._replace(i=i, violation=violation, stuck=jnp.bool_(False))


@program(static_argnames=("triggers", "step", "flat"))
def _loop(
    rows: RowCache,
    box: EpsilonBox,
    state: PaperState,
    tol: Any,
    budget: Any,
    triggers: tuple[int, int, int] | None,
    step: str,
    flat: float,
) -> PaperState:
    places = lax.iota(jnp.int32, state.alpha.shape[0])

    def due(state: PaperState) -> Any:
        """Tell whether a block optimisation is due (Knebel et al. 2008, section 3.2)."""
        if triggers is None:
            return jnp.bool_(False)
        bounded, changed, repeated = triggers
        count = state.changed_count
        often = (count > 0) & (state.since >= repeated * count)
        return (state.bounded_count >= bounded) | (count >= changed) | often

    def goes_on(state: PaperState) -> Any:
        wants = (state.missing >= 0) | state.stuck | due(state)
        return (state.violation > tol) & (state.steps < budget) & ~wants

    def take(state: PaperState) -> PaperState:
        move = STEPS[step](rows, box, state, flat)
        ready = move.missing < 0
        d_i = jnp.where(ready, move.alpha_i - state.alpha[move.i], 0.0)
        d_k = jnp.where(ready & (move.k != move.i), move.alpha_k - state.alpha[move.k], 0.0)
        at_i, at_k = places == move.i, places == move.k
        alpha = jnp.where(ready & at_k, move.alpha_k, state.alpha)
        alpha = jnp.where(ready & at_i, move.alpha_i, alpha)
        gradient = state.gradient - d_i * move.row_i - d_k * move.row_k
        i, violation = _worst(alpha, gradient, box)
        state = _noted(state, box, (move.i, at_i, d_i, move.alpha_i))
        state = _noted(state, box, (move.k, at_k, d_k, move.alpha_k))
        return state._replace(
            alpha=alpha,
            gradient=gradient,
            violation=jnp.where(ready, violation, state.violation),
            i=jnp.where(ready, i, state.i),
            steps=state.steps + ready,
            since=state.since + ready,
            missing=move.missing,
            stuck=ready & (d_i == 0) & (d_k == 0),
        )

    return lax.while_loop(goes_on, take, state)


def _noted(state: PaperState, box: EpsilonBox, moved: tuple[Any, Any, Any, Any]) -> PaperState:
    """Note that a variable has changed, and whether it is at ±C now."""
    j, here, change, value = moved
    changes = change != 0
    at_bound = changes & ((value == box.upper[j]) | (value == box.lower[j]))
    new, hit = changes & ~state.changed[j], at_bound & ~state.bounded[j]
    return state._replace(
        changed=state.changed | (here & changes),
        changed_count=state.changed_count + new,
        bounded=state.bounded | (here & at_bound),
        bounded_count=state.bounded_count + hit,
    )


@program(donate_argnums=0)
def _write(values: Any, row: Any, place: Any) -> Any:
    return lax.dynamic_update_index_in_dim(values, row, place, 0)


@program
def _between(values: Any, slots: Any, members: Any) -> Any:
    return values[slots][:, members]


@program
def _moved(gradient: Any, values: Any, slots: Any, change: Any) -> Any:
    return gradient - jnp.matmul(change, values[slots], precision=lax.Precision.HIGHEST)
