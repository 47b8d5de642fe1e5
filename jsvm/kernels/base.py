"""What a kernel is, what it declares, and how kernels combine.

A kernel is a frozen dataclass and a pytree: its parameters are leaves, so ``jax.grad`` of anything
with respect to a kernel works. It answers three questions:

- ``pair(x, z)``   the value at two points; this is the specification,
- ``matrix(X, Z)`` all values at once, by matrix products where possible; tested equal,
- ``diagonal(X)``  the values ``pair(x, x)``.

For many blocks of one matrix, call ``P = k.prepare(X)`` once and ``k.between`` on rows of ``P`` for
each block: squared lengths and the like are then computed once.

``k(X)`` and ``k(X, Z)`` give the matrix. ``k1 + k2``, ``k1 * k2`` and ``2.0 * k`` are kernels.

**Capabilities** are declared by every kernel. Ask for the first three by the methods in brackets,
which derive them from the parts of a combined kernel:

- ``positive``         its matrices are known to be positive semi-definite (``is_positive()``),
- ``blind_to_zeros``   columns of zeros may be added to the points (``ignores_zeros()``),
- ``on_host``          JAX cannot trace it (``runs_on_host()``),
- ``basis``            ⟨x, z⟩ or ‖x − z‖² if it is a function of this alone, else None,
- ``prepares_points``  its ``prepare`` returns :class:`jsvm.kernels.distances.Points`.
"""

import math
import operator
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Real

from jsvm._typing import Array, Leaf, pytree


class Kernel:
    """The operations that every kernel shares; the formulas are in the concrete kernels."""

    # How a search treats a field: "fixed" is not searched for, "matrix" is symmetric positive
    # definite and enters by its logarithm; others enter as numbers, positive ones by theirs.
    SEARCHED_AS: ClassVar[dict[str, str]] = {}
    positive: ClassVar[bool] = False
    blind_to_zeros: ClassVar[bool] = False
    basis: "ClassVar[Kernel | None]" = None
    prepares_points: ClassVar[bool] = False

    def pair(self, x: Real[Array, " d"], z: Real[Array, " d"]) -> Float[Array, ""]:
        """Return k(x, z) for two points."""
        raise NotImplementedError

    def matrix(self, X: Real[Array, "n d"], Z: Real[Array, "m d"]) -> Float[Array, "n m"]:
        """Return k(x_i, z_j) for all pairs of rows."""
        raise NotImplementedError

    def diagonal(self, X: Real[Array, "n d"]) -> Float[Array, " n"]:
        """Return k(x_i, x_i) for all rows."""
        X = as_points(X)
        return jax.vmap(self.pair)(X, X)

    def prepare(self, X: Real[Array, "n d"]) -> Any:
        """Return what blocks of one matrix share: a pytree, every leaf with one row per point."""
        return as_points(X)

    def between(self, P: Any, R: Any) -> Float[Array, "n m"]:
        """Return the matrix of prepared points; rows of `P` and `R` come from one `prepare`."""
        return self.matrix(P, R)

    def __call__(
        self, X: Real[Array, "n d"], Z: Real[Array, "m d"] | None = None
    ) -> Float[Array, "n m"]:
        """Return the kernel matrix of the rows of `X` and the rows of `Z` (`X` if omitted)."""
        X = as_points(X)
        Z = X if Z is None else as_points(Z)
        if X.ndim != 2 or Z.ndim != 2 or X.shape[1] != Z.shape[1]:
            raise ValueError(
                f"X and Z must be matrices with the same features, not {X.shape} and {Z.shape}"
            )
        return self.matrix(X, Z)

    def of_products(self, products: Any, left: Any, right: Any) -> Any:
        """Return k(x, z) from ⟨x, z⟩, ⟨x, x⟩ and ⟨z, z⟩, entry by entry; for sparse data."""
        raise ValueError(
            f"{type(self).__name__} is no function of inner products and distances, so it cannot "
            "be computed on sparse data; give a dense X, or another kernel"
        )

    def of_basis(self, values: Any) -> Any:
        """Return this kernel from the values of its `basis`, entry by entry."""
        raise NotImplementedError

    def rank(self, features: int) -> int | float:
        """Return the largest rank of the matrices of points with so many features; ∞ if any."""
        return math.inf

    def log_gamma(self) -> Any:
        """Return log γ of a Gaussian kernel, a number, vector or symmetric matrix; else None."""
        return None

    def is_positive(self) -> bool:
        """Tell whether every matrix k(X, X) is known to be positive semi-definite.

        This is for parameters in their range: widths, exponents and offsets that are not negative.
        Sums, products, scalings and normalisations of such kernels are such kernels.
        """
        parts = self._parts()
        return all(part.is_positive() for part in parts) if parts else self.positive

    def runs_on_host(self) -> bool:
        """Tell whether this kernel, or a part of it, is a NumPy function."""
        return any(part.runs_on_host() for part in self._parts())

    def ignores_zeros(self) -> bool:
        """Tell whether further features that are zero in all points change nothing."""
        parts = self._parts()
        return all(part.ignores_zeros() for part in parts) if parts else self.blind_to_zeros

    def _parts(self) -> "list[Kernel]":
        fields = (getattr(self, name) for name in getattr(self, "__dataclass_fields__", ()))
        return [field for field in fields if isinstance(field, Kernel)]

    def __add__(self, other: "Kernel") -> "Sum":
        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Any) -> "Product | Scaled":
        return Product(self, other) if isinstance(other, Kernel) else self.__rmul__(other)

    def __rmul__(self, factor: Any) -> "Scaled":
        if not isinstance(factor, int | float | np.generic | np.ndarray | jax.Array):
            return NotImplemented
        known = isinstance(factor, int | float | np.integer | np.floating)
        if known and not 0 < float(factor) < math.inf:
            raise ValueError(
                f"a kernel can be scaled by a positive finite number, not by {factor!r}"
            )
        return Scaled(factor, self)


