"""Matrix data: L objects described by their relations to P row objects.

K is L × P and need not be square, symmetric or definite (Hochreiter & Obermayer 2004). It is used
one row object at a time: object j has the L values K_1j … K_Lj, kept or computed next to each
other. The P-SVM asks for the values of some objects, and for the correlations Kᵀr of all of them
with a vector.

Columns are normalised (Hochreiter & Obermayer 2004, eq. 20) to mean zero and to

    length one     Σ_i (K_ij − m_j)² = 1, Q_jj = 1   (Knebel et al. 2008; the default), or
    variance one   Σ_i (K_ij − m_j)² = L, Q_jj = L   (Hochreiter & Obermayer 2004).

With weights an example counts as so many copies: √w_i K_ij has the products of the copies.
"""

from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int, Real

from jsvm._typing import Array, Leaf, pytree
from jsvm.kernels import Kernel
from jsvm.kernels.sparse import between_sparse
from jsvm.numerics.arrays import as_floating, in_full_precision, is_sparse, namespace, product
from jsvm.programs import program

SCALINGS = ("length", "variance")
BLOCK_BYTES = 2**25  # of the matrix that is computed at a time
CONSTANT_ULPS = 64  # units of rounding by which a constant column may seem to vary


@runtime_checkable
class MatrixData(Protocol):
    """What the P-SVM may ask of K."""

    @property
    def shape(self) -> tuple[int, int]:
        """L and P."""
        ...

    def objects(self, indices: Int[np.ndarray, " q"] | slice) -> Float[Array, "q l"]:
        """Return the values of some row objects."""
        ...

    def correlations(self, vectors: Float[Array, "l *c"]) -> Float[Array, "p *c"]:
        """Return Kᵀr for one vector, or for one in each column; K is never needed as a whole."""
        return jnp.concatenate([product(jnp.asarray(v), vectors) for v in _blocks(self)])

    def all_objects(self) -> Float[Array, "p l"]:
        """Return Kᵀ."""
        return self.objects(slice(None))


@pytree
class DenseMatrix(MatrixData):
    """K in memory; `rows` is Kᵀ, one row for each row object.

    Examples
    --------
    >>> DenseMatrix(np.ones((2, 5))).shape
    (5, 2)
    """

    rows: Leaf

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows.shape[1], self.rows.shape[0]

    def objects(self, indices: Any) -> Float[Array, "q l"]:
        return self.rows[indices]

    def correlations(self, vectors: Float[Array, "l *c"]) -> Float[Array, "p *c"]:
        # A NumPy matrix stays on the host.
        if isinstance(self.rows, np.ndarray) and isinstance(vectors, np.ndarray):
            return self.rows @ vectors
        return product(jnp.asarray(self.rows), vectors)

    def all_objects(self) -> Float[Array, "p l"]:
        return self.rows


@pytree
class KernelMatrix(MatrixData):
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
        return self.X.shape[0], self.Z.shape[0]

    def objects(self, indices: Any) -> Float[Array, "q l"]:
        Z = self.Z[indices]
        if is_sparse(self.X) or is_sparse(Z):
            return between_sparse(self.kernel, Z, self.X, _working(self.X))
        if self.kernel.runs_on_host():
            return self.kernel(np.asarray(Z), np.asarray(self.X))
        return _kernel_block(self.kernel, jnp.asarray(Z), jnp.asarray(self.X))


@dataclass(frozen=True, eq=False)
class SparseMatrix(MatrixData):
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
        return self.matrix.shape

    def objects(self, indices: Any) -> Float[Array, "q l"]:
        return self.by_object[indices].toarray().astype(np.float64)

    def correlations(self, vectors: Float[Array, "l *c"]) -> Float[Array, "p *c"]:
        return jnp.asarray(self.by_object @ np.asarray(vectors))


