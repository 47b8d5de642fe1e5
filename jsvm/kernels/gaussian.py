"""Gaussian kernels with more than one width."""

from dataclasses import dataclass

import jax.numpy as jnp
from jax.tree_util import register_dataclass
from jaxtyping import Float, Real

from jsvm._typing import Array, Leaf
from jsvm.kernels.base import Kernel
from jsvm.kernels.distances import squared_distances


@register_dataclass
@dataclass(frozen=True, eq=False)
class ARD(Kernel):
    """exp(−Σ_d γ_d (x_d − z_d)²), the diagonal Gaussian kernel: one width for every feature.

    Examples
    --------
    >>> import numpy as np
    >>> float(ARD(gamma=np.array([0.5, 0.0]))(np.array([[0.0, 7.0]]), np.zeros((1, 2)))[0, 0])
    1.0
    """

    gamma: Leaf

    def pair(self, x: Real[Array, " d"], z: Real[Array, " d"]) -> Float[Array, ""]:
        return jnp.exp(-jnp.sum(jnp.asarray(self.gamma) * (x - z) ** 2))

    def matrix(self, X: Real[Array, "n d"], Z: Real[Array, "m d"]) -> Float[Array, "n m"]:
        # The widths enter as weights, never under a root: γ_d = 0 has a finite gradient.
        gamma = jnp.asarray(self.gamma, X.dtype)
        if gamma.shape != (X.shape[1],):
            raise ValueError(
                f"gamma must hold {X.shape[1]} widths, one a feature, not {gamma.shape}"
            )
        return jnp.exp(-squared_distances(X, Z, gamma))
