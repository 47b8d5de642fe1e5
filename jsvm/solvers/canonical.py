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

from jsvm._typing import Vector
from jsvm.numerics.arrays import bucket, cast, check_finite, check_size, widened
from jsvm.numerics.memory import aligned_empty
from jsvm.problems import Dense, FromKernel, QuadraticProgram, Repeated, split_l1
from jsvm.problems.program import fill
from jsvm.solvers.status import Solution

NEGLIGIBLE = 1e-9  # relative error of a sum that a solver mends by itself


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
    program = split_l1(program) if doubled else replace(program, l1=None)
    slack = program.group_count == 0
    return (_with_slack(program) if slack else program), Restore(doubled, slack)


def _with_slack(program: QuadraticProgram) -> QuadraticProgram:
    """Add a free variable that costs nothing: Σα + slack = 0 holds for any α."""
    dense = program.hessian.dense()
    matrix, zero = jnp.asarray(dense.matrix), jnp.zeros(1, dense.matrix.dtype)

    def extend(values: Any, last: float) -> Any:
        return jnp.concatenate([jnp.asarray(values), zero + last])

    hessian = Dense(jnp.pad(matrix, (0, 1)), jnp.pad(dense.ridge_vector(), (0, 1)))
    box = extend(program.lower, -jnp.inf), extend(program.upper, jnp.inf)
    groups = np.zeros(program.size + 1, np.int32)
    return QuadraticProgram(hessian, extend(program.linear, 0.0), *box, groups, zero)


def has_low_rank(program: QuadraticProgram) -> bool:
    """Tell whether the kernel cannot give all free variables a curvature of their own."""
    inner = innermost(program.hessian)
    if not isinstance(inner, FromKernel):
        return False
    return inner.kernel.rank(inner.X.shape[1]) + program.group_count < inner.size


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
        """Return the layout: examples in their order, or in a random one that never changes."""
        examples = innermost(program.hessian).size
        order = np.arange(examples)
        if (
            shuffled
        ):  # equal violations are chosen in the order of the places; data are often sorted
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

    def vectors(self, program: QuadraticProgram, dtype: Any) -> tuple[np.ndarray, ...]:
        """Put l, L, U and the groups in their places; return them with the totals."""
        numbers = (self.spread(v, dtype) for v in (program.linear, program.lower, program.upper))
        groups = self.spread(program.groups, np.int32)
        return *numbers, groups, np.asarray(program.totals, dtype)

    def _index(self, places: np.ndarray) -> Any:
        """Return these places as an index; the first places as a slice, which is much cheaper."""
        return slice(len(places)) if self.repeats == 1 and not self.shuffled else places

    def ridge(self, inner: Dense | FromKernel) -> np.ndarray:
        """Put the ridge of a Hessian, one entry an example, in its places; zero elsewhere."""
        full = np.zeros(self.examples)
        full[self._index(self.order)] = np.asarray(inner.ridge)
        return full

    def points(self, X: Any, dtype: Any) -> np.ndarray:
        """Put the examples in their places; copies of the first one elsewhere."""
        X = np.asarray(X)
        full = aligned_empty((self.examples, X.shape[1]), dtype)
        full[len(self.order) :] = X[:1]
        full[self._index(self.order)] = X
        return full

    def square(self, matrix: Any, dtype: Any) -> jax.Array:
        """Put a matrix of the examples in its places; zero elsewhere."""
        check_finite(matrix)
        matrix = jnp.asarray(cast(matrix, dtype))
        if self.shuffled:
            inverse = np.argsort(self.order)
            matrix = matrix[inverse][:, inverse]
        return jnp.pad(matrix, (0, self.examples - len(self.order)))


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
    return QuadraticProgram(hessian, *layout.vectors(program, dtype))


def near(alpha: Vector, program: QuadraticProgram) -> Vector:
    """Return a feasible point near `alpha`, with as many variables at bounds as can be.

    It is cut to the box. What then exceeds the sum of a group is first taken, in proportion, from
    the variables away from rest (zero, or the bound nearest to it), then from one after the other.
    """
    lower, upper = np.asarray(program.lower, float), np.asarray(program.upper, float)
    rest = np.clip(0.0, lower, upper)
    alpha = np.clip(np.asarray(alpha, float), lower, upper)
    groups = np.asarray(program.groups)
    for g, total in enumerate(np.asarray(program.totals, float)):
        here = np.flatnonzero(groups == g)
        values = alpha[here]
        excess = values.sum() - total
        if abs(excess) <= NEGLIGIBLE * np.abs(values).sum():
            continue
        sign = np.sign(excess)
        away = np.maximum(sign * (values - rest[here]), 0.0)
        values = values - sign * away * min(1.0, abs(excess) / max(away.sum(), abs(excess)))
        bound = lower[here] if sign > 0 else upper[here]
        values = values - sign * fill(sign * (values.sum() - total), sign * (values - bound))
        alpha[here] = np.clip(values, lower[here], upper[here])
    return alpha


def feasible_start(alpha: np.ndarray, program: QuadraticProgram) -> np.ndarray:
    """Return the start clipped to its box; raise if it was not feasible in the first place."""
    if alpha.shape != (program.size,) or not np.isfinite(alpha).all():
        raise ValueError(f"start must hold {program.size} finite numbers, not {alpha.shape}")
    lower, upper = np.asarray(program.lower), np.asarray(program.upper)
    slack = 1e-6 * np.abs(alpha)
    if (alpha < lower - slack).any() or (alpha > upper + slack).any():
        raise ValueError("start is not feasible: it is outside its bounds")
    for g in range(program.group_count):
        total = np.asarray(program.totals)[g]
        inside = np.asarray(program.groups) == g
        sum_of_group = alpha[inside].sum()
        if abs(sum_of_group - total) > slack[inside].sum() + 1e-6 * abs(total):
            raise ValueError(
                f"start is not feasible: group {g} sums to {sum_of_group}, not {total}"
            )
    return np.clip(alpha, lower, upper)
