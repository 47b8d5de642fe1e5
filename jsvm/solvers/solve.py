"""Solve a quadratic program: the one entry for all problems and solvers.

A concrete program is solved round by round, and between two rounds the host looks after progress,
time limits and checkpoints (`monitor.py`). Inside ``jit`` or ``vmap`` the solver of one tile runs
as part of the caller's program. Either way the solution is a differentiable function of the
problem.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from jsvm.implicit import attach, without_derivative
from jsvm.precision import is_traced, scope, working_dtype
from jsvm.problems import Normal, QuadraticProgram, validate
from jsvm.solvers.checkpoint import Checkpoint
from jsvm.solvers.monitor import Monitor, drive
from jsvm.solvers.potential import PSMO
from jsvm.solvers.smo import SMO
from jsvm.solvers.status import Solution


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
    if solver is None:
        solver = PSMO() if isinstance(problem.hessian, Normal) else SMO()
    start = start.alpha if isinstance(start, Solution) else start
    if not solver.accepts(problem):
        raise ValueError("solver=PSMO(...) is for problems.psvm; use SMO(...) for this problem")
    if is_traced(problem, start):
        problem = _of_one_type(problem)
        values, start = without_derivative((problem, start))
        if is_traced(values, start):
            return differentiable(problem, solver.solve_traced(values, start))
        options: Any = {"progress": progress, "callback": callback, "checkpoint": checkpoint}
        return differentiable(problem, solve(values, solver, start, dtype=dtype, **options))
    working = working_dtype(dtype)
    with scope(working):
        validate(problem)
        file = None if checkpoint is None else Checkpoint(checkpoint, problem)
        monitor = Monitor(solver.time_limit, progress, callback, file)
        return drive(problem, solver, start, working, monitor)


def _of_one_type(problem: QuadraticProgram) -> QuadraticProgram:
    """Return the program with all real numbers of one type, so that derivatives can be added."""
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
