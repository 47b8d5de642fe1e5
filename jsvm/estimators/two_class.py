"""The two-class problems of a multiclass data set.

On a CPU they are solved one after the other: a batch would need a program of its own and be no
faster. On other devices they are one batch if the matrices fit into BATCH_BYTES.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jsvm.estimators.formulation import Formulation
from jsvm.estimators.kernel_estimator import numbered
from jsvm.numerics.arrays import bucket, repeat_first, widened
from jsvm.precision import default_platform, scope
from jsvm.problems import QuadraticProgram
from jsvm.problems.hessian import gram
from jsvm.solvers import SMO, Solution, solve, solve_batch
from jsvm.solvers.monitor import Monitor
from jsvm.solvers.starts import near
from jsvm.validation.class_pairs import TwoClass
from jsvm.validation.parts import Part, stacked

BATCH_BYTES = 2**28  # of all matrices that are solved together on a device other than a CPU


class Training(NamedTuple):
    """What the problems of a fit share; `K` is the whole matrix or a pair ``(kernel, X)``."""

    formulation: Formulation
    K: Any
    weights: np.ndarray
    solver: SMO
    dtype: np.dtype

    def solve(
        self,
        problems: list[TwoClass],
        last: list[Solution] | None = None,
        *,
        checkpoint: Any = None,
        **options: Any,
    ) -> list[Solution]:
        """Solve all problems; with solutions to start from, one by one.

        The options are those of :func:`jsvm.solve`; of several problems each has its own
        checkpoint, and a batch has none.
        """
        largest = bucket(max(len(problem.examples) for problem in problems))
        needed = self.dtype.itemsize * (len(self.weights) ** 2 + len(problems) * largest**2)
        pays = default_platform() != "cpu" and needed <= BATCH_BYTES
        if len(problems) > 1 and pays and last is None:
            return self._solve_together(problems, **options)
        solutions = []
        for k, (some, signs) in enumerate(problems):
            program = self.formulation.program(_part(self.K, some), signs, self.weights[some])
            start = None if last is None else near(last[k].alpha, program)
            options["checkpoint"] = numbered(checkpoint, k, len(problems))
            solutions.append(solve(program, self.solver, start, dtype=self.dtype, **options))
        return solutions

    def function(self, problem: TwoClass, solution: Solution) -> tuple[np.ndarray, float]:
        """Return coefficients and offset of the decision function of a solved problem."""
        weights = self.weights[problem.examples]
        return self.formulation.function(solution, problem.signs, weights)

    def _solve_together(
        self, problems: list[TwoClass], progress: bool = False, callback: Any = None
    ) -> list[Solution]:
        parts = [Part(*problem, self.weights[problem.examples]) for problem in problems]
        build, parameters, _ = self.formulation
        with scope(self.dtype):
            matrix = _matrix(self.K, self.dtype)
            batch = _cut(build, parameters, matrix, *stacked(parts, self.dtype))
        monitor = Monitor(self.solver.time_limit, progress, callback)
        solutions = solve_batch(batch, self.solver, dtype=self.dtype, monitor=monitor)
        counts = [len(problem.examples) for problem in problems]
        computed = isinstance(self.K, tuple)
        return [_member(solutions, p, n, n if computed else 0) for p, n in enumerate(counts)]


def _part(K: Any, some: np.ndarray) -> Any:
    """Return the kernel of some of the examples; nothing is copied if these are all."""
    if len(some) == (K[1] if isinstance(K, tuple) else K).shape[0]:
        return K
    return (K[0], K[1][some]) if isinstance(K, tuple) else K[np.ix_(some, some)]


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
