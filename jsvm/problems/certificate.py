"""How good a feasible point is, from its gradient alone.

**Gap.** ψ(α) = max over the groups of max{G_i : α_i < U_i} − min{G_i : α_i > L_i}
(Glasmachers 2008, section 4.2.4).

**Duality gap.** For Q = K + diag(r) with K positive semi-definite and any β, λ,

    f(α) ≥ −P(β, λ),
    P = ½βᵀKβ + Σ_g λ_g c_g + Σ_i max_{L_i ≤ a ≤ U_i} ((l − Kβ − λ)_i a − ½ r_i a²)

because ½αᵀKα ≥ βᵀKα − ½βᵀKβ. For every machine of this library P(α, λ) is the primal objective
with offset b = λ: the maxima are the losses C_i max(0, 1 − y_i f(x_i)), ½C_i max(0, …)², and so on.
Where a bound is infinite and r_i = 0 the loss is a constraint; λ is moved, and β = sα with s ≥ 1
scaled, so that the constraint holds. With an indefinite K the bound means nothing, the gap does.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Float

from jsvm._typing import Array, Number, Scalar, Vector
from jsvm.numerics.arrays import namespace
from jsvm.numerics.indexing import largest
from jsvm.problems.program import QuadraticProgram

RAY_ULPS = 64.0  # units of rounding of αᵀQα within which there is no curvature
CONSTRAINT_ULPS = 1e4  # units of rounding within which a constraint holds


class Certificate(NamedTuple):
    """Of a point: `objective` + `primal_objective` ≥ 0 is the duality gap."""

    objective: Array
    primal_objective: Array
    multipliers: Array
    violation: Array


class Extremes(NamedTuple):
    """For every group the largest G that can go up and the smallest that can go down."""

    up: Array
    down: Array


def extremes(program: QuadraticProgram, alpha: Vector, gradient: Vector) -> Extremes:
    """Return max{G_i : α_i < U_i} and min{G_i : α_i > L_i} of every group (∓∞ if empty)."""
    can_up, can_down = alpha < program.upper, alpha > program.lower
    up, down = [], []
    for group in range(program.group_count):
        inside = program.members(group)
        up.append(largest(jnp.where(can_up & inside, gradient, -jnp.inf)))
        down.append(-largest(jnp.where(can_down & inside, -gradient, -jnp.inf)))
    return Extremes(jnp.stack(up), jnp.stack(down))


def gap(program: QuadraticProgram, alpha: Vector, gradient: Vector) -> Number:
    """Return ψ(α), the largest gap over the groups; −∞ where nothing can move."""
    up, down = extremes(program, alpha, gradient)
    return jnp.max(up - down)


def multipliers(program: QuadraticProgram, alpha: Vector, gradient: Vector) -> Float[Array, " g"]:
    """Return λ: the mean of G over the free variables of a group, or the middle of [max, min]."""
    free = (alpha > program.lower) & (alpha < program.upper)
    up, down = extremes(program, alpha, gradient)
    values = []
    for group in range(program.group_count):
        inside = free & program.members(group)
        count = jnp.sum(inside)
        divisor = jnp.maximum(count, 1).astype(gradient.dtype)
        mean = jnp.sum(jnp.where(inside, gradient, 0.0)) / divisor
        values.append(jnp.where(count > 0, mean, _middle(up[group], down[group])))
    return jnp.stack(values)


def joachims(program: QuadraticProgram, alpha: Vector, gradient: Vector) -> Number:
    """Return the smallest τ for which Joachims' conditions (Collobert & Bengio 2000, eq. 2) hold.

    |G_i − λ| ≤ τ on the free variables, G_i ≤ λ + τ at the lower and G_i ≥ λ − τ at the upper
    bound, with λ the mean over the free variables. Since λ lies between the extremes of G, the rule
    is weaker than the gap: ψ ≤ τ implies it.
    """
    up, down = extremes(program, alpha, gradient)
    middle = multipliers(program, alpha, gradient)
    return jnp.max(jnp.maximum(up - middle, middle - down))


def certify(program: QuadraticProgram, alpha: Vector, gradient: Vector) -> Certificate:
    """Return objective, primal objective, multipliers and gap of a point with a fresh gradient."""
    ridge = program.hessian.ridge_vector()
    kernel_part = program.linear - gradient - ridge * alpha  # Kα
    constrained_up = (program.upper == jnp.inf) & (ridge == 0)
    constrained_down = (program.lower == -jnp.inf) & (ridge == 0)
    scale = _scale(program.linear, kernel_part, constrained_up, constrained_down)
    residual = program.linear - scale * kernel_part  # l − Kβ

    lambdas = multipliers(program, alpha, gradient)
    offset = jnp.zeros_like(alpha)
    primal = 0.5 * scale**2 * jnp.dot(alpha, kernel_part)
    for group in range(program.group_count):
        inside = program.members(group)
        low = jnp.max(jnp.where(constrained_up & inside, residual, -jnp.inf))
        high = jnp.min(jnp.where(constrained_down & inside, residual, jnp.inf))
        # Where no multiplier satisfies all constraints, some slack below makes P infinite.
        shifted = jnp.minimum(jnp.maximum(lambdas[group], low), jnp.maximum(low, high))
        offset = jnp.where(inside, shifted, offset)
        primal = primal + shifted * program.totals[group]
    slack = residual - offset
    unit = jnp.max(jnp.abs(program.linear)) + jnp.max(jnp.abs(kernel_part))
    tiny = CONSTRAINT_ULPS * jnp.finfo(alpha.dtype).eps * unit
    slack = jnp.where((constrained_up | constrained_down) & (jnp.abs(slack) <= tiny), 0.0, slack)
    primal = primal + jnp.sum(_conjugate(slack, ridge, program.lower, program.upper))
    return Certificate(
        objective=program.objective(alpha, gradient),
        primal_objective=primal,
        multipliers=lambdas,
        violation=jnp.maximum(gap(program, alpha, gradient), 0.0),
    )


def _conjugate(slack: Vector, ridge: Vector, lower: Vector, upper: Vector) -> Vector:
    """Return max over L ≤ a ≤ U of slack·a − ½ ridge a²."""
    curved = ridge > 0
    inner = jnp.clip(slack / jnp.where(curved, ridge, 1.0), lower, upper)
    linear = jnp.where(slack > 0, upper, lower)
    best = jnp.where(curved, inner, jnp.where(slack == 0, 0.0, linear))
    # Not slack·a − ½ ridge a²: a² may overflow where the value does not, and ∞ − ∞ is no number.
    bent = jnp.where(jnp.isinf(inner), slack, ridge * inner)
    return best * (slack - jnp.where(curved, 0.5 * bent, 0.0))


def _scale(linear: Vector, kernel_part: Vector, up: Array, down: Array) -> Number:
    """Return s ≥ 1 (of a hard margin: 1/margin) that makes l − sKα satisfy the constraints."""
    wanted = jnp.max(jnp.where(up, linear, -jnp.inf)) - jnp.min(jnp.where(down, linear, jnp.inf))
    reached = jnp.min(jnp.where(up, kernel_part, jnp.inf)) - jnp.max(
        jnp.where(down, kernel_part, -jnp.inf)
    )
    both = jnp.any(up) & jnp.any(down) & (reached > 0)
    ratio = jnp.where(both, wanted, 1.0) / jnp.where(both, reached, 1.0)
    return jnp.maximum(ratio, 1.0)


def _middle(low: Number, high: Number) -> Number:
    """Return the middle of an interval, its finite end if only one is, else zero."""
    low_finite, high_finite = jnp.isfinite(low), jnp.isfinite(high)
    low_or_high = jnp.where(low_finite, low, jnp.where(high_finite, high, 0.0))
    high_or_low = jnp.where(high_finite, high, low_or_high)
    return 0.5 * (low_or_high + high_or_low)


def fine_tolerance(alpha: Vector, linear: Vector, scale: Scalar, unit: Scalar) -> Scalar:
    """Return the violation below which there is little but rounding; `scale` is max |Q_ii|."""
    return unit * (abs(linear).max() + abs(alpha).max() * scale)


def gap_unit(linear: Vector, totals: Float[Array, " g"], scale: Scalar) -> Any:
    """Return u ≤ 1: a solution has a gap of at most u·tol; `scale` is max |Q_ii|.

    G has the unit of l: one for classes, that of the targets for regression, and u = 1. Where l = 0
    (ν-SVC, one-class) |G_i| ≤ max Q_jj Σ_g |c_g|, and u is that bound if it is less than one.
    """
    xp = namespace(linear, totals)
    bound = scale * abs(totals).sum()
    return xp.where((linear == 0).all() & (bound > 0), xp.minimum(bound, 1.0), 1.0)


def objective_rounding(alpha: Vector, linear: Vector, scale: Scalar, eps: Scalar) -> Scalar:
    """Return the usual rounding error of the objective; `scale` is max |Q_ii|."""
    return eps * (scale * (alpha * alpha).sum() + (abs(alpha) * abs(linear)).sum())


def is_better(
    objective: Scalar, gap: Scalar, best: Scalar, best_gap: Scalar, rounding: Scalar
) -> Any:
    """Tell whether a point is better: by its objective, or within rounding by its gap."""
    level = (objective <= best + rounding) & (gap < best_gap)
    return (objective < best - rounding) | level


def is_unbounded(
    objective: Scalar, gap: Scalar, largest: Scalar, scale: Scalar, eps: Scalar
) -> Any:
    """Tell whether the objective has fallen below all that the precision can tell from −∞.

    −f has the unit l²/Q. With an infinite box, −f beyond that unit over eps says that the margin
    is below the rounding error of the data. `largest` is max |l_i|, `scale` max |Q_ii|.
    """
    return (-objective * eps * scale > largest**2) & (gap > 0)


def is_endless(
    program: Any, alpha: Vector, gradient: Vector, scale: Scalar, ridge: Any, eps: Scalar
) -> Any:
    """Tell whether α, taken as a direction, proves that the objective has no minimum.

    If every α_i ≠ 0 has no bound on its side and the sums are zero, tα is feasible for all t ≥ 0,
    and f(tα) = ½t²q − t lᵀα with q = αᵀQα = αᵀ(l − G): there is no minimum if q < 0, or if q = 0
    and lᵀα > 0. Rounding errors of K leave q uncertain by RAY_ULPS·eps·max |Q_ii|·‖α‖₁², but not
    the share of a ridge. Of a hard margin 4q/‖α‖₁² is the squared distance of two points, one in
    the hull of either class: at distance zero they cannot be separated.
    """
    bounded = ((alpha > 0) & (program.upper < jnp.inf)) | ((alpha < 0) & (program.lower > -jnp.inf))
    feasible = (~bounded).all() & (program.totals == 0).all()
    size, towards = abs(alpha).sum(), (alpha * program.linear).sum()
    q, rounding = towards - (alpha * gradient).sum(), RAY_ULPS * eps * scale * size * size
    surely = 4 * towards > (abs(alpha) * abs(program.linear)).sum()
    flat = (q <= rounding) & surely & ((ridge * alpha) == 0).all()
    return feasible & ((q < -rounding) | flat) & (size > 0)
