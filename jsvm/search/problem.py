"""What is searched: an objective as a function of one vector."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jsvm.kernels import Kernel
from jsvm.search.space import Space

Objective = Callable[..., Any]


class Problem(NamedTuple):
    """An objective over a space; hashable, so that programs compiled for it are found again."""

    objective: Objective
    space: Space
    maximise: bool
    random: bool

    @property
    def sign(self) -> float:
        """The factor between the objective and what is minimised."""
        return -1.0 if self.maximise else 1.0

    def value(self, theta: Any, data: Any, key: Any) -> Any:
        """Return what is to be minimised; `data` are a kernel, for what is fixed, X and y."""
        template, X, y = data
        kernel, C = self.space.decode(theta, template)
        options = ({"C": C} if self.space.with_cost else {}) | ({"key": key} if self.random else {})
        return self.sign * self.objective(kernel, X, y, **options)


def as_data(kernel: Kernel, X: Any, y: Any, dtype: np.dtype) -> tuple[Kernel, Any, Any]:
    """Return what the objective is evaluated on as arrays, real numbers in one type.

    The kernel, too: or a program would be compiled for a number, and another one for an array.
    """

    def cast(leaf: Any) -> Any:
        leaf = leaf if isinstance(leaf, jax.Array) else np.asarray(leaf)
        real = jnp.issubdtype(leaf.dtype, jnp.floating)
        return jnp.asarray(leaf, dtype if real else None)

    return jax.tree.map(cast, (kernel, X, y))
