"""What the working precision allows: formulas that one tile (JAX) and many (NumPy) share."""

from collections.abc import Iterable
from typing import Any

from jaxtyping import Float

from jsvm._typing import Array, Scalar
from jsvm.numerics.arrays import namespace


def fine_tolerance(
    alpha: Float[Array, " n"], linear: Float[Array, " n"], scale: Scalar, unit: Scalar
) -> Scalar:
    """Return the violation below which there is little but rounding.

    `scale` is the largest |Q_ii|, `unit` the relative rounding error that is left alone.
    """
    return unit * (abs(linear).max() + abs(alpha).max() * scale)


def is_unbounded(
    objective: Scalar, gap: Scalar, largest: Scalar, scale: Scalar, eps: Scalar
) -> Any:
    """Tell whether the objective has fallen below all that the precision can tell from −∞.

    −f has the unit l²/Q. With an infinite box, −f beyond that unit over eps says that the margin
    is below the rounding error of the data. `largest` is max |l_i|, `scale` max |Q_ii|.
    """
    return (-objective * eps * scale > largest**2) & (gap > 0)


def restored_sums(
    alpha: Float[Array, " n"],
    lower: Float[Array, " n"],
    upper: Float[Array, " n"],
    members: Iterable[Any],
    totals: Any,
) -> Any:
    """Return α with the sums of its groups at `totals` to rounding, by moving free variables.

    `members` yields the mask of every group; True is all variables.
    """
    xp = namespace(alpha, lower)
    free = (alpha > lower) & (alpha < upper)
    for group, inside in enumerate(members):
        missing = totals[group] - xp.sum(xp.where(inside, alpha, 0.0))
        here = free & inside
        alpha = xp.where(here, alpha + missing / xp.maximum(xp.sum(here), 1), alpha)
    return xp.clip(alpha, lower, upper)
