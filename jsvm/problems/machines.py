"""The support vector machines, each as a quadratic program.

Signed convention of Glasmachers 2008, eq. 4.1: α_i carries the sign of its label, so labels never
enter Q and the decision function of every machine is Σ_i α_i k(x_i, ·) + b with b the mean of the
multipliers. `K` is a matrix or a pair ``(kernel, X)``; `C` is a number or one number per example.
Leaving an example out is setting its C, or its weight, to zero.

With G = l − Kα and slacks ξ, the primal problems are those given with each machine; the value
computed by :func:`jsvm.problems.certificate.certify` is theirs.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Real

from jsvm._typing import Array, Scalar
from jsvm.numerics.arrays import as_floating, in_full_precision, namespace
from jsvm.precision import is_traced
from jsvm.problems.hessian import Repeated, as_hessian
from jsvm.problems.program import QuadraticProgram, split_l1

Gram = Any  # a matrix or a pair (kernel, X)
Cost = Scalar | Real[Array, " n"]

NORMAL = "zero or a normal number (in float64 at least 2.3e-308): XLA takes others for zero"


def c_svc(K: Gram, y: Real[Array, " n"], C: Cost) -> QuadraticProgram:
    """1-norm soft margin, ½‖w‖² + Σ C_i ξ_i with ξ_i ≥ 1 − y_i f(x_i).

    Glasmachers 2008, eq. 2.3 and 2.5.

    Parameters
    ----------
    K : array of shape (n, n) or (kernel, X)
    y : array of shape (n,), labels −1 and +1
    C : positive number or array of shape (n,)

    Examples
    --------
    >>> import jsvm
    >>> s = jsvm.solve(c_svc(np.eye(2), np.array([1.0, -1.0]), 1.0))
    >>> [round(float(a), 6) for a in s.alpha]
    [1.0, -1.0]
    """
    xp = namespace(K, y, C)
    y = xp.asarray(labels(y))
    C = cost(C, y.shape[0])
    return _balanced(as_hessian(K), y, *_between_zero_and(xp, y * C))


def squared_svc(K: Gram, y: Real[Array, " n"], C: Cost) -> QuadraticProgram:
    """2-norm soft margin, ½‖w‖² + ½ Σ C_i ξ_i² (Glasmachers 2008, eq. 2.4).

    It is the hard margin with K + diag(1/C).

    Examples
    --------
    >>> import jsvm
    >>> s = jsvm.solve(squared_svc(np.eye(2), np.array([1.0, -1.0]), 1.0))
    >>> [round(float(a), 6) for a in s.alpha]
    [0.5, -0.5]
    """
    xp = namespace(K, y, C)
    y = xp.asarray(labels(y))
    C = cost(C, y.shape[0])
    # The ridge is 1/C; an example with C = 0 gets a box of width zero instead.
    present = xp.zeros_like(y) + C > 0
    lower, upper = (xp.where(present, bound, 0.0) for bound in _one_sided(xp, y))
    ridge = xp.where(present, 1.0 / xp.where(present, C, 1.0), 0.0)
    return _balanced(as_hessian(K, ridge), y, lower, upper)


def hard_margin(K: Gram, y: Real[Array, " n"]) -> QuadraticProgram:
    """½‖w‖² with y_i f(x_i) ≥ 1 (Glasmachers 2008, section 2.2.1); not separable: status UNBOUNDED.

    Examples
    --------
    >>> import jsvm
    >>> s = jsvm.solve(hard_margin(np.eye(2), np.array([1.0, -1.0])))
    >>> [round(float(a), 6) for a in s.alpha]
    [1.0, -1.0]
    """
    xp = namespace(K, y)
    y = xp.asarray(labels(y))
    return _balanced(as_hessian(K), y, *_one_sided(xp, y))


def epsilon_svr(K: Gram, y: Real[Array, " n"], C: Cost, epsilon: Scalar) -> QuadraticProgram:
    """½‖w‖² + Σ C_i max(0, |f(x_i) − y_i| − ε) (Glasmachers 2008, section 2.3).

    The first n variables are α⁺ ≥ 0, the last n are α⁻ ≤ 0, as in Collobert & Bengio 2000; the
    coefficients of the regression function are their sums.

    Examples
    --------
    >>> import jsvm
    >>> s = jsvm.solve(epsilon_svr(np.eye(2), np.array([2.0, -2.0]), 10.0, 0.5))
    >>> [round(float(a), 6) for a in s.alpha]
    [1.5, 0.0, 0.0, -1.5]
    """
    xp = namespace(K, y, C, epsilon)
    y = xp.asarray(targets(y))
    C = cost(C, y.shape[0])
    check(epsilon, "epsilon", lambda value: value >= 0, "a number >= 0")
    upper = xp.zeros_like(y) + C
    groups, totals = np.zeros(y.shape[0], np.int32), xp.zeros(1, y.dtype)
    return split_l1(QuadraticProgram(as_hessian(K), y, -upper, upper, groups, totals, epsilon))


def nu_svc(
    K: Gram, y: Real[Array, " n"], nu: Scalar, weight: Real[Array, " n"] | None = None
) -> QuadraticProgram:
    """½‖w‖² − νWρ + Σ w_i ξ_i with y_i f(x_i) ≥ ρ − ξ_i and W = Σ w_i; one group for each class.

    Group 0 holds the positive examples. ρ = (λ₁ − λ₀)/2; dividing α and b by ρ gives a machine
    with margin one. An example of weight w counts as w copies. Solvers compare the gap with
    tol·min(1, νW max K_ii), because G = −Kα is not larger than νW max K_ii.

    Examples
    --------
    >>> import jsvm
    >>> s = jsvm.solve(nu_svc(np.eye(2), np.array([1.0, -1.0]), 0.5))
    >>> [round(float(a), 6) for a in s.alpha]
    [0.5, -0.5]
    """
    check_fraction(nu)
    xp = namespace(K, y, nu, weight)
    y = xp.asarray(labels(y))
    w = weights(xp, weight, y)
    if not is_traced(y, nu, w):
        check_nu(nu, np.asarray(y), np.asarray(w))
    groups = xp.where(y > 0, 0, 1)
    totals = nu * xp.sum(w) / 2 * xp.asarray([1.0, -1.0], y.dtype)
    box = _between_zero_and(xp, y * w)
    return QuadraticProgram(as_hessian(K), 0.0 * y, *box, groups, totals)


def check_nu(nu: Any, y: np.ndarray, weight: np.ndarray) -> None:
    """Raise ValueError if half of the weight, times ν, exceeds that of the smaller class."""
    smaller, whole = min(weight[y > 0].sum(), weight[y < 0].sum()), weight.sum()
    if nu * whole / 2 > smaller * (1 + 1e-12):
        raise ValueError(
            f"nu={nu} is infeasible: the smaller class has {smaller:g} of {whole:g} examples, "
            f"so nu may be at most {2 * smaller / whole:.6g}"
        )


def nu_svr(K: Gram, y: Real[Array, " n"], C: Cost, nu: Scalar) -> QuadraticProgram:
    """½‖w‖² + Σ C_i max(0, |f(x_i) − y_i| − ε) + ν ΣC_i ε, with ε chosen by ν; a group a side.

    b = (λ₀ + λ₁)/2 and ε = (λ₀ − λ₁)/2; α is doubled as for :func:`epsilon_svr`. As there, the gap
    and `tol` have the unit of y.

    Examples
    --------
    >>> import jsvm
    >>> s = jsvm.solve(nu_svr(np.eye(2), np.array([2.0, -2.0]), 1.0, 0.5))
    >>> [round(float(a), 6) for a in s.alpha]
    [0.5, 0.0, 0.0, -0.5]
    """
    check_fraction(nu)
    xp = namespace(K, y, C, nu)
    y = xp.asarray(targets(y))
    C = cost(C, y.shape[0])
    check(C, "C", lambda value: np.all(np.asarray(value) < np.inf), "finite")
    zero, upper = 0.0 * y, 0.0 * y + C
    return QuadraticProgram(
        Repeated(as_hessian(K)),
        xp.concatenate([y, y]),
        xp.concatenate([zero, -upper]),
        xp.concatenate([upper, zero]),
        np.repeat(np.arange(2, dtype=np.int32), y.shape[0]),
        nu * xp.sum(upper) / 2 * xp.asarray([1.0, -1.0], y.dtype),
    )


def one_class(K: Gram, nu: Scalar, weight: Real[Array, " n"] | None = None) -> QuadraticProgram:
    """½‖w‖² − νWρ + Σ w_i max(0, ρ − ⟨w, φ(x_i)⟩) with W = Σ w_i; the offset is b = λ = −ρ.

    Solvers compare the gap with tol·min(1, νW max K_ii), because G = −Kα is not larger than
    νW max K_ii.

    Examples
    --------
    >>> import jsvm
    >>> s = jsvm.solve(one_class(np.eye(2), 0.5))
    >>> [round(float(a), 6) for a in s.alpha]
    [0.5, 0.5]
    """
    check_fraction(nu)
    hessian = as_hessian(K)
    xp = namespace(*(K if isinstance(K, tuple) else (K,)), nu, weight)
    zero = _zeros(K, hessian.size)
    w = weights(xp, weight, zero)
    total = nu * xp.sum(w) * xp.ones(1, zero.dtype)
    return _balanced(hessian, zero, 0.0 * w, w, total)


def smallest_ball(K: Gram) -> QuadraticProgram:
    """Smallest ball around all φ(x_i) (Glasmachers 2008, section 9.1.4); centre Σ α_i φ(x_i).

    R² = 2λ + αᵀKα.

    Examples
    --------
    >>> import jsvm
    >>> s = jsvm.solve(smallest_ball(np.eye(2)))
    >>> [round(float(a), 6) for a in s.alpha]
    [0.5, 0.5]
    """
    hessian = as_hessian(K)
    zero = _zeros(K, hessian.size)
    on_demand = isinstance(K, tuple)
    half = 0.5 * (in_full_precision(hessian.diagonal, K) if on_demand else namespace(K).diagonal(K))
    return _balanced(hessian, half, zero, zero + np.inf, namespace(half).ones(1, half.dtype))


def _balanced(
    hessian: Any, linear: Any, lower: Any, upper: Any, total: Any = None
) -> QuadraticProgram:
    """Return the program with one group; its total is zero unless given."""
    xp = namespace(linear, lower, upper)
    groups = np.zeros(linear.shape[0], np.int32)
    totals = xp.zeros(1, linear.dtype) if total is None else total
    return QuadraticProgram(hessian, linear, lower, upper, groups, totals)


def _between_zero_and(xp: Any, ends: Any) -> tuple[Any, Any]:
    return xp.minimum(0.0, ends), xp.maximum(0.0, ends)


def _one_sided(xp: Any, y: Any) -> tuple[Any, Any]:
    return xp.where(y > 0, 0.0, -np.inf), xp.where(y > 0, np.inf, 0.0)


def _zeros(K: Gram, n: int) -> Any:
    data = K[1] if isinstance(K, tuple) else K
    xp = namespace(data)
    return xp.zeros(n, data.dtype if np.issubdtype(data.dtype, np.floating) else float)


def check(value: Any, name: str, accepts: Callable[[Any], Any], wanted: str) -> None:
    """Raise ValueError if a value is not accepted."""
    if not is_traced(value) and not accepts(value):
        raise ValueError(f"{name}={value!r} must be {wanted}")


def are_normal(values: Any) -> bool:
    """Tell whether numbers >= 0 are zero or normal: XLA takes the others for zero."""
    values = as_floating(values)
    return not bool(((values > 0) & (values < np.finfo(values.dtype).tiny)).any())


def check_fraction(nu: Any) -> None:
    """Raise ValueError if ν is outside (0, 1]."""
    check(nu, "nu", lambda value: 0 < value <= 1, "in (0, 1]")


def labels(y: Any) -> Any:
    """Return the labels −1 and +1 as floating-point numbers."""
    y = targets(y)
    if not is_traced(y) and not (np.abs(np.asarray(y)) == 1.0).all():
        raise ValueError("y must hold the labels -1 and +1 only; encode other labels first")
    return y


def targets(y: Any) -> Any:
    """Return the finite targets of a regression as floating-point numbers."""
    y = as_floating(y)
    if y.ndim != 1:
        raise ValueError(f"y must be one-dimensional, not of shape {y.shape}")
    if not is_traced(y) and not np.isfinite(np.asarray(y)).all():
        raise ValueError("y must be finite")
    return y


def cost(C: Any, n: int, infinite: str = "a hard margin") -> Any:
    """Return C ≥ 0, one number or n of them; `infinite` says what C = ∞ means."""
    if np.shape(C) not in ((), (n,)):
        raise ValueError(f"C must be one number or {n} of them, not of shape {np.shape(C)}")
    check(C, "C", lambda value: np.all(np.asarray(value) >= 0), f">= 0 (np.inf for {infinite})")
    check(C, "C", are_normal, NORMAL)
    return C


def weights(xp: Any, weight: Any, like: Any) -> Any:
    """Return one weight ≥ 0 an example; ones if there are none."""
    if weight is None:
        return xp.ones_like(like)
    if np.shape(weight) != like.shape:
        raise ValueError(f"weight must hold {like.shape[0]} numbers, not {np.shape(weight)}")
    if not is_traced(weight) and not (np.asarray(weight) >= 0).all():
        raise ValueError("weight must hold numbers >= 0")
    check(weight, "weight", are_normal, NORMAL)
    return 0.0 * like + xp.asarray(weight)