@pytree
class Normalised(MatrixData):
    """√w_i (K_ij − m_j)/s_j of other matrix data; see :func:`normalised`."""

    matrix: Leaf
    mean: Leaf  # m, one a column
    scale: Leaf  # s; a column that is constant has s = 0, and becomes zero
    root_weight: Leaf  # √w, one an example

    @property
    def shape(self) -> tuple[int, int]:
        return self.matrix.shape

    @property
    def varies(self) -> Any:
        """Which columns are not constant."""
        return self.scale > 0

    def objects(self, indices: Any) -> Float[Array, "q l"]:
        values, (mean, inverse) = jnp.asarray(self.matrix.objects(indices)), self._of(indices)
        return (values - mean[:, None]) * inverse[:, None] * jnp.asarray(self.root_weight)[None, :]

    def correlations(self, vectors: Float[Array, "l *c"]) -> Float[Array, "p *c"]:
        if isinstance(self.matrix, SparseMatrix):  # nothing becomes dense
            one = vectors.ndim == 1
            weighted = jnp.asarray(self.root_weight)[:, None] * vectors.reshape(len(vectors), -1)
            mean, inverse = (v[:, None] for v in self._of(slice(None)))
            raw = self.matrix.correlations(weighted) - mean * weighted.sum(axis=0)[None, :]
            return (raw * inverse)[:, 0] if one else raw * inverse
        return super().correlations(vectors)

    def _of(self, indices: Any) -> tuple[Any, Any]:
        """Return mean and one over scale of some objects; zero for a constant one."""
        scale = jnp.asarray(self.scale)[indices]
        inverse = jnp.where(scale > 0, 1.0 / jnp.where(scale > 0, scale, 1.0), 0.0)
        return jnp.asarray(self.mean)[indices], inverse


def as_matrix_data(K: Any) -> MatrixData:
    """Return what an L × P matrix, (kernel, X), (kernel, X, Z) or matrix data stands for."""
    if isinstance(K, MatrixData):
        return K
    if isinstance(K, tuple):
        if len(K) not in (2, 3) or not isinstance(K[0], Kernel):
            raise ValueError("K must be a matrix, (kernel, X), (kernel, X, Z) or matrix data")
        return KernelMatrix(K[0], K[1], K[-1])
    if is_sparse(K):
        return SparseMatrix(K)
    K = as_floating(K)
    if K.ndim != 2:
        raise ValueError(f"K must be a matrix, not of shape {K.shape}")
    return DenseMatrix(K.T)


def normalised(
    K: Any, scaling: str = "length", weight: Real[Array, " l"] | None = None
) -> Normalised:
    """Return K with columns of mean zero and of length or variance one.

    Parameters
    ----------
    K : array of shape (L, P), (kernel, X), (kernel, X, Z) or MatrixData
    scaling : {'length', 'variance'}
        Σ_i K_ij² = 1 as in Knebel et al. 2008, or L as in Hochreiter & Obermayer 2004. With
        'variance' ε is √L times as large and C is √L times as small, for the same machine.
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
    mean, scale = in_full_precision(lambda: _mean_and_scale(data, w, scaling), data, w)
    return Normalised(data, mean, scale, namespace(data, w).sqrt(w))


def _mean_and_scale(data: MatrixData, weight: Any, scaling: str) -> tuple[Any, Any]:
    if isinstance(data, SparseMatrix):
        mean, square, largest = _sparse_moments(data, np.asarray(weight))
    else:
        parts = [_moments(jnp.asarray(values), jnp.asarray(weight)) for values in _blocks(data)]
        mean, square, largest = (jnp.concatenate(part) for part in zip(*parts, strict=True))
    xp: Any = namespace(mean)
    total = weight.sum()
    # Rounding of the mean makes a constant column seem to vary.
    noise = CONSTANT_ULPS * jnp.finfo(mean.dtype).eps * largest
    scale = xp.where(square > total * noise**2, xp.sqrt(square), 0.0)
    return mean, scale / xp.sqrt(total) if scaling == "variance" else scale


def _moments(values: Float[Array, "q l"], weight: Float[Array, " l"]) -> tuple[Any, Any, Any]:
    """Return of every object the mean, Σ w (value − mean)², and the largest absolute value."""
    weight = weight.astype(values.dtype)
    mean = product(values, weight / jnp.sum(weight))
    mean = jnp.where(jnp.min(values, axis=1) == jnp.max(values, axis=1), values[:, 0], mean)
    square = product((values - mean[:, None]) ** 2, weight)
    return mean, square, jnp.max(jnp.abs(values), axis=1)


def _sparse_moments(data: SparseMatrix, weight: np.ndarray) -> tuple[Any, Any, Any]:
    """Return the same of a sparse matrix; an entry that is not stored is zero."""
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
    """Yield the values of all objects, BLOCK_BYTES at a time."""
    length, count = data.shape
    step = max(1, BLOCK_BYTES // (8 * max(length, 1)))
    if count <= step:
        yield data.all_objects()
        return
    for begin in range(0, count, step):
        yield data.objects(slice(begin, begin + step))


@program
def _kernel_block(kernel: Any, Z: Any, X: Any) -> Any:
    return kernel(Z, X)


def _working(X: Any) -> np.dtype:
    return X.dtype if np.issubdtype(X.dtype, np.floating) else np.dtype(np.float64)
