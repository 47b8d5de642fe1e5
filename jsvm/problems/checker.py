"""An independent check of a solution: everything but the kernel in NumPy, with error bounds.

It shares no code with the solvers. From the user's program and α alone it computes G = l − Qα, the
violation of the KKT conditions, the objective and the duality gap, and compares them with what the
solution claims. Each number comes with a bound of its rounding error: Σ_j |Q_ij α_j| bounds what
cancels in G_i, so an error of `c` units of rounding in Qα is at most c·eps·Σ_j |Q_ij α_j|.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from jsvm.numerics.arrays import bucket, cast, repeat_first
from jsvm.precision import at_once, scope
from jsvm.problems.hessian import Dense, FromKernel, Repeated
from jsvm.problems.potential import Normal
from jsvm.problems.program import QuadraticProgram

BLOCK_ROWS = 512
in_double = partial(cast, dtype=np.dtype("float64"))
EPS = float(np.finfo(float).eps)
ROUNDING = 16 * EPS
KERNEL_ULPS = 64.0  # error of an entry of K: squared distances by products lose some digits
SUM_ULPS = 8.0  # error of a sum of products, for every doubling of the number of terms


@dataclass(frozen=True)
class Check:
    """What a solution is worth; true if nothing that it claims is false.

    Attributes
    ----------
    infeasibility : float
        How far α is outside of its box or its sums.
    violation, objective, duality_gap : float
        Recomputed; the gap is NaN where an infinite bound makes a loss a constraint, and means
        nothing for an indefinite kernel.
    violation_error, objective_error, duality_gap_error : float
        Bounds of their rounding errors.
    complaints : tuple of str
        Claims that are false.

    Examples
    --------
    >>> import jsvm
    >>> problem = jsvm.problems.c_svc(np.eye(2), np.array([1.0, -1.0]), 1.0)
    >>> jsvm.problems.check(problem, jsvm.solve(problem)).complaints
    ()
    """

    infeasibility: float
    violation: float
    violation_error: float
    objective: float
    objective_error: float
    duality_gap: float
    duality_gap_error: float
    complaints: tuple[str, ...]

    def __bool__(self) -> bool:
        return not self.complaints


def check(problem: QuadraticProgram, solution: Any, tol: float | None = None) -> Check:
    """Check whether α is feasible, and whether the numbers of a solution are true.

    Parameters
    ----------
    problem : QuadraticProgram
    solution : Solution
    tol : float, optional
        The tolerance that the solver was given: a converged solution must have reached it.

    Examples
    --------
    >>> import jsvm
    >>> problem = jsvm.problems.c_svc(np.eye(2), np.array([1.0, -1.0]), 1.0)
    >>> bool(check(problem, jsvm.solve(problem), tol=1e-3))
    True
    """
    program = _Numbers.of(problem)
    alpha = np.asarray(solution.alpha, float)
    complaints = []
    if not np.isfinite(alpha).all():
        return Check(*[np.nan] * 7, complaints=("alpha is not finite",))
    image, ridge, error = _image(problem.hessian, alpha)
    gradient = program.linear - image - ridge * alpha
    error = error + ROUNDING * (np.abs(program.linear) + np.abs(image) + np.abs(ridge * alpha))

    outside = max(0.0, np.max(program.lower - alpha), np.max(alpha - program.upper))
    if outside > 0:
        complaints.append(f"alpha is outside of its box by {outside:.3g}")
    missing = 0.0
    for g, (total, inside) in enumerate(zip(program.totals, program.members, strict=True)):
        wrong = abs(alpha[inside].sum() - total)
        missing = max(missing, wrong)
        if wrong > SUM_ULPS * EPS * (np.abs(alpha[inside]).sum() + abs(total)) * np.sqrt(
            len(alpha)
        ):
            complaints.append(f"the sum of group {g} is off by {wrong:.3g}")

    violation, violation_error = _violation(program, alpha, gradient, error)
    size = np.abs(alpha)
    objective = float(program.l1 * size.sum() - 0.5 * alpha @ (program.linear + gradient))
    terms = size @ (np.abs(program.linear) + np.abs(gradient)) + program.l1 * size.sum()
    objective_error = float(0.5 * size @ error + ROUNDING * terms)
    primal, primal_error = _primal(program, solution, alpha, gradient, ridge, error)
    gap, gap_error = objective + primal, objective_error + primal_error

    for name, found, allowed in (
        ("objective", objective, objective_error),
        ("violation", violation, violation_error),
        ("duality_gap", gap, gap_error),
    ):
        claimed = float(getattr(solution, name))
        if np.isfinite(found) and not abs(claimed - found) <= 2 * allowed:
            complaints.append(f"{name} is {found:.6g} ± {allowed:.1g}, claimed {claimed:.6g}")
    if tol is not None and int(solution.status) == 0 and violation > tol + violation_error:
        complaints.append(f"converged at {violation:.3g} ± {violation_error:.1g}, tol={tol:g}")
    return Check(
        infeasibility=max(outside, missing),
        violation=violation,
        violation_error=violation_error,
        objective=objective,
        objective_error=objective_error,
        duality_gap=gap,
        duality_gap_error=gap_error,
        complaints=tuple(complaints),
    )


class _Numbers(NamedTuple):
    """A program in NumPy."""

    linear: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    l1: float
    totals: np.ndarray
    members: list[np.ndarray]

    @classmethod
    def of(cls, problem: QuadraticProgram) -> "_Numbers":
        linear, lower, upper = (
            np.asarray(v, float) for v in (problem.linear, problem.lower, problem.upper)
        )
        l1 = 0.0 if problem.l1 is None else float(problem.l1)
        totals = np.zeros(0) if problem.totals is None else np.asarray(problem.totals, float)
        members = [np.asarray(problem.groups) == g for g in range(len(totals))]
        return cls(linear, lower, upper, l1, totals, members)


def _image(hessian: Any, alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return Kα, the ridge, and a bound of the rounding error of Kα."""
    ridge = np.zeros(len(alpha))
    if isinstance(hessian, Repeated):
        first, second = np.split(alpha, 2)
        inner, part, _ = _image(hessian.hessian, first + second)
        inner = inner + part * (first + second)
        # A solver may add up the copies of an example one by one, although they cancel.
        _, _, error = _image(hessian.hessian, np.abs(first) + np.abs(second))
        error = error + ROUNDING * part * (np.abs(first) + np.abs(second))
        return np.tile(inner, 2), ridge, np.tile(error + ROUNDING * np.abs(inner), 2)
    used = np.flatnonzero(alpha)
    weights, ulps = alpha[used], KERNEL_ULPS + SUM_ULPS * np.log2(2 + len(used))
    if isinstance(hessian, Normal):  # K is L × P, Q = KᵀK
        data = hessian.data
        rows = _numbers(lambda: data.objects(used)).reshape(len(used), data.shape[0])
        output, size = weights @ rows, np.abs(weights) @ np.abs(rows)
        every = _numbers(data.all_objects)
        image, error = every @ output, 2 * ulps * EPS * (np.abs(every) @ size)
        return image, ridge, error
    if isinstance(hessian, FromKernel):
        X, kernel = np.asarray(hessian.X, float), hessian.kernel
        # Few shapes: every operation is compiled for each.
        fits = len if kernel.runs_on_host() else lambda some: min(bucket(len(some)), BLOCK_ROWS)
        points = X if kernel.runs_on_host() else repeat_first(X, bucket(len(X)))
        starts = range(0, len(used), BLOCK_ROWS)
        blocks = [used[start : start + BLOCK_ROWS] for start in starts]
        image, size = np.zeros(len(alpha)), np.zeros(len(alpha))
        for block in blocks:
            some = X[repeat_first(block, fits(block))]
            K = _numbers(lambda rows=some: jax.tree.map(in_double, kernel)(rows, points))
            K = K[: len(block), : len(X)]
            image, size = image + alpha[block] @ K, size + np.abs(alpha[block]) @ np.abs(K)
    else:
        assert isinstance(hessian, Dense)
        K = np.asarray(hessian.matrix, float)[used]
        image, size = weights @ K, np.abs(weights) @ np.abs(K)
    return image, ridge + np.asarray(hessian.ridge, float), ulps * EPS * size


