"""From a user's program to the one that is compiled: canonical, dense, of one of few sizes.

A canonical program has no ℓ1 term, and every variable is in a group. Its size is padded to a bucket
by variables with a box of zero width, which never move.
"""

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jsvm.kernels import Kernel
from jsvm.numerics.host import aligned_empty
from jsvm.problems import Dense, FromKernel, QuadraticProgram, Repeated, split_l1
from jsvm.solvers.status import Solution

LARGEST_MATRIX = 4 * 2**30  # bytes


@dataclass(frozen=True)
class Restore:
    """How the variables of the canonical program give those of the user's."""

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
        alpha = solution.alpha
        if self.slack:
            alpha = alpha[:-1]
            none = solution.multipliers[:0]
            solution = replace(solution, multipliers=none, bias=0.0 * solution.objective)
        if self.doubled:
            n = alpha.shape[0] // 2
            alpha = alpha[:n] + alpha[n:]
        return replace(solution, alpha=alpha)


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


def bucket(n: int) -> int:
    """Return the size to which n is padded: powers of two, with steps between large ones."""
    if n <= 16:
        return 16
    power = 1 << (n - 1).bit_length() - 1  # power < n <= 2·power
    parts = 1 if n <= 256 else 4 if n <= 2048 else 16
    return next(
        power + power * q // parts for q in range(1, parts + 1) if n <= power + power * q // parts
    )


def widened(kernel: Kernel, X: np.ndarray) -> np.ndarray:
    """Return `X` with columns of zeros up to one of few widths, if the kernel does not see them."""
    features = X.shape[1]
    if features == 0 or not kernel.ignores_zeros():
        return X
    steps = (2, 4, 8, *range(16, 32, 8), *range(32, 256, 32))
    wide = next((w for w in steps if features <= w), -(-features // 16) * 16)
    if wide == features:
        return X
    wider = np.zeros((len(X), wide), X.dtype)
    wider[:, :features] = X
    return wider


def innermost(hessian: Any) -> Any:
    """Return what is repeated, once or more, or the Hessian itself."""
    return innermost(hessian.hessian) if isinstance(hessian, Repeated) else hessian


@dataclass(frozen=True)
class Layout:
    """Where the variables of a program are in one that is padded, and perhaps shuffled."""

    examples: int  # of the padded program
    copies: int  # variables per example
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
        return self.copies * self.examples

    @cached_property
    def places(self) -> np.ndarray:
        """The place of every variable."""
        return (np.arange(self.copies)[:, None] * self.examples + self.order[None, :]).reshape(-1)

    def spread(self, values: Any, kind: Any = np.float64) -> np.ndarray:
        """Put one value a variable in its place; zero elsewhere."""
        full = np.zeros(self.size, kind)
        full[self._index(self.places)] = np.asarray(values)
        return full

    def _index(self, places: np.ndarray) -> Any:
        """Return these places, a slice where they are the first ones: that is much cheaper."""
        return slice(len(places)) if self.copies == 1 and not self.shuffled else places

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


def check_size(size: int, dtype: np.dtype) -> None:
    """Raise ValueError if a square matrix of this size does not fit."""
    need = size * size * dtype.itemsize
    if need > LARGEST_MATRIX:
        raise ValueError(
            f"the matrix of {size} variables needs {need / 2**30:.1f} GiB, the limit is "
            f"{LARGEST_MATRIX / 2**30:.0f}; use block=True, fewer examples or dtype='float32'"
        )


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
    for _ in range(layout.copies.bit_length() - 1):
        hessian = Repeated(hessian)
    return QuadraticProgram(
        hessian,
        layout.spread(program.linear, dtype),
        layout.spread(program.lower, dtype),
        layout.spread(program.upper, dtype),
        layout.spread(program.groups, np.int32),
        np.asarray(program.totals, dtype),
    )


def repeat_first(points: np.ndarray, size: int) -> np.ndarray:
    """Pad with copies of the first row: valid for every kernel, and never looked at."""
    missing = size - len(points)
    if missing == 0:
        return points
    return np.concatenate([points, np.broadcast_to(points[:1], (missing, points.shape[1]))])


def check_finite(matrix: Any) -> None:
    """Raise ValueError if a kernel matrix, or a sum of its rows, holds NaN or infinity."""
    xp = jnp if isinstance(matrix, jax.Array) else np
    if not bool(xp.isfinite(matrix).all()):
        raise ValueError("the kernel matrix holds NaN or infinity; check X and the kernel")


def cast(leaf: Any, dtype: np.dtype) -> Any:
    """Return the leaf as an array; floating-point numbers in `dtype`."""
    array = leaf if isinstance(leaf, jax.Array) else np.asarray(leaf)
    floating = np.issubdtype(array.dtype, np.floating)
    return array.astype(dtype) if floating else array
