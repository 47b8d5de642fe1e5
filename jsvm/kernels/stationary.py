"""Kernels of the distance between x and z that are positive semi-definite."""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jax.tree_util import register_dataclass
from jaxtyping import Float, Real

from jsvm._typing import Array, Leaf
from jsvm.kernels.base import Kernel
from jsvm.kernels.distances import DistanceKernel, absolute_distances


@register_dataclass
@dataclass(frozen=True, eq=False)
class RBF(DistanceKernel):
    """exp(−γ‖x − z‖²), the radial Gaussian kernel (004, eq. 2.1).

    Examples
    --------
    >>> import numpy as np
    >>> float(RBF(gamma=0.5)(np.zeros((1, 2)))[0, 0])
    1.0
    """

    gamma: Leaf = 1.0

    def pair(self, x: Real[Array, " d"], z: Real[Array, " d"]) -> Float[Array, ""]:
        return jnp.exp(-self.gamma * jnp.sum((x - z) ** 2))

    def of_squares(self, squares: Float[Array, "..."]) -> Float[Array, "..."]:
        return jnp.exp(-self.gamma * squares)

    def log_gamma(self) -> Any:
        return jnp.log(jnp.asarray(self.gamma))


@register_dataclass
@dataclass(frozen=True, eq=False)
class Laplacian(Kernel):
    """exp(−γ Σ_d |x_d − z_d|).

    Examples
    --------
    >>> import numpy as np
    >>> float(Laplacian(gamma=0.5)(np.zeros((1, 2)))[0, 0])
    1.0
    """

    gamma: Leaf = 1.0

    def ignores_zeros(self) -> bool:
        return True

    def pair(self, x: Real[Array, " d"], z: Real[Array, " d"]) -> Float[Array, ""]:
        return jnp.exp(-self.gamma * jnp.sum(jnp.abs(x - z)))

    def matrix(self, X: Real[Array, "n d"], Z: Real[Array, "m d"]) -> Float[Array, "n m"]:
        return jnp.exp(-self.gamma * absolute_distances(X, Z))
