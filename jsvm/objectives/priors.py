"""Priors of the hyperparameters (004, sections 9.2.3 and 12.1).

    log C   the improper prior of Jeffreys, flat, with a small slope downwards: where C is so large
            that no variable is at its bound the likelihood is flat, too, and the slope leads out
    log γ   normal, around γ_m = 1/(2m²) with m the median distance of examples of different
            classes (Jaakkola's heuristic), of width 2

All are densities of the logarithm. A diagonal Gaussian kernel has such a prior for every log γ_d. A
general one, exp(−½‖B(x − z)‖²), has the matrix log(½B²) in place of log γ: the prior is that of its
entries around log γ_m · I, with the norm of Frobenius, so for diagonal B it is the one before.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import register_dataclass
from jaxtyping import Float, Real

from jsvm._typing import Array, Leaf, Scalar
from jsvm.kernels import ARD, RBF, GeneralGaussian, Kernel
from jsvm.kernels.distances import squared_distances
from jsvm.kernels.symmetric import logarithm

WIDTH = 2.0
ESCAPE = 1e-6


def median_heuristic(X: Real[Array, "n d"], y: Real[Array, " n"]) -> Float[Array, ""]:
    """Return γ = 1/(2m²), with m the median distance between examples of different classes.

    Where there are no such examples, or more than half of them coincide, all pairs that do not
    coincide count; if there are none either, γ is 1.

    Examples
    --------
    >>> import numpy as np
    >>> float(median_heuristic(np.array([[0.0], [2.0]]), np.array([1.0, -1.0])))
    0.125
    """
    return _median_heuristic(jnp.asarray(X, jnp.result_type(X, float)), jnp.asarray(y))


@jax.jit
def _median_heuristic(X: Any, y: Any) -> Any:
    squares = squared_distances(X, X)
    different = y[:, None] != y[None, :]
    m = _median(squares, different)
    m = jnp.where(m > 0, m, _median(squares, squares > 0))
    return jnp.where(m > 0, 0.5 / jnp.where(m > 0, m, 1.0), 1.0)


def _median(squares: Array, meant: Array) -> Array:
    """Return the square of the median distance of the pairs that are meant; zero if there are none.

    It is the mean of the two middle distances, not of their squares.
    """
    count = jnp.sum(meant)
    order = jnp.sort(jnp.where(meant, squares, jnp.inf).ravel())
    middle = order[jnp.maximum(count - 1, 0) // 2], order[count // 2]
    distance = 0.5 * sum(jnp.sqrt(jnp.where(jnp.isfinite(m), m, 0.0)) for m in middle)
    return jnp.where(count > 0, distance**2, 0.0)


@register_dataclass
@dataclass(frozen=True, eq=False)
class GaussianPrior:
    """The prior above, a function of kernel and C: :meth:`around` takes its centre from data.

    Parameters
    ----------
    centre : float
        log γ_m.
    width : float
        Of the normal density of log γ.
    escape : float
        How steeply the density of log C falls.

    Examples
    --------
    >>> from jsvm import kernels
    >>> prior = GaussianPrior(centre=0.0)
    >>> round(float(prior(kernels.RBF(1.0), 1.0) - prior(kernels.RBF(np.exp(2.0)), 1.0)), 4)
    0.5
    """

    centre: Leaf
    width: Leaf = WIDTH
    escape: Leaf = ESCAPE

    @classmethod
    def around(cls, X: Real[Array, "n d"], y: Real[Array, " n"]) -> "GaussianPrior":
        """Return the prior around Jaakkola's heuristic for these examples."""
        return cls(jnp.log(median_heuristic(X, y)))

    def __call__(self, kernel: Kernel, C: Scalar | Real[Array, " n"]) -> Float[Array, ""]:
        """Return the log-density."""
        of_cost = -self.escape * jnp.mean(jnp.log(jnp.asarray(C)))
        if isinstance(kernel, RBF | ARD):
            return of_cost + jnp.sum(self._normal(jnp.log(jnp.asarray(kernel.gamma))))
        if isinstance(kernel, GeneralGaussian):
            return of_cost + self._of_matrix(jnp.asarray(kernel.B))
        raise ValueError(
            f"prior: there is none for kernel={type(kernel).__name__}; give a function "
            "prior(kernel, C) that returns a log-density, or use RBF, ARD or GeneralGaussian"
        )

    def _normal(self, values: Any) -> Any:
        deviation = (values - self.centre) / self.width
        return -0.5 * deviation**2 - jnp.log(self.width * np.sqrt(2 * np.pi))

    def _of_matrix(self, B: Any) -> Any:
        values = 2.0 * logarithm(B) - np.log(2.0) * jnp.eye(B.shape[0], dtype=B.dtype)
        d = B.shape[0]
        beside = values - jnp.diag(jnp.diagonal(values))
        # An entry off the diagonal is there twice, its density counts once; √2 a is its coordinate.
        off = -0.5 * jnp.sum(beside**2) / self.width**2
        constant = -0.5 * d * (d - 1) * jnp.log(self.width * np.sqrt(2 * np.pi))
        return jnp.sum(self._normal(jnp.diagonal(values))) + off + constant
