"""Matrix data (003): L objects described by their relations to P row objects.

K is L × P and need not be square, symmetric or definite. It is looked at one row object at a time:
object j has the L values K_1j … K_Lj, kept or computed next to each other. That is all that the
P-SVM asks for: the values of some objects, and the correlations Kᵀr of all of them with a vector.

Columns are normalised (003, eq. 20) to mean zero and to

    length one     Σ_i (K_ij − m_j)² = 1, Q_jj = 1   (000; the default), or
    variance one   Σ_i (K_ij − m_j)² = L, Q_jj = L   (003).

With weights an example counts as so many copies: √w_i K_ij has the products of the copies.
"""

from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.tree_util import register_dataclass
from jaxtyping import Float, Int, Real

from jsvm._typing import Array, Leaf
from jsvm.kernels import Kernel
from jsvm.kernels.sparse import between_sparse, is_sparse
from jsvm.precision import scope
from jsvm.problems.program import namespace

SCALINGS = ("length", "variance")
BLOCK_BYTES = 2**25  # of the matrix that is computed at a time
CONSTANT = 64  # units of rounding by which a constant column may seem to vary


@runtime_checkable
class MatrixData(Protocol):
    """What the P-SVM may ask of K."""

    @property
    def shape(self) -> tuple[int, int]:
        """L and P."""
        ...

    def objects(self, indices: Int[np.ndarray, " q"]) -> Float[Array, "q l"]:
        """Return the values of some row objects."""
        ...

    def correlations(self, vectors: Float[Array, "l *c"]) -> Float[Array, "p *c"]:
        """Return Kᵀr for one vector, or for one in each column."""
        ...

    def all_objects(self) -> Float[Array, "p l"]:
        """Return Kᵀ."""
        ...


@register_dataclass
@dataclass(frozen=True, eq=False)
class DenseMatrix:
    """K in memory; `rows` is Kᵀ, one row for each row object.

    Examples
    --------
    >>> DenseMatrix(np.ones((2, 5))).shape
    (5, 2)
    """

    rows: Leaf

    @property
    def shape(self) -> tuple[int, int]:
        """L and P."""
        return self.rows.shape[1], self.rows.shape[0]

    def objects(self, indices: Any) -> Float[Array, "q l"]:
        """Return the values of some row objects."""
        return self.rows[indices]

    def correlations(self, vectors: Float[Array, "l *c"]) -> Float[Array, "p *c"]:
        """Return Kᵀr; of a NumPy matrix on the host."""
        if isinstance(self.rows, np.ndarray) and isinstance(vectors, np.ndarray):
            return self.rows @ vectors
        return jnp.matmul(jnp.asarray(self.rows), vectors, precision=lax.Precision.HIGHEST)

    def all_objects(self) -> Float[Array, "p l"]:
        """Return Kᵀ."""
        return self.rows


@register_dataclass
@dataclass(frozen=True, eq=False)
class KernelMatrix:
    """K = k(X, Z), computed when it is asked for; `Z` are the row objects.

    Examples
    --------
    >>> from jsvm import kernels
    >>> KernelMatrix(kernels.Linear(), np.ones((5, 3)), np.ones((2, 3))).shape
    (5, 2)
    """

    kernel: Leaf
    X: Leaf
    Z: Leaf

    @property
    def shape(self) -> tuple[int, int]:
        """L and P."""
        return self.X.shape[0], self.Z.shape[0]

    def objects(self, indices: Any) -> Float[Array, "q l"]:
        """Return the values of some row objects."""
        Z = self.Z[indices]
        if is_sparse(self.X) or is_sparse(Z):
            return between_sparse(self.kernel, Z, self.X, _working(self.X))
        if self.kernel.runs_on_host():
            return self.kernel(np.asarray(Z), np.asarray(self.X))
        return _kernel_block(self.kernel, jnp.asarray(Z), jnp.asarray(self.X))

    def correlations(self, vectors: Float[Array, "l *c"]) -> Float[Array, "p *c"]:
        """Return Kᵀr, a block of row objects at a time: K is never in memory as a whole."""
        return jnp.concatenate([_product(values, vectors) for values in _blocks(self)])

    def all_objects(self) -> Float[Array, "p l"]:
        """Return Kᵀ."""
        return self.objects(slice(None))


