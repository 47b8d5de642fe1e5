"""A concrete problem, solved round by round: which level, in which variables, in which precision.

The user's program is made canonical, copies of examples are merged, and what is left is laid out in
one of few sizes, so that nearby sizes share compiled programs. Small problems are solved on one
tile (`tile/whole.py`), large ones on many (`tiles/decomposition.py`). What one tile finds in
float32 is confirmed by a decomposition, whose gradient is computed in float64: if it still violates
there, it is solved again from that point.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from jsvm.problems import FromKernel, QuadraticProgram
from jsvm.solvers.canonical import Layout, canonical, innermost, pad
from jsvm.solvers.monitor import Facts
from jsvm.solvers.smo import SMO
from jsvm.solvers.starts import feasible_start
from jsvm.solvers.status import Solution, Status
from jsvm.solvers.tile.whole import WholeTile
from jsvm.solvers.tiles.copies import copies_in
from jsvm.solvers.tiles.decomposition import Decomposition


class SMOWork:
    """See :class:`jsvm.solvers.monitor.Work`.

    Parameters
    ----------
    problem : QuadraticProgram
        As the user gave it.
    solver : SMO
    start : array or None
        A feasible point of the problem.
    dtype : dtype
        What to compute in.
    """

    def __init__(self, problem: QuadraticProgram, solver: SMO, start: Any, dtype: np.dtype) -> None:
        self._solver, self._dtype = solver, dtype
        self._program, self._restore = canonical(problem)
        if start is not None:
            point = self._restore.split(np.asarray(start, float))
            start = feasible_start(point, self._program)
        # The papers' algorithms run on the whole problem: their steps are to be comparable.
        self._copies = copies_in(self._program, solver.tuning) if solver.block else None
        if self._copies is not None:
            self._program = self._copies.merged()
            start = None if start is None else self._copies.together(start)
        whole = self._program.size <= solver.tuning.largest_whole or not solver.block
        self._layout = Layout.of(self._program, shuffled=not whole)
        self._is_confirmed = not whole or dtype == np.dtype("float64")
        self._level = self._whole_tile(start) if whole else self._decomposition(start)

    @property
    def status(self) -> Status:
        """How it ended, or RUNNING; what is found in float32 has to be confirmed."""
        status = self._level.status
        found = status in (Status.CONVERGED, Status.STALLED)
        return Status.RUNNING if found and not self._is_confirmed else status

    @status.setter
    def status(self, status: Status) -> None:
        self._level.status = status

    @property
    def steps(self) -> int:
        """Pair steps."""
        return self._level.steps

    @property
    def newton_steps(self) -> int:
        """Rounds of block steps."""
        return self._level.newton_steps

    @property
    def kernel_rows(self) -> int:
        """Rows of the kernel matrix that were computed."""
        return self._level.kernel_rows

    def round(self) -> None:
        """Do a bounded amount of work."""
        if self._level.status != Status.RUNNING:
            self._confirm(Status.RUNNING)
        self._level.round()

    def facts(self) -> Facts:
        """Return the numbers of the last round."""
        return self._level.facts()

    def point(self) -> np.ndarray:
        """Return α in the user's variables."""
        return self._restore.point(self._apart(self._level.point()))

    def solution(self) -> Solution:
        """Return the best point, in the user's variables, with its certificate."""
        if not self._is_confirmed:
            self._confirm(self._level.status)
        solution = self._level.solution()
        return self._restore.join(replace(solution, alpha=self._apart(solution.alpha)))

    def release(self) -> None:
        """Return the buffers to the memory pool; do not use afterwards."""
        self._level.release()

    def _apart(self, alpha: np.ndarray) -> np.ndarray:
        return alpha if self._copies is None else self._copies.apart(alpha)

    def _whole_tile(self, start: np.ndarray | None) -> WholeTile:
        program, layout = self._program, self._layout
        inner = innermost(program.hessian)
        rows = inner.size if isinstance(inner, FromKernel) else 0
        start = None if start is None else layout.spread(start, self._dtype)
        return WholeTile(pad(program, layout, self._dtype), layout, start, self._solver, rows)

    def _decomposition(self, start: np.ndarray | None) -> Decomposition:
        return Decomposition(self._program, self._layout, start, self._solver, self._dtype)

    def _confirm(self, status: Status) -> None:
        """Go on from the point of the tile with a gradient in float64."""
        tile = self._level
        start = np.clip(tile.point(), self._program.lower, self._program.upper)
        self._level = self._decomposition(start)
        self._level.steps, self._level.newton_steps = tile.steps, tile.newton_steps
        self._level.rows.computed, self._level.status = tile.kernel_rows, status
        self._is_confirmed = True
        tile.release()
