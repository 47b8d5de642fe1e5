"""What the P-SVM minimises over a box, and how far a point is from its optimum.

    f(α) = ½αᵀQα − lᵀα + ε‖α‖₁,   L ≤ α ≤ U with L ≤ 0 ≤ U;   G = l − Qα = −F of the papers

For every variable the subdifferential of ε|α_j| plus the box is an interval; G_j belongs to it in
the optimum, and d_j says by how much it does not (000, eq. 25). d_j ≤ 0 is satisfied.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Float

from jsvm._typing import Array, Scalar
from jsvm.numerics.arrays import namespace


def violations(
    alpha: Float[Array, "*n"],
    gradient: Float[Array, "*n"],
    lower: Float[Array, "*n"],
    upper: Float[Array, "*n"],
    epsilon: Scalar,
) -> Float[Array, "*n"]:
    """Return d_j of every variable (000, eq. 25); −∞ where the box has no width."""
    xp: Any = namespace(alpha, gradient)
    up = gradient - xp.where(alpha >= 0, epsilon, -epsilon)  # what is gained by going up
    down = -gradient + xp.where(alpha > 0, epsilon, -epsilon)
    return xp.maximum(xp.where(alpha < upper, up, -xp.inf), xp.where(alpha > lower, down, -xp.inf))


def proximal(
    z: Float[Array, "*n"],
    origin: Float[Array, "*n"],
    threshold: Scalar,
    lower: Float[Array, "*n"],
    upper: Float[Array, "*n"],
) -> Float[Array, "*n"]:
    """Return argmin ½(w − z)² + threshold·|origin + w| with origin + w in the box.

    origin + z is shrunk towards zero, then cut; what is left of z is not added and subtracted.
    """
    place = origin + z
    shrunk = z - jnp.sign(place) * threshold
    shrunk = jnp.where(jnp.abs(place) <= threshold, -origin, shrunk)
    return jnp.clip(shrunk, lower - origin, upper - origin)
