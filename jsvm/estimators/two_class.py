"""The two-class problems of a multiclass data set.

On a CPU they are solved one after the other: a batch would be too, by a program of its own. On
other devices they are one batch where they fit.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jsvm.kernels import Kernel
from jsvm.numerics.padding import bucket, repeat_first, widened
from jsvm.precision import default_platform, scope
from jsvm.problems import QuadraticProgram
from jsvm.problems.hessian import gram
from jsvm.solvers import SMO, Solution, solve, solve_batch
from jsvm.solvers.monitor import Monitor
from jsvm.solvers.starts import near
from jsvm.validation.class_pairs import TwoClass
from jsvm.validation.parts import Part, stacked

BATCH_BYTES = 2**28


class Watch(NamedTuple):
    """How a fit is watched: see :func:`jsvm.solve`."""

    progress: bool = False
    callback: Callable[[dict[str, Any]], Any] | None = None
    checkpoint: Any = None


def as_solved(
    solution: Solution, signs: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, float]:
    """Return coefficients and offset of a solution as they are."""
    return solution.alpha, float(solution.bias)


class Machine(NamedTuple):
    """What a two-class problem is, as a program and as a function.

    ``build(K, signs, weights, *parameters)`` is compiled in, the numbers are not;
    ``function(solution, signs, weights)`` gives coefficients and offset of the decision function.
    """

    build: Callable[..., QuadraticProgram]
    parameters: tuple[float, ...] = ()
    function: Callable[[Solution, np.ndarray, np.ndarray], tuple[np.ndarray, float]] = as_solved

    def program(self, K: Any, signs: Any, weights: Any) -> QuadraticProgram:
        """Return the program of some examples."""
        return self.build(K, signs, weights, *self.parameters)


def solve_all(
    machine: Machine,
    K: np.ndarray | tuple[Kernel, np.ndarray],
    problems: list[TwoClass],
    weights: np.ndarray,
    solver: SMO,
    dtype: np.dtype,
    watch: Watch,
    last: list[Solution] | None = None,
) -> list[Solution]:
    """Solve all problems; `K` is the whole matrix or a pair ``(kernel, X)``.

    With solutions to start from they are solved one by one. Of several problems each has its own
    checkpoint, the given name with its number; a batch has none.
    """
    largest = bucket(max(len(problem.examples) for problem in problems))
    n = len(weights)
    needed = dtype.itemsize * (n * n + len(problems) * largest**2)
    pays = default_platform() != "cpu" and needed <= BATCH_BYTES
    if len(problems) > 1 and pays and last is None:
        return _solve_together(machine, K, problems, weights, solver, dtype, watch)
    solutions = []
    for k, problem in enumerate(problems):
        path = watch.checkpoint
        if path is not None and len(problems) > 1:
            path = f"{path}.{k}"
        some = problem.examples
        program = machine.program(_part(K, some), problem.signs, weights[some])
        start = None if last is None else near(last[k].alpha, program)
        solutions.append(
            solve(
                program,
                solver,
                start,
                dtype=dtype,
                progress=watch.progress,
                callback=watch.callback,
                checkpoint=path,
            )
        )
    return solutions


def _part(K: Any, some: np.ndarray) -> Any:
    """Return the kernel of some of the examples; nothing is copied if these are all."""
    if len(some) == (K[1] if isinstance(K, tuple) else K).shape[0]:
        return K
    return (K[0], K[1][some]) if isinstance(K, tuple) else K[np.ix_(some, some)]


def _solve_together(
    machine: Machine,
    K: Any,
    problems: list[TwoClass],
    weights: np.ndarray,
    solver: SMO,
    dtype: np.dtype,
    watch: Watch,
) -> list[Solution]:
    stack = stacked([Part(*problem, weights[problem.examples]) for problem in problems], dtype)
    with scope(dtype):
        matrix = _matrix(K, dtype)
        batch = _cut(machine.build, machine.parameters, matrix, *stack)
    monitor = Monitor(solver.time_limit, watch.progress, watch.callback)
    solutions = solve_batch(batch, solver, dtype=dtype, monitor=monitor)
    counts = [len(problem.examples) for problem in problems]
    computed = isinstance(K, tuple)
    return [_member(solutions, p, n, n if computed else 0) for p, n in enumerate(counts)]


def _matrix(K: Any, dtype: np.dtype) -> Any:
    if not isinstance(K, tuple):
        return jnp.asarray(K, dtype)
    kernel, X = K
    return gram(kernel, jnp.asarray(repeat_first(widened(kernel, X), bucket(len(X))), dtype))


@partial(jax.jit, static_argnames="build")
def _cut(
    build: Any, parameters: Any, matrix: Any, examples: Any, signs: Any, weights: Any
) -> QuadraticProgram:
    """Return the batch of programs, each on its own part of the matrix."""

    def one(some: Any, y: Any, weight: Any) -> QuadraticProgram:
        program = build(matrix[some][:, some], y, weight, *parameters)
        return jax.tree.map(jnp.asarray, program)

    return jax.vmap(one)(examples, signs, weights)


def _member(solutions: Solution, p: int, count: int, kernel_rows: int) -> Solution:
    """Return one solution of a batch without its padding, with its share of the matrix."""
    fields = {
        name: getattr(solutions, name)[p]
        for name in solutions.__dataclass_fields__
        if name not in ("alpha", "history", "kernel_rows")
    }
    fields = {k: v.item() if v.ndim == 0 else v for k, v in fields.items()}
    return Solution(
        alpha=solutions.alpha[p, :count],
        history=solutions.history,
        kernel_rows=kernel_rows,
        **fields,
    )
