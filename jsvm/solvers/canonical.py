"""From a user's program to the one that is solved, and back.

The canonical program has no ℓ1 term, and every variable is in a group. For a compiled program it is
laid out in one of few sizes, padded by variables with a box of zero width, which never move.
"""

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jsvm.numerics.arrays import bucket, cast, check_finite, check_size, widened
from jsvm.numerics.memory import aligned_empty
from jsvm.problems import Dense, FromKernel, QuadraticProgram, Repeated, split_l1
from jsvm.solvers.status import Solution


@dataclass(frozen=True)
class Restore:
    """How the variables of the canonical program and the user's become each other."""

    doubled: bool
    slack: bool

    def split(self, alpha: Any) -> Any:
        """Turn a point of the user's program into one of the canonical program."""
        xp = jnp if isinstance(alpha, jax.Array) else np
        if self.doubled:
            alpha = xp.concatenate([xp.maximum(alpha, 0.0), xp.minimum(alpha, 0.0)])
        if self.slack:
            alpha = xp.concatenate([alpha, -xp.sum(alpha, keepdims=True)])
        return alpha

    def join(self, solution: Solution) -> Solution:
        """Turn a solution of the canonical program into one of the user's."""
        if self.slack:
            none = solution.multipliers[:0]
            solution = replace(solution, multipliers=none, bias=0.0 * solution.objective)
        return replace(solution, alpha=self.point(solution.alpha))

    def point(self, alpha: Any) -> Any:
        """Turn a point of the canonical program into one of the user's."""
        if self.slack:
            alpha = alpha[:-1]
        if self.doubled:
            n = alpha.shape[0] // 2
            alpha = alpha[:n] + alpha[n:]
        return alpha


def canonical(program: QuadraticProgram) -> tuple[QuadraticProgram, Restore]:
    """Return the canonical program, and how its solution becomes the user's."""
    known = isinstance(program.l1, int | float | np.generic)
    doubled = program.l1 is not None and not (known and program.l1 == 0)
    program = program if doubled else replace(program, l1=None)
    if doubled:
        program = split_l1(program)
    slack = program.group_count == 0
    return (_with_slack(program) if slack else program), Restore(doubled, slack)


def _with_slack(program: QuadraticProgram) -> QuadraticProgram:
    """Close a program without equality constraint by a free variable that costs nothing.

    Σα + slack = 0 holds for any α; a pair with the slack is a step of a single variable.
    """
    dense = program.hessian.dense()
    matrix, zero = jnp.asarray(dense.matrix), jnp.zeros(1, dense.matrix.dtype)

    def extend(values: Any, last: float) -> Any:
        return jnp.concatenate([jnp.asarray(values), zero + last])

    hessian = Dense(jnp.pad(matrix, (0, 1)), jnp.pad(dense.ridge_vector(), (0, 1)))
    return QuadraticProgram(
        hessian,
        linear=extend(program.linear, 0.0),
        lower=extend(program.lower, -jnp.inf),
        upper=extend(program.upper, jnp.inf),
        groups=np.zeros(program.size + 1, np.int32),
        totals=zero,
    )


def innermost(hessian: Any) -> Any:
    """Return the Hessian of the examples, which a doubled program repeats."""
    return innermost(hessian.hessian) if isinstance(hessian, Repeated) else hessian


@dataclass(frozen=True)
class Layout:
    """Where the variables of a program are in one that is padded, and perhaps shuffled."""

    examples: int  # of the padded program
    repeats: int  # variables per example
    order: np.ndarray  # the place of every example
    shuffled: bool = False

    @classmethod
    def of(cls, program: QuadraticProgram, shuffled: bool) -> "Layout":
        """Return the layout: examples in their order, or in a random one that never changes.

        Equal violations are chosen in the order of the places; data are often sorted.
        """
        examples = innermost(program.hessian).size
        order = np.arange(examples)
        if shuffled:
            order = np.random.default_rng(0).permutation(examples)
        return cls(bucket(examples), program.size // examples, order, shuffled)

    @property
    def size(self) -> int:
        """Number of variables of the padded program."""
        return self.repeats * self.examples

    @cached_property
    def places(self) -> np.ndarray:
        """The place of every variable."""
        return (np.arange(self.repeats)[:, None] * self.examples + self.order[None, :]).reshape(-1)

    def spread(self, values: Any, kind: Any = np.float64) -> np.ndarray:
        """Put one value a variable in its place; zero elsewhere."""
        full = np.zeros(self.size, kind)
        full[self._index(self.places)] = np.asarray(values)
        return full

    def _index(self, places: np.ndarray) -> Any:
        """Return these places as an index; the first places as a slice, which is much cheaper."""
        return slice(len(places)) if self.repeats == 1 and not self.shuffled else places

    def ridge(self, inner: Dense | FromKernel) -> np.ndarray:
        """Put the ridge of a Hessian, one entry an example, in its places; zero elsewhere."""
        full = np.zeros(self.examples)
        full[self._index(self.order)] = np.asarray(inner.ridge)
        return full

    def points(self, X: Any, dtype: Any) -> np.ndarray:
        """Put the examples in their places; copies of the first one elsewhere.

        A copy is valid for every kernel, and is never looked at.
        """
        X = np.asarray(X)
        full = aligned_empty((self.examples, X.shape[1]), dtype)
        full[len(self.order) :] = X[:1]
        full[self._index(self.order)] = X
        return full

    def square(self, matrix: Any, dtype: Any) -> jax.Array:
        """Put a matrix of the examples in its places; zero elsewhere."""
        check_finite(matrix)
        if not self.shuffled:
            return jnp.pad(jnp.asarray(cast(matrix, dtype)), (0, self.examples - len(self.order)))
        inverse = np.argsort(self.order)
        shuffled = jnp.asarray(matrix, dtype)[inverse][:, inverse]
        return jnp.pad(shuffled, (0, self.examples - len(self.order)))


def pad(program: QuadraticProgram, layout: Layout, dtype: np.dtype) -> QuadraticProgram:
    """Return the program in its layout; a kernel that runs on the host is evaluated here."""
    inner = innermost(program.hessian)
    check_size(layout.size, dtype)
    ridge = layout.ridge(inner).astype(dtype)
    if isinstance(inner, FromKernel):
        kernel = jax.tree.map(partial(cast, dtype=dtype), inner.kernel)
        points = layout.points(widened(kernel, np.asarray(inner.X)), dtype)
        on_host = kernel.runs_on_host()
        hessian = Dense(kernel(points), ridge) if on_host else FromKernel(kernel, points, ridge)
    else:
        hessian = Dense(layout.square(inner.matrix, dtype), ridge)
    for _ in range(layout.repeats.bit_length() - 1):
        hessian = Repeated(hessian)
    return QuadraticProgram(
        hessian,
        layout.spread(program.linear, dtype),
        layout.spread(program.lower, dtype),
        layout.spread(program.upper, dtype),
        layout.spread(program.groups, np.int32),
        np.asarray(program.totals, dtype),
    )
