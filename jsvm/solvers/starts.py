"""Feasible starts: one that the user gives, or one from the solution of a similar problem."""

import numpy as np
from jaxtyping import Float

from jsvm._typing import Array
from jsvm.problems import QuadraticProgram
from jsvm.problems.program import fill

NEGLIGIBLE = 1e-9  # relative error of a sum that a solver mends by itself


def near(alpha: Float[Array, " n"], program: QuadraticProgram) -> Float[Array, " n"]:
    """Return a feasible point near `alpha`, with as many variables at bounds as can be.

    It is cut to the box. What then exceeds the sum of a group is first taken, in proportion, from
    the variables away from rest (zero, or the bound nearest to it), then from one after the other.
    """
    lower, upper = np.asarray(program.lower, float), np.asarray(program.upper, float)
    rest = np.clip(0.0, lower, upper)
    alpha = np.clip(np.asarray(alpha, float), lower, upper)
    groups = np.asarray(program.groups)
    for g, total in enumerate(np.asarray(program.totals, float)):
        here = np.flatnonzero(groups == g)
        values = alpha[here]
        excess = values.sum() - total
        if abs(excess) <= NEGLIGIBLE * np.abs(values).sum():
            continue
        sign = np.sign(excess)
        away = np.maximum(sign * (values - rest[here]), 0.0)
        values = values - sign * away * min(1.0, abs(excess) / max(away.sum(), abs(excess)))
        bound = lower[here] if sign > 0 else upper[here]
        values = values - sign * fill(sign * (values.sum() - total), sign * (values - bound))
        alpha[here] = np.clip(values, lower[here], upper[here])
    return alpha


def feasible_start(alpha: np.ndarray, program: QuadraticProgram) -> np.ndarray:
    """Return the start clipped to its box; raise if it was not feasible in the first place."""
    if alpha.shape != (program.size,) or not np.isfinite(alpha).all():
        raise ValueError(f"start must hold {program.size} finite numbers, not {alpha.shape}")
    lower, upper = np.asarray(program.lower), np.asarray(program.upper)
    slack = 1e-6 * np.abs(alpha)
    if (alpha < lower - slack).any() or (alpha > upper + slack).any():
        raise ValueError("start is not feasible: it is outside its bounds")
    for g in range(program.group_count):
        total = np.asarray(program.totals)[g]
        inside = np.asarray(program.groups) == g
        sum_of_group = alpha[inside].sum()
        if abs(sum_of_group - total) > slack[inside].sum() + 1e-6 * abs(total):
            raise ValueError(
                f"start is not feasible: group {g} sums to {sum_of_group}, not {total}"
            )
    return np.clip(alpha, lower, upper)
