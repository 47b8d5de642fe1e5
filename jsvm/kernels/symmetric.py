"""The exponential and the logarithm of symmetric matrices, with their derivatives.

exp(A) = V diag(exp λ) Vᵀ with the eigenvalues λ and eigenvectors V of A, and log alike. The
exponential maps the symmetric matrices one-to-one onto the positive definite ones, so A is a
parameter without constraints of B = exp(A) (Glasmachers 2008, section 10.1):

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

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Real

from jsvm._typing import Array, Matrix, Vector
from jsvm.kernels.base import as_points
from jsvm.kernels.dot import inner_products


def exponential(A: Real[Array, "n m"]) -> Matrix:
    """Return exp(A) of the symmetric part of a square matrix.

    Examples
    --------
    >>> import numpy as np
    >>> B = exponential(np.log(2.0) * np.eye(2))
    >>> np.allclose(B, 2.0 * np.eye(2))
    True
    """
    return _exponential(_symmetric_part(A))


def logarithm(B: Real[Array, "n m"]) -> Matrix:
    """Return log(B) of the symmetric part of a square matrix; NaN if it has an eigenvalue ≤ 0.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.array([[0.0, 1.0], [1.0, 3.0]])
    >>> np.allclose(logarithm(exponential(A)), A)
    True
    """
    return _logarithm(_symmetric_part(B))


def _symmetric_part(A: Real[Array, "n m"]) -> Matrix:
    A = as_points(A)
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise ValueError(f"a symmetric matrix is square, not of shape {A.shape}")
    return 0.5 * (A + A.T)


def _of_spectrum(
    f: Callable[[Array], Array], quotients: Callable[[Array], Array]
) -> Callable[[Array], Array]:
    """Return A ↦ f(A) for f of the eigenvalues; `quotients` of them is the matrix F above."""

    @jax.custom_jvp
    def function(A: Matrix) -> Matrix:
        values, V = jnp.linalg.eigh(A)
        return _congruent(V, jnp.diag(f(values)))

    @function.defjvp
    def tangent(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
        values, V = jnp.linalg.eigh(primals[0])
        derivative = _congruent(V, quotients(values) * _congruent(V.T, tangents[0]))
        return _congruent(V, jnp.diag(f(values))), derivative

    return function


def _exponential_quotients(values: Vector) -> Matrix:
    # (eᵃ − eᵇ)/(a − b) = eᵃ (1 − e⁻ᵍ)/g with a ≥ b and g = a − b: no cancellation, no overflow.
    _, larger, gap, equal = _pairs(values)
    return jnp.exp(larger) * jnp.where(equal, 1.0, -jnp.expm1(-gap) / gap)


def _logarithm_quotients(values: Vector) -> Matrix:
    # log a − log b = log(1 + g/b) with a ≥ b and g = a − b, for the same reason.
    smaller, _, gap, equal = _pairs(values)
    return jnp.where(equal, 1.0 / smaller, jnp.log1p(gap / smaller) / gap)


def _pairs(values: Vector) -> tuple[Array, Array, Array, Array]:
    """Return min(a, b), max(a, b), |a − b| (one where zero) and a = b of pairs of eigenvalues."""
    a, b = values[:, None], values[None, :]
    equal = a == b
    return jnp.minimum(a, b), jnp.maximum(a, b), jnp.where(equal, 1.0, jnp.abs(a - b)), equal


def _congruent(V: Matrix, M: Matrix) -> Matrix:
    """Return V M Vᵀ of a symmetric M, which is symmetric to the last digit."""
    return _symmetric_part(inner_products(V, inner_products(V, M)))


_exponential = _of_spectrum(jnp.exp, _exponential_quotients)
_logarithm = _of_spectrum(jnp.log, _logarithm_quotients)
