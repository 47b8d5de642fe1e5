"""The problem of a working set: find the change of α, given its part of the matrix."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jsvm.problems import QuadraticProgram, Tile
from jsvm.solvers.config import Recipe
from jsvm.solvers.status import Status
from jsvm.solvers.tile.block_step import block_step
from jsvm.solvers.tile.loop import relax


class Part(NamedTuple):
    """A working set; the bounds are those of the change, the linear term is G."""

    matrix: Any
    linear: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    groups: np.ndarray
    totals: np.ndarray
    ridge: tuple[np.ndarray, np.ndarray] | None  # examples, and what Q has more than K for each

    def program(self) -> QuadraticProgram:
        """Return it as a quadratic program."""
        matrix = self.matrix
        if self.ridge is not None:
            examples, ridge = self.ridge
            same = examples[:, None] == examples[None, :]
            matrix = matrix + jnp.where(same, ridge[:, None], 0.0)
        tile = Tile.whole(matrix)
        return QuadraticProgram(tile, self.linear, self.lower, self.upper, self.groups, self.totals)


class End(NamedTuple):
    """What became of a working set, in two arrays: each has its price to fetch."""

    change: Any
    counts: Any  # steps, newton_steps, status

    @classmethod
    def of(cls, change: Any, *counts: Any) -> "End":
        """Return it inside a program."""
        return cls(change, jnp.stack([jnp.asarray(count, jnp.int32) for count in counts]))

    def fetched(self) -> "End":
        """Return it on the host."""
        return End(np.asarray(self.change), np.asarray(self.counts))

    @property
    def steps(self) -> int:
        """Pair steps."""
        return int(self.counts[0])

    @property
    def newton_steps(self) -> int:
        """Rounds of block steps."""
        return int(self.counts[1])

    @property
    def status(self) -> int:
        """See :class:`Status`."""
        return int(self.counts[2])


@partial(jax.jit, static_argnames="recipe")
def relax_part(part: Part, tol: Any, limit: Any, recipe: Recipe) -> End:
    """Take pair steps, and block steps if the recipe has them, until the violation passes."""
    end = relax(part.program(), tol, limit, recipe)
    return End.of(end.state.alpha, end.steps, end.newton_steps, end.status)


@partial(jax.jit, static_argnames="slots")
def newton_part(part: Part, slots: int) -> End:
    """Take a block step on all free variables."""
    program = part.program()
    change, _, rounds = block_step(program, jnp.zeros_like(part.linear), program.linear, slots)
    return End.of(change, 0, rounds, Status.RUNNING)
