"""The radius-margin quotient R²/ρ² = R²‖w‖² (Glasmachers 2008, sections 9.1.4 and 9.3.2).

R is the radius of the smallest ball around the examples in feature space, ρ = 1/‖w‖ the margin of
the machine without errors. The 2-norm machine is one with the kernel k + δ/C, which enters the ball
as well, so C is a parameter of the kernel (section 2.2.3). Both factors are optimal values of
quadratic programs,

    ½‖w‖² = max_α  yᵀα − ½αᵀKα,        ½R² = max_β  ½βᵀdiag K − ½βᵀKβ,

and the derivative of an optimal value is the derivative at fixed α and β (envelope theorem):
∂‖w‖² = −αᵀ∂Kα and ∂R² = Σ β_n ∂K_nn − βᵀ∂Kβ.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

from jsvm import problems
from jsvm.implicit import without_derivative
from jsvm.kernels import Kernel
from jsvm.objectives.inputs import SOLVER, Cost, Labels, Points, Value, objective
from jsvm.objectives.training import in_one_program
from jsvm.problems import QuadraticProgram
from jsvm.solvers import SMO, Status, solve


@objective
@in_one_program
def radius_margin(
    kernel: Kernel, X: Points, y: Labels, *, C: Cost = np.inf, solver: SMO = SOLVER
) -> Value:
    """Return R²‖w‖²; small values are good, ∞ means that the examples cannot be separated.

    Parameters
    ----------
    C : positive number or array of shape (n,)
        ∞ is the hard margin; finite numbers are costs of the squared hinge loss.

    Examples
    --------
    >>> from jsvm import kernels
    >>> X, y = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0])
    >>> round(float(radius_margin(kernels.Linear(), X, y)), 6)
    1.0
    """
    K = kernel(X) + jnp.diag(jnp.broadcast_to(1.0 / C, y.shape))
    norm, separable = _optimal_value(problems.hard_margin(K, y), solver)
    radius, _ = _optimal_value(problems.smallest_ball(K), solver)
    return jnp.where(separable, 4.0 * norm * radius, jnp.inf)


def _optimal_value(program: QuadraticProgram, solver: SMO) -> tuple[Any, Any]:
    """Return the minimum as a function of the program, and whether there is one."""
    s = solve(without_derivative(program), solver)
    bounded = jnp.asarray(s.status) != Status.UNBOUNDED
    alpha = jnp.where(bounded, jnp.asarray(s.alpha, program.linear.dtype), 0.0)
    return program.objective(alpha, program.gradient(alpha)), bounded
