"""Gradients of the objectives of model selection against central differences.

The points were chosen away from those where a variable arrives at its bound or leaves it: there an
objective has a derivative, and it has to agree to a relative 1e-6.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.flatten_util import ravel_pytree
from problems_for_tests import rbf

from jsvm import data, kernels, objectives, problems
from jsvm.objectives import training
from jsvm.solvers import SMO
from jsvm.validation.splits import random_splits

pytestmark = pytest.mark.usefixtures("x64")
STEP = 1e-5
N = 40
OPTIONS: dict[str, Any] = {"solver": SMO(tol=1e-10)}
SMOOTH: dict[str, Any] = {**OPTIONS, "loss": objectives.squared_error}

OBJECTIVES = {
    "kernel_target_alignment": lambda k, X, y, C: objectives.kernel_target_alignment(k, X, y),
    "kernel_polarization": lambda k, X, y, C: objectives.kernel_polarization(k, X, y),
    "centred_alignment": lambda k, X, y, C: objectives.centred_alignment(k, X, y),
    "radius_margin hard": lambda k, X, y, C: objectives.radius_margin(k, X, y, **OPTIONS),
    "radius_margin": lambda k, X, y, C: objectives.radius_margin(k, X, y, C=C, **OPTIONS),
    "span_bound": lambda k, X, y, C: objectives.span_bound(k, X, y, C=C, **OPTIONS),
    "span_estimate": lambda k, X, y, C: objectives.span_estimate(
        k, X, y, C=C, slope=5.0, **OPTIONS
    ),
    "holdout": lambda k, X, y, C: objectives.holdout_error(k, X, y, C=C, key=3, **SMOOTH),
    "cross_validation": lambda k, X, y, C: objectives.cross_validation_error(
        k, X, y, C=C, folds=3, **SMOOTH
    ),
    "leave_one_out": lambda k, X, y, C: objectives.leave_one_out_error(k, X, y, C=C, **SMOOTH),
    "bootstrap": lambda k, X, y, C: objectives.bootstrap_error(
        k, X, y, C=C, key=5, splits=2, **SMOOTH
    ),
    "log_likelihood": lambda k, X, y, C: objectives.log_likelihood(k, X, y, C=C, key=9, **OPTIONS),
    "log_posterior": lambda k, X, y, C: objectives.log_posterior(k, X, y, C=C, key=9, **OPTIONS),
}


def general(d):
    """A matrix near a multiple of I, not symmetric: its derivatives have d² entries."""
    return 0.8 * np.eye(d) + 0.1 * np.random.default_rng(1).normal(size=(d, d)) / np.sqrt(d)


KERNELS = {
    "RBF": lambda d: kernels.RBF(jnp.array(0.37)),
    "ARD": lambda d: kernels.ARD(jnp.linspace(0.2, 0.5, d)),
    "Polynomial": lambda d: kernels.Polynomial(3, jnp.array(0.31), jnp.array(1.2)),
    "GeneralGaussian": lambda d: kernels.GeneralGaussian(jnp.asarray(general(d))),
}


def chess():
    return data.chess_board(2, 2, size=N, key=0)


def blobs():
    """Two Gaussian distributions that overlap, in two dimensions."""
    y = np.where(np.arange(N) % 2 == 0, 1.0, -1.0)
    points = np.random.default_rng(0).normal(size=(N, 2)) + 0.8 * y[:, None]
    return jnp.asarray(points), jnp.asarray(y)


def sparse():
    return data.sparse_coordinates(3, 14, 5, size=N, key=0)


DATA = {"chess": chess, "blobs": blobs, "sparse": sparse}


def differences(function, theta, directions):
    pairs = [(function(theta + STEP * v), function(theta - STEP * v)) for v in directions]
    return np.array([(up - down) / (2 * STEP) for up, down in pairs])


INDICES = np.arange(float(N))[:, None]


def gram(kernel, X):
    """A kernel as its matrix: all kernels and all data then share the programs of an objective."""
    return kernels.Precomputed(kernel(X))


def close(found, expected, tolerance=1e-6):
    """Compare derivatives; one that is small beside the others cannot be told so exactly."""
    scale = np.maximum(np.abs(expected), 1e-3 * np.abs(expected).max() + 1e-9)
    assert (np.abs(np.asarray(found) - expected) <= tolerance * scale).all(), (found, expected)


def compare(function, theta):
    """Compare along all parameters, or along some directions where there are many."""
    theta = jnp.asarray(theta)
    p = len(theta)
    directions = np.eye(p)
    if p > 5:
        random = np.random.default_rng(0).normal(size=(2, p))
        directions = np.concatenate([random / np.sqrt(p), directions[-1:]])
    expected = differences(function, theta, jnp.asarray(directions))
    assert np.abs(expected).max() > 1e-4  # or there is nothing to see
    close(directions @ np.asarray(jax.grad(function)(theta)), expected)


FAST = {
    ("kernel_target_alignment", "RBF"),
    ("centred_alignment", "ARD"),
    ("log_likelihood", "RBF"),
}
PRODUCT = [
    pytest.param(name, kernel, marks=() if (name, kernel) in FAST else pytest.mark.slow)
    for name in OBJECTIVES
    for kernel in KERNELS
    if name != "log_posterior"
]


@pytest.mark.parametrize(("name", "kernel"), PRODUCT)
def test_equals_central_differences(name, kernel):
    for draw in DATA.values():
        X, y = draw()
        if name == "radius_margin hard":
            X = X + 1.5 * y[:, None]  # separable for all kernels
        theta, unravel = ravel_pytree((KERNELS[kernel](X.shape[1]), jnp.array(1.7)))

        def function(theta, X=X, y=y, unravel=unravel):
            kernel, C = unravel(theta)
            return OBJECTIVES[name](gram(kernel, X), INDICES, y, C)

        compare(function, theta)


DIRECT = [(name, "GeneralGaussian") for name in OBJECTIVES] + [
    ("log_posterior", "RBF"),
    ("log_posterior", "ARD"),
    ("span_bound", "RBF"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kernel"), DIRECT)
def test_kernels_as_they_are(name, kernel):
    """The same without the matrix in between, and with the prior, which knows the kernels."""
    X, y = chess()
    theta, unravel = ravel_pytree((KERNELS[kernel](2), jnp.array(1.7)))

    def function(theta):
        kernel, C = unravel(theta)
        return OBJECTIVES[name](kernel, X, y, C)

    compare(function, theta)


@pytest.mark.parametrize("kernel", ["RBF", "ARD", "GeneralGaussian"])
def test_prior(kernel):
    X, y = chess()
    theta, unravel = ravel_pytree((KERNELS[kernel](2), jnp.array(1.7)))
    prior = objectives.GaussianPrior(objectives.GaussianPrior.around(X, y).centre, escape=0.5)
    compare(lambda theta: prior(*unravel(theta)), theta)


def likelihood_of(X, y, key=7, **options):
    def function(theta):
        given = {**OPTIONS, **options, "C": theta[1], "key": key}
        return objectives.log_likelihood(gram(kernels.RBF(theta[0]), X), INDICES, y, **given)

    return function


THETA = np.array([0.37, 1.7])


class TestLimitsOfTheSlope:
    def test_no_error_on_the_hold_out_set(self):
        """The slope is at its limit and moves with it: value and gradient stay finite."""
        X, y = blobs()
        function = likelihood_of(X + 2.0 * y[:, None], y)
        assert -1e-3 < function(THETA) < 0
        function = likelihood_of(X + 2.0 * y[:, None], y, steepest=3.0)
        assert -8 * np.log(2) < function(THETA) < -1e-3
        compare(function, THETA)

    def test_worse_than_guessing(self):
        X, y = blobs()
        X = X + 2.0 * y[:, None]
        test = np.asarray(random_splits(7, y, 0.2, 1).test)[0]
        function = likelihood_of(X, y.at[test].multiply(-1.0))
        np.testing.assert_allclose(function(THETA), len(test) * np.log(0.5), rtol=1e-12)
        assert (np.asarray(jax.grad(function)(THETA)) == 0).all()


@pytest.mark.slow
def test_not_separable_has_no_slope():
    """The value is ∞; a search that meets it gets a finite gradient."""
    X, y = blobs()
    X = X.at[1].set(X[0])

    def function(theta):
        k = gram(kernels.RBF(theta[0]), X)
        return objectives.radius_margin(k, INDICES, y, **OPTIONS)

    assert function(THETA) == np.inf
    assert np.isfinite(jax.grad(function)(THETA)).all()


def test_a_step_of_adam_climbs():
    X, y = blobs()
    function = likelihood_of(X, y)
    optimizer = optax.adam(1e-3)
    theta = jnp.asarray(THETA)
    before, gradient = jax.value_and_grad(function)(theta)
    updates, _ = optimizer.update(-gradient, optimizer.init(theta), theta)
    assert function(jnp.asarray(optax.apply_updates(theta, updates))) > before


@pytest.mark.slow
class TestTransformations:
    @pytest.mark.parametrize(
        "name", ["radius_margin", "leave_one_out", "cross_validation", "log_likelihood"]
    )
    def test_jit_and_vmap_over_costs(self, name):
        X, y = chess()
        k = gram(kernels.RBF(0.37), X)

        def function(C):
            return OBJECTIVES[name](k, INDICES, y, C)

        costs = jnp.array([0.4, 1.7, 8.0])
        alone = np.array([jax.value_and_grad(function)(C) for C in costs])
        inside = jax.jit(jax.value_and_grad(function))(costs[1])
        np.testing.assert_allclose(np.array(inside), alone[1], rtol=1e-7, atol=1e-10)
        together = jax.vmap(jax.value_and_grad(function))(costs)
        np.testing.assert_allclose(np.stack(together, axis=1), alone, rtol=1e-7, atol=1e-10)

    def test_vmap_over_keys(self):
        X, y = chess()
        keys = jax.random.split(jax.random.key(0), 4)
        alone = [likelihood_of(X, y, key)(THETA) for key in keys]
        together = jax.vmap(lambda key: likelihood_of(X, y, key)(THETA))(keys)
        np.testing.assert_allclose(together, alone, rtol=1e-7)

    def test_cost_of_every_example(self):
        X, y = chess()
        k = gram(kernels.RBF(0.37), X)
        costs = jnp.asarray(np.random.default_rng(2).uniform(0.5, 3.0, N))
        for name in ("radius_margin", "leave_one_out", "cross_validation", "log_likelihood"):
            compare(lambda C, name=name: OBJECTIVES[name](k, INDICES, y, C), costs)

    def test_two_norm_machine(self):
        X, y = chess()
        options = {**SMOOTH, "machine": problems.squared_svc, "folds": 3}

        def function(theta):
            k = gram(kernels.RBF(theta[0]), X)
            return objectives.cross_validation_error(k, INDICES, y, C=theta[1], **options)

        compare(function, THETA)

    @pytest.mark.parametrize(
        "name", ["centred_alignment", "radius_margin", "leave_one_out", "log_posterior"]
    )
    def test_single_precision(self, name):
        X, y = (np.asarray(values) for values in data.chess_board(2, 2, size=60, key=0))
        expected = OBJECTIVES[name](kernels.RBF(0.37), X, y, 1.7)
        with jax.enable_x64(False):
            X, y = X.astype(np.float32), y.astype(np.float32)

            def function(gamma):
                kernel = kernels.RBF(gamma)
                return OBJECTIVES[name](kernel, X, y, 1.7)

            found, slope = jax.value_and_grad(function)(jnp.float32(0.37))
            assert found.dtype == slope.dtype == jnp.float32
            assert np.isfinite(slope)
        np.testing.assert_allclose(found, expected, rtol=2e-3)

    def test_large_problems(self):
        X, y = data.chess_board(4, 2, size=1500, key=0)

        def function(theta):
            kernel = kernels.RBF(theta[0])
            return objectives.log_likelihood(kernel, X, y, C=theta[1], key=1, **OPTIONS)

        compare(function, jnp.array([1.3, 4.1]))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["radius_margin", "span_bound", "span_estimate", "cross_validation", "log_likelihood"]
)
def test_the_solver_of_large_problems_agrees(name, monkeypatch):
    """What is done one after the other above a size is the same as in one program."""
    X, y = blobs()

    def function(theta):
        return OBJECTIVES[name](gram(kernels.RBF(theta[0]), X), INDICES, y, theta[1])

    expected = jax.value_and_grad(function)(THETA)
    monkeypatch.setattr(training, "LARGEST_COMPILED", 10)
    found = jax.value_and_grad(function)(THETA)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-8)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-6)


@pytest.mark.slow
def test_kernels_on_the_host():
    """They are trained like large problems."""
    X, y = blobs()
    kernel = kernels.Function(lambda X, Z: rbf(X, Z, gamma=0.37), on_host=True)
    for name in ("radius_margin", "span_bound", "log_likelihood"):
        expected = OBJECTIVES[name](gram(kernels.RBF(0.37), X), INDICES, y, 1.7)
        np.testing.assert_allclose(OBJECTIVES[name](kernel, X, y, 1.7), expected, rtol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("n", [30, 40])
def test_small_sets_in_single_precision(n):
    """Programs of these shapes made XLA abort: it wrote constants into kernels."""
    with jax.enable_x64(False):
        X, y = data.chess_board(2, 2, size=n, key=0)
        value, slope = jax.value_and_grad(
            lambda gamma: objectives.log_likelihood(kernels.RBF(gamma), X, y, C=1.7, key=7)
        )(jnp.float32(0.37))
    assert value.dtype == slope.dtype == jnp.float32
    assert np.isfinite(value)
    assert np.isfinite(slope)