@dataclass(frozen=True, eq=False)
class SparseMatrix:
    """K as a SciPy sparse matrix, on the host.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> SparseMatrix(csr_array(np.eye(3))).shape
    (3, 3)
    """

    matrix: Any
    by_object: Any = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_object", self.matrix.T.tocsr())

    @property
    def shape(self) -> tuple[int, int]:
        """L and P."""
        return self.matrix.shape

    def objects(self, indices: Any) -> Float[Array, "q l"]:
        """Return the values of some row objects."""
        return self.by_object[indices].toarray().astype(np.float64)

    def correlations(self, vectors: Float[Array, "l *c"]) -> Float[Array, "p *c"]:
        """Return Kᵀr."""
        return jnp.asarray(self.by_object @ np.asarray(vectors))

    def all_objects(self) -> Float[Array, "p l"]:
        """Return Kᵀ."""
        return self.objects(slice(None))


@register_dataclass
@dataclass(frozen=True, eq=False)
class Normalised:
    """√w_i (K_ij − m_j)/s_j of other matrix data; see :func:`normalised`.

    Parameters
    ----------
    matrix : MatrixData
    mean, scale : array of shape (P,)
        m and s; a column that is constant has s = 0, and becomes zero.
    root_weight : array of shape (L,)
        √w.
    """

    matrix: Leaf
    mean: Leaf
    scale: Leaf
    root_weight: Leaf

    @property
    def shape(self) -> tuple[int, int]:
        """L and P."""
        return self.matrix.shape

    @property
    def varies(self) -> Any:
        """Which columns are not constant."""
        return self.scale > 0

    def objects(self, indices: Any) -> Float[Array, "q l"]:
        """Return the values of some row objects."""
        values = jnp.asarray(self.matrix.objects(indices))
        return _normalise(values, *self._of(indices), jnp.asarray(self.root_weight))

    def correlations(self, vectors: Float[Array, "l *c"]) -> Float[Array, "p *c"]:
        """Return Kᵀr."""
        if isinstance(self.matrix, SparseMatrix):  # nothing becomes dense
            one = vectors.ndim == 1
            weighted = jnp.asarray(self.root_weight)[:, None] * vectors.reshape(len(vectors), -1)
            mean, inverse = (v[:, None] for v in self._of(slice(None)))
            raw = self.matrix.correlations(weighted) - mean * weighted.sum(axis=0)[None, :]
            return (raw * inverse)[:, 0] if one else raw * inverse
        return jnp.concatenate([_product(values, vectors) for values in _blocks(self)])

    def all_objects(self) -> Float[Array, "p l"]:
        """Return Kᵀ."""
        return self.objects(slice(None))

    def _of(self, indices: Any) -> tuple[Any, Any]:
        """Return mean and one over scale of some objects; zero for a constant one."""
        scale = jnp.asarray(self.scale)[indices]
        inverse = jnp.where(scale > 0, 1.0 / jnp.where(scale > 0, scale, 1.0), 0.0)
        return jnp.asarray(self.mean)[indices], inverse


def as_matrix_data(K: Any) -> MatrixData:
    """Return the matrix data that `K` stands for.

    `K` is an L × P matrix, dense or sparse, ``(kernel, X)``, ``(kernel, X, Z)`` or matrix data.
    """
    if isinstance(K, MatrixData):
        return K
    if isinstance(K, tuple):
        if len(K) not in (2, 3) or not isinstance(K[0], Kernel):
            raise ValueError("K must be a matrix, (kernel, X), (kernel, X, Z) or matrix data")
        return KernelMatrix(K[0], K[1], K[-1])
    if is_sparse(K):
        return SparseMatrix(K)
    K = K if isinstance(K, jax.Array) else np.asarray(K)
    if K.ndim != 2:
        raise ValueError(f"K must be a matrix, not of shape {K.shape}")
    return DenseMatrix((K if jnp.issubdtype(K.dtype, jnp.floating) else K.astype(float)).T)