def pairwise(kernel: Kernel, X: Real[Array, "n d"], Z: Real[Array, "m d"]) -> Float[Array, "n m"]:
    """Evaluate the specification ``kernel.pair`` on all pairs of rows; slow, for tests."""
    rows = jax.vmap(jax.vmap(kernel.pair, (None, 0)), (0, None))
    return rows(as_points(X), as_points(Z))


def as_points(X: Real[Array, "n d"]) -> Float[Array, "n d"]:
    """Return `X` as a floating-point JAX array."""
    X = jnp.asarray(X)
    return X if jnp.issubdtype(X.dtype, jnp.floating) else X.astype(jnp.result_type(float))


@dataclass(frozen=True, eq=False)
class _Combination(Kernel):
    """Two kernels, combined entry by entry by `_combine`."""

    left: Kernel
    right: Kernel

    @staticmethod
    def _combine(left: Any, right: Any, /) -> Any:
        raise NotImplementedError

    def pair(self, x: Real[Array, " d"], z: Real[Array, " d"]) -> Float[Array, ""]:
        return self._combine(self.left.pair(x, z), self.right.pair(x, z))

    def matrix(self, X: Real[Array, "n d"], Z: Real[Array, "m d"]) -> Float[Array, "n m"]:
        return self._combine(self.left.matrix(X, Z), self.right.matrix(X, Z))

    def prepare(self, X: Real[Array, "n d"]) -> Any:
        return self.left.prepare(X), self.right.prepare(X)

    def between(self, P: Any, R: Any) -> Float[Array, "n m"]:
        return self._combine(self.left.between(P[0], R[0]), self.right.between(P[1], R[1]))

    def of_products(self, products: Any, left: Any, right: Any) -> Any:
        given = products, left, right
        return self._combine(self.left.of_products(*given), self.right.of_products(*given))


