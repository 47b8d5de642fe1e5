"""Random problems of one size, and the bounds within which two solutions of one problem agree.

Let a and b be feasible with gaps ψ_a and ψ_b, and d = b − a. In every group Σd = 0, so the slope of
−f at a along d is at most ψ_a ‖d‖₁/2, and −f is concave if Q is positive semi-definite:

    f(a) − f(b) ≤ ½ψ_a ‖d‖₁,    dᵀQd ≤ ½(ψ_a + ψ_b) ‖d‖₁,    |Qd|_i ≤ √(Q_ii dᵀQd).

A variable that is free in both has a gradient within ψ of each multiplier, so multipliers differ by
at most ψ_a + ψ_b + |Qd|_i; where nothing is free they are middles of intervals with ends that move
by at most max |Qd|. Nothing here is tuned: ψ and all rounding errors are those of `problems.check`.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st

from jsvm import kernels, problems, solve
from jsvm.problems import Check, QuadraticProgram, check
from jsvm.problems.hessian import gram
from jsvm.solvers import SMO, Solution, Status

N, FEATURES = 24, 3
TIGHT = SMO(tol=1e-10)
EPS = float(np.finfo(float).eps)
SEEDS = st.integers(0, 10**6)


def thorough(test: Any) -> Any:
    """Mark a property as slow, and try it two hundred times."""
    return pytest.mark.slow(settings(max_examples=200, deadline=None)(test))


def powers(least: float, most: float) -> st.SearchStrategy[float]:
    """Return numbers from 10^least to 10^most."""
    return st.floats(least, most).map(lambda exponent: 10.0**exponent)


# Of every kernel: itself, its value at X and Z in NumPy, and itself for points that are s times as
# far apart, each with the width γ.
def _squares(X, Z):
    return ((X[:, None] - Z[None]) ** 2).sum(-1)


def _absolute(X, Z):
    return np.abs(X[:, None] - Z[None]).sum(-1)


KERNELS: dict[str, tuple[Any, Any, Any]] = {
    "rbf": (
        kernels.RBF,
        lambda X, Z, g: np.exp(-g * _squares(X, Z)),
        lambda g, s: kernels.RBF(g / s**2),
    ),
    "laplacian": (
        kernels.Laplacian,
        lambda X, Z, g: np.exp(-g * _absolute(X, Z)),
        lambda g, s: kernels.Laplacian(g / s),
    ),
    "linear": (
        lambda g: g * kernels.Linear(),
        lambda X, Z, g: g * X @ Z.T,
        lambda g, s: g / s**2 * kernels.Linear(),
    ),
    "polynomial": (
        lambda g: kernels.Polynomial(2, g, 1.0),
        lambda X, Z, g: (g * X @ Z.T + 1.0) ** 2,
        lambda g, s: kernels.Polynomial(2, g / s**2, 1.0),
    ),
    "sum": (
        lambda g: kernels.RBF(g) + kernels.Polynomial(2, 1.0, 1.0),
        lambda X, Z, g: np.exp(-g * _squares(X, Z)) + (X @ Z.T + 1.0) ** 2,
        lambda g, s: kernels.RBF(g / s**2) + kernels.Polynomial(2, 1.0 / s**2, 1.0),
    ),
    "product": (
        lambda g: kernels.RBF(1.0) * kernels.Laplacian(g),
        lambda X, Z, g: np.exp(-_squares(X, Z) - g * _absolute(X, Z)),
        lambda g, s: kernels.RBF(1.0 / s**2) * kernels.Laplacian(g / s),
    ),
}


class Sample(NamedTuple):
    """Points with labels and targets, a kernel, and a cost."""

    name: str
    width: float
    X: np.ndarray
    y: np.ndarray
    target: np.ndarray
    C: float
    as_matrix: bool

    @property
    def kernel(self) -> Any:
        return KERNELS[self.name][0](self.width)

    @property
    def K(self) -> np.ndarray:
        return self.between(self.X, self.X)

    @property
    def given(self) -> Any:
        """The matrix, or the pair of kernel and points."""
        return self.gram(self.X)

    def gram(self, X: np.ndarray) -> Any:
        return self.between(X, X) if self.as_matrix else (self.kernel, X)

    def between(self, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        return KERNELS[self.name][1](X, Z, self.width)


@st.composite
def samples(
    draw: Any, costs: Any = None, names: Any = tuple(KERNELS), widths: Any = None, n: int = N
) -> Sample:
    """Return points of all kinds: in general position, few values with copies, and far from zero.

    Both classes are present; labels and targets have little to do with the points.
    """
    rng = np.random.default_rng(draw(SEEDS))
    kind = draw(st.sampled_from(["general", "general", "grid", "shifted"]))
    X = rng.normal(size=(n, FEATURES))
    X = np.round(X) if kind == "grid" else X + 3.0 if kind == "shifted" else X
    y = np.where(rng.random(n) < draw(st.floats(0.1, 0.9)), 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return Sample(
        name=draw(st.sampled_from(names)),
        width=draw(powers(-3, 2) if widths is None else widths),
        X=X,
        y=y,
        target=np.sin(X.sum(axis=1)) + 0.3 * rng.normal(size=n),
        C=draw(powers(-6, 6) if costs is None else costs),
        as_matrix=draw(st.booleans()),
    )


class Answer(NamedTuple):
    """A problem, its solution, and what the independent check says about it."""

    problem: QuadraticProgram
    solution: Solution
    report: Check

    @property
    def alpha(self) -> np.ndarray:
        return self.solution.alpha

    @property
    def gap(self) -> float:
        """The largest that ψ can be, whatever the rounding errors."""
        return self.report.violation + self.report.violation_error

    @property
    def error(self) -> float:
        """A bound of the rounding errors of a gradient."""
        return self.report.violation_error


def checked(problem: QuadraticProgram, solution: Solution, tol: float, eps: float = EPS) -> Answer:
    """Return the answer; what it claims is true, and it stopped at `tol` or at rounding errors."""
    problem = replace(problem, hessian=in_memory(problem.hessian))
    report = check(problem, solution, tol)
    assert report, report.complaints
    assert solution.status in (Status.CONVERGED, Status.STALLED)
    if solution.status == Status.STALLED:
        assert report.violation <= tol + report.violation_error * eps / EPS
    return Answer(problem, solution, report)


def solved(problem: QuadraticProgram, solver: Any = TIGHT, start: Any = None, **options) -> Answer:
    """Solve, and check the solution."""
    return checked(problem, solve(problem, solver, start, **options), solver.tol)


def in_memory(hessian: Any) -> Any:
    """Return Q with its kernel as a matrix: one program for all, however few have α ≠ 0."""
    if isinstance(hessian, problems.Repeated):
        return problems.Repeated(in_memory(hessian.hessian))
    if not isinstance(hessian, problems.FromKernel):
        return hessian
    with jax.enable_x64(True):
        return problems.Dense(np.asarray(gram(hessian.kernel, hessian.X)), hessian.ridge)


def matrix_of(hessian: Any) -> np.ndarray:
    """Return Q as a matrix of NumPy."""
    if isinstance(hessian, problems.Repeated):
        return np.tile(matrix_of(hessian.hessian), (2, 2))
    if isinstance(hessian, problems.Normal):
        rows = np.asarray(hessian.data.all_objects())
        return rows @ rows.T
    return hessian.matrix + np.diag(np.broadcast_to(hessian.ridge, hessian.size))


def assert_same(
    here: Answer,
    there: Answer,
    alpha: Any = None,
    multipliers: Any = None,
    *,
    stretch: float = 1.0,
    same_examples: bool = True,
) -> None:
    """Assert that two answers are the same machine.

    `alpha` and `multipliers` are those of the answer there, in the variables of the problem here;
    the unit of its gradient is `stretch` times as large here. Where nothing is free the interval of
    a multiplier depends on all examples, also on those that are no support vectors.
    """
    problem = here.problem
    alpha = there.alpha if alpha is None else alpha
    multipliers = there.solution.multipliers if multipliers is None else multipliers
    lower, upper = (np.asarray(v, float) for v in (problem.lower, problem.upper))
    for bound in (lower, upper):  # where the variables are scaled, a bound is met up to rounding
        alpha = np.where(np.isclose(alpha, bound, rtol=8 * EPS, atol=0.0), bound, alpha)
    moved = replace(there.solution, alpha=alpha, multipliers=np.asarray(multipliers, float))
    report = check(problem, moved)
    assert report.infeasibility <= N * 8 * EPS * (np.abs(alpha).sum() + np.abs(here.alpha).sum())
    other_gap = report.violation + report.violation_error
    assert other_gap <= stretch * there.gap + 2 * report.violation_error

    d = alpha - here.alpha
    size = np.abs(d).sum() * (0.5 if problem.group_count else 1.0)
    errors = here.report.objective_error + report.objective_error
    assert here.report.objective - report.objective <= here.gap * size + errors
    assert report.objective - here.report.objective <= other_gap * size + errors

    Q = matrix_of(problem.hessian)
    error = here.error + report.violation_error
    rounding = N * EPS * np.abs(Q).max() * np.abs(d).sum() ** 2  # of the least eigenvalue
    square = (here.gap + other_gap) * size + rounding
    change = np.abs(Q @ d)
    assert (change <= np.sqrt(np.maximum(np.diagonal(Q), 0.0) * square) + error).all()

    both = (np.minimum(alpha, here.alpha) > lower) & (np.maximum(alpha, here.alpha) < upper)
    alike = ((alpha < upper) == (here.alpha < upper)) & ((alpha > lower) == (here.alpha > lower))
    for g in range(problem.group_count):
        inside = np.asarray(problem.groups) == g
        move = np.max(change, where=both & inside, initial=0.0)
        if not (both & inside).any():
            if not (same_examples and alike[inside].all()):
                continue  # an interval of multipliers
            move = change[inside].max()
        difference = abs(here.solution.multipliers[g] - moved.multipliers[g])
        assert difference <= here.gap + other_gap + move + error


MACHINES: dict[str, Any] = {
    "c_svc": lambda K, y, t, C: problems.c_svc(K, y, C),
    "squared_svc": lambda K, y, t, C: problems.squared_svc(K, y, C),
    "nu_svc": lambda K, y, t, C: problems.nu_svc(K, y, most_nu(y) * C / (1.0 + C)),
    "epsilon_svr": lambda K, y, t, C: problems.epsilon_svr(K, t, C, 0.1),
    "nu_svr": lambda K, y, t, C: problems.nu_svr(K, t, C, 0.4321),
    "one_class": lambda K, y, t, C: problems.one_class(K, C / (1.0 + C)),
    "smallest_ball": lambda K, y, t, C: problems.smallest_ball(K),
}


def most_nu(y: np.ndarray) -> float:
    """Return the largest ν for which a ν-SVC exists."""
    return float(2.0 * min(np.mean(y > 0), np.mean(y < 0)))
