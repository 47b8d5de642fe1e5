"""From a user's program to the one that is compiled: canonical, dense, of one of few sizes.

A canonical program has no ℓ1 term, and every variable is in a group. Its size is padded to a bucket
by variables with a box of zero width, which never move.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jsvm.problems import Dense, FromKernel, QuadraticProgram, Repeated, split_l1
from jsvm.problems.hessian import gram
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
    for g, total in enumerate(np.asarray(program.totals)):
        inside = np.asarray(program.groups) == g
        sum_of_group = alpha[inside].sum()
        if abs(sum_of_group - total) > slack[inside].sum() + 1e-6 * abs(total):
            raise ValueError(
                f"start is not feasible: group {g} sums to {sum_of_group}, not {total}"
            )
    return np.clip(alpha, lower, upper)


def bucket(n: int) -> int:
    """Return the size to which n is padded: powers of two with steps between them."""
    if n <= 16:
        return 16
    power = 1 << (n - 1).bit_length() - 1  # power < n <= 2·power
    quarters = (2, 4) if n <= 256 else (1, 2, 3, 4)
    return next(power + power * q // 4 for q in quarters if n <= power + power * q // 4)


def innermost(hessian: Any) -> Any:
    """Return what is repeated, once or more, or the Hessian itself."""
    return innermost(hessian.hessian) if isinstance(hessian, Repeated) else hessian


def pad(program: QuadraticProgram, dtype: np.dtype) -> tuple[QuadraticProgram, np.ndarray]:
    """Return the program padded to a bucket with Q in memory, and the places of its variables."""
    inner = innermost(program.hessian)
    examples, copies = inner.size, program.size // inner.size
    padded = bucket(examples)
    size = copies * padded
    if size * size * dtype.itemsize > LARGEST_MATRIX:
        raise ValueError(
            f"the matrix of {size} variables needs {size * size * dtype.itemsize / 2**30:.1f} GiB, "
            f"the limit is {LARGEST_MATRIX / 2**30:.0f}; use fewer examples or dtype='float32'"
        )
    if isinstance(inner, FromKernel):
        kernel = jax.tree.map(partial(cast, dtype=dtype), inner.kernel)
        matrix = gram(kernel, cast(repeat_first(np.asarray(inner.X), padded), dtype))
        check_finite(matrix)
    else:
        check_finite(inner.matrix)
        matrix = jnp.pad(cast(inner.matrix, dtype), (0, padded - examples))
    ridge = np.zeros(padded, dtype)
    ridge[:examples] = np.asarray(inner.ridge_vector())

    places = (np.arange(copies)[:, None] * padded + np.arange(examples)[None, :]).reshape(-1)

    def spread(values: Any, kind: Any = dtype) -> np.ndarray:
        full = np.zeros(size, kind)
        full[places] = np.asarray(values)
        return full

    hessian = Dense(matrix, ridge)
    for _ in range(copies.bit_length() - 1):
        hessian = Repeated(hessian)
    return (
        QuadraticProgram(
            hessian,
            spread(program.linear),
            spread(program.lower),
            spread(program.upper),
            spread(program.groups, np.int32),
            cast(program.totals, dtype),
        ),
        places,
    )


def repeat_first(points: np.ndarray, size: int) -> np.ndarray:
    """Pad with copies of the first row: valid for every kernel, and never looked at."""
    missing = size - len(points)
    return np.concatenate([points, np.broadcast_to(points[:1], (missing, points.shape[1]))])


def check_finite(matrix: Any) -> None:
    """Raise ValueError if a kernel matrix holds NaN or infinity."""
    xp = jnp if isinstance(matrix, jax.Array) else np
    if not bool(xp.isfinite(matrix).all()):
        raise ValueError("the kernel matrix holds NaN or infinity; check X and the kernel")


def cast(leaf: Any, dtype: np.dtype) -> jax.Array:
    """Return the leaf as a JAX array; floating-point numbers in `dtype`."""
    array = np.asarray(leaf) if not isinstance(leaf, jax.Array) else leaf
    floating = np.issubdtype(array.dtype, np.floating)
    return jnp.asarray(array, dtype if floating else None)
