"""The exponential and the logarithm of symmetric matrices, with their derivatives.

exp(A) = V diag(exp λ) Vᵀ with the eigenvalues λ and eigenvectors V of A, and log alike. The
exponential maps the symmetric matrices one-to-one onto the positive definite ones, so A is a
parameter without constraints of B = exp(A) (004, section 10.1):

>>> import numpy as np
>>> from jsvm.kernels import GeneralGaussian
>>> k = GeneralGaussian(exponential(np.zeros((2, 2))))  # exp(0) = I
>>> float(k(np.zeros((1, 2)))[0, 0])
1.0

**Derivatives.** Eigenvectors have none where eigenvalues coincide, as all do at A = 0, but the
functions are smooth there. By Daleckii and Krein, for f = exp or log and a direction E,

    df(A)[E] = V (F ∘ VᵀEV) Vᵀ,    F_ij = (f(λ_i) − f(λ_j)) / (λ_i − λ_j), or f′(λ_i) if equal.

This is the first derivative. A second one differentiates V, and needs distinct eigenvalues.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Float, Real

from jsvm._typing import Array
from jsvm.kernels.base import as_points
from jsvm.kernels.dot import inner_products


def exponential(A: Real[Array, "n m"]) -> Float[Array, "n n"]:
    """Return exp(A) of the symmetric part of a square matrix.

    Examples
    --------
    >>> import numpy as np
    >>> B = exponential(np.log(2.0) * np.eye(2))
    >>> np.allclose(B, 2.0 * np.eye(2))
    True
    """
    return _exponential(_symmetric_part(A))


def logarithm(B: Real[Array, "n m"]) -> Float[Array, "n n"]:
    """Return log(B) of the symmetric part of a square matrix; NaN if it has an eigenvalue ≤ 0.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.array([[0.0, 1.0], [1.0, 3.0]])
    >>> np.allclose(logarithm(exponential(A)), A)
    True
    """
    return _logarithm(_symmetric_part(B))


def _symmetric_part(A: Real[Array, "n m"]) -> Float[Array, "n n"]:
    A = as_points(A)
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise ValueError(f"a symmetric matrix is square, not of shape {A.shape}")
    return 0.5 * (A + A.T)


@jax.custom_jvp
def _exponential(A: Float[Array, "n n"]) -> Float[Array, "n n"]:
    values, V = jnp.linalg.eigh(A)
    return _of_spectrum(jnp.exp(values), V)


@_exponential.defjvp
def _exponential_tangent(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    values, V = jnp.linalg.eigh(primals[0])
    _, larger, gap, equal = _pairs(values)
    # (eᵃ − eᵇ)/(a − b) = eᵃ (1 − e⁻ᵍ)/g with a ≥ b and g = a − b: no cancellation, no overflow.
    F = jnp.exp(larger) * jnp.where(equal, 1.0, -jnp.expm1(-gap) / gap)
    return _of_spectrum(jnp.exp(values), V), _derivative(F, V, tangents[0])


@jax.custom_jvp
def _logarithm(B: Float[Array, "n n"]) -> Float[Array, "n n"]:
    values, V = jnp.linalg.eigh(B)
    return _of_spectrum(jnp.log(values), V)


@_logarithm.defjvp
def _logarithm_tangent(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    values, V = jnp.linalg.eigh(primals[0])
    smaller, _, gap, equal = _pairs(values)
    # log a − log b = log(1 + g/b) with a ≥ b and g = a − b, for the same reason.
    F = jnp.where(equal, 1.0 / smaller, jnp.log1p(gap / smaller) / gap)
    return _of_spectrum(jnp.log(values), V), _derivative(F, V, tangents[0])


def _pairs(values: Float[Array, " n"]) -> tuple[Array, Array, Array, Array]:
    """Return min(a, b), max(a, b), |a − b| and whether a = b, for all pairs of eigenvalues.

    The distance is one where it would be zero: the branch not taken must be finite too.
    """
    a, b = values[:, None], values[None, :]
    equal = a == b
    return jnp.minimum(a, b), jnp.maximum(a, b), jnp.where(equal, 1.0, jnp.abs(a - b)), equal


def _of_spectrum(values: Float[Array, " n"], V: Float[Array, "n n"]) -> Float[Array, "n n"]:
    return _congruent(V, jnp.diag(values))


def _derivative(
    F: Float[Array, "n n"], V: Float[Array, "n n"], E: Float[Array, "n n"]
) -> Float[Array, "n n"]:
    return _congruent(V, F * _congruent(V.T, E))


def _congruent(V: Float[Array, "n n"], M: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Return V M Vᵀ of a symmetric M, which is symmetric to the last digit."""
    return _symmetric_part(inner_products(V, inner_products(V, M)))
