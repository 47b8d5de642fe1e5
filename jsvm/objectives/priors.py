"""Priors of the hyperparameters (Glasmachers 2008, sections 9.2.3 and 12.1).

    log C   the improper prior of Jeffreys, flat, with a small slope downwards: where C is so large
            that no variable is at its bound the likelihood is flat, too, and only the slope leads
            back to smaller C
    log γ   normal, around γ_m = 1/(2m²) with m the median distance of examples of different
            classes (Jaakkola's heuristic), of width 2

All are densities of the logarithm. A diagonal Gaussian kernel has such a prior for every log γ_d. A
general one, exp(−½‖B(x − z)‖²), has the matrix log(½B²) in place of log γ. The prior of its entries
is normal around log γ_m · I in the Frobenius norm, which for diagonal B is the prior before.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Real

from jsvm._typing import Array, Leaf, Scalar, pytree
from jsvm.kernels import Kernel
from jsvm.kernels.distances import squared_distances
from jsvm.programs import program

WIDTH = 2.0  # standard deviation of log γ (Glasmachers 2008, section 12.1)
ESCAPE = 1e-6  # slope of the log-density of log C; negligible where the likelihood is not flat


def median_heuristic(X: Real[Array, "n d"], y: Real[Array, " n"]) -> Float[Array, ""]:
    """Return γ = 1/(2m²), with m the median distance between examples of different classes.

    If that median is zero, or there is only one class, it is the median of all distances that are
    not zero; if there are none, γ is 1.

    Examples
    --------
    >>> import numpy as np
    >>> float(median_heuristic(np.array([[0.0], [2.0]]), np.array([1.0, -1.0])))
    0.125
    """
    return _median_heuristic(jnp.asarray(X, jnp.result_type(X, float)), jnp.asarray(y))


@program
def _median_heuristic(X: Any, y: Any) -> Any:
    squares = squared_distances(X, X)
    different = y[:, None] != y[None, :]
    m = _median(squares, different)
    m = jnp.where(m > 0, m, _median(squares, squares > 0))
    return jnp.where(m > 0, 0.5 / jnp.where(m > 0, m, 1.0), 1.0)


def _median(squares: Array, meant: Array) -> Array:
    """Return the square of the mean of the two middle distances of the given pairs, or zero."""
    count = jnp.sum(meant)
    order = jnp.sort(jnp.where(meant, squares, jnp.inf).ravel())
    middle = order[jnp.maximum(count - 1, 0) // 2], order[count // 2]
    distance = 0.5 * sum(jnp.sqrt(jnp.where(jnp.isfinite(m), m, 0.0)) for m in middle)
    return jnp.where(count > 0, distance**2, 0.0)


@pytree
class GaussianPrior:
    """The prior above, a function of kernel and C: :meth:`around` takes its centre from data.

    Parameters
    ----------
    centre : float
        log γ_m.
    width : float
        Of the normal density of log γ.
    escape : float
        Slope, downwards, of the log-density of log C.

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
        values = kernel.log_gamma()
        if values is None:
            raise ValueError(
                f"prior: there is none for kernel={type(kernel).__name__}; give a function "
                "prior(kernel, C) that returns a log-density, or use RBF, ARD or GeneralGaussian"
            )
        if values.ndim == 2:
            return of_cost + self._of_matrix(values)
        return of_cost + jnp.sum(self._normal(values))

    def _normal(self, values: Any) -> Any:
        deviation = (values - self.centre) / self.width
        return -0.5 * deviation**2 - jnp.log(self.width * np.sqrt(2 * np.pi))

    def _of_matrix(self, values: Any) -> Any:
        d = values.shape[0]
        beside = values - jnp.diag(jnp.diagonal(values))
        # Both copies of an entry off the diagonal are in the norm, but they are one variable, √2 a.
        off = -0.5 * jnp.sum(beside**2) / self.width**2
        constant = -0.5 * d * (d - 1) * jnp.log(self.width * np.sqrt(2 * np.pi))
        return jnp.sum(self._normal(jnp.diagonal(values))) + off + constant
