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

The active set settles in a few steps where single steps take millions: it is the block optimisation
of Knebel et al. (2008, section 3.2) with the signs and bounds found along the way.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Float

from jsvm._typing import Array, Scalar, Vector
from jsvm.numerics.arrays import product
from jsvm.numerics.elimination import solve_positive
from jsvm.problems.potential import violations
from jsvm.solvers.potential.psvm_tuning import PotentialTuning


class TileProblem(NamedTuple):
    """A tile's problem apart from Q: the point α, its gradient G, the bounds and ε."""

    origin: Array
    slope: Array
    lower: Array
    upper: Array
    epsilon: Scalar


class ProximalState(NamedTuple):
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
    newton_steps: Array

    @property
    def steps(self) -> Array:
        """Pair steps: none."""
        return jnp.int32(0)


def minimise(
    Q: Float[Array, "q q"],
    problem: TileProblem,
    width: Scalar,
    tol: Scalar,
    budget: Array,
    tuning: PotentialTuning,
) -> ProximalState:
    """Take Newton steps to `tol`, no progress or the budget; a width of zero is the default."""
    newton = ProximalNewton(Q, problem, tuning)

    def unfinished(s: ProximalState) -> Array:
        return (s.violation > tol) & (s.idle < tuning.idle_centres) & (s.newton_steps < budget)

    def turn(s: ProximalState) -> ProximalState:
        s = newton.recentre(s, tol)
        return lax.cond(unfinished(s), newton.step, lambda s: s, s)

    return lax.while_loop(unfinished, turn, newton.start(width))


def proximal(z: Vector, origin: Vector, threshold: Scalar, lower: Vector, upper: Vector) -> Vector:
    """Return argmin ½(w − z)² + threshold·|origin + w| with origin + w in the box.

    origin + z is shrunk towards zero, then clipped. The result is computed from z, not as a
    difference from origin + z, which would lose digits.
    """
    place = origin + z
    shrunk = z - jnp.sign(place) * threshold
    shrunk = jnp.where(jnp.abs(place) <= threshold, -origin, shrunk)
    return jnp.clip(shrunk, lower - origin, upper - origin)


