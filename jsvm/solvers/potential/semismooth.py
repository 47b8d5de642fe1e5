"""The block step of the P-SVM: a semismooth Newton method on the non-zero variables of a tile.

    minimise  f(α + x) = ½xᵀQx − Gᵀx + ε‖α + x‖₁ (+ a constant)   subject to  L ≤ α + x ≤ U

for the change x of a point α with gradient G: rounding is relative to the change, not to α.

**Proximal point.** With a centre c and a width σ, minimise f(x) + ‖x − c‖²/(2σ), take the minimiser
as the next centre, and widen σ: a singular Q does no harm, and a large σ makes few centres enough.

**Newton.** The minimiser satisfies x = p(z) with z = c + σ(G − Qx) and p the proximal map, that is,
∇ψ(x) = −Q(p(z) − x) = 0 for the convex function with continuous derivative

    ψ(x) = ½xᵀQx + max_w (zᵀw/σ − ε‖α + w‖₁ − ‖w‖²/(2σ)),   the maximum being at w = p(z).

p is linear, of slope one, on J = {α + z beyond ±σε, p inside the box} and constant elsewhere. With
h = p(z) − x the Newton direction is d = h outside J and (Q_JJ + I/σ) d_J = h_J/σ − Q_J· d_outside:
one positive definite system of the size of J, the variables that are neither zero nor at a bound.
A line search on ψ makes it converge from anywhere; f never rises from one centre to the next.

The active set settles in a few steps where single steps take millions: it is the block
optimisation of 000 (section 3.2) with the signs and bounds found along the way.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Float, Int

from jsvm._typing import Array, Scalar
from jsvm.numerics.elimination import solve_positive
from jsvm.numerics.products import product
from jsvm.solvers.potential.violation import proximal, violations

WIDEN = 4.0
QUICK, SLOW = 6, 25  # Newton steps for one centre: fewer widen σ, so many narrow it
HALVINGS = 12
PATIENCE = 6  # centres without progress
LITTLE = 1e-4  # a smaller decrease of f, relative to f, is no progress
ROUNDING = 4.0  # units of rounding of a sum
FIRST_WIDTH = 10.0  # of σ, in units of one over the mean of the diagonal


class Box(NamedTuple):
    """A tile's problem apart from Q: the point α, its gradient, and the bounds."""

    origin: Array
    slope: Array
    lower: Array
    upper: Array
    epsilon: Array


class Search(NamedTuple):
    """The state between two Newton steps; points are changes of α."""

    centre: Array
    centre_value: Array  # f(c)
    x: Array
    gradient: Array  # G − Qx
    width: Array  # σ
    turn: Array  # Newton steps since the centre was moved
    best: Array  # the point with the smallest violation so far
    violation: Array  # its violation
    idle: Array  # centres without progress
    steps: Array  # Newton steps in all


def begin(Q: Float[Array, "q q"], box: Box, width: Scalar) -> Search:
    """Return the state without a change; a width of zero asks for the default one."""
    nothing, zero = jnp.zeros_like(box.origin), jnp.int32(0)
    least = 1.0 / jnp.maximum(jnp.mean(jnp.diagonal(Q)), jnp.finfo(Q.dtype).tiny)
    return Search(
        centre=nothing,
        centre_value=_value(box, nothing, box.slope)[0],
        x=nothing,
        gradient=box.slope,
        width=jnp.where(width > 0, width, FIRST_WIDTH * least),
        turn=zero,
        best=nothing,
        violation=_violation(box, nothing, box.slope),
        idle=zero,
        steps=zero,
    )


def advance(
    Q: Float[Array, "q q"], box: Box, search: Search, tol: Scalar, budget: Int[Array, ""]
) -> Search:
    """Take Newton steps until the violation is at most `tol`, or no progress, or the budget."""

    def unfinished(s: Search) -> Array:
        return (s.violation > tol) & (s.idle < PATIENCE) & (s.steps < budget)

    def turn(s: Search) -> Search:
        s = _recentre(Q, box, s, tol)
        return lax.cond(unfinished(s), lambda s: _newton(Q, box, s), lambda s: s, s)

    return lax.while_loop(unfinished, turn, search)


def _recentre(Q: Float[Array, "q q"], box: Box, s: Search, tol: Scalar) -> Search:
    """Move the centre to the minimiser, if that is found well enough."""
    z, p = _shifted(box, s.centre, s.gradient, s.width)
    inside = _curved(box, z, p, s.width)
    # On J the Newton iterate is the more exact one: p there is σ times a difference.
    point = jnp.where(inside, _same_side(s.x, p, box), p)
    gradient = box.slope - product(Q, point)
    # By how much the conditions of the minimiser fail at this point, in units of the gradient.
    error = jnp.max(jnp.where(inside, jnp.abs(p - s.x), 0.0)) / s.width
    error = error + jnp.max(jnp.abs(gradient - s.gradient))
    move = jnp.max(jnp.abs(s.centre - point)) / s.width
    value, slack = _value(box, point, gradient)
    found = (error <= jnp.maximum(0.2 * move, 0.2 * tol)) & (value <= s.centre_value + slack)
    found &= s.turn > 0
    lost = s.turn >= SLOW
    move_on = found | lost
    # A centre that was not found stays where it is, and is tried again with a smaller width.
    centre = jnp.where(found, point, s.centre)
    gradient = jnp.where(
        found, gradient, jnp.where(lost, box.slope - product(Q, s.centre), s.gradient)
    )
    violation = _violation(box, point, gradient)
    better = found & (violation < s.violation)
    lower = s.centre_value - value > LITTLE * jnp.abs(value) + slack
    progress = found & ((violation < 0.9 * s.violation) | lower)
    factor = jnp.where(found, jnp.where(s.turn <= QUICK, WIDEN, 1.0), 1.0 / WIDEN**2)
    return Search(
        centre=centre,
        centre_value=jnp.where(found, value, s.centre_value),
        x=jnp.where(move_on, centre, s.x),
        gradient=gradient,
        width=jnp.minimum(jnp.where(move_on, s.width * factor, s.width), _widest(Q)),
        turn=jnp.where(move_on, 0, s.turn),
        best=jnp.where(better, point, s.best),
        violation=jnp.where(better, violation, s.violation),
        idle=jnp.where(move_on, jnp.where(progress, 0, s.idle + 1), s.idle),
        steps=s.steps,
    )


