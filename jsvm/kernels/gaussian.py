"""The Gaussian kernels: one width, one width a feature, any covariance."""

from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Float, Real

from jsvm._typing import Array, Leaf, pytree
from jsvm.kernels.base import Kernel, as_points
from jsvm.kernels.distances import DistanceKernel, Points, centre_of
from jsvm.kernels.dot import inner_products
from jsvm.kernels.symmetric import logarithm


@pytree
class RBF(DistanceKernel):
    """exp(−γ‖x − z‖²), the radial Gaussian kernel (Glasmachers 2008, eq. 2.1).

    Examples
    --------
    >>> float(RBF(gamma=0.5)(np.zeros((1, 2)))[0, 0])
    1.0
    """

    positive = True
    gamma: Leaf = 1.0

    def log_gamma(self) -> Any:
        return jnp.log(jnp.asarray(self.gamma))

    def pair(self, x: Real[Array, " d"], z: Real[Array, " d"]) -> Float[Array, ""]:
        return jnp.exp(-self.gamma * jnp.sum((x - z) ** 2))

    def of_squares(self, squares: Float[Array, "..."]) -> Float[Array, "..."]:
        return jnp.exp(-self.gamma * squares)


@pytree
class ARD(DistanceKernel):
    """exp(−Σ_d γ_d (x_d − z_d)²), the diagonal Gaussian kernel: one width for every feature.

    Examples
    --------
    >>> float(ARD(gamma=np.array([0.5, 0.0]))(np.array([[0.0, 7.0]]), np.zeros((1, 2)))[0, 0])
    1.0
    """

    positive = True
    blind_to_zeros, basis = False, None  # one γ a feature, and its distances are weighted
    gamma: Leaf

    def pair(self, x: Real[Array, " d"], z: Real[Array, " d"]) -> Float[Array, ""]:
        return jnp.exp(-jnp.sum(jnp.asarray(self.gamma) * (x - z) ** 2))

    def weights(self, features: int) -> Float[Array, " d"]:
        # The widths enter as weights, never under a root: γ_d = 0 has a finite gradient.
        gamma = jnp.asarray(self.gamma)
        if gamma.shape != (features,):
            raise ValueError(f"gamma must hold {features} widths, one a feature, not {gamma.shape}")
        return gamma

    def of_products(self, products: Any, left: Any, right: Any) -> Any:
        return Kernel.of_products(self, products, left, right)  # raises: no plain distances

    def of_squares(self, squares: Float[Array, "..."]) -> Float[Array, "..."]:
        return jnp.exp(-squares)

    def log_gamma(self) -> Any:
        return jnp.log(jnp.asarray(self.gamma))


@pytree
class GeneralGaussian(Kernel):
    """exp(−½ ‖B(x − z)‖²), the Gaussian kernel of any covariance (Glasmachers 2008, section 10.1).

    `B` is a square matrix with one row and column for every feature. Only BᵀB matters, so a
    symmetric positive definite B is no restriction; ``symmetric.exponential(A)`` is one for every
    symmetric A, which makes A a parameter without constraints.

    Examples
    --------
    >>> k = GeneralGaussian(B=np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> round(float(k(np.array([[1.0, -1.0]]), np.zeros((1, 2)))[0, 0]), 6)  # exp(−1)
    0.367879
    """

    # Not a DistanceKernel: it is a function of distances only between the points that B maps.

    SEARCHED_AS: ClassVar[dict[str, str]] = {"B": "matrix"}
    positive, prepares_points = True, True

    B: Leaf

    def log_gamma(self) -> Any:
        """Return log(½B²): for diagonal B its diagonal is that of the diagonal kernel."""
        B = jnp.asarray(self.B)
        return 2.0 * logarithm(B) - np.log(2.0) * jnp.eye(B.shape[0], dtype=B.dtype)

    def pair(self, x: Real[Array, " d"], z: Real[Array, " d"]) -> Float[Array, ""]:
        mapped = jnp.matmul(self._map(x.shape[0]), x - z, precision=lax.Precision.HIGHEST)
        return jnp.exp(-0.5 * jnp.sum(mapped**2))

    def matrix(self, X: Real[Array, "n d"], Z: Real[Array, "m d"]) -> Float[Array, "n m"]:
        centre = centre_of(Z)
        return self.between(self._mapped(centre, X), self._mapped(centre, Z))

    def diagonal(self, X: Real[Array, "n d"]) -> Float[Array, " n"]:
        return _RADIAL.diagonal(X)

    def prepare(self, X: Real[Array, "n d"]) -> Points:
        X = as_points(X)
        return self._mapped(centre_of(X), X)

    def between(self, P: Points, R: Points) -> Float[Array, "n m"]:
        return _RADIAL.between(P, R)

    def _mapped(self, centre: Float[Array, " d"], X: Float[Array, "n d"]) -> Points:
        # Moved first, mapped then: B rounds the coordinates, and far from the origin by more.
        B = self._map(X.shape[1]).astype(X.dtype)
        mapped = inner_products(X - centre[None, :], B)
        return Points(mapped, jnp.sum(mapped * mapped, axis=1))

    def _map(self, features: int) -> Real[Array, "d d"]:
        B = jnp.asarray(self.B)
        if B.shape != (features, features):
            raise ValueError(
                f"B must be a matrix of {features} rows and columns, one a feature, not {B.shape}"
            )
        return B


_RADIAL = RBF(gamma=0.5)  # of the points that B maps
