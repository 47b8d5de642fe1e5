"""The host's side of solving: precision, padding, which level, and the certificate.

A concrete program is padded to one of few sizes, so that nearby sizes share compiled programs.
Small ones are solved on one tile (`whole.py`), large ones on many (`decomposition.py`); both go
round by round, and between two rounds the host looks after the rest (`monitor.py`). Inside ``jit``
or ``vmap`` the solver of one tile runs as part of the caller's program.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jsvm.implicit import attach, without_derivative
from jsvm.precision import at_once, is_traced, scope, working_dtype
from jsvm.problems import FromKernel, Normal, QuadraticProgram, validate
from jsvm.problems.certificate import certify
from jsvm.solvers.canonical import canonical
from jsvm.solvers.config import SMO
from jsvm.solvers.layout import Layout, innermost, pad
from jsvm.solvers.monitor import Checkpoint, Monitor
from jsvm.solvers.potential import PSMO, solve_potential, solve_potential_traced
from jsvm.solvers.starts import feasible_start
from jsvm.solvers.status import Solution, Status, to_numpy
from jsvm.solvers.tile.loop import advance, best_point
from jsvm.solvers.tile.whole import WholeTile, start_whole
from jsvm.solvers.tiles.copies import copies_in
from jsvm.solvers.tiles.decomposition import Decomposition
from jsvm.solvers.tiles.rows import Rows
from jsvm.solvers.tiles.sources import Source, source_of
from jsvm.solvers.tiles.working_set import Vectors

LARGEST_WHOLE = 1280  # variables of a problem that is solved on one tile
LARGEST_TRACED = 8192  # variables inside of a transformation: the matrix is in memory
TRACED_SLOTS = 256  # nobody can ask for more inside a transformation
EXACT_BUDGET = 2.0**28  # bytes for float64 rows, where the solver works in float32
DOUBLE = np.dtype("float64")


def solve(
    problem: QuadraticProgram,
    solver: SMO | PSMO | None = None,
    start: Any = None,
    *,
    dtype: Any = None,
    progress: bool = False,
    callback: Callable[[dict[str, Any]], Any] | None = None,
    checkpoint: str | Path | None = None,
) -> Solution:
    """Solve a quadratic program and certify the answer.

    Parameters
    ----------
    problem : QuadraticProgram
        One of :mod:`jsvm.problems`.
    solver : SMO or PSMO, optional
        Configuration; the default is second-order selection with block steps at tol=1e-3, and for
        the Potential SVM its own solver.
    start : array of shape (n,) or Solution, optional
        A feasible point to start from.
    dtype : {'float64', 'float32'}, optional
        What to compute in; by default float64 on a CPU and float32 elsewhere. Inside a JAX
        transformation the dtype of the problem is used. In float32 success is declared only on a
        gradient computed in float64.
    progress : bool
        Show a bar with gap, objective, support vectors and kernel rows.
    callback : function, optional
        Called after every round with a dict of `violation`, `objective`, `support_vectors`,
        `kernel_rows`, `steps`, `newton_steps` and `seconds`; a true return value stops the run.
    checkpoint : path, optional
        A .npz file to which a long run is saved now and then, and at its end; if it exists, the run
        goes on from it.

    Returns
    -------
    Solution
        NumPy arrays and numbers; JAX arrays inside a transformation. Its `history` has the dict of
        every round. α, bias, multipliers and objectives have derivatives with respect to all that
        the problem was made from (:mod:`jsvm.implicit`), in forward and reverse mode.

    Examples
    --------
    >>> import numpy as np
    >>> from jsvm import kernels, problems, solve
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> y = np.array([-1.0, -1.0, 1.0, 1.0])
    >>> s = solve(problems.c_svc((kernels.Linear(), X), y, C=10.0))
    >>> round(float(s.bias), 3), bool(s.duality_gap < 1e-3)
    (-3.0, True)
    """
    potential = isinstance(problem.hessian, Normal)
    if solver is None:
        solver = PSMO() if potential else SMO()
    start = start.alpha if isinstance(start, Solution) else start
    if isinstance(solver, PSMO) and not potential:
        raise ValueError("solver=PSMO(...) is for problems.psvm; use SMO(...) for this problem")
    if is_traced(problem, start):
        problem = _of_one_type(problem)
        values, start = without_derivative((problem, start))
        if is_traced(values, start):
            traced: Any = solve_potential_traced if isinstance(solver, PSMO) else _solve_traced
            return differentiable(problem, traced(values, solver, start))
        options: Any = {"progress": progress, "callback": callback, "checkpoint": checkpoint}
        return differentiable(problem, solve(values, solver, start, dtype=dtype, **options))
    validate(problem)
    chosen = working_dtype(dtype)
    file = None if checkpoint is None else Checkpoint(checkpoint, problem)
    monitor = Monitor(solver.time_limit, progress, callback, file)
    # A program that does not depend on what is being traced is solved at once, in float64.
    with at_once(), scope(chosen):
        if isinstance(solver, PSMO):
            return solve_potential(problem, solver, start, chosen, monitor)
        return _solve_concrete(problem, solver, start, chosen, monitor)


def _of_one_type(problem: QuadraticProgram) -> QuadraticProgram:
    """Return the program with all real numbers of the widest type among them.

    A derivative has the types of what it is the derivative of, and these have to fit together.
    """
    leaves = [leaf for leaf in jax.tree.leaves(problem) if _is_real(leaf)]
    dtype = jnp.result_type(*leaves)
    return jax.tree.map(lambda v: jnp.asarray(v, dtype) if _is_real(v) else v, problem)


def _is_real(leaf: Any) -> bool:
    return jnp.issubdtype(jnp.result_type(leaf), jnp.floating)


def differentiable(problem: QuadraticProgram, solution: Solution) -> Solution:
    """Return the solution as a function of its problem."""
    dtype = jnp.result_type(problem.linear)
    values = (solution.alpha, solution.multipliers, solution.objective)
    alpha, multipliers, objective = attach(problem, *(jnp.asarray(v, dtype) for v in values))
    if isinstance(problem.hessian, Normal):
        bias = jnp.mean(jnp.asarray(problem.hessian.target))
    else:
        bias = jnp.mean(multipliers) if problem.group_count else jnp.asarray(solution.bias, dtype)
    # In the optimum the primal objective is minus the other one, whatever the problem.
    gap = without_derivative(jnp.asarray(solution.primal_objective, dtype) + objective)
    return replace(
        solution,
        alpha=alpha,
        multipliers=multipliers,
        bias=bias,
        objective=objective,
        primal_objective=gap - objective,
    )


def _solve_traced(problem: QuadraticProgram, solver: SMO, start: Any) -> Solution:
    program, restore = canonical(problem)
    if program.size > LARGEST_TRACED:
        raise ValueError(
            f"a problem of {program.size} variables is too large for jit and vmap, whose limit is "
            f"{LARGEST_TRACED}; call solve outside of them: jax.grad works there, too"
        )
    recipe = solver.recipe(min(program.size, solver.slots, TRACED_SLOTS), elastic=False)
    alpha = None if start is None else restore.split(jnp.asarray(start))
    tile, progress = start_whole(program, alpha, recipe)
    budget = jnp.int32(solver.step_budget)
    progress = advance(tile, progress, solver.tol, budget, budget, recipe)
    alpha = best_point(tile, progress)
    certificate = certify(tile, alpha, tile.gradient(alpha))
    rows = jnp.int32(0)
    return restore.join(Solution.of(alpha, certificate, progress, rows, progress.status))


def _solve_concrete(
    problem: QuadraticProgram, solver: SMO, start: Any, dtype: np.dtype, monitor: Monitor
) -> Solution:
    program, restore = canonical(problem)
    saved = None if monitor.checkpoint is None else monitor.checkpoint.load()
    if saved is not None:
        start = feasible_start(saved, program)
    elif start is not None:
        start = feasible_start(restore.split(np.asarray(start, float)), program)
    # The papers' algorithms run on the whole problem: their steps are to be comparable.
    copies = copies_in(program) if solver.block else None
    if copies is not None:
        program, monitor.to_user = copies.merged(), copies.apart
        start = None if start is None else copies.together(start)
    whole = program.size <= LARGEST_WHOLE or not solver.block
    layout = Layout.of(program, shuffled=not whole)
    if not whole:
        work = _decomposition(program, layout, start, solver, dtype)
        monitor.follow(work)
        solution = _certified(work)
    else:
        padded = pad(program, layout, dtype)
        alpha = None if start is None else layout.spread(start, dtype)
        work = WholeTile(padded, layout, alpha, solver)
        monitor.follow(work)
        solution = work.solution()
        work.release()
        if dtype != DOUBLE:
            solution = _confirmed(program, layout, solution, solver, dtype, monitor)
    alpha = solution.alpha[layout.places]
    rows = solution.kernel_rows if isinstance(innermost(program.hessian), FromKernel) else 0
    solution = replace(
        to_numpy(solution),
        alpha=alpha if copies is None else copies.apart(alpha),
        kernel_rows=rows,
        history=tuple(monitor.history),
    )
    return restore.join(solution)


def _decomposition(
    program: QuadraticProgram, layout: Layout, start: Any, solver: SMO, dtype: np.dtype
) -> Decomposition:
    """Return the decomposition of a program at its start."""
    inner = innermost(program.hessian)
    if start is None:
        with scope(DOUBLE):
            start = np.asarray(program.feasible_point())
    vectors = Vectors(
        linear=layout.spread(program.linear),
        lower=layout.spread(program.lower),
        upper=layout.spread(program.upper),
        groups=layout.spread(program.groups, np.int32),
        totals=np.asarray(program.totals, float),
        alpha=layout.spread(start),
        gradient=layout.spread(program.linear),
    )
    ridge = layout.ridge(inner)
    rows = Rows(source_of(inner, layout, dtype), layout.examples, dtype, solver.cache_size * 1e6)
    exact = None if dtype == DOUBLE else ExactSum(inner, layout)
    return Decomposition(vectors, rows, ridge if ridge.any() else None, exact, solver, layout)


class ExactSum:
    """Sums of rows in float64, from the user's data, where the solver works in float32."""

    def __init__(self, inner: Any, layout: Layout) -> None:
        self._inner, self._layout = inner, layout
        self._source: Source | None = None

    def __call__(
        self, some: np.ndarray, coefficients: np.ndarray, passing: np.ndarray
    ) -> np.ndarray:
        """Return Σ_k coefficients[k] · K[some[k], :]."""
        with scope(DOUBLE):
            if self._source is None:
                self._source = source_of(self._inner, self._layout, DOUBLE)
            # Rows are not kept: they would take twice the memory of those in float32.
            rows = Rows(self._source, self._layout.examples, DOUBLE, EXACT_BUDGET)
            total = rows.sum(some, coefficients, passing)
            rows.release()
            return total


