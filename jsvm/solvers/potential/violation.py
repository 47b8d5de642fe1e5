"""What the P-SVM minimises over a box, and how far a point is from its optimum.

    f(α) = ½αᵀQα − lᵀα + ε‖α‖₁,   L ≤ α ≤ U with L ≤ 0 ≤ U;   G = l − Qα = −F of the papers

For every variable the subdifferential of ε|α_j| plus the box is an interval; G_j belongs to it in
the optimum, and d_j says by how much it does not (Knebel et al. 2008, eq. 25). d_j ≤ 0 is
satisfied.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Float

from jsvm._typing import Array, Scalar
from jsvm.numerics.arrays import namespace
from jsvm.problems.certificate import Certificate
from jsvm.problems.potential import potential_primal


def violations(
    alpha: Float[Array, "*n"],
    gradient: Float[Array, "*n"],
    lower: Float[Array, "*n"],
    upper: Float[Array, "*n"],
    epsilon: Scalar,
) -> Float[Array, "*n"]:
    """Return d_j of every variable (Knebel et al. 2008, eq. 25); −∞ where the box has no width."""
    xp: Any = namespace(alpha, gradient)
    up = gradient - xp.where(alpha >= 0, epsilon, -epsilon)  # what is gained by going up
    down = -gradient + xp.where(alpha > 0, epsilon, -epsilon)
    return xp.maximum(xp.where(alpha < upper, up, -xp.inf), xp.where(alpha > lower, down, -xp.inf))


def objective(target: Array, output: Array, alpha: Array, epsilon: Scalar) -> Any:
    """Return ½‖Kα‖² − yᵀKα + ε‖α‖₁ from the output Kα."""
    return (output * (0.5 * output - target)).sum() + epsilon * abs(alpha).sum()


primal_objective = jax.jit(potential_primal)


def certify_potential(
    target: Float[Array, " l"],
    output: Float[Array, " l"],
    alpha: Float[Array, " p"],
    gradient: Float[Array, " p"],
    box: tuple[Array, Array, Scalar],
) -> Certificate:
    """Return the certificate of a point with its fresh output and gradient; `box` is L, U, ε."""
    xp: Any = namespace(alpha, gradient)
    return Certificate(
        objective=objective(target, output, alpha, box[2]),
        primal_objective=primal_objective(target, output, gradient, *box),
        multipliers=xp.zeros(0, alpha.dtype),
        violation=xp.maximum(xp.max(violations(alpha, gradient, *box)), 0.0),
    )


def proximal(
    z: Float[Array, "*n"],
    origin: Float[Array, "*n"],
    threshold: Scalar,
    lower: Float[Array, "*n"],
    upper: Float[Array, "*n"],
) -> Float[Array, "*n"]:
    """Return argmin ½(w − z)² + threshold·|origin + w| with origin + w in the box.

    origin + z is shrunk towards zero, then clipped. The result is computed from z, not as a
    difference from origin + z, which would lose digits.
    """
    place = origin + z
    shrunk = z - jnp.sign(place) * threshold
    shrunk = jnp.where(jnp.abs(place) <= threshold, -origin, shrunk)
    return jnp.clip(shrunk, lower - origin, upper - origin)
