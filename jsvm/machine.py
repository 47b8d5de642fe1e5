"""A decision function: what a fit produces and what predicts."""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Float, Real

from jsvm._typing import Array, Leaf, pytree
from jsvm.solvers.status import Solution


@pytree
class Machine:
    """f(x) = Σ_i β_i k(x, x_i) + b, for one or several outputs; a differentiable pytree.

    Parameters
    ----------
    kernel : Kernel
    points : array of shape (m, d)
    coefficients : array of shape (m,) or (m, outputs)
    bias : scalar or array of shape (outputs,)

    Examples
    --------
    >>> import numpy as np
    >>> from jsvm import kernels
    >>> f = Machine(kernels.Linear(), np.ones((1, 2)), np.array([2.0]), 1.0)
    >>> float(f(np.ones((1, 2)))[0])
    5.0
    """

    kernel: Leaf
    points: Leaf
    coefficients: Leaf
    bias: Leaf

    @classmethod
    def of(cls, kernel: object, X: Real[Array, "n d"], solution: Solution) -> "Machine":
        """Return the machine of a solved problem; doubled variables are added up."""
        alpha = solution.alpha
        n = X.shape[0]
        coefficients = alpha if alpha.shape[0] == n else alpha[:n] + alpha[n:]
        return cls(kernel, X, coefficients, solution.bias)

    def __call__(self, X: Real[Array, "q d"]) -> Float[Array, "q *outputs"]:
        """Return the decision values of the rows of `X`."""
        return self.value(self.kernel(X, self.points))

    def value(self, K: Float[Array, "q m"]) -> Float[Array, "q *outputs"]:
        """Return the decision values of points with these kernel values."""
        beta = jnp.asarray(self.coefficients, K.dtype)
        value = jnp.matmul(K, beta, precision=lax.Precision.HIGHEST)
        bias = jnp.asarray(self.bias, K.dtype)
        return value + (bias[None, :] if bias.ndim else bias)
