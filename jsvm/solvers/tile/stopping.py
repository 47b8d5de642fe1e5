"""When to stop: measures of violation, each compared with `tol`."""

from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Float

from jsvm._typing import Array
from jsvm.problems import QuadraticProgram
from jsvm.problems.certificate import extremes, gap, multipliers

Measure = Callable[[QuadraticProgram, Float[Array, " n"], Float[Array, " n"]], Float[Array, ""]]


def joachims(
    program: QuadraticProgram, alpha: Float[Array, " n"], gradient: Float[Array, " n"]
) -> Float[Array, ""]:
    """Return the smallest τ for which Joachims' conditions (Collobert & Bengio 2000, eq. 2) hold.

    |G_i − λ| ≤ τ on the free variables, G_i ≤ λ + τ at the lower and G_i ≥ λ − τ at the upper
    bound, with λ the mean over the free variables. Since λ lies between the extremes of G, the rule
    is weaker than the gap: ψ ≤ τ implies it.
    """
    up, down = extremes(program, alpha, gradient)
    middle = multipliers(program, alpha, gradient)
    return jnp.max(jnp.maximum(up - middle, middle - down))


MEASURES: dict[str, Measure] = {"gap": gap, "joachims": joachims}
