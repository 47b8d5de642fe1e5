"""A similarity that is not positive semi-definite; a P-SVM takes any matrix K."""

from dataclasses import dataclass

import jax.numpy as jnp
from jax.tree_util import register_dataclass
from jaxtyping import Float, Real

from jsvm._typing import Array, Leaf
from jsvm.kernels.distances import DistanceKernel, safe_root


@register_dataclass
@dataclass(frozen=True, eq=False)
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
