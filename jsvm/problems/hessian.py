"""What a solver may ask of the matrix Q of a quadratic program: rows, diagonal, products.

Every Hessian here is Q = K + diag(ridge) with K a (positive semi-definite) kernel part. The ridge
is kept apart because the primal problem needs it: it is the curvature of a squared slack.
"""

from typing import Any, Protocol, runtime_checkable

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Float, Int, Real

from jsvm._typing import Array, Leaf, Matrix, Number, Vector, pytree
from jsvm.kernels import Kernel
from jsvm.numerics.arrays import as_floating, product
from jsvm.programs import program

MAP_ROWS = 256  # kernel rows computed at a time
FLAT_ULPS = 8  # units of rounding of the diagonal below which a curvature counts as zero


@runtime_checkable
class Hessian(Protocol):
    """What a solver may ask of Q."""

    @property
    def size(self) -> int:
        """Number of variables."""
        ...

    def rows(self, indices: Int[Array, " q"]) -> Float[Array, "q n"]:
        """Return the rows of Q with these indices."""
        ...

    def diagonal(self) -> Vector:
        """Return the diagonal of Q."""
        ...

    def matvec(self, v: Vector) -> Vector:
        """Return Qv."""
        ...

    def ridge_vector(self) -> Vector:
        """Return the part of the diagonal that is not the kernel's, by default none."""
        return jnp.zeros_like(self.diagonal())

    def dense(self) -> "Dense":
        """Return the same Q with its kernel part as a matrix."""
        ...


@pytree
class Dense(Hessian):
    """Q = matrix + diag(ridge) with the kernel part in memory.

    Examples
    --------
    >>> import numpy as np
    >>> Q = Dense(np.eye(2), ridge=np.full(2, 0.5))
    >>> [float(q) for q in Q.diagonal()]
    [1.5, 1.5]
    """

    matrix: Leaf
    ridge: Leaf = 0.0

    @property
    def size(self) -> int:
        return self.matrix.shape[0]

    def rows(self, indices: Int[Array, " q"]) -> Float[Array, "q n"]:
        return jnp.asarray(self.matrix)[indices] + _ridge_rows(self, indices)

    def diagonal(self) -> Vector:
        return jnp.diagonal(jnp.asarray(self.matrix)) + self.ridge_vector()

    def matvec(self, v: Vector) -> Vector:
        return product(jnp.asarray(self.matrix), v) + self.ridge_vector() * v

    def ridge_vector(self) -> Vector:
        return _spread(self.ridge, jnp.result_type(self.matrix), self.size)

    def dense(self) -> "Dense":
        return self


@pytree
class Tile:
    """A small dense Q prepared for the inner loop: ridge added, diagonal and floor computed."""

    matrix: Leaf
    diagonal_values: Leaf
    ridge: Leaf
    floor: (
        Leaf  # rounding of the diagonal: a pair is flat if its curvature is below the sum of both
    )

    @classmethod
    def of(cls, hessian: Dense) -> "Tile":
        """Prepare a dense Hessian."""
        matrix, ridge = jnp.asarray(hessian.matrix), hessian.ridge_vector()
        return cls.whole(matrix + jnp.diag(ridge), ridge)

    @classmethod
    def whole(cls, matrix: Matrix, ridge: Any = None) -> "Tile":
        """Prepare a matrix that has its ridge added already."""
        diagonal = jnp.diagonal(matrix)
        precision = jnp.finfo(matrix.dtype)
        floor = FLAT_ULPS * precision.eps * jnp.abs(diagonal) + precision.tiny
        return cls(matrix, diagonal, jnp.zeros_like(diagonal) if ridge is None else ridge, floor)

    @property
    def size(self) -> int:
        return self.matrix.shape[0]

    def row(self, i: Int[Array, ""]) -> Vector:
        """Return row i of Q."""
        return lax.dynamic_index_in_dim(self.matrix, i, 0, keepdims=False)

    def rows(self, indices: Int[Array, " q"]) -> Float[Array, "q n"]:
        return self.matrix[indices]

    def diagonal(self) -> Vector:
        return self.diagonal_values

    def scale(self) -> Number:
        """Return the largest |Q_ii|."""
        return jnp.max(jnp.abs(self.diagonal_values))

    def matvec(self, v: Vector) -> Vector:
        return product(self.matrix, v)

    def ridge_vector(self) -> Vector:
        return self.ridge


