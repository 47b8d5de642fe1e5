"""Leaving one example out (Glasmachers 2008, sections 9.1.2 and 9.1.3).

f^n̂ is the machine of all examples but the n-th. To leave it out, the bounds of α_n are set to zero;
the other variables start from their values. Leaving out an example that is no support vector does
not change the machine, so only support vectors need another training.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Float

from jsvm._typing import Array
from jsvm.implicit import attach, without_derivative
from jsvm.kernels import Kernel
from jsvm.numerics.products import product
from jsvm.objectives.arguments import SOLVER, Builder, Cost, Labels, Points, Value, checked
from jsvm.objectives.losses import Loss, zero_one
from jsvm.objectives.training import compiles, in_one_program, mapped
from jsvm.problems import QuadraticProgram, c_svc
from jsvm.problems.program import fill
from jsvm.solvers import SMO, solve
from jsvm.solvers.starts import near


def leave_one_out_error(
    kernel: Kernel,
    X: Points,
    y: Labels,
    *,
    C: Cost,
    loss: Loss = zero_one,
    machine: Builder = c_svc,
    solver: SMO = SOLVER,
) -> Value:
    """Return the mean loss over all examples, each predicted by the machine of the others.

    The parameters are described in :mod:`jsvm.objectives`.

    Examples
    --------
    >>> import numpy as np
    >>> from jsvm import kernels
    >>> X = np.arange(-5.0, 6.0)[:, None]
    >>> error = leave_one_out_error(kernels.Linear(), X, np.sign(X[:, 0] + 0.5), C=10.0)
    >>> round(float(error), 4)  # 0 is in the middle of −1 and 1
    0.0909
    """
    X, y, C = checked(kernel, X, y, C)
    values = left_out_values(kernel, X, y, C, machine=machine, solver=solver).left_out
    return jnp.mean(loss(y, values))


def support_vector_count(
    kernel: Kernel, X: Points, y: Labels, *, C: Cost, machine: Builder = c_svc, solver: SMO = SOLVER
) -> Value:
    """Return the number of support vectors, a bound of the leave-one-out errors (section 9.1.3).

    The parameters are described in :mod:`jsvm.objectives`.

    Examples
    --------
    >>> import numpy as np
    >>> from jsvm import kernels
    >>> X = np.arange(-5.0, 6.0)[:, None]
    >>> float(support_vector_count(kernels.Linear(), X, np.sign(X[:, 0] + 0.5), C=10.0))
    2.0
    """
    X, y, C = checked(kernel, X, y, C)
    return _count(kernel, X, y, C, machine=machine, solver=solver)


@in_one_program
def _count(kernel: Kernel, X: Any, y: Any, C: Any, *, machine: Builder, solver: SMO) -> Any:
    alpha = solve(without_derivative(machine((kernel, X), y, C)), solver).alpha
    return jnp.sum(jnp.asarray(alpha) != 0).astype(X.dtype)


class Values(NamedTuple):
    """f(x_n) and f^n̂(x_n) of every example."""

    trained: Any
    left_out: Any


@in_one_program
def left_out_values(
    kernel: Kernel, X: Any, y: Any, C: Any, *, machine: Builder, solver: SMO
) -> Values:
    """Return f and f^n̂ at all examples."""
    K = kernel(X)
    program = machine(K, y, C)
    s = solve(program, solver)
    trained = product(K, s.alpha) + s.bias
    if not compiles(kernel, X.shape[0]):
        return Values(trained, _one_by_one(program, K, s.alpha, trained, solver))
    fixed, alpha = without_derivative((program, s.alpha))
    examples = jnp.arange(X.shape[0])

    def retrain(n: Any) -> tuple[Any, Any, Any]:
        """Train without an example; the derivative is attached later."""
        left = _without(fixed, n)
        found = solve(left, solver, _start(left, alpha, n))
        return found.alpha, found.multipliers, jnp.asarray(found.objective, X.dtype)

    def keep(n: Any) -> tuple[Any, Any, Any]:
        return alpha, jnp.asarray(without_derivative(s.multipliers)), jnp.zeros((), X.dtype)

    # The factorisations for the derivatives are computed again in the backward pass, not kept.
    @jax.checkpoint
    def value(found: tuple) -> Any:
        n, solution = found[0], found[1:]

        def predicted() -> Any:
            beta, multipliers, _ = attach(_without(program, n), *solution)
            return jnp.dot(K[n], beta) + jnp.mean(multipliers)

        return lax.cond(alpha[n] != 0, predicted, lambda: trained[n])

    found = mapped(lambda n: lax.cond(alpha[n] != 0, retrain, keep, n), examples)
    return Values(trained, mapped(value, (examples, *found)))


def _one_by_one(
    program: QuadraticProgram, K: Any, alpha: Any, trained: Any, solver: SMO
) -> Float[Array, " n"]:
    """Return f^n̂ at all examples, with the solver of many tiles."""
    at = np.asarray(without_derivative(alpha))
    values = []
    for n in range(len(at)):
        if at[n] == 0:
            values.append(trained[n])
            continue
        left = _without(program, n)
        s = solve(left, solver, near(at, without_derivative(left)))
        values.append(jnp.dot(K[n], s.alpha) + s.bias)
    return jnp.stack(values)


def _without(program: QuadraticProgram, n: Any) -> QuadraticProgram:
    """Return the program with the bounds of one variable set to zero."""
    here = jnp.arange(program.size) == n
    lower, upper = (jnp.where(here, 0.0, bound) for bound in (program.lower, program.upper))
    return replace(program, lower=lower, upper=upper)


def _start(program: QuadraticProgram, alpha: Any, n: Any) -> Any:
    """Return α with α_n = 0; other variables take over its value as far as their bounds allow."""
    rest = jnp.where(jnp.arange(program.size) == n, 0.0, alpha)
    share = alpha[n]
    free = (rest > program.lower) & (rest < program.upper)
    for movable in (free, ~free):  # variables at bounds stay there as long as possible
        up = jnp.where(movable, program.upper - rest, 0.0)
        down = jnp.where(movable, rest - program.lower, 0.0)
        moved = fill(share, up) - fill(-share, down)
        rest, share = rest + moved, share - jnp.sum(moved)
    return rest