def _numbers(compute: Callable[[], Any]) -> np.ndarray:
    with at_once(), scope(np.dtype(float)):
        values = compute()
        return values.toarray() if hasattr(values, "toarray") else np.asarray(values, float)


def _violation(
    program: _Numbers, alpha: np.ndarray, gradient: np.ndarray, error: np.ndarray
) -> tuple[float, float]:
    """Return ψ(α) and a bound of its error; without groups the largest single violation."""
    up = np.where(alpha >= 0, gradient - program.l1, gradient + program.l1)
    down = np.where(alpha > 0, gradient - program.l1, gradient + program.l1)
    up = np.where(alpha < program.upper, up, -np.inf)
    down = np.where(alpha > program.lower, down, np.inf)
    worst = 2 * float(np.max(error, initial=0.0))
    if not program.members:
        return float(max(0.0, np.max(up), np.max(-down))), worst
    gaps = [
        np.max(up[i], initial=-np.inf) - np.min(down[i], initial=np.inf) for i in program.members
    ]
    return float(max(0.0, *gaps)), worst


@np.errstate(over="ignore")  # a loss beyond all numbers is infinite
def _primal(
    program: _Numbers,
    solution: Any,
    alpha: np.ndarray,
    gradient: np.ndarray,
    ridge: np.ndarray,
    error: np.ndarray,
) -> tuple[float, float]:
    """Return P(α, λ) with the multipliers of the solution, and a bound of its error.

    Any λ gives a bound of the optimum. NaN where an infinite bound makes the loss a constraint.
    """
    lower, upper, l1 = program.lower, program.upper, program.l1
    hard = (np.isinf(lower) | np.isinf(upper)) & (ridge == 0)
    if hard.any():
        return np.nan, np.nan
    offset = np.zeros(len(alpha))
    for value, inside in zip(np.asarray(solution.multipliers), program.members, strict=True):
        offset[inside] = value
    image = program.linear - gradient - ridge * alpha
    slack = gradient + ridge * alpha - offset
    shrunk = np.sign(slack) * np.maximum(np.abs(slack) - l1, 0.0)
    curved = ridge > 0
    inner = np.clip(shrunk / np.where(curved, ridge, 1.0), lower, upper)
    best = np.where(curved, inner, np.where(shrunk > 0, upper, np.where(shrunk < 0, lower, 0.0)))
    best = np.clip(best, lower, upper)
    bent = np.where(curved, np.where(np.isinf(inner), shrunk, ridge * inner), 0.0)
    losses = best * (slack - 0.5 * bent) - l1 * np.abs(best)
    offsets = (
        float(np.asarray(solution.multipliers, float) @ program.totals)
        if len(program.totals)
        else 0.0
    )
    primal = 0.5 * alpha @ image + offsets + losses.sum()
    # At a kink of its loss a rounding error decides between the two ends of the box.
    kink = ~curved & (np.abs(np.abs(slack) - l1) <= 2 * error)
    ends = np.maximum(np.abs(lower), np.abs(upper))
    reach = np.where(kink, ends, np.abs(best)) + 0.5 * np.abs(alpha)
    rounding = np.abs(losses).sum() + abs(offsets) + np.abs(alpha) @ np.abs(image)
    rounding += np.abs(best) @ (np.abs(slack) + np.abs(offset) + l1)
    return float(primal), float(reach @ error + ROUNDING * rounding)
