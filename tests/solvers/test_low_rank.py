"""Kernels of low rank: many variables, few of them independent, and costs of any size."""

import jax.numpy as jnp
import numpy as np
import pytest

from jsvm import kernels, problems, solve
from jsvm.problems import Tile, check
from jsvm.solvers import SMO, Status
from jsvm.solvers.tile.block_step import block_step
from jsvm.solvers.tile.independent import independent
from jsvm.solvers.tile.slots import Point, Slots


def coins(seed, n=228, d=10):
    """Labels that have nothing to do with the points, 12 % of them positive."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.where(rng.random(n) < 0.12, 1.0, -1.0)


def assert_solved(problem, tol):
    solution = solve(problem, SMO(tol=tol))
    assert solution.status == Status.CONVERGED
    report = check(problem, solution, tol=tol)
    assert report, report.complaints
    return solution


@pytest.mark.parametrize("tol", [1e-3, 1e-5])
@pytest.mark.parametrize("C", [1e3, 1e4, 1e5, 1e6])
@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(2, 40), marks=pytest.mark.slow)])
def test_a_linear_kernel_is_solved_at_any_cost(C, tol, seeds):
    for seed in seeds:
        X, y = coins(seed)
        assert_solved(problems.c_svc((kernels.Linear(), X), y, C), tol)


def test_a_given_matrix_may_have_a_low_rank():
    X, y = coins(1)
    assert_solved(problems.c_svc(X @ X.T, y, 1e6), 1e-5)


def test_a_smaller_tolerance_does_not_worsen_the_answer():
    X, y = coins(1)
    problem = problems.c_svc((kernels.Linear(), X), y, 1e6)
    rough, fine = (assert_solved(problem, tol) for tol in (1e-3, 1e-5))
    assert fine.violation <= max(rough.violation, 1e-5)
    np.testing.assert_allclose(fine.objective, rough.objective, rtol=1e-5)


@pytest.mark.parametrize(
    "kernel", [kernels.Linear(), 0.5 * kernels.Linear() + kernels.Polynomial(2, 1.0, 1.0)]
)
def test_many_tiles(kernel):
    X, y = coins(0, n=1500, d=3)
    solution = assert_solved(problems.c_svc((kernel, X), y, 1e5), 1e-4)
    free = (solution.alpha != 0) & (np.abs(solution.alpha) < 1e5)
    assert free.sum() <= kernel.rank(3) + 1


def test_regression_has_two_groups_of_copies():
    X, _ = coins(3, n=100, d=4)
    target = X[:, 0] + np.random.default_rng(3).normal(size=100)
    assert_solved(problems.epsilon_svr((kernels.Linear(), X), target, 1e4, 0.1), 1e-5)
    assert_solved(problems.nu_svr((kernels.Linear(), X), target, 1e4, 0.4), 1e-5)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("groups", [1, 2])
def test_independent_variables_lower_the_objective(groups):
    rng = np.random.default_rng(groups)
    m, d = 40, 3
    X = rng.normal(size=(m, d))
    members = np.arange(m) % groups == np.arange(groups)[:, None]
    alpha = rng.uniform(-0.5, 0.5, m)
    for inside in members:
        alpha[inside] -= alpha[inside].mean()
    Q, linear = X @ X.T, rng.normal(size=m)
    part = Slots(jnp.asarray(Q), -jnp.ones(m), jnp.ones(m), jnp.asarray(members))
    point = Point(jnp.asarray(alpha), jnp.asarray(linear - Q @ alpha), jnp.ones(m, bool))
    end, P, moves = independent(part, point, jnp.asarray(True))
    new = np.asarray(end.alpha)

    def objective(a):
        return 0.5 * a @ Q @ a - linear @ a

    assert objective(new) < objective(alpha)
    assert np.abs(new).max() <= 1
    np.testing.assert_allclose([new[i].sum() for i in members], 0.0, atol=1e-12)
    np.testing.assert_allclose(end.gradient, linear - Q @ new, atol=1e-9)
    free = np.asarray(end.free)
    assert ((np.abs(new) < 1) == free).all()
    assert free.sum() <= d + groups
    assert moves <= 3 * m
    # P is the inverse of Q on the directions that keep the sums of the free variables.
    F = np.flatnonzero(free)
    basis = np.linalg.svd(members[:, F].astype(float))[2][groups:].T
    expected = basis @ np.linalg.inv(basis.T @ Q[np.ix_(F, F)] @ basis) @ basis.T
    np.testing.assert_allclose(np.asarray(P)[np.ix_(F, F)], expected, rtol=1e-6, atol=1e-9)


@pytest.mark.usefixtures("x64")
def test_nothing_happens_where_it_is_not_wanted():
    m = 8
    part = Slots(jnp.eye(m), -jnp.ones(m), jnp.ones(m), jnp.ones((1, m), bool))
    point = Point(jnp.zeros(m), jnp.arange(m, dtype=float), jnp.ones(m, bool))
    end, _, moves = independent(part, point, jnp.asarray(False))
    assert moves == 0
    np.testing.assert_array_equal(end.alpha, point.alpha)


@pytest.mark.usefixtures("x64")
def test_a_block_step_leaves_few_variables_free():
    X, y = coins(5, n=60, d=2)
    rng = np.random.default_rng(5)
    alpha = rng.uniform(-0.4, 0.4, 60)
    alpha -= alpha.mean()
    tile = Tile.of(problems.Dense(jnp.asarray(X @ X.T)))
    program = problems.QuadraticProgram(
        tile, jnp.asarray(y), -jnp.ones(60), jnp.ones(60), jnp.zeros(60, jnp.int32), jnp.zeros(1)
    )
    new, gradient, rounds = block_step(
        program, jnp.asarray(alpha), program.gradient(jnp.asarray(alpha)), 60, low_rank=True
    )
    free = np.abs(np.asarray(new)) < 1
    assert free.sum() <= 3
    assert rounds > 0
    np.testing.assert_allclose(gradient, program.gradient(new), atol=1e-10)
    inside = np.asarray(gradient)[free]
    assert np.ptp(inside) < 1e-10
