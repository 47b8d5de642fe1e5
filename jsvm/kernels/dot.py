"""Kernels of the inner product ⟨x, z⟩."""

import math
import numbers
from dataclasses import field
from typing import Any

import jax.numpy as jnp
from jaxtyping import Float, Real

from jsvm._typing import Array, Leaf, pytree
from jsvm.kernels.base import Kernel, as_points
from jsvm.numerics.arrays import product


def inner_products(X: Float[Array, "n d"], Z: Float[Array, "m d"]) -> Float[Array, "n m"]:
    """Return all ⟨x_i, z_j⟩ in the full precision of the dtype, also on a GPU."""
    return product(X, Z.T)


class DotKernel(Kernel):
    """A kernel of the inner product: a concrete one gives :meth:`of_inner`."""

    blind_to_zeros = True

    def of_inner(self, products: Float[Array, "..."]) -> Float[Array, "..."]:
        """Return the kernel as a function of inner products."""
        raise NotImplementedError

    def pair(self, x: Real[Array, " d"], z: Real[Array, " d"]) -> Float[Array, ""]:
        return self.of_inner(jnp.dot(x, z))

    def matrix(self, X: Real[Array, "n d"], Z: Real[Array, "m d"]) -> Float[Array, "n m"]:
        return self.of_inner(inner_products(X, Z))

    def diagonal(self, X: Real[Array, "n d"]) -> Float[Array, " n"]:
        X = as_points(X)
        return self.of_inner(jnp.sum(X * X, axis=1))

    def of_products(self, products: Any, left: Any, right: Any) -> Any:
        return self.of_inner(products)

    def of_basis(self, values: Any) -> Any:
        return self.of_inner(values)


@pytree
class Linear(DotKernel):
    """⟨x, z⟩.

    Examples
    --------
    >>> import numpy as np
    >>> float(Linear()(np.ones((1, 3)))[0, 0])
    3.0
    """

    positive = True

    def of_inner(self, products: Float[Array, "..."]) -> Float[Array, "..."]:
        return products

    def rank(self, features: int) -> int | float:
        return features


DotKernel.basis = Linear()


@pytree
class Polynomial(DotKernel):
    """(γ⟨x, z⟩ + c)^p. The degree p is a whole number and no leaf: it has no derivative.

    Examples
    --------
    >>> import numpy as np
    >>> float(Polynomial(degree=2, gamma=1.0, coef0=1.0)(np.ones((1, 2)))[0, 0])
    9.0
    """

    positive = True
    degree: Leaf = field(default=3, metadata={"static": True})
    gamma: Leaf = 1.0
    coef0: Leaf = 0.0

    def of_inner(self, products: Float[Array, "..."]) -> Float[Array, "..."]:
        return (self.gamma * products + self.coef0) ** whole_degree(self.degree)

    def rank(self, features: int) -> int | float:
        return math.comb(features + whole_degree(self.degree), features)


def whole_degree(degree: Any) -> int:
    """Return the degree as an int; raise ValueError if it is no whole number ≥ 0."""
    if not isinstance(degree, numbers.Integral) or degree < 0:
        raise ValueError(f"degree={degree!r} must be a whole number >= 0")
    return int(degree)


@pytree
class Sigmoid(DotKernel):
    """tanh(γ⟨x, z⟩ + c). Not positive semi-definite in general.

    Examples
    --------
    >>> import numpy as np
    >>> float(Sigmoid(gamma=1.0)(np.zeros((1, 2)))[0, 0])
    0.0
    """

    gamma: Leaf = 1.0
    coef0: Leaf = 0.0

    def of_inner(self, products: Float[Array, "..."]) -> Float[Array, "..."]:
        return jnp.tanh(self.gamma * products + self.coef0)
