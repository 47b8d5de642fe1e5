"""Kernels given as a matrix or as a function."""

from collections.abc import Callable
from dataclasses import field
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Float, Real

from jsvm._typing import Array, Leaf, pytree
from jsvm.kernels.base import Kernel, as_points

HOST_ROWS = 1024  # rows a call of a host function: keeps the temporaries of unknown code small
HOST_DIAGONAL = 64  # rows a call where only the diagonal of the block is used


@pytree
class Precomputed(Kernel):
    """M[x, z]: the points are indices into a given matrix.

    A point is a row with one entry, its index. The matrix is a leaf, so gradients with respect to
    it exist, and weighted sums of several such kernels are multiple-kernel learning.

    Examples
    --------
    >>> from jsvm import kernels
    >>> k = kernels.Precomputed(np.array([[2.0, 1.0], [1.0, 3.0]]))
    >>> float(k(np.array([[1]]), np.array([[0]]))[0, 0])
    1.0
    """

    SEARCHED_AS: ClassVar[dict[str, str]] = {"values": "fixed"}

    values: Leaf

    def pair(self, x: Real[Array, " d"], z: Real[Array, " d"]) -> Float[Array, ""]:
        return jnp.asarray(self.values)[x[0].astype(jnp.int32), z[0].astype(jnp.int32)]

    def matrix(self, X: Real[Array, "n d"], Z: Real[Array, "m d"]) -> Float[Array, "n m"]:
        for points in (X, Z):  # JAX would clip an index that is out of range
            if not isinstance(points, Tracer) and points.size:
                low, high = points[:, 0].min(), points[:, 0].max()
                if not (low >= 0 and high < min(jnp.shape(self.values))):
                    raise ValueError(f"indices {low} to {high} are outside the given matrix")
        rows, columns = X[:, 0].astype(jnp.int32), Z[:, 0].astype(jnp.int32)
        return jnp.asarray(self.values)[rows][:, columns]


@pytree
class Function(Kernel):
    """A kernel given as ``function(X, Z) -> matrix``.

    With ``on_host=True`` the function gets NumPy blocks, which is the way to use one that JAX
    cannot trace; :func:`jsvm.kernels.resolve` finds out by itself. A host function may come with
    ``host_diagonal(X)``, which returns k(x, x) for all rows of X.

    Examples
    --------
    >>> from jsvm import kernels
    >>> k = kernels.Function(lambda X, Z: (1.0 + X @ Z.T) ** 2)
    >>> float(k(np.ones((1, 2)))[0, 0])
    9.0
    """

    function: Callable[..., Any] = field(metadata={"static": True})
    on_host: bool = field(default=False, metadata={"static": True})
    host_diagonal: Callable[..., Any] | None = field(default=None, metadata={"static": True})

    def runs_on_host(self) -> bool:
        return self.on_host

    def pair(self, x: Real[Array, " d"], z: Real[Array, " d"]) -> Float[Array, ""]:
        return self.matrix(x[None, :], z[None, :])[0, 0]

    def matrix(self, X: Real[Array, "n d"], Z: Real[Array, "m d"]) -> Float[Array, "n m"]:
        if not self.on_host:
            return jnp.asarray(self.function(X, Z), X.dtype)
        if isinstance(X, Tracer) or isinstance(Z, Tracer):
            shape = jax.ShapeDtypeStruct((X.shape[0], Z.shape[0]), X.dtype)
            return jax.pure_callback(self._call, shape, X, Z, vmap_method="sequential")
        return jnp.asarray(self._call(X, Z))

    def diagonal(self, X: Real[Array, "n d"]) -> Float[Array, " n"]:
        if not self.on_host or isinstance(X, Tracer):
            return super().diagonal(X)
        if self.host_diagonal is not None:
            return jnp.asarray(self.host_diagonal(np.asarray(X)))
        X = np.asarray(as_points(X))
        blocks = (X[i : i + HOST_DIAGONAL] for i in range(0, len(X), HOST_DIAGONAL))
        return jnp.asarray(np.concatenate([np.diagonal(self.matrix(B, B)) for B in blocks]))

    def _call(self, X: Any, Z: Any) -> np.ndarray:
        X, Z = np.asarray(X), np.asarray(Z)
        blocks = [self.function(X[i : i + HOST_ROWS], Z) for i in range(0, len(X), HOST_ROWS)]
        values = np.concatenate([np.asarray(block, X.dtype) for block in blocks])
        if values.shape != (len(X), len(Z)):
            raise ValueError(
                f"the kernel function returned shape {values.shape} for {len(X)} and "
                f"{len(Z)} points; it must return one row per row of its first argument"
            )
        return values