@pytree
class Sum(_Combination):
    """k₁(x, z) + k₂(x, z).

    Examples
    --------
    >>> from jsvm import kernels
    >>> float((kernels.Linear() + kernels.RBF(gamma=0.5))(np.zeros((1, 2)))[0, 0])
    1.0
    """

    _combine = staticmethod(operator.add)

    def rank(self, features: int) -> int | float:
        return self.left.rank(features) + self.right.rank(features)


@pytree
class Product(_Combination):
    """k₁(x, z) · k₂(x, z).

    Examples
    --------
    >>> from jsvm import kernels
    >>> k = kernels.RBF(gamma=0.5) * kernels.RBF(gamma=0.25)
    >>> float(k(np.zeros((1, 2)))[0, 0])
    1.0
    """

    _combine = staticmethod(operator.mul)

    def rank(self, features: int) -> int | float:
        return self.left.rank(features) * self.right.rank(features)


@pytree
class Scaled(Kernel):
    """s · k(x, z) with s > 0.

    Examples
    --------
    >>> from jsvm import kernels
    >>> k = 2.0 * kernels.RBF(gamma=0.5)
    >>> float(k(np.zeros((1, 2)))[0, 0])
    2.0
    """

    factor: Leaf
    kernel: Kernel

    def pair(self, x: Real[Array, " d"], z: Real[Array, " d"]) -> Float[Array, ""]:
        return self.factor * self.kernel.pair(x, z)

    def matrix(self, X: Real[Array, "n d"], Z: Real[Array, "m d"]) -> Float[Array, "n m"]:
        return self.factor * self.kernel.matrix(X, Z)

    def prepare(self, X: Real[Array, "n d"]) -> Any:
        return self.kernel.prepare(X)

    def between(self, P: Any, R: Any) -> Float[Array, "n m"]:
        return self.factor * self.kernel.between(P, R)

    def of_products(self, products: Any, left: Any, right: Any) -> Any:
        return self.factor * self.kernel.of_products(products, left, right)

    def rank(self, features: int) -> int | float:
        return self.kernel.rank(features)


@pytree
class Normalized(Kernel):
    """k(x, z) / √(k(x, x) k(z, z)), the cosine in feature space; zero where a norm is zero.

    Examples
    --------
    >>> from jsvm import kernels
    >>> k = kernels.Normalized(kernels.Linear())
    >>> round(float(k(np.full((1, 2), 3.0))[0, 0]), 6)
    1.0
    """

    kernel: Kernel

    def pair(self, x: Real[Array, " d"], z: Real[Array, " d"]) -> Float[Array, ""]:
        norms = _inverse_root(self.kernel.pair(x, x)) * _inverse_root(self.kernel.pair(z, z))
        return self.kernel.pair(x, z) * norms

    def matrix(self, X: Real[Array, "n d"], Z: Real[Array, "m d"]) -> Float[Array, "n m"]:
        left = _inverse_root(self.kernel.diagonal(X))
        right = _inverse_root(self.kernel.diagonal(Z))
        return self.kernel.matrix(X, Z) * left[:, None] * right[None, :]

    def prepare(self, X: Real[Array, "n d"]) -> Any:
        return self.kernel.prepare(X), _inverse_root(self.kernel.diagonal(X))

    def between(self, P: Any, R: Any) -> Float[Array, "n m"]:
        return self.kernel.between(P[0], R[0]) * P[1][:, None] * R[1][None, :]

    def of_products(self, products: Any, left: Any, right: Any) -> Any:
        norms = [_inverse_root(self.kernel.of_products(a, a, a)) for a in (left, right)]
        return self.kernel.of_products(products, left, right) * norms[0] * norms[1]

    def rank(self, features: int) -> int | float:
        return self.kernel.rank(features)


def _inverse_root(square: Float[Array, "..."]) -> Float[Array, "..."]:
    # The inner `where` keeps the gradient of the branch not taken finite.
    positive = square > 0
    return jnp.where(positive, jax.lax.rsqrt(jnp.where(positive, square, 1.0)), 0.0)