def normalised(
    K: Any, scaling: str = "length", weight: Real[Array, " l"] | None = None
) -> Normalised:
    """Return K with columns of mean zero and of length or variance one.

    Parameters
    ----------
    K : array of shape (L, P), (kernel, X), (kernel, X, Z) or MatrixData
    scaling : {'length', 'variance'}
        Σ_i K_ij² = 1 as in 000, or L as in 003. With 'variance' ε and C mean what they mean in 003:
        ε is √L times as large, C is √L times as small, for the same machine.
    weight : array of shape (L,), optional
        An example of weight w counts as w copies.

    Examples
    --------
    >>> K = normalised(np.array([[1.0, 5.0], [3.0, 5.0]]))
    >>> [float(m) for m in K.mean], [bool(v) for v in K.varies]
    ([2.0, 5.0], [True, False])
    """
    if scaling not in SCALINGS:
        raise ValueError(f"scaling={scaling!r} must be one of {SCALINGS}")
    data = as_matrix_data(K)
    length = data.shape[0]
    w = np.ones(length) if weight is None else weight
    if w.shape != (length,):
        raise ValueError(f"weight must hold {length} numbers, not be of shape {w.shape}")
    if any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves((data, w))):
        return Normalised(data, *_mean_and_scale(data, w, scaling), jnp.sqrt(w))
    with scope(np.dtype(np.float64)):  # NumPy data keep their float64
        mean, scale = _mean_and_scale(data, w, scaling)
    return Normalised(data, np.asarray(mean), np.asarray(scale), np.sqrt(w))


def _mean_and_scale(data: MatrixData, weight: Any, scaling: str) -> tuple[Any, Any]:
    if isinstance(data, SparseMatrix):
        mean, square, largest = _sparse_moments(data, np.asarray(weight))
    else:
        parts = [_moments(jnp.asarray(values), jnp.asarray(weight)) for values in _blocks(data)]
        mean, square, largest = (jnp.concatenate(part) for part in zip(*parts, strict=True))
    xp: Any = namespace(mean)
    total = weight.sum()
    # Rounding of the mean makes a constant column seem to vary.
    noise = CONSTANT * jnp.finfo(mean.dtype).eps * largest
    scale = xp.where(square > total * noise**2, xp.sqrt(square), 0.0)
    return mean, scale / xp.sqrt(total) if scaling == "variance" else scale


def _moments(values: Float[Array, "q l"], weight: Float[Array, " l"]) -> tuple[Any, Any, Any]:
    """Return of every object the mean, Σ w (value − mean)², and the largest absolute value."""
    weight = weight.astype(values.dtype)
    mean = jnp.matmul(values, weight / jnp.sum(weight), precision=lax.Precision.HIGHEST)
    mean = jnp.where(jnp.min(values, axis=1) == jnp.max(values, axis=1), values[:, 0], mean)
    square = jnp.matmul((values - mean[:, None]) ** 2, weight, precision=lax.Precision.HIGHEST)
    return mean, square, jnp.max(jnp.abs(values), axis=1)


def _sparse_moments(data: SparseMatrix, weight: np.ndarray) -> tuple[Any, Any, Any]:
    """Return the same of a sparse matrix; what is not stored is zero, and deviates by the mean."""
    by_object, total, count = data.by_object, weight.sum(), data.shape[1]
    owner = np.repeat(np.arange(count), np.diff(by_object.indptr))
    values, weights = by_object.data.astype(np.float64), weight[by_object.indices]

    def sums(terms: np.ndarray) -> np.ndarray:
        return np.bincount(owner, terms, minlength=count)

    least, most = (
        np.asarray(extreme.todense(), np.float64).reshape(-1)
        for extreme in (by_object.min(axis=1), by_object.max(axis=1))
    )
    mean = np.where(least == most, least, sums(weights * values) / total)
    unstored = total - sums(weights)
    square = sums(weights * (values - mean[owner]) ** 2) + unstored * mean**2
    square = np.where(least == most, 0.0, square)
    return mean, square, np.maximum(np.abs(least), np.abs(most))


def _blocks(data: Any) -> Any:
    """Yield the values of all objects, so many at a time that they fit."""
    length, count = data.shape
    step = max(1, BLOCK_BYTES // (8 * max(length, 1)))
    if count <= step:
        yield data.all_objects()
        return
    for begin in range(0, count, step):
        yield data.objects(slice(begin, begin + step))


@jax.jit
def _kernel_block(kernel: Any, Z: Any, X: Any) -> Any:
    return kernel(Z, X)


def _normalise(values: Any, mean: Any, inverse: Any, root_weight: Any) -> Any:
    return (values - mean[:, None]) * inverse[:, None] * root_weight[None, :]


def _product(values: Any, vectors: Any) -> Any:
    return jnp.matmul(jnp.asarray(values), vectors, precision=lax.Precision.HIGHEST)


def _working(X: Any) -> np.dtype:
    return X.dtype if np.issubdtype(X.dtype, np.floating) else np.dtype(np.float64)
