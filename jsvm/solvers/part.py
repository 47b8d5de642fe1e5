"""The problem of a working set: find the change of α, given its part of the matrix."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jsvm.problems import QuadraticProgram, Tile
from jsvm.solvers.config import Recipe
from jsvm.solvers.newton import block_step
from jsvm.solvers.smo import relax
from jsvm.solvers.status import Status


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
    """What became of a working set."""

    change: Any
    steps: Any
    newton_steps: Any
    status: Any


@partial(jax.jit, static_argnames="recipe")
def relax_part(part: Part, tol: Any, limit: Any, recipe: Recipe) -> End:
    """Take pair steps, and block steps if the recipe has them, until the violation passes."""
    end = relax(part.program(), tol, limit, recipe)
    return End(end.state.alpha, end.steps, end.newton_steps, end.status)


@partial(jax.jit, static_argnames="slots")
def newton_part(part: Part, slots: int) -> End:
    """Take a block step on all free variables."""
    program = part.program()
    change, _, rounds = block_step(program, jnp.zeros_like(part.linear), program.linear, slots)
    return End(change, jnp.int32(0), rounds, jnp.int32(Status.RUNNING))
