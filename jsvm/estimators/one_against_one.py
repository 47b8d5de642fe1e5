"""All one-against-one problems of a multiclass data set, in one batch where they fit."""

from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jsvm.kernels import Kernel
from jsvm.precision import scope
from jsvm.problems import QuadraticProgram
from jsvm.problems.hessian import gram
from jsvm.solvers import SMO, Solution, solve, solve_batch
from jsvm.solvers.monitor import Monitor
from jsvm.solvers.prepare import bucket, repeat_first, widened

BATCH_BYTES = 2**28


class Watch(NamedTuple):
    """How a fit is watched: see :func:`jsvm.solve`."""

    progress: bool = False
    callback: Callable[[dict[str, Any]], Any] | None = None
    checkpoint: Any = None


Builder = Callable[[Any, Any, Any], QuadraticProgram]


class Pair(NamedTuple):
    """A two-class problem: class `positive` (+1) against class `negative` (−1)."""

    positive: int
    negative: int
    examples: np.ndarray
    signs: np.ndarray


def class_pairs(codes: np.ndarray, classes: int) -> list[Pair]:
    """Return the problems of all pairs of classes, in the order of LIBSVM."""
    pairs = []
    for a, b in combinations(range(classes), 2):
        examples = np.flatnonzero((codes == a) | (codes == b))
        pairs.append(Pair(a, b, examples, np.where(codes[examples] == a, 1.0, -1.0)))
    return pairs


def solve_pairs(
    build: Builder,
    K: np.ndarray | tuple[Kernel, np.ndarray],
    pairs: list[Pair],
    cost: np.ndarray,
    solver: SMO,
    dtype: np.dtype,
    watch: Watch,
    starts: list[Any] | None = None,
) -> list[Solution]:
    """Solve all pairs; `K` is the whole matrix or a pair ``(kernel, X)``.

    With a start for every pair they are solved one by one. Of several pairs each has its own
    checkpoint, the given name with the number of the pair; a batch has none.
    """
    largest = bucket(max(len(pair.examples) for pair in pairs))
    n = len(cost)
    needed = dtype.itemsize * (n * n + len(pairs) * largest**2)
    if len(pairs) > 1 and needed <= BATCH_BYTES and starts is None:
        return _solve_together(build, K, pairs, cost, solver, dtype, watch, largest)
    solutions = []
    for k, pair in enumerate(pairs):
        path = watch.checkpoint
        if path is not None and len(pairs) > 1:
            path = f"{path}.{k}"
        some = pair.examples
        program = build(_part(K, some), pair.signs, cost[some])
        solutions.append(
            solve(
                program,
                solver,
                None if starts is None else starts[k],
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
    build: Builder,
    K: Any,
    pairs: list[Pair],
    cost: np.ndarray,
    solver: SMO,
    dtype: np.dtype,
    watch: Watch,
    size: int,
) -> list[Solution]:
    examples = np.zeros((len(pairs), size), np.int32)
    signs = np.ones((len(pairs), size), dtype)
    costs = np.zeros((len(pairs), size), dtype)  # the padding costs nothing: its box is empty
    for p, pair in enumerate(pairs):
        count = len(pair.examples)
        examples[p, :count], signs[p, :count] = pair.examples, pair.signs
        costs[p, :count] = cost[pair.examples]
    with scope(dtype):
        matrix = _matrix(K, dtype)
        batch = _cut(build, matrix, examples, signs, costs)
    monitor = Monitor(solver.time_limit, watch.progress, watch.callback)
    solutions = solve_batch(batch, solver, dtype=dtype, monitor=monitor)
    counts = [len(pair.examples) for pair in pairs]
    computed = isinstance(K, tuple)
    return [_member(solutions, p, n, n if computed else 0) for p, n in enumerate(counts)]


def _matrix(K: Any, dtype: np.dtype) -> Any:
    if not isinstance(K, tuple):
        return jnp.asarray(K, dtype)
    kernel, X = K
    return gram(kernel, jnp.asarray(repeat_first(widened(kernel, X), bucket(len(X))), dtype))


@partial(jax.jit, static_argnames="build")
def _cut(build: Builder, matrix: Any, examples: Any, signs: Any, costs: Any) -> QuadraticProgram:
    """Return the batch of programs, each on its own part of the matrix."""

    def one(some: Any, y: Any, C: Any) -> QuadraticProgram:
        program = build(matrix[some][:, some], y, C)
        return jax.tree.map(jnp.asarray, program)

    return jax.vmap(one)(examples, signs, costs)


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
