"""Every machine against a generic QP solver, and its certificate against the primal problem."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems_for_tests import rbf, regression, two_classes
from references import solve_qp

from jsvm import kernels, problems, solve
from jsvm.solvers import SMO, Status

GAMMA = 0.5
SOLVER = SMO(tol=1e-9)


def hinge(y, f):
    return np.maximum(0.0, 1.0 - y * f)


def tube(y, f, epsilon):
    return np.maximum(0.0, np.abs(f - y) - epsilon)


# name -> (problem, primal objective as a function of w² = αᵀKα, outputs f without offset, solution)
def c_svc(K, y, _):
    return problems.c_svc(K, y, 2.0), lambda w2, f, s: w2 / 2 + 2.0 * hinge(y, f + s.bias).sum()


def squared_svc(K, y, _):
    return problems.squared_svc(K, y, 2.0), (
        lambda w2, f, s: w2 / 2 + 1.0 * (hinge(y, f + s.bias) ** 2).sum()
    )


def hard_margin(K, y, _):
    return problems.hard_margin(K, y), lambda w2, f, s: w2 / 2


def epsilon_svr(K, _, t):
    return problems.epsilon_svr(K, t, 2.0, 0.1), (
        lambda w2, f, s: w2 / 2 + 2.0 * tube(t, f + s.bias, 0.1).sum()
    )


def nu_svc(K, y, _):
    def primal(w2, f, s):
        rho = (s.multipliers[1] - s.multipliers[0]) / 2
        xi = np.maximum(0.0, rho - y * (f + s.bias))
        return w2 / 2 - 0.4 * len(y) * rho + xi.sum()

    return problems.nu_svc(K, y, 0.4), primal


def nu_svr(K, _, t):
    def primal(w2, f, s):
        epsilon = (s.multipliers[0] - s.multipliers[1]) / 2
        errors = tube(t, f + s.bias, epsilon).sum()
        return w2 / 2 + 2.0 * (errors + 0.4 * len(t) * epsilon)

    return problems.nu_svr(K, t, 2.0, 0.4), primal


def one_class(K, y, _):
    def primal(w2, f, s):
        rho = -s.bias
        return w2 / 2 - 0.3 * len(y) * rho + np.maximum(0.0, rho - f).sum()

    return problems.one_class(K, 0.3), primal


def smallest_ball(K, y, _):
    def primal(w2, f, s):
        matrix = K if isinstance(K, np.ndarray) else rbf(K[1], gamma=GAMMA)
        squared_distance = np.diagonal(matrix) - 2 * f + w2
        return (squared_distance.max() - w2) / 2 + w2 / 2

    return problems.smallest_ball(K), primal


MACHINES = {
    "c_svc": c_svc,
    "squared_svc": squared_svc,
    "hard_margin": hard_margin,
    "epsilon_svr": epsilon_svr,
    "nu_svc": nu_svc,
    "nu_svr": nu_svr,
    "one_class": one_class,
    "smallest_ball": smallest_ball,
}


def dense(program):
    with jax.enable_x64(True):
        return np.asarray(program.hessian.rows(np.arange(program.size)))


def against_generic_solver(program, solution, tolerance=1e-6):
    Q = dense(program)
    groups = None if program.groups is None else np.asarray(program.groups)
    linear, lower, upper = (np.asarray(v) for v in (program.linear, program.lower, program.upper))
    reference, value = solve_qp(
        Q, linear, lower, upper, groups, program.totals, float(program.l1 or 0.0)
    )
    scale = tolerance * max(1.0, abs(value))
    assert abs(solution.objective - value) <= scale
    assert np.abs(Q @ (solution.alpha - reference)).max() <= scale


@pytest.mark.parametrize("given_as", ["matrix", "kernel and data"])
@pytest.mark.parametrize("name", MACHINES)
class TestContract:
    def build(self, name, given_as, seed=3):
        rng = np.random.default_rng(seed)
        X, y = two_classes(rng)
        t = np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=len(y))
        K = rbf(X, gamma=GAMMA) if given_as == "matrix" else (kernels.RBF(GAMMA), X)
        program, primal = MACHINES[name](K, y, t)
        return program, primal, rbf(X, gamma=GAMMA)

    def test_equals_a_generic_solver(self, name, given_as):
        for seed in range(3):
            program, _, _ = self.build(name, given_as, seed)
            solution = solve(program, SOLVER)
            assert solution.status == Status.CONVERGED
            against_generic_solver(program, solution)

    def test_certificate_is_the_primal_problem(self, name, given_as):
        program, primal, K = self.build(name, given_as)
        s = solve(program, SOLVER)
        n = len(K)
        beta = s.alpha if len(s.alpha) == n else s.alpha[:n] + s.alpha[n:]
        expected = primal(beta @ K @ beta, K @ beta, s)
        np.testing.assert_allclose(s.primal_objective, expected, rtol=1e-7, atol=1e-9)
        assert -1e-9 <= s.duality_gap <= 1e-6 * max(1.0, abs(s.objective))
        assert s.violation <= 1e-9

    def test_solution_is_feasible(self, name, given_as):
        program, _, _ = self.build(name, given_as)
        s = solve(program, SMO(tol=1e-3))
        assert (s.alpha >= program.lower).all()
        assert (s.alpha <= program.upper).all()
        for g, total in enumerate(program.totals):
            np.testing.assert_allclose(s.alpha[program.groups == g].sum(), total, atol=1e-12)

    def test_a_bad_answer_has_a_large_gap(self, name, given_as):
        program, _, _ = self.build(name, given_as)
        rough = solve(program, SMO(max_steps=1, block=False))
        exact = solve(program, SOLVER)
        assert rough.objective > exact.objective
        assert rough.violation > 1e-3
        # The duality gap bounds the distance to the optimum, whatever the point.
        assert rough.duality_gap >= rough.objective - exact.objective - 1e-9

    def test_dtype_of_numpy_data_is_kept(self, name, given_as):
        program, _, _ = self.build(name, given_as)
        assert isinstance(program.linear, np.ndarray)
        assert program.linear.dtype == np.float64

    def test_kernel_rows_are_counted(self, name, given_as):
        program, _, K = self.build(name, given_as)
        rows = solve(program, SOLVER).kernel_rows
        assert rows == (0 if given_as == "matrix" else len(K))  # one for both variables
        assert len(program.linear) in (len(K), 2 * len(K))


@settings(max_examples=30)
@given(
    data=st.data(),
    name=st.sampled_from([n for n in MACHINES if n != "hard_margin"]),
    seed=st.integers(0, 10**6),
)
def test_random_problems_equal_a_generic_solver(data, name, seed):
    rng = np.random.default_rng(seed)
    kind = data.draw(st.sampled_from(["gaussian", "low rank", "duplicates"]))
    X, y = two_classes(rng)
    if kind == "duplicates":
        X[7:] = X[:7]
    K = X @ X.T if kind == "low rank" else rbf(X, gamma=GAMMA)
    program, _ = MACHINES[name](K, y, rng.normal(size=len(y)))
    solution = solve(program, SOLVER)
    against_generic_solver(program, solution)


@pytest.mark.parametrize("name", ["c_svc", "squared_svc", "epsilon_svr"])
def test_cost_of_zero_leaves_an_example_out(name, rng):
    X, y = two_classes(rng)
    K, C = rbf(X), np.where(np.arange(14) < 4, 0.0, 2.0)
    extra = (0.1,) if name == "epsilon_svr" else ()
    build = getattr(problems, name)
    with_zeros = solve(build(K, y, C, *extra), SOLVER)
    without = solve(build(K[4:, 4:], y[4:], 2.0, *extra), SOLVER)
    np.testing.assert_allclose(with_zeros.objective, without.objective, rtol=1e-9)
    np.testing.assert_allclose(with_zeros.bias, without.bias, rtol=1e-7)


def test_epsilon_svr_is_the_l1_program(rng):
    X, t = regression(rng)
    K, n = rbf(X), len(t)
    short = problems.QuadraticProgram(
        problems.Dense(K), t, np.full(n, -2.0), np.full(n, 2.0), np.zeros(n, int), np.zeros(1), 0.1
    )
    s = solve(short, SOLVER)
    against_generic_solver(short, s)
    doubled = solve(problems.epsilon_svr(K, t, 2.0, 0.1), SOLVER)
    np.testing.assert_allclose(s.alpha, doubled.alpha[:n] + doubled.alpha[n:], atol=1e-9)
    np.testing.assert_allclose(s.objective, doubled.objective, rtol=1e-12)


@pytest.mark.parametrize("l1", [0.0, 0.3])
def test_program_without_equality_constraint(l1, rng):
    X, y = two_classes(rng)
    n = len(y)
    program = problems.QuadraticProgram(
        problems.Dense(rbf(X)), y, np.full(n, -0.7), np.full(n, 0.7), l1=l1
    )
    s = solve(program, SOLVER)
    against_generic_solver(program, s)
    assert s.multipliers.shape == (0,)
    assert s.bias == 0.0
    again = solve(program, SOLVER, start=s)
    assert again.steps == 0


def test_hessians_answer_alike(rng):
    X, v = rng.normal(size=(5, 2)), rng.normal(size=5)
    ridge = np.linspace(0.1, 0.5, 5)
    K = rbf(X) + np.diag(ridge)
    indices = np.array([3, 0])
    with jax.enable_x64(True):
        tile = problems.Tile.of(problems.Dense(rbf(X), ridge))
        for hessian in (
            problems.Dense(rbf(X), ridge),
            problems.FromKernel(kernels.RBF(0.5), X, ridge),
            problems.FromKernel(kernels.RBF(0.5), X, ridge).dense(),
            tile,
        ):
            assert hessian is tile or isinstance(hessian, problems.Hessian)
            assert hessian.size == 5
            np.testing.assert_allclose(hessian.rows(indices), K[indices], rtol=1e-12)
            np.testing.assert_allclose(hessian.diagonal(), np.diagonal(K), rtol=1e-12)
            np.testing.assert_allclose(hessian.matvec(v), K @ v, rtol=1e-10)
            np.testing.assert_allclose(hessian.ridge_vector(), ridge, rtol=1e-12)
        doubled = problems.Repeated(problems.Dense(rbf(X)))
        K2, v2 = np.tile(rbf(X), (2, 2)), np.concatenate([v, 2 * v])
        np.testing.assert_allclose(doubled.rows(np.array([7])), K2[[7]], rtol=1e-12)
        np.testing.assert_allclose(doubled.matvec(v2), K2 @ v2, rtol=1e-10)
        np.testing.assert_allclose(doubled.diagonal(), np.diagonal(K2), rtol=1e-12)
        np.testing.assert_allclose(doubled.dense().matrix, K2, rtol=1e-12)


@pytest.mark.usefixtures("x64")
def test_feasible_point_fills_every_group(rng):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        groups = rng.integers(0, 2, 9)
        lower, upper = -rng.uniform(0, 1, 9), rng.uniform(0, 1, 9)
        share = rng.uniform(0, 1, 2)
        totals = np.array(
            [
                (1 - s) * lower[groups == g].sum() + s * upper[groups == g].sum()
                for g, s in enumerate(share)
            ]
        )
        program = problems.QuadraticProgram(
            problems.Dense(np.eye(9)), np.zeros(9), lower, upper, groups, totals
        )
        alpha = np.asarray(program.feasible_point())
        assert (alpha >= lower - 1e-15).all()
        assert (alpha <= upper + 1e-15).all()
        for g in range(2):
            np.testing.assert_allclose(alpha[groups == g].sum(), totals[g], atol=1e-12)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda K, y: problems.c_svc(K, y, -1.0), "C=-1.0"),
        (lambda K, y: problems.c_svc(K, y, np.nan), "C=nan"),
        (lambda K, y: problems.c_svc(K, 3 * y, 1.0), "labels -1 and \\+1"),
        (lambda K, y: problems.c_svc(K, y, np.ones(3)), "one number or 14"),
        (lambda K, y: problems.nu_svr(K, y, np.inf, 0.5), "C=inf"),
        (lambda K, y: problems.c_svc(K[:, :3], y, 1.0), "square matrix"),
        (lambda K, y: problems.c_svc(np.triu(K), y, 1.0), r"not symmetric: .* K_ji\| is 0\.\d+"),
        (lambda K, y: problems.c_svc((1, K), y, 1.0), "pair \\(Kernel, X\\)"),
        (lambda K, y: problems.nu_svc(K, y, 0.0), "nu=0.0"),
        (lambda K, y: problems.nu_svc(K, np.sign(y - 0.5 + np.eye(14)[0]), 1.5), "nu=1.5"),
        (lambda K, y: problems.one_class(K, 2.0), "nu=2.0"),
        (lambda K, y: problems.epsilon_svr(K, y, 1.0, -0.1), "epsilon=-0.1"),
        (lambda K, y: problems.epsilon_svr(K, y * np.nan, 1.0, 0.1), "y must be finite"),
    ],
)
def test_errors_name_the_argument(build, message, rng):
    X, y = two_classes(rng)
    with pytest.raises(ValueError, match=message):
        build(rbf(X), y)


def test_an_infeasible_nu_says_what_is_possible(rng):
    X, _ = two_classes(rng)
    y = np.where(np.arange(14) < 3, 1.0, -1.0)
    with pytest.raises(ValueError, match=r"at most 0\.428"):
        problems.nu_svc(rbf(X), y, 0.5)
    limit = problems.nu_svc(rbf(X), y, 6 / 14)
    against_generic_solver(limit, solve(limit, SOLVER))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lower": np.array([0.0, 2.0])}, "lower\\[1\\]=2.0 is above"),
        ({"upper": np.array([1.0, np.nan])}, "upper is not a number at index 1"),
        ({"linear": np.array([np.inf, 0.0])}, "linear is not a number at index 0"),
        ({"totals": np.array([5.0])}, "infeasible"),
        ({"groups": np.array([0, 1])}, "groups must hold"),
        ({"linear": np.zeros(3)}, "sizes do not agree"),
        ({"totals": None}, "belong together"),
        ({"totals": np.array([np.inf])}, "totals=.* must be finite"),
        ({"groups": np.array([0.0, 0.5])}, "one integer below 1"),
        ({"l1": -1.0}, "l1=-1.0"),
        ({"l1": np.nan}, "l1=nan"),
        ({"lower": np.full(2, np.inf), "upper": np.full(2, np.inf)}, "must not be"),
    ],
)
def test_malformed_programs_are_errors(change, message):
    fields = {
        "hessian": problems.Dense(np.eye(2)),
        "linear": np.ones(2),
        "lower": np.zeros(2),
        "upper": np.ones(2),
        "groups": np.zeros(2, int),
        "totals": np.ones(1),
    }
    with pytest.raises(ValueError, match=message):
        solve(problems.QuadraticProgram(**{**fields, **change}))


def test_a_matrix_with_nan_is_an_error():
    K = np.eye(4)
    K[1, 2] = np.nan
    with pytest.raises(ValueError, match="NaN or infinity"):
        solve(problems.c_svc(K, np.array([1.0, -1.0, 1.0, -1.0]), 1.0))


def test_a_matrix_beyond_memory_is_an_error():
    X = np.zeros((200_000, 1))
    y = np.where(np.arange(200_000) % 2 == 0, 1.0, -1.0)
    with pytest.raises(ValueError, match="GiB"):
        solve(problems.c_svc((kernels.Linear(), X), y, 1.0), SMO(block=False))


@pytest.mark.usefixtures("x64")
def test_programs_are_built_under_transformations(rng):
    X, y = two_classes(rng)
    K = jnp.asarray(rbf(X))

    def upper(C):
        return problems.squared_svc(K, jnp.asarray(y), C).hessian.ridge_vector()[0]

    np.testing.assert_allclose(jax.jit(upper)(2.0), 0.5)
    np.testing.assert_allclose(jax.grad(upper)(2.0), -0.25)
    ball = jax.jit(lambda g: problems.smallest_ball((kernels.RBF(g), X)).linear)(0.5)
    np.testing.assert_allclose(ball, 0.5 * np.ones(14))


@pytest.mark.parametrize("grouped", [True, False])
@pytest.mark.parametrize("l1", [None, 0.0, 0.3])
def test_a_ridge_survives_the_doubling(grouped, l1, rng):
    X, y = two_classes(rng)
    n, box = len(y), np.full(len(y), 5.0)
    groups, totals = (np.zeros(n, int), np.zeros(1)) if grouped else (None, None)
    ridge = np.linspace(0.1, 0.9, n)
    program = problems.QuadraticProgram(
        problems.Dense(rbf(X), ridge), y, -box, box, groups, totals, l1
    )
    against_generic_solver(program, solve(program, SOLVER))
    with jax.enable_x64(True):  # as an argument, where every number is traced
        traced = jax.jit(lambda p: solve(p, SOLVER))(jax.tree.map(jnp.asarray, program))
    against_generic_solver(program, jax.tree.map(np.asarray, traced))


def test_integer_and_list_matrices_are_matrices():
    y = np.array([1.0, -1.0])
    for K in (np.eye(2, dtype=int), [[1, 0], [0, 1]]):
        np.testing.assert_allclose(solve(problems.c_svc(K, y, 1.0)).alpha, y)


def test_nu_at_its_limit_is_feasible():
    y = np.where(np.arange(25) < 7, 1.0, -1.0)
    assert solve(problems.nu_svc(np.eye(25), y, 14 / 25)).status == Status.CONVERGED


def test_infinite_cost_in_regression_has_a_primal_value(rng):
    X, t = regression(rng)
    s = solve(problems.epsilon_svr(rbf(X, gamma=5.0), t, np.inf, 0.1), SOLVER)
    assert s.status == Status.CONVERGED
    assert abs(s.duality_gap) <= 1e-6 * abs(s.objective)


def test_float32_programs_are_built_without_a_warning(rng):
    X, y = two_classes(rng)
    K = jnp.asarray(rbf(X))
    costs = jnp.array([1.0, 2.0])
    biases = jax.vmap(lambda C: solve(problems.c_svc(K, y, C)).bias)(costs)
    assert biases.dtype == jnp.float32
    for program in (
        problems.epsilon_svr(K, y, 1.0, 0.1),
        problems.nu_svr(K, y, 1.0, 0.5),
        problems.one_class(K, 0.5),
        problems.squared_svc(K, y, 1.0),
    ):
        assert program.linear.dtype == jnp.float32
