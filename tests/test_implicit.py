"""Derivatives of solutions against central differences, in both modes, under jit and vmap."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jsvm import Machine, kernels, problems, solve
from jsvm.solvers import PSMO, SMO, Status

pytestmark = pytest.mark.usefixtures("x64")
STEP = 1e-5


def data(seed=0, n=24):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=n) > 0, 1.0, -1.0)
    t = np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=n)
    return jnp.asarray(X), jnp.asarray(y), jnp.asarray(t - t.mean())


# A problem as a function of a kernel, its points, labels and targets, and one more parameter.
MACHINES = {
    "c_svc": lambda K, y, t, p: problems.c_svc(K, y, p),
    "c_svc by example": lambda K, y, t, p: problems.c_svc(K, y, jnp.where(y > 0, p, 2 * p)),
    "squared_svc": lambda K, y, t, p: problems.squared_svc(K, y, p),
    "hard_margin": lambda K, y, t, p: problems.hard_margin((kernels.RBF(4 * p), K[1]), y),
    "epsilon_svr": lambda K, y, t, p: problems.epsilon_svr(K, t, p, 0.1 * p**2),
    "nu_svc": lambda K, y, t, p: problems.nu_svc(K, y, 0.3 * p),
    "nu_svr": lambda K, y, t, p: problems.nu_svr(K, t, p, 0.4),
    "one_class": lambda K, y, t, p: problems.one_class(K, 0.3 * p),
    "smallest_ball": lambda K, y, t, p: problems.smallest_ball(K),
    "psvm": lambda K, y, t, p: problems.psvm(problems.normalised(K), t, p, 0.05 * p**2),
}
QUICK = {("c_svc", 0), ("squared_svc", 0)}
KERNELS = {
    "rbf": lambda g: kernels.RBF(g[0]),
    "ard": lambda g: kernels.ARD(g),
    "polynomial": lambda g: kernels.Polynomial(2, g[0], 1.0 + g[1]),
}


def solver_of(name):
    return PSMO(tol=1e-12) if name == "psvm" else SMO(tol=1e-12)


def outputs(name, kernel, seed, theta):
    """Return numbers that depend on all parts of a solution: outputs, multipliers, objectives."""
    X, y, t = data(seed)
    K = (KERNELS[kernel](theta[:2]), X)
    problem = MACHINES[name](K, y, t, theta[2])
    s = solve(problem, solver_of(name))
    weights = jnp.asarray(np.random.default_rng(5).normal(size=s.alpha.shape[0]))
    values = problem.hessian.dense().matvec(s.alpha)
    parts = [jnp.dot(weights, values), s.bias, s.objective, s.primal_objective, *s.multipliers]
    return jnp.stack([jnp.asarray(part) for part in parts])


def central(function, theta):
    columns = []
    for k in range(len(theta)):
        up, down = function(theta.at[k].add(STEP)), function(theta.at[k].add(-STEP))
        columns.append((up - down) / (2 * STEP))
    return np.stack(columns, axis=-1)


def close(found, expected, tolerance=1e-6):
    scale = np.maximum(np.abs(expected), 1e-3 * np.abs(expected).max() + 1e-9)
    assert (np.abs(np.asarray(found) - expected) <= tolerance * scale).all()


# Each machine compiles a program of its own: most of them are left to the slow tests.
CASES = [
    pytest.param(name, seed, marks=() if (name, seed) in QUICK else pytest.mark.slow)
    for name in MACHINES
    for seed in (0, 1, 2)
]


@pytest.mark.parametrize(("name", "seed"), CASES)
def test_equals_central_differences(name, seed):
    theta = jnp.array([0.7, 0.4, 1.1])

    def function(theta):
        return outputs(name, "rbf", seed, theta)

    expected = central(function, theta)
    close(jax.jacrev(function)(theta), expected)
    close(jax.jacfwd(function)(theta), expected)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["ard", "polynomial"])
@pytest.mark.parametrize("name", ["c_svc", "squared_svc", "epsilon_svr", "psvm"])
def test_other_kernels(name, kernel):
    theta = jnp.array([0.5, 0.9, 1.3])

    def function(theta):
        return outputs(name, kernel, 3, theta)

    close(jax.jacrev(function)(theta), central(function, theta))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["c_svc", "epsilon_svr", "psvm"])
def test_jit_and_vmap(name):
    thetas = jnp.array([[0.7, 0.4, 1.1], [0.5, 0.9, 1.6]])

    def function(theta):
        return outputs(name, "rbf", 0, theta)[0]

    alone = np.stack([jax.grad(function)(theta) for theta in thetas])
    np.testing.assert_allclose(jax.jit(jax.grad(function))(thetas[0]), alone[0], rtol=1e-7)
    np.testing.assert_allclose(jax.vmap(jax.grad(function))(thetas), alone, rtol=1e-7)


def test_a_machine_is_differentiated_without_knowing_it():
    X, y, _ = data()
    Z = X[:5] + 0.1

    def output(gamma, C):
        kernel = kernels.RBF(gamma)
        return jnp.sum(Machine.of(kernel, X, solve(problems.c_svc((kernel, X), y, C)))(Z) ** 2)

    found = jax.grad(output, argnums=(0, 1))(0.7, 1.3)
    expected = central(lambda v: output(v[0], v[1]), jnp.array([0.7, 1.3]))
    close(np.stack(found), expected)


def test_derivative_with_respect_to_examples():
    X, y, _ = data()

    def output(x):
        points = X.at[3].set(x)
        s = solve(problems.c_svc((kernels.RBF(0.7), points), y, 1.3), SMO(tol=1e-12))
        return s.bias + s.objective

    close(jax.grad(output)(X[3]), central(output, X[3]))


class TestSpecialCases:
    def test_no_free_variable(self):
        """All variables at C: the offset is the middle of an interval, and moves with its ends."""
        X, y, _ = data()
        y = jnp.where(jnp.arange(24) % 2 == 0, 1.0, -1.0)

        def bias(theta):
            problem = problems.c_svc((kernels.RBF(theta[0]), X), y, theta[1])
            s = solve(problem, SMO(tol=1e-12))
            return jnp.stack([s.bias, s.objective])

        theta = jnp.array([0.3, 1e-3])
        s = solve(problems.c_svc((kernels.RBF(0.3), X), y, 1e-3))
        assert (np.abs(s.alpha) == 1e-3).all()
        close(jax.jacrev(bias)(theta), central(bias, theta), 1e-5)

    @pytest.mark.slow
    def test_copies_of_examples_are_finite_and_right(self):
        X, y, _ = data()
        X, y = jnp.concatenate([X, X[:6]]), jnp.concatenate([y, y[:6]])

        def output(theta):
            kernel = kernels.RBF(theta[0])
            s = solve(problems.c_svc((kernel, X), y, theta[1]), SMO(tol=1e-12))
            return jnp.sum(Machine.of(kernel, X, s)(X[:4] + 0.2))

        theta = jnp.array([0.7, 1.3])
        found = jax.grad(output)(theta)
        assert np.isfinite(found).all()
        close(found, central(output, theta), 1e-4)

    @pytest.mark.slow
    def test_large_problems_are_differentiated_too(self):
        rng = np.random.default_rng(0)
        X = jnp.asarray(rng.uniform(0, 4, (1400, 2)))
        y = jnp.asarray(np.where(np.floor(np.asarray(X)).sum(1) % 2 == 0, 1.0, -1.0))

        def objective(C):
            s = solve(problems.c_svc((kernels.RBF(1.0), X), y, C), SMO(tol=1e-6))
            return s.objective

        expected = (objective(5.0 + STEP) - objective(5.0 - STEP)) / (2 * STEP)
        np.testing.assert_allclose(jax.grad(objective)(5.0), expected, rtol=1e-6)

    def test_status_survives(self):
        X, y, _ = data()

        def objective(C):
            s = solve(problems.c_svc((kernels.RBF(1.0), X), y, C))
            assert s.status == Status.CONVERGED
            return s.objective

        assert np.isfinite(jax.grad(objective)(2.0))


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_points_and_parameters_may_differ_in_precision(compiled):
    """Single precision data with a double precision parameter: near the derivative in double."""
    X, y, _ = data()
    single = X.astype(jnp.float32), y.astype(jnp.float32)
    double = tuple(v.astype(jnp.float64) for v in single)

    def output(gamma, X, y):
        kernel = kernels.RBF(gamma)
        return Machine.of(kernel, X, solve(problems.c_svc((kernel, X), y, 1.3)))(X[:5]).sum()

    gradient = jax.jit(jax.grad(output)) if compiled else jax.grad(output)
    gamma = jnp.asarray(0.7)
    found = gradient(gamma, *single)
    assert found.dtype == gamma.dtype
    np.testing.assert_allclose(found, gradient(gamma, *double), rtol=1e-3)


def test_too_large_inside_a_transformation():
    X, y = jnp.zeros((10_000, 2)), jnp.ones(10_000)

    def objective(gamma):
        return solve(problems.c_svc((kernels.RBF(gamma), X), y, 1.0)).objective

    with pytest.raises(ValueError, match="10000 variables is too large for jit"):
        jax.eval_shape(objective, 1.0)
