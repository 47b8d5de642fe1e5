"""Where the variables of a program are in one that is padded to a bucket, and perhaps shuffled.

Padding has a box of zero width, so it never moves.
"""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jsvm.numerics.checks import check_finite, check_size
from jsvm.numerics.memory import aligned_empty
from jsvm.numerics.padding import bucket, cast, widened
from jsvm.problems import Dense, FromKernel, QuadraticProgram, Repeated


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
