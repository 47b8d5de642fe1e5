"""Functions of a distance that are not Gaussian."""

import jax.numpy as jnp
from jaxtyping import Float, Real

from jsvm._typing import Array, Leaf, pytree
from jsvm.kernels.base import Kernel
from jsvm.kernels.distances import DistanceKernel, absolute_distances, safe_root


@pytree
class Laplacian(Kernel):
    """exp(−γ Σ_d |x_d − z_d|).

    Examples
    --------
    >>> import numpy as np
    >>> float(Laplacian(gamma=0.5)(np.zeros((1, 2)))[0, 0])
    1.0
    """

    positive, blind_to_zeros = True, True
    gamma: Leaf = 1.0

    def pair(self, x: Real[Array, " d"], z: Real[Array, " d"]) -> Float[Array, ""]:
        return jnp.exp(-self.gamma * jnp.sum(jnp.abs(x - z)))

    def matrix(self, X: Real[Array, "n d"], Z: Real[Array, "m d"]) -> Float[Array, "n m"]:
        return jnp.exp(-self.gamma * absolute_distances(X, Z))


@pytree
class Plummer(DistanceKernel):
    """1 / (‖x − z‖ + ρ)^ζ (Hochreiter & Obermayer 2004, section 4).

    It is positive definite: a mixture of exp(−t‖x − z‖) over t > 0, with density t^(ζ−1) exp(−ρt)
    up to a factor.

    Examples
    --------
    >>> import numpy as np
    >>> float(Plummer(rho=0.5, zeta=2.0)(np.zeros((1, 2)))[0, 0])
    4.0
    """

    positive = True
    rho: Leaf = 1.0
    zeta: Leaf = 1.0

    def pair(self, x: Real[Array, " d"], z: Real[Array, " d"]) -> Float[Array, ""]:
        return (safe_root(jnp.sum((x - z) ** 2)) + self.rho) ** (-self.zeta)

    def of_squares(self, squares: Float[Array, "..."]) -> Float[Array, "..."]:
        return (safe_root(squares) + self.rho) ** (-self.zeta)


@pytree
class Sine(DistanceKernel):
    """sin(θ‖x − z‖), indefinite with a zero diagonal (Hochreiter & Obermayer 2004, section 4).

    Examples
    --------
    >>> import numpy as np
    >>> float(Sine(theta=2.0)(np.zeros((1, 2)))[0, 0])
    0.0
    """

    theta: Leaf = 1.0

    def pair(self, x: Real[Array, " d"], z: Real[Array, " d"]) -> Float[Array, ""]:
        return jnp.sin(self.theta * safe_root(jnp.sum((x - z) ** 2)))

    def of_squares(self, squares: Float[Array, "..."]) -> Float[Array, "..."]:
        return jnp.sin(self.theta * safe_root(squares))