@pytree
class FromKernel(Hessian):
    """Q = k(X, X) + diag(ridge), computed when it is asked for.

    Examples
    --------
    >>> import numpy as np
    >>> from jsvm import kernels
    >>> FromKernel(kernels.Linear(), np.ones((3, 2))).rows(np.array([0])).shape
    (1, 3)
    """

    kernel: Leaf
    X: Leaf
    ridge: Leaf = 0.0

    @property
    def size(self) -> int:
        return self.X.shape[0]

    def rows(self, indices: Int[Array, " q"]) -> Float[Array, "q n"]:
        X = jnp.asarray(self.X)
        return self.kernel(X[indices], X) + _ridge_rows(self, indices)

    def diagonal(self) -> Vector:
        return self.kernel.diagonal(jnp.asarray(self.X)) + self.ridge_vector()

    def matvec(self, v: Vector) -> Vector:
        X = jnp.asarray(self.X)  # a block of rows at a time: K is never in memory as a whole
        sums = lax.map(lambda x: jnp.dot(self.kernel(x[None, :], X)[0], v), X, batch_size=MAP_ROWS)
        return sums + self.ridge_vector() * v

    def ridge_vector(self) -> Vector:
        return _spread(self.ridge, jnp.result_type(self.X, float), self.size)

    def dense(self) -> Dense:
        return Dense(gram(self.kernel, self.X), self.ridge)


@pytree
class Repeated(Hessian):
    """[[Q, Q], [Q, Q]] for two variables per example, as in regression; a ridge is part of it."""

    hessian: Leaf

    @property
    def size(self) -> int:
        return 2 * self.hessian.size

    def rows(self, indices: Int[Array, " q"]) -> Float[Array, "q n"]:
        half = self.hessian.rows(indices % self.hessian.size)
        return jnp.concatenate([half, half], axis=1)

    def diagonal(self) -> Vector:
        return jnp.tile(self.hessian.diagonal(), 2)

    def matvec(self, v: Vector) -> Vector:
        first, second = jnp.split(v, 2)
        return jnp.tile(self.hessian.matvec(first + second), 2)

    def dense(self) -> Dense:
        inner = self.hessian.dense()
        return Dense(jnp.tile(jnp.asarray(inner.matrix) + jnp.diag(inner.ridge_vector()), (2, 2)))


def gram(kernel: Kernel, X: Real[Array, "n d"]) -> Matrix:
    """Return k(X, X), compiled once per kernel class and shape unless it runs on the host."""
    return kernel(X) if kernel.runs_on_host() else _compiled_gram(kernel, X)


@program
def _compiled_gram(kernel: Any, X: Any) -> Any:
    return kernel(X)


def as_hessian(K: Any, ridge: Any = 0.0) -> Dense | FromKernel:
    """Return the Hessian that `K`, a square matrix or a pair ``(kernel, X)``, stands for."""
    if isinstance(K, tuple):
        kernel, X = K
        if not isinstance(kernel, Kernel) or getattr(X, "ndim", None) != 2:
            raise ValueError("K must be a square matrix or a pair (Kernel, X) with 2-D X")
        return FromKernel(kernel, X, ridge)
    K = as_floating(K)
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"K must be a square matrix or a pair (Kernel, X), not of shape {K.shape}")
    if isinstance(K, np.ndarray):
        _check_symmetric(K)
    return Dense(K, ridge)


def _check_symmetric(K: np.ndarray) -> None:
    largest = different = 0.0
    for begin in range(0, len(K), MAP_ROWS):  # a band of rows against the same band of columns
        rows, columns = K[begin : begin + MAP_ROWS, begin:], K[begin:, begin : begin + MAP_ROWS]
        with np.errstate(invalid="ignore"):  # what is not finite is reported when it is used
            different = max(different, np.abs(rows - columns.T).max())
        largest = max(largest, rows.max(), -rows.min())
    if different > np.sqrt(np.finfo(K.dtype).eps) * largest:
        raise ValueError(
            f"K is not symmetric: the largest |K_ij - K_ji| is {different:.3g}; give 0.5 * (K + "
            "K.T), or use problems.psvm (PSVC, PSVR), which takes any matrix"
        )


def _spread(ridge: Any, dtype: Any, size: int) -> Any:
    return jnp.broadcast_to(jnp.asarray(ridge, dtype), (size,))


def _ridge_rows(hessian: Hessian, indices: Any) -> Any:
    """Return the rows of diag(ridge)."""
    here = jnp.arange(hessian.size)[None, :] == jnp.asarray(indices)[:, None]
    return jnp.where(here, hessian.ridge_vector()[indices][:, None], 0.0)