class ProximalNewton:
    """Newton steps and moves of the centre for one tile."""

    def __init__(self, Q: Array, problem: TileProblem, tuning: PotentialTuning) -> None:
        self.Q, self.problem, self.tuning = Q, problem, tuning

    def start(self, width: Scalar) -> ProximalState:
        """Return the state without a change."""
        Q, slope = self.Q, self.problem.slope
        nothing, zero = jnp.zeros_like(slope), jnp.int32(0)
        least = 1.0 / jnp.maximum(jnp.mean(jnp.diagonal(Q)), jnp.finfo(Q.dtype).tiny)
        return ProximalState(
            centre=nothing,
            centre_value=self._value(nothing, slope)[0],
            x=nothing,
            gradient=slope,
            width=jnp.where(width > 0, width, self.tuning.first_width * least),
            turn=zero,
            best=nothing,
            violation=self._violation(nothing, slope),
            idle=zero,
            newton_steps=zero,
        )

    def recentre(self, s: ProximalState, tol: Scalar) -> ProximalState:
        """Move the centre to the minimiser, if that is found well enough."""
        tuning = self.tuning
        z, p = self._shifted(s, s.gradient)
        inside = self._curved(z, p, s.width)
        # On J the Newton iterate is the more exact one: p there is σ times a difference.
        point = jnp.where(inside, self._same_side(s.x, p), p)
        gradient = self.problem.slope - product(self.Q, point)
        # By how much the conditions of the minimiser fail at this point, in units of the gradient.
        error = jnp.max(jnp.where(inside, jnp.abs(p - s.x), 0.0)) / s.width
        error = error + jnp.max(jnp.abs(gradient - s.gradient))
        move = jnp.max(jnp.abs(s.centre - point)) / s.width
        value, slack = self._value(point, gradient)
        close = tuning.centre_accuracy
        found = (error <= jnp.maximum(close * move, close * tol)) & (
            value <= s.centre_value + slack
        )
        found &= s.turn > 0
        lost = s.turn >= tuning.slow_centre
        move_on = found | lost
        # A centre that was not found stays where it is, and is tried again with a smaller width.
        centre = jnp.where(found, point, s.centre)
        at_centre = jnp.where(lost, self.problem.slope - product(self.Q, s.centre), s.gradient)
        gradient = jnp.where(found, gradient, at_centre)
        violation = self._violation(point, gradient)
        better = found & (violation < s.violation)
        lower = s.centre_value - value > tuning.least_centre_decrease * jnp.abs(value) + slack
        progress = found & ((violation < tuning.progress * s.violation) | lower)
        quick = jnp.where(s.turn <= tuning.quick_centre, tuning.widening, 1.0)
        factor = jnp.where(found, quick, 1.0 / tuning.widening**2)
        return ProximalState(
            centre=centre,
            centre_value=jnp.where(found, value, s.centre_value),
            x=jnp.where(move_on, centre, s.x),
            gradient=gradient,
            width=jnp.minimum(jnp.where(move_on, s.width * factor, s.width), self._widest()),
            turn=jnp.where(move_on, 0, s.turn),
            best=jnp.where(better, point, s.best),
            violation=jnp.where(better, violation, s.violation),
            idle=jnp.where(move_on, jnp.where(progress, 0, s.idle + 1), s.idle),
            newton_steps=s.newton_steps,
        )

    def step(self, s: ProximalState) -> ProximalState:
        """Take one Newton step on ψ."""
        Q, tuning = self.Q, self.tuning
        z, p = self._shifted(s, s.gradient)
        h = p - s.x
        inside = self._curved(z, p, s.width)
        outside = jnp.where(inside, 0.0, h)
        matrix = jnp.where(inside[:, None] & inside[None, :], Q, 0.0)
        matrix = matrix + jnp.diag(jnp.where(inside, 1.0 / s.width, 1.0))
        right = jnp.where(inside, h / s.width - product(Q, outside), 0.0)
        solved = solve_positive(matrix, right)
        # Where the factorisation fails take the fixed-point direction h, which also descends.
        broken = ~jnp.all(jnp.isfinite(solved))
        d = jnp.where(broken, h, jnp.where(inside, solved, outside))
        Qd = product(Q, d)

        lengths = 0.5 ** jnp.arange(tuning.halvings, dtype=h.dtype)
        now, slack = self._psi(s, s.x, s.gradient)
        ahead, _ = jax.vmap(lambda t: self._psi(s, s.x + t * d, s.gradient - t * Qd))(lengths)
        slope = -jnp.dot(h, Qd)
        enough = ahead <= now + tuning.sufficient_decrease * lengths * slope + slack
        length = jnp.max(jnp.where(enough, lengths, 0.0))
        failed = broken | (length == 0)
        return s._replace(
            x=s.x + length * d,
            gradient=s.gradient - length * Qd,
            turn=jnp.where(failed, tuning.slow_centre, s.turn + 1),
            newton_steps=s.newton_steps + 1,
        )

    def _shifted(self, s: ProximalState, gradient: Array) -> tuple[Array, Array]:
        """Return z = c + σ(G − Qx) and p(z)."""
        origin, _, lower, upper, epsilon = self.problem
        z = s.centre + s.width * gradient
        return z, proximal(z, origin, s.width * epsilon, lower, upper)

    def _curved(self, z: Array, p: Array, width: Array) -> Array:
        """Return J, where the proximal map has slope one."""
        origin, _, lower, upper, epsilon = self.problem
        beyond = jnp.abs(origin + z) > width * epsilon
        return beyond & (p > lower - origin) & (p < upper - origin)

    def _same_side(self, x: Array, p: Array) -> Array:
        """Return x clipped to the box, and to the side of zero on which p is."""
        origin, _, lower, upper, epsilon = self.problem
        low = jnp.where((origin + p >= 0) & (epsilon > 0), 0.0, lower)
        high = jnp.where((origin + p <= 0) & (epsilon > 0), 0.0, upper)
        low, high = jnp.maximum(low, lower), jnp.minimum(high, upper)
        return jnp.clip(x, low - origin, high - origin)

    def _psi(self, s: ProximalState, x: Array, gradient: Array) -> tuple[Array, Array]:
        """Return ψ(x), and a bound of its rounding error."""
        z, p = self._shifted(s, gradient)
        smooth = 0.5 * x * (self.problem.slope - gradient)
        return self._sum(smooth, p * ((z - 0.5 * p) / s.width), -self._penalties(p))

    def _value(self, x: Array, gradient: Array) -> tuple[Array, Array]:
        """Return f(α + x) − f(α), and a bound of its rounding error; Qx is G − `gradient`."""
        return self._sum(-0.5 * x * (self.problem.slope + gradient), self._penalties(x))

    def _sum(self, *terms: Array) -> tuple[Array, Array]:
        every = jnp.stack(terms)
        unit = self.tuning.sum_rounding * float(jnp.finfo(every.dtype).eps)
        return jnp.sum(every), unit * jnp.sum(jnp.abs(every))

    def _penalties(self, x: Array) -> Array:
        origin = self.problem.origin
        return self.problem.epsilon * (jnp.abs(origin + x) - jnp.abs(origin))

    def _violation(self, x: Array, gradient: Array) -> Array:
        origin, _, lower, upper, epsilon = self.problem
        alpha = jnp.where(x == -origin, 0.0, origin + x)
        alpha = jnp.where(x == lower - origin, lower, alpha)
        alpha = jnp.where(x == upper - origin, upper, alpha)
        return jnp.max(violations(alpha, gradient, lower, upper, epsilon))

    def _widest(self) -> Array:
        """Return the largest σ for which Q_JJ + I/σ has a Cholesky factor in spite of rounding."""
        Q = self.Q
        unit = Q.shape[0] * jnp.finfo(Q.dtype).eps * jnp.max(jnp.diagonal(Q))
        return self.tuning.widest / jnp.maximum(unit, jnp.finfo(Q.dtype).tiny)
