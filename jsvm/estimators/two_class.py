"""Which program a machine solves, and the two-class problems of a data set.

On a CPU they are solved one after the other: a batch would need a program of its own and be no
faster. On other devices they are one batch if the matrices fit into BATCH_BYTES.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jsvm.estimators.kernel_estimator import numbered
from jsvm.numerics.arrays import bucket, repeat_first, widened
from jsvm.precision import default_platform, scope
from jsvm.problems import QuadraticProgram
from jsvm.problems.hessian import gram
from jsvm.programs import program
from jsvm.solvers import SMO, Solution, solve, solve_batch
from jsvm.solvers.canonical import near
from jsvm.solvers.monitor import Monitor
from jsvm.validation.parts import Part, of_some, size_of, stacked

BATCH_BYTES = 2**28  # of all matrices that are solved together on a device other than a CPU


def as_solved(
    solution: Solution, targets: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, float]:
    """Return coefficients and offset of a solution; the variables of an example are added up."""
    return solution.alpha.reshape(-1, len(targets)).sum(axis=0), float(solution.bias)


class Formulation(NamedTuple):
    """A machine as a program, ``build(K, targets, weights, *parameters)``, and as a function.

    `build` is compiled in, the parameters are not; `function` gives coefficients and offset.
    """

    build: Callable[..., QuadraticProgram]
    parameters: tuple[float, ...] = ()
    function: Callable[[Solution, np.ndarray, np.ndarray], tuple[np.ndarray, float]] = as_solved

    def program(self, K: Any, targets: Any, weights: Any) -> QuadraticProgram:
        """Return the program of some examples."""
        return self.build(K, targets, weights, *self.parameters)


class Training(NamedTuple):
    """What the problems of a fit share; `K` is the whole matrix or a pair ``(kernel, X)``."""

    formulation: Formulation
    K: Any
    solver: SMO
    dtype: np.dtype

    def solve(
        self,
        problems: list[Part],
        last: list[Solution] | None = None,
        *,
        checkpoint: Any = None,
        **options: Any,
    ) -> list[Solution]:
        """Solve all problems, one by one if there are starts; a batch has no checkpoint."""
        largest = bucket(max(len(problem.examples) for problem in problems))
        needed = self.dtype.itemsize * (size_of(self.K) ** 2 + len(problems) * largest**2)
        pays = default_platform() != "cpu" and needed <= BATCH_BYTES
        if len(problems) > 1 and pays and last is None:
            return self._solve_together(problems, **options)
        solutions = []
        for k, (some, *given) in enumerate(problems):
            program = self.formulation.program(of_some(self.K, some), *given)
            start = None if last is None else near(last[k].alpha, program)
            options["checkpoint"] = numbered(checkpoint, k, len(problems))
            solutions.append(solve(program, self.solver, start, dtype=self.dtype, **options))
        return solutions

    def function(self, problem: Part, solution: Solution) -> tuple[np.ndarray, float]:
        """Return coefficients and offset of the decision function of a solved problem."""
        return self.formulation.function(solution, problem.targets, problem.weights)

    def _solve_together(
        self, problems: list[Part], progress: bool = False, callback: Any = None
    ) -> list[Solution]:
        build, parameters, _ = self.formulation
        with scope(self.dtype):
            matrix = _matrix(self.K, self.dtype)
            batch = _cut(build, parameters, matrix, *stacked(problems, self.dtype))
        monitor = Monitor(self.solver.time_limit, progress, callback)
        solutions = solve_batch(batch, self.solver, dtype=self.dtype, monitor=monitor)
        counts = [len(problem.examples) for problem in problems]
        computed = isinstance(self.K, tuple)
        return [_member(solutions, p, n, n if computed else 0) for p, n in enumerate(counts)]


def _matrix(K: Any, dtype: np.dtype) -> Any:
    if not isinstance(K, tuple):
        return jnp.asarray(K, dtype)
    kernel, X = K
    return gram(kernel, jnp.asarray(repeat_first(widened(kernel, X), bucket(len(X))), dtype))


@program(static_argnames="build")
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
    names = solutions.__dataclass_fields__.keys() - {"alpha", "history", "kernel_rows"}
    own = {name: getattr(solutions, name)[p] for name in names}
    own = {name: v.item() if v.ndim == 0 else v for name, v in own.items()}
    return replace(solutions, alpha=solutions.alpha[p, :count], kernel_rows=kernel_rows, **own)