def _newton(Q: Float[Array, "q q"], box: Box, s: Search) -> Search:
    """Take one Newton step on ψ."""
    z, p = _shifted(box, s.centre, s.gradient, s.width)
    h = p - s.x
    inside = _curved(box, z, p, s.width)
    outside = jnp.where(inside, 0.0, h)
    matrix = jnp.where(inside[:, None] & inside[None, :], Q, 0.0)
    matrix = matrix + jnp.diag(jnp.where(inside, 1.0 / s.width, 1.0))
    right = jnp.where(inside, h / s.width - product(Q, outside), 0.0)
    solved = solve_positive(matrix, right)
    # A system that broke down leaves the direction of the fixed point, which also descends.
    broken = ~jnp.all(jnp.isfinite(solved))
    d = jnp.where(broken, h, jnp.where(inside, solved, outside))
    Qd = product(Q, d)

    lengths = 0.5 ** jnp.arange(HALVINGS, dtype=h.dtype)
    now, slack = _psi(box, s, s.x, s.gradient)
    ahead, _ = jax.vmap(lambda t: _psi(box, s, s.x + t * d, s.gradient - t * Qd))(lengths)
    slope = -jnp.dot(h, Qd)
    enough = ahead <= now + 1e-4 * lengths * slope + slack
    length = jnp.max(jnp.where(enough, lengths, 0.0))
    failed = broken | (length == 0)
    return s._replace(
        x=s.x + length * d,
        gradient=s.gradient - length * Qd,
        turn=jnp.where(failed, SLOW, s.turn + 1),
        steps=s.steps + 1,
    )


def _shifted(box: Box, centre: Array, gradient: Array, width: Array) -> tuple[Array, Array]:
    """Return z = c + σ(G − Qx) and p(z)."""
    z = centre + width * gradient
    return z, proximal(z, box.origin, width * box.epsilon, box.lower, box.upper)


def _curved(box: Box, z: Array, p: Array, width: Array) -> Array:
    """Return J, where the proximal map has slope one."""
    beyond = jnp.abs(box.origin + z) > width * box.epsilon
    return beyond & (p > box.lower - box.origin) & (p < box.upper - box.origin)


def _same_side(x: Array, p: Array, box: Box) -> Array:
    """Return x cut to the box, and to the side of zero on which p is."""
    low = jnp.where((box.origin + p >= 0) & (box.epsilon > 0), 0.0, box.lower)
    high = jnp.where((box.origin + p <= 0) & (box.epsilon > 0), 0.0, box.upper)
    low, high = jnp.maximum(low, box.lower), jnp.minimum(high, box.upper)
    return jnp.clip(x, low - box.origin, high - box.origin)


def _psi(box: Box, s: Search, x: Array, gradient: Array) -> tuple[Array, Array]:
    """Return ψ(x), and how far rounding lets it be known."""
    z, p = _shifted(box, s.centre, gradient, s.width)
    return _sum(
        0.5 * x * (box.slope - gradient), p * ((z - 0.5 * p) / s.width), -_penalties(box, p)
    )


def _value(box: Box, x: Array, gradient: Array) -> tuple[Array, Array]:
    """Return f(α + x) − f(α), and how far rounding lets it be known.

    Qx is what the gradient has changed by.
    """
    return _sum(-0.5 * x * (box.slope + gradient), _penalties(box, x))


def _sum(*terms: Array) -> tuple[Array, Array]:
    every = jnp.stack(terms)
    unit = ROUNDING * float(jnp.finfo(every.dtype).eps)
    return jnp.sum(every), unit * jnp.sum(jnp.abs(every))


def _penalties(box: Box, x: Array) -> Array:
    return box.epsilon * (jnp.abs(box.origin + x) - jnp.abs(box.origin))


def _violation(box: Box, x: Array, gradient: Array) -> Array:
    alpha = jnp.where(x == -box.origin, 0.0, box.origin + x)
    alpha = jnp.where(x == box.lower - box.origin, box.lower, alpha)
    alpha = jnp.where(x == box.upper - box.origin, box.upper, alpha)
    return jnp.max(violations(alpha, gradient, box.lower, box.upper, box.epsilon))


def _widest(Q: Array) -> Array:
    """Return the largest σ for which Q_JJ + I/σ has a Cholesky factor in spite of rounding."""
    unit = Q.shape[0] * jnp.finfo(Q.dtype).eps * jnp.max(jnp.diagonal(Q))
    return 0.1 / jnp.maximum(unit, jnp.finfo(Q.dtype).tiny)
