"""Gaussian kernels with more than one width."""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jax.tree_util import register_dataclass
from jaxtyping import Float, Real

from jsvm._typing import Array, Leaf
from jsvm.kernels.base import Kernel
from jsvm.kernels.distances import DistanceKernel


@register_dataclass
@dataclass(frozen=True, eq=False)
class ARD(DistanceKernel):
    """exp(−Σ_d γ_d (x_d − z_d)²), the diagonal Gaussian kernel: one width for every feature.

    Examples
    --------
    >>> import numpy as np
    >>> float(ARD(gamma=np.array([0.5, 0.0]))(np.array([[0.0, 7.0]]), np.zeros((1, 2)))[0, 0])
    1.0
    """

    gamma: Leaf

    def ignores_zeros(self) -> bool:
        return False  # there is one γ for every feature

    def pair(self, x: Real[Array, " d"], z: Real[Array, " d"]) -> Float[Array, ""]:
        return jnp.exp(-jnp.sum(jnp.asarray(self.gamma) * (x - z) ** 2))

    def weights(self, features: int) -> Float[Array, " d"]:
        # The widths enter as weights, never under a root: γ_d = 0 has a finite gradient.
        gamma = jnp.asarray(self.gamma)
        if gamma.shape != (features,):
            raise ValueError(f"gamma must hold {features} widths, one a feature, not {gamma.shape}")
        return gamma

    def of_products(self, products: Any, left: Any, right: Any) -> Any:
        return Kernel.of_products(self, products, left, right)  # its distances are weighted

    def of_squares(self, squares: Float[Array, "..."]) -> Float[Array, "..."]:
        return jnp.exp(-squares)
