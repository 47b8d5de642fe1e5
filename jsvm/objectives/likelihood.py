"""Likelihood and posterior of held-out examples.

Sections are those of Glasmachers 2008: 9.2.2, 9.2.3 and 9.3.5.

A machine is trained on I, a random four fifths of the examples, and σ_s(f(x)) = 1/(1 + exp(s f(x)))
is its probability of the positive class. With z_i = y_i f(x_i) and a = −s the log-likelihood of the
other examples is

    L(a) = Σ_i log σ(a z_i),        L̂ = max_a L(a).

It is concave in a. Its derivative with respect to the hyperparameters is that at fixed a:
∂L̂ = a Σ_i σ(−a z_i) ∂z_i (section 9.3.5, with the sign of the negative examples corrected).

**Limits of the slope.** A decreasing sigmoid would reverse the decision, so a ≥ 0; a machine that
does worse than guessing has a = 0, the value N log ½, and derivative zero. If no held-out example
is on the wrong side, L increases without bound; there a is `steepest` over the root mean square of
f, which does not depend on the scale of the outputs. This slope moves with f, which value and
derivative take into account.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Float

from jsvm._typing import Array, Scalar
from jsvm.kernels import Kernel
from jsvm.numerics.kernel_call import LONG_REDUCTION, in_one_kernel
from jsvm.objectives.inputs import SOLVER, Builder, Cost, Labels, Points, Value, objective
from jsvm.objectives.priors import GaussianPrior
from jsvm.objectives.training import held_out_values, in_one_program
from jsvm.problems import c_svc
from jsvm.solvers import SMO
from jsvm.validation.splits import Splits, random_splits

STEEPEST = 100.0  # slope times root mean square of the outputs: probabilities down to exp(−100)
MAX_STEPS = 60  # Newton or bisection steps of the search for the slope; eight are usual

Prior = Callable[[Any, Any], Any]


@objective
def log_likelihood(
    kernel: Kernel,
    X: Points,
    y: Labels,
    *,
    C: Cost,
    key: Any,
    fraction: float = 0.2,
    splits: int = 1,
    steepest: float = STEEPEST,
    machine: Builder = c_svc,
    solver: SMO = SOLVER,
) -> Value:
    """Return the log-likelihood of a random hold-out set under the best sigmoid; large is good.

    Every key draws a new split: value and gradient are unbiased estimates of the mean over all
    splits, and of its derivative.

    Parameters
    ----------
    steepest : float
        Bound of the slope times the root mean square of the outputs.

    Examples
    --------
    >>> import jax
    >>> from jsvm import data, kernels
    >>> X, y = data.chess_board(2, 2, size=60, key=0)
    >>> kernel = kernels.RBF(gamma=1.0)
    >>> value, slope = jax.value_and_grad(log_likelihood)(kernel, X, y, C=10.0, key=1)
    >>> bool(value < 0), round(float(slope.gamma), 1)
    (True, -0.2)
    """
    if not steepest > 0:
        raise ValueError(f"steepest={steepest!r} must be positive")
    drawn = random_splits(key, y, fraction, splits)
    return jnp.mean(likelihoods(kernel, X, C, drawn, steepest, machine=machine, solver=solver))


@objective
def log_posterior(
    kernel: Kernel,
    X: Points,
    y: Labels,
    *,
    C: Cost,
    key: Any,
    prior: Prior | None = None,
    fraction: float = 0.2,
    splits: int = 1,
    steepest: float = STEEPEST,
    machine: Builder = c_svc,
    solver: SMO = SOLVER,
) -> Value:
    """Return the log-likelihood plus the logarithm of a prior of kernel and C (section 9.2.3).

    Parameters
    ----------
    prior : function, optional
        ``prior(kernel, C)`` is a log-density. By default ``GaussianPrior.around(X, y)``, that of
        section 12.1 for Gaussian kernels, which sorts all distances: make it once, and give it, if
        you evaluate often.

    Examples
    --------
    >>> from jsvm import data, kernels
    >>> X, y = data.chess_board(2, 2, size=60, key=0)
    >>> def prior(kernel, C):
    ...     return -kernel.gamma - 0.1 * C
    >>> value = log_posterior(kernels.RBF(1.0), X, y, C=10.0, key=1, prior=prior)
    >>> round(float(value - log_likelihood(kernels.RBF(1.0), X, y, C=10.0, key=1)), 4)
    -2.0
    """
    drawn: Any = {"key": key, "fraction": fraction, "splits": splits}
    options: Any = {"steepest": steepest, "machine": machine, "solver": solver}
    likelihood = log_likelihood(kernel, X, y, C=C, **drawn, **options)
    prior = GaussianPrior.around(X, y) if prior is None else prior
    return likelihood + prior(kernel, C)


@in_one_program
def likelihoods(
    kernel: Kernel, X: Any, C: Any, splits: Splits, steepest: Any, *, machine: Builder, solver: SMO
) -> Any:
    """Return the log-likelihood of the held-out examples of every split."""
    margins = splits.test_labels * held_out_values(kernel, X, C, splits, machine, solver)
    counted = jnp.abs(splits.test_labels)
    return jax.vmap(best_likelihood, in_axes=(0, 0, None))(margins, counted, steepest)


def best_likelihood(
    margins: Float[Array, " t"], counted: Float[Array, " t"], steepest: Scalar
) -> Value:
    """Return max Σ log σ(a z) over slopes 0 ≤ a ≤ steepest / √mean z² of the counted examples."""
    square = jnp.sum(margins**2) / jnp.maximum(jnp.sum(counted), 1.0)
    some = square > 0
    scale = jnp.sqrt(jnp.where(some, square, 1.0))
    limit = steepest / scale
    found = _best_slope(*lax.stop_gradient((margins, limit)))
    slope = jnp.where(found >= lax.stop_gradient(limit), limit, found)
    return jnp.sum(counted * jax.nn.log_sigmoid(slope * margins))


@jax.jit
def _best_slope(margins: Any, limit: Any) -> Any:
    """Return the zero of L′(a) = Σ z σ(−a z), which decreases, in [0, limit]."""
    short = margins.shape[0] < LONG_REDUCTION
    return (in_one_kernel(_zero) if short else _zero)(margins, limit)


def _zero(margins: Any, limit: Any) -> Any:
    """Return the zero, by Newton's method inside an interval that holds it."""

    def slope_and_curvature(a: Any) -> tuple[Any, Any]:
        wrong = jax.nn.sigmoid(-a * margins)
        return jnp.sum(margins * wrong), jnp.sum(margins**2 * wrong * (1.0 - wrong))

    def step(carry: tuple) -> tuple:
        """Take Newton's step, or go to the middle where it would leave the interval."""
        low, high, a, _, count = carry
        slope, curvature = slope_and_curvature(a)
        low, high = jnp.where(slope > 0, a, low), jnp.where(slope > 0, high, a)
        flat = ~(curvature > 0)
        newton = a + slope / jnp.where(flat, 1.0, curvature)
        inside = (newton > low) & (newton < high) & ~flat
        new = jnp.where(inside, newton, 0.5 * (low + high))
        return low, high, new, jnp.abs(new - a) > 4 * jnp.finfo(a.dtype).eps * new, count + 1

    at_zero, _ = slope_and_curvature(jnp.zeros_like(limit))
    at_limit, _ = slope_and_curvature(limit)
    inner = (at_zero > 0) & (at_limit < 0)
    start = jnp.zeros_like(limit), limit, 0.01 * limit, inner, jnp.int32(0)
    a = lax.while_loop(lambda c: c[3] & (c[4] < MAX_STEPS), step, start)[2]
    return jnp.where(inner, a, jnp.where(at_zero > 0, limit, 0.0))
