"""How well a kernel matrix agrees with the labels; no machine is trained.

    polarization       P = ⟨yyᵀ, K⟩ = yᵀKy                          (Baram 2005)
    alignment          Â = ⟨yyᵀ, K⟩ / (ℓ √⟨K, K⟩)                   (Cristianini et al. 2002)
    centred alignment  the same of HKH and H yyᵀ H, H = I − 11ᵀ/ℓ   (Cortes et al. 2012)

The first two are those of Glasmachers 2008, section 9.1.6. The centred one does not change when a
constant is added to the kernel or when the classes differ in size. Large values are good.
"""

import jax.numpy as jnp
from jaxtyping import Float

from jsvm._typing import Array
from jsvm.kernels import Kernel
from jsvm.numerics.arrays import product
from jsvm.objectives.inputs import Labels, Points, Value, objective


@objective
def kernel_polarization(kernel: Kernel, X: Points, y: Labels) -> Value:
    """Return yᵀKy.

    Examples
    --------
    >>> import numpy as np
    >>> from jsvm import kernels
    >>> X, y = np.array([[1.0], [-2.0]]), np.array([1.0, -1.0])
    >>> float(kernel_polarization(kernels.Linear(), X, y))
    9.0
    """
    return jnp.dot(y, product(kernel(X), y))


@objective
def kernel_target_alignment(kernel: Kernel, X: Points, y: Labels) -> Value:
    """Return the cosine between K and yyᵀ, at most one (Glasmachers 2008, section 9.3.3).

    Examples
    --------
    >>> import numpy as np
    >>> from jsvm import kernels
    >>> X, y = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0])
    >>> round(float(kernel_target_alignment(kernels.Linear(), X, y)), 6)
    1.0
    """
    return alignment(kernel(X), y)


def alignment(K: Float[Array, "n n"], y: Float[Array, " n"]) -> Value:
    """Return the alignment of a matrix; examples with label zero are absent."""
    present = jnp.abs(y)
    square = jnp.dot(present, product(K * K, present))
    return _cosine(jnp.dot(y, product(K, y)), square, jnp.sum(present))


@objective
def centred_alignment(kernel: Kernel, X: Points, y: Labels) -> Value:
    """Return the cosine between K and yyᵀ, both centred in feature space; zero for one class.

    Examples
    --------
    >>> import numpy as np
    >>> from jsvm import kernels
    >>> X, y = np.array([[7.0], [5.0]]), np.array([1.0, -1.0])
    >>> round(float(centred_alignment(kernels.Linear(), X, y)), 6)
    1.0
    """
    K = kernel(X)
    means = jnp.mean(K, axis=1)
    K = K - means[:, None] - means[None, :] + jnp.mean(means)
    y = y - jnp.mean(y)
    return _cosine(jnp.dot(y, product(K, y)), jnp.sum(K * K), jnp.dot(y, y))


def _cosine(inner: Array, square: Array, other: Array | int) -> Array:
    """Return ⟨A, B⟩ / (‖A‖ ‖B‖) from the square of ‖A‖ and from ‖B‖; zero if one of them is."""
    positive = (square > 0) & (other > 0)
    norm = jnp.sqrt(jnp.where(positive, square, 1.0)) * jnp.where(positive, other, 1.0)
    return jnp.where(positive, inner / norm, 0.0)