def _confirmed(
    program: QuadraticProgram,
    layout: Layout,
    solution: Solution,
    solver: SMO,
    dtype: np.dtype,
    monitor: Monitor,
) -> Solution:
    """Let float64 have the last word on a solution found in float32.

    What it contradicts is solved again from there, on the gradient computed in float64.
    """
    start = np.clip(solution.alpha[layout.places], program.lower, program.upper)
    work = _decomposition(program, layout, start, solver, dtype)
    work.steps, work.newton_steps = int(solution.steps), int(solution.newton_steps)
    work.rows.computed = int(solution.kernel_rows)
    if solution.status in (Status.CONVERGED, Status.STALLED):
        monitor.follow(work)
    else:
        work.status = Status(int(solution.status))
    return _certified(work)


def _certified(work: Decomposition) -> Solution:
    """Return the best point of a decomposition with its certificate, all in float64."""
    with scope(DOUBLE):
        certificate = jax.device_get(_certify(*work.best()))
    work.release()
    alpha = work.vectors.alpha
    return Solution.of(alpha, certificate, work, work.rows.computed, int(work.status))


@jax.jit
def _certify(program: QuadraticProgram, alpha: Any, gradient: Any) -> Any:
    return certify(jax.tree.map(jnp.asarray, program), alpha, gradient)
