"""From a user's program to the canonical one: no ℓ1 term, and every variable in a group."""

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jsvm.problems import Dense, QuadraticProgram, split_l1
from jsvm.solvers.status import Solution


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
