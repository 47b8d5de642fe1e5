"""The independent check: silent about every machine's solution, and not about false ones."""

from dataclasses import replace

import numpy as np
import pytest
from problems_for_tests import chess, rbf, regression, two_classes

from jsvm import kernels, problems, solve
from jsvm.problems import check
from jsvm.solvers import SMO

RNG = np.random.default_rng(0)
X, Y = two_classes(RNG)
Z, T = regression(RNG)
K, KZ = rbf(X), rbf(Z)
MACHINES = {
    "c_svc": lambda: problems.c_svc(K, Y, 2.0),
    "c_svc with a kernel": lambda: problems.c_svc((kernels.RBF(0.5), X), Y, 2.0),
    "squared_svc": lambda: problems.squared_svc(K, Y, 2.0),
    "hard_margin": lambda: problems.hard_margin(rbf(X, gamma=20.0), Y),
    "epsilon_svr": lambda: problems.epsilon_svr(KZ, T, 2.0, 0.1),
    "nu_svc": lambda: problems.nu_svc(K, Y, 0.4),
    "nu_svr": lambda: problems.nu_svr(KZ, T, 2.0, 0.4),
    "one_class": lambda: problems.one_class(K, 0.3),
    "smallest_ball": lambda: problems.smallest_ball(K),
    "psvm": lambda: problems.psvm(K, Y, 2.0, 0.1),
}


@pytest.mark.parametrize("name", MACHINES)
def test_true_claims_pass_and_false_ones_do_not(name):
    problem = MACHINES[name]()
    solution = solve(problem)
    report = check(problem, solution, tol=1e-3)
    assert report, report.complaints
    assert report.violation <= 1e-3
    assert report.infeasibility <= 1e-14
    assert report.objective_error < 1e-9
    for field in ("violation", "objective"):
        lie = replace(solution, **{field: getattr(solution, field) + 1e-6})
        assert any(field in line for line in check(problem, lie).complaints)
    moved = solution.alpha.copy()
    moved[0] += 1e-4
    assert not check(problem, replace(solution, alpha=moved), tol=1e-6)
    assert not check(problem, replace(solution, alpha=np.full_like(moved, np.nan)))


def test_a_false_duality_gap_is_found():
    problem = MACHINES["c_svc"]()
    solution = solve(problem)
    lie = replace(solution, primal_objective=solution.primal_objective - 1e-6)
    assert any("duality_gap" in line for line in check(problem, lie).complaints)


def test_points_in_float32_are_checked_in_float64():
    X, y = chess(30)
    problem = problems.c_svc((kernels.RBF(np.float32(2.0)), X.astype(np.float32)), y, 1e3)
    report = check(problem, solve(problem), tol=1e-3)
    assert report, report.complaints
    assert report.violation_error < 1e-9


def test_copies_that_cancel_count_for_the_error():
    """α and α* of an example are both near C = 4e7: their sum is small, its rounding error not."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 3))
    problem = problems.nu_svr((kernels.RBF(0.5), X), X[:, 0] + rng.normal(size=30), 4e7, 0.4)
    report = check(problem, solve(problem), tol=1e-3)
    assert report, report.complaints


def test_a_false_verdict_is_found():
    X, y = chess(14)
    problem = problems.c_svc((kernels.RBF(0.5), X), y, 100.0)
    early = replace(solve(problem), alpha=np.zeros(14))
    assert any(line.startswith("converged at 2") for line in check(problem, early, 1e-3).complaints)


def test_a_sum_that_is_off_is_found():
    problem = MACHINES["c_svc"]()
    solution = solve(problem)
    inside = (np.abs(solution.alpha) > 0.1) & (np.abs(solution.alpha) < 1.9)
    off = solution.alpha + 1e-9 * inside
    assert any(
        "sum of group 0" in line for line in check(problem, replace(solution, alpha=off)).complaints
    )


@pytest.mark.parametrize("C", [1e-300, 1e-150, 1e150, 1e200, 1e300])
@pytest.mark.parametrize("steps", [20_000, 0])
def test_no_cost_makes_the_duality_gap_fall_below_zero(C, steps):
    solver = SMO(max_steps=steps)
    for problem in (
        problems.squared_svc(K, Y, C),
        problems.c_svc(K, Y, C),
        problems.epsilon_svr(KZ, 1e10 * T, C, 0.1),
    ):
        solution = solve(problem, solver)
        assert solution.duality_gap >= -1e-13 * abs(solution.objective)
        assert check(problem, solution).complaints == ()
