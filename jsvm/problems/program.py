"""The one quadratic program that every machine becomes.

    minimise   ½ αᵀQα − lᵀα + ε‖α‖₁
    subject to L ≤ α ≤ U,   Σ_{i in g} α_i = c_g for every group g

G = l − Qα is the negative gradient of the smooth part. A variable i can go up if α_i < U_i and
down if α_i > L_i. Without ℓ1 term α is optimal if and only if in every group no variable that can
go up has a larger G than one that can go down (Glasmachers 2008, section 4.2.4); the largest such
difference is the gap ψ. In the optimum G_i = λ_g, the multiplier of the group, on all free
variables.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from jsvm._typing import Leaf, Number, Vector, pytree
from jsvm.numerics.arrays import namespace
from jsvm.problems.hessian import Repeated


@pytree
class QuadraticProgram:
    """The data of the program above.

    Parameters
    ----------
    hessian : Hessian
        Q, see :mod:`jsvm.problems.hessian`.
    linear, lower, upper : array of shape (n,)
        l, L and U; bounds may be infinite.
    groups : integer array of shape (n,) or None
        The group of every variable; None for a program without equality constraints.
    totals : array of shape (number of groups,) or None
        The sums c_g.
    l1 : float or None
        ε ≥ 0, the weight of ‖α‖₁; None where there is no such term.

    Examples
    --------
    >>> import jsvm
    >>> Q = jsvm.problems.Dense(np.eye(2))
    >>> program = QuadraticProgram(Q, np.array([1.0, -1.0]), np.array([0.0, -9.0]),
    ...                            np.array([9.0, 0.0]), np.array([0, 0]), np.zeros(1))
    >>> [round(float(a), 6) for a in jsvm.solve(program).alpha]
    [1.0, -1.0]
    """

    hessian: Leaf
    linear: Leaf
    lower: Leaf
    upper: Leaf
    groups: Leaf = None
    totals: Leaf = None
    l1: Leaf = None

    @property
    def size(self) -> int:
        """Number of variables."""
        return self.linear.shape[0]

    @property
    def group_count(self) -> int:
        """Number of equality constraints."""
        return 0 if self.totals is None else self.totals.shape[0]

    def members(self, group: int) -> Any:
        """Return the mask of the variables of a group; True if there is only one group."""
        return True if self.group_count == 1 else self.groups == group

    def gradient(self, alpha: Vector) -> Vector:
        """Return G = l − Qα."""
        return self.linear - self.hessian.matvec(alpha)

    def objective(self, alpha: Vector, gradient: Vector) -> Number:
        """Return ½αᵀQα − lᵀα + ε‖α‖₁ from α and its G; Qα is l − G."""
        smooth = -0.5 * jnp.dot(alpha, self.linear + gradient)
        return smooth if self.l1 is None else smooth + self.l1 * jnp.sum(jnp.abs(alpha))

    def feasible_point(self) -> Vector:
        """Return a feasible point near zero: sums are filled up in the order of the variables."""
        xp = namespace(self.lower, self.upper, self.groups, self.totals)
        alpha = xp.clip(0.0, self.lower, self.upper)
        for group in range(self.group_count):
            inside = xp.broadcast_to(self.members(group), alpha.shape)
            missing = self.totals[group] - xp.sum(xp.where(inside, alpha, 0.0))
            room_up = xp.where(inside, self.upper - alpha, 0.0)
            room_down = xp.where(inside, alpha - self.lower, 0.0)
            alpha = alpha + fill(missing, room_up) - fill(-missing, room_down)
        return alpha


def fill(amount: Any, room: Any) -> Any:
    """Distribute `amount` over places with `room`, the first places first."""
    xp = namespace(amount, room)
    used = xp.concatenate([xp.zeros_like(room[:1]), xp.cumsum(room)[:-1]])
    return xp.clip(amount - used, 0.0, room)


def restored_sums(
    alpha: Vector, lower: Vector, upper: Vector, members: Iterable[Any], totals: Any
) -> Any:
    """Return α with the sums of its groups at `totals`, by moving free variables."""
    xp = namespace(alpha, lower)
    free = (alpha > lower) & (alpha < upper)
    for group, inside in enumerate(members):
        missing = totals[group] - xp.sum(xp.where(inside, alpha, 0.0))
        here = free & inside
        count = xp.maximum(xp.sum(here), 1).astype(alpha.dtype)
        alpha = xp.where(here, alpha + missing / count, alpha)
    return xp.clip(alpha, lower, upper)


def split_l1(program: QuadraticProgram) -> QuadraticProgram:
    """Return the equivalent program without ℓ1 term, in twice the variables.

    α = α⁺ + α⁻ with α⁺ ≥ 0 ≥ α⁻: ε‖α‖₁ = ε(Σα⁺ − Σα⁻) is linear in them. The solution of the given
    program is the sum of the two halves. This is how ε-SVR gets α and α* (Glasmachers 2008, section
    2.3), each of them chosen independently (Collobert & Bengio 2000, section 1.2).
    """
    linear, lower, upper = program.linear, program.lower, program.upper
    xp = namespace(linear, lower, upper, program.l1)
    return replace(
        program,
        hessian=Repeated(program.hessian),
        linear=xp.concatenate([linear - program.l1, linear + program.l1]),
        lower=xp.concatenate([xp.maximum(lower, 0.0), xp.minimum(lower, 0.0)]),
        upper=xp.concatenate([xp.maximum(upper, 0.0), xp.minimum(upper, 0.0)]),
        groups=None if program.groups is None else xp.tile(program.groups, 2),
        l1=None,
    )


def validate(program: QuadraticProgram) -> None:
    """Raise ValueError, naming the argument, if a concrete program is malformed or infeasible."""
    n = program.size
    if n == 0:
        raise ValueError("the program has no variables; give at least one example")
    linear, lower, upper = (
        np.asarray(v, float) for v in (program.linear, program.lower, program.upper)
    )
    sizes = {"linear": n, "lower": lower.size, "upper": upper.size, "Q": program.hessian.size}
    if len(set(sizes.values())) > 1:
        raise ValueError(f"sizes do not agree: {sizes}")
    for name, values in (("linear", linear), ("lower", lower), ("upper", upper)):
        bad = ~np.isfinite(values) if name == "linear" else np.isnan(values)
        if bad.any():
            raise ValueError(f"{name} is not a number at index {int(np.argmax(bad))}")
    if (lower > upper).any():
        i = int(np.argmax(lower > upper))
        raise ValueError(f"lower[{i}]={lower[i]} is above upper[{i}]={upper[i]}")
    if np.isposinf(lower).any() or np.isneginf(upper).any():
        raise ValueError("lower must not be +inf and upper must not be -inf")
    if program.l1 is not None and not 0 <= float(program.l1) < np.inf:
        raise ValueError(f"l1={program.l1} must be a finite number >= 0")
    if (program.totals is None) != (program.groups is None):
        raise ValueError("groups and totals belong together; give both or none")
    if program.totals is None:
        return
    totals, groups = np.asarray(program.totals, float), np.asarray(program.groups)
    if not np.isfinite(totals).all():
        raise ValueError(f"totals={totals} must be finite")
    whole = np.issubdtype(groups.dtype, np.integer) and groups.shape == (n,)
    if not whole or groups.min() < 0 or groups.max() >= len(totals):
        raise ValueError(f"groups must hold one integer below {len(totals)} for each variable")
    for g, total in enumerate(totals):
        low, high = lower[groups == g].sum(), upper[groups == g].sum()
        slack = 1e-9 * abs(total)
        if not low - slack <= total <= high + slack:
            raise ValueError(
                f"infeasible: totals[{g}]={total} is outside the sums of bounds [{low}, {high}]"
            )
