"""Where the entries of a kernel matrix come from: a kernel, a kernel on the host, or a matrix.

A source gives parts K[some, others] of the matrix, and updates an array by a part. Where JAX can
trace the source, computing the part and the update are one program.
"""

import math
from collections.abc import Callable
from dataclasses import field
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jsvm._typing import Array, Leaf, pytree
from jsvm.kernels import Kernel
from jsvm.kernels.distances import Points
from jsvm.kernels.whole_numbers import are_whole, exact_points, exact_widths
from jsvm.numerics.arrays import cast, widened
from jsvm.numerics.memory import borrow, give_back
from jsvm.problems import Dense, FromKernel
from jsvm.programs import program
from jsvm.solvers.canonical import Layout

Indices = np.ndarray | None  # None for all of them
Update = Callable[..., Any]  # update(target, part, *rest), at the top of a module


class Source:
    """One matrix K; a concrete source gives :meth:`entries`, and is a pytree if it is traceable."""

    features: int  # of a point: what an entry costs to compute
    matrix: Any = None  # K as a whole, if it is in memory
    traceable: ClassVar[bool] = True

    @property
    def rank(self) -> int | float:
        """The largest rank that K can have; ∞ if unknown."""
        return math.inf

    def entries(self, some: Any, others: Any) -> Any:
        """Return K[some, others], inside of a program if the source is traceable."""
        raise NotImplementedError

    def part(self, some: np.ndarray, others: Indices) -> Array:
        """Return K[some, others]."""
        return (_part if self.traceable else type(self).entries)(self, some, others)

    def apply(
        self, update: Update, target: Any, some: np.ndarray, others: Indices, *rest: Any
    ) -> Any:
        """Return update(target, K[some, others], *rest); the target is donated."""
        if self.traceable:
            return _apply(update, target, self, some, others, rest)
        return _update(update, target, self.entries(some, others), rest)

    def release(self) -> None:
        """Return memory of the pool to it; do not use the source afterwards."""


@pytree
class KernelSource(Source):
    """k(X, X), from points prepared once."""

    kernel: Leaf
    points: Leaf
    features: int = field(metadata={"static": True})

    @classmethod
    def of(cls, kernel: Kernel, X: Any, dtype: np.dtype) -> "KernelSource":
        """Prepare the points, which are in their `storage_dtype`."""
        return cls(kernel, prepared(kernel, X, dtype), X.shape[1])

    @property
    def rank(self) -> int | float:
        return self.kernel.rank(self.features)

    def entries(self, some: Any, others: Any) -> Any:
        others = self.points if others is None else _take(self.points, others)
        return self.kernel.between(_take(self.points, some), others)

    def release(self) -> None:
        if isinstance(self.points, Points):
            for coordinates in jax.tree.leaves(self.points.coordinates):
                give_back(coordinates)


class HostSource(Source):
    """k(X, X) with a kernel that JAX cannot trace."""

    traceable = False

    def __init__(self, kernel: Kernel, X: Any, dtype: np.dtype) -> None:
        self.kernel, self.X, self.features = kernel, jnp.asarray(X, dtype), X.shape[1]

    def entries(self, some: Any, others: Any) -> Any:
        return self.kernel(self.X[some], self.X if others is None else self.X[others])


@pytree
class MatrixSource(Source):
    """A matrix in memory."""

    matrix: Leaf
    features: int = field(default=0, metadata={"static": True})

    def entries(self, some: Any, others: Any) -> Any:
        return self.matrix[some] if others is None else self.matrix[some[:, None], others[None, :]]


def source_of(hessian: Dense | FromKernel, layout: Layout, dtype: np.dtype) -> Source:
    """Return the source of the kernel part of a Hessian, in its layout and in `dtype`."""
    if isinstance(hessian, Dense):
        return MatrixSource(layout.square(hessian.matrix, dtype))
    kernel = jax.tree.map(partial(cast, dtype=dtype), hessian.kernel)
    X = widened(kernel, np.asarray(hessian.X))
    make = HostSource if kernel.runs_on_host() else KernelSource.of
    return make(kernel, layout.points(X, storage_dtype(kernel, X, dtype)), dtype)


def _take(points: Any, some: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf[some], points)


@program
def _part(source: Source, some: Any, others: Any) -> Any:
    return source.entries(some, others)


@program(static_argnames="update", donate_argnums=1, keep_unused=True)
def _apply(update: Update, target: Any, source: Source, some: Any, others: Any, rest: tuple) -> Any:
    return update(target, source.entries(some, others), *rest)


@program(static_argnames="update", donate_argnums=1, keep_unused=True)
def _update(update: Update, target: Any, part: Any, rest: tuple) -> Any:
    return update(target, part, *rest)


def storage_dtype(kernel: Kernel, X: np.ndarray, dtype: np.dtype) -> np.dtype:
    """Return the type in which :func:`prepared` wants the points `X` of a matrix in `dtype`."""
    exact = exact_widths(kernel, X.shape[1], dtype) and are_whole(X)
    return np.dtype(np.float32) if exact else dtype


def prepared(kernel: Kernel, X: Any, dtype: np.dtype) -> Any:
    """Return the points for ``kernel.between`` in `dtype`; `X` is stored in `storage_dtype`."""
    if X.dtype != dtype:
        points = exact_points(X)
        if points is not None:
            return points
        X = jnp.asarray(X, dtype)
    return _prepare(borrow(X.shape, X.dtype) if kernel.prepares_points else None, kernel, X)


@program(donate_argnums=0, keep_unused=True)
def _prepare(memory: Any, kernel: Kernel, X: Any) -> Any:
    """Prepare points, in the memory given."""
    return kernel.prepare(X)
