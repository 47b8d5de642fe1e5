"""Values of the objectives of model selection against other people's machines and plain formulas.

Most tests give the kernel as a matrix of one size, so that they share a few compiled programs.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems_for_tests import chess, rbf
from references import solve_qp
from scipy.optimize import minimize_scalar
from scipy.spatial.distance import cdist
from scipy.stats import norm as normal
from sklearn.svm import SVC

from jsvm import kernels, objectives, problems
from jsvm.objectives.arguments import checked
from jsvm.solvers import SMO
from jsvm.validation.splits import random_splits

pytestmark = pytest.mark.usefixtures("x64")
N = 40
INDICES = np.arange(float(N))[:, None]
OPTIONS: dict[str, Any] = {"solver": SMO(tol=1e-10)}
SMOOTH: dict[str, Any] = {**OPTIONS, "loss": objectives.squared_error}
X, Y = chess(N, seed=1)
K = rbf(X, gamma=1.0)
COSTS = np.random.default_rng(2).uniform(0.5, 5.0, N)
EVERY = np.arange(N)


def gram(K):
    return kernels.Precomputed(jnp.asarray(K))


def outputs(K, y, C, train, test):
    """Values at `test` of scikit-learn's machine of `train`, and its coefficients."""
    machine = SVC(kernel="precomputed", C=1.0, tol=1e-10, shrinking=False)
    machine.fit(K[np.ix_(train, train)], y[train], np.broadcast_to(C, y.shape)[train])
    alpha = np.zeros(len(y))
    alpha[train[machine.support_]] = machine.dual_coef_[0]
    return machine.decision_function(K[np.ix_(test, train)]), alpha


def squared_outputs(K, y, C, train, test):
    """The same of the 2-norm machine, by an interior-point method."""
    Q, t = K[np.ix_(train, train)] + np.eye(len(train)) / C, y[train]
    bounds = np.where(t > 0, 0.0, -np.inf), np.where(t > 0, np.inf, 0.0)
    a, _ = solve_qp(Q, t, *bounds, np.zeros(len(t)), np.zeros(1))
    free = np.abs(a) > 1e-6
    bias = np.mean((t - Q @ a)[free])
    return K[np.ix_(test, train)] @ a + bias, a


def left_out(K, y, C, fit=outputs):
    return np.array([fit(K, y, C, np.delete(EVERY, n), [n])[0][0] for n in EVERY])


def mean_losses(K, y, C, tests, fit=outputs):
    """Rate of errors and mean squared error on held-out sets."""
    values = [(y[test], fit(K, y, C, np.setdiff1d(EVERY, test), test)[0]) for test in tests]
    labels, f = (np.concatenate(part) for part in zip(*values, strict=True))
    return np.mean(np.sign(f) != labels), np.mean((f - labels) ** 2)


def errors(objective, K, y, **options):
    """The same two of an objective."""
    counted = objective(gram(K), INDICES, y, **OPTIONS, **options)
    return counted, objective(gram(K), INDICES, y, **SMOOTH, **options)


class TestAlignment:
    def test_formulas(self):
        H = np.eye(N) - 1 / N
        centred, target = H @ K @ H, np.outer(H @ Y, H @ Y)
        expected = np.sum(centred * target) / np.linalg.norm(centred) / np.linalg.norm(target)
        given, polarization = (kernels.RBF(1.0), X, Y), Y @ K @ Y
        found = objectives.kernel_polarization(*given), objectives.kernel_target_alignment(*given)
        alignment = polarization / N / np.linalg.norm(K)
        np.testing.assert_allclose(found, (polarization, alignment), rtol=1e-12)
        np.testing.assert_allclose(objectives.centred_alignment(*given), expected, rtol=1e-12)

    def test_what_they_ignore(self):
        k, factor = kernels.RBF(1.0), 3.7
        for objective in (objectives.kernel_target_alignment, objectives.centred_alignment):
            value = objective(k, X, Y)
            np.testing.assert_allclose(objective(factor * k, X, Y), value, rtol=1e-12)
        moved = objectives.centred_alignment(gram(K + 5.0), INDICES, Y)
        np.testing.assert_allclose(moved, objectives.centred_alignment(k, X, Y), rtol=1e-11)
        scaled = objectives.kernel_polarization(factor * k, X, Y)
        np.testing.assert_allclose(scaled, factor * (Y @ K @ Y), rtol=1e-12)

    def test_one_class_and_no_kernel(self):
        assert objectives.centred_alignment(kernels.RBF(1.0), X, np.ones(N)) == 0
        assert objectives.kernel_target_alignment(gram(0 * K), INDICES, Y) == 0


class TestHeldOut:
    def test_holdout(self):
        test = np.arange(3, 35, 4)
        found = errors(objectives.holdout_error, K, Y, C=3.0, test=test)
        np.testing.assert_allclose(found, mean_losses(K, Y, 3.0, [test]), rtol=1e-7)
        test = np.asarray(random_splits(4, Y, 0.2, 1).test)[0]
        assert len(test) == N // 5
        found = errors(objectives.holdout_error, K, Y, C=3.0, key=4)
        np.testing.assert_allclose(found, mean_losses(K, Y, 3.0, [test]), rtol=1e-7)

    def test_cross_validation_of_unequal_folds(self):
        tests = [EVERY[k::3] for k in range(3)]
        found = errors(objectives.cross_validation_error, K, Y, C=3.0, folds=3)
        np.testing.assert_allclose(found, mean_losses(K, Y, 3.0, tests), rtol=1e-7)
        named = errors(objectives.cross_validation_error, K, Y, C=3.0, folds=7 - EVERY % 3)
        np.testing.assert_allclose(named, found, rtol=1e-9)

    def test_shuffled_folds(self):
        order = np.asarray(jax.random.permutation(jax.random.key(8), N))
        tests = [order[k::3] for k in range(3)]
        found = errors(objectives.cross_validation_error, K, Y, C=3.0, folds=3, key=8)
        np.testing.assert_allclose(found, mean_losses(K, Y, 3.0, tests), rtol=1e-7)

    @pytest.mark.slow
    def test_bootstrap(self):
        tests = list(np.asarray(random_splits(6, Y, 0.3, 4).test))
        assert np.shape(tests) == (4, 12)
        assert len({tuple(sorted(test)) for test in tests}) == 4
        options = {"C": 3.0, "key": 6, "fraction": 0.3, "splits": 4}
        found = errors(objectives.bootstrap_error, K, Y, **options)
        np.testing.assert_allclose(found, mean_losses(K, Y, 3.0, tests), rtol=1e-7)

    @pytest.mark.slow
    def test_cost_of_every_example(self):
        tests = [EVERY[k::3] for k in range(3)]
        found = errors(objectives.cross_validation_error, K, Y, C=COSTS, folds=3)
        np.testing.assert_allclose(found, mean_losses(K, Y, COSTS, tests), rtol=1e-7)

    @pytest.mark.slow
    def test_two_norm_machine(self):
        """Folds of unequal size are padded with examples of no cost, whose ridge has no value."""
        tests, machine = [EVERY[k::3] for k in range(3)], problems.squared_svc
        options = {"C": 3.0, "folds": 3, "machine": machine}
        found = errors(objectives.cross_validation_error, K, Y, **options)
        expected = mean_losses(K, Y, 3.0, tests, squared_outputs)
        np.testing.assert_allclose(found, expected, rtol=1e-5)

    def test_one_class_to_train_with(self):
        y = np.where(np.arange(N) < 4, 1.0, -1.0)
        error, square = errors(objectives.holdout_error, K, y, C=3.0, test=np.arange(8))
        assert error == 0.5
        assert square == 2.0  # f = −1 everywhere


class TestLeaveOneOut:
    @pytest.mark.parametrize("C", [0.6, 3.0, 50.0])
    def test_errors_and_bounds(self, C):
        f, alpha = outputs(K, Y, C, EVERY, EVERY)
        others = left_out(K, Y, C)
        error, square = errors(objectives.leave_one_out_error, K, Y, C=C)
        assert error == pytest.approx(np.mean(np.sign(others) != Y), rel=1e-12)
        np.testing.assert_allclose(square, np.mean((others - Y) ** 2), rtol=1e-6)
        bound = objectives.span_bound(gram(K), INDICES, Y, C=C, **OPTIONS)
        expected = np.sum(1 - np.where(Y * others > 0, others / f, 0.0))
        np.testing.assert_allclose(bound, expected, rtol=1e-6)
        count = objectives.support_vector_count(gram(K), INDICES, Y, C=C, **OPTIONS)
        assert count == np.count_nonzero(alpha)
        assert error <= bound / N <= count / N

    def test_the_only_example_of_a_class(self):
        y = np.where(np.arange(N) == 5, 1.0, -1.0)
        assert errors(objectives.leave_one_out_error, K, y, C=3.0)[0] == 1 / N

    def test_copies(self):
        twice = np.concatenate([K[:, :20], K[:, :20]], axis=1)
        twice = np.concatenate([twice[:20], twice[:20]])
        y = np.concatenate([Y[:20], Y[:20]])
        found = errors(objectives.leave_one_out_error, twice, y, C=3.0)
        others = left_out(twice, y, 3.0)
        expected = np.mean(np.sign(others) != y), np.mean((others - y) ** 2)
        np.testing.assert_allclose(found, expected, rtol=1e-6)

    @pytest.mark.slow
    def test_two_norm_machine(self):
        others = left_out(K, Y, 3.0, squared_outputs)
        options = {"C": 3.0, "machine": problems.squared_svc}
        error, square = errors(objectives.leave_one_out_error, K, Y, **options)
        assert error == pytest.approx(np.mean(np.sign(others) != Y), rel=1e-12)
        np.testing.assert_allclose(square, np.mean((others - Y) ** 2), rtol=1e-5)


def squared_span(K, hull, n):
    """Squared distance of φ(x_n) from the affine hull of others, by the conditions of a minimum."""
    m = len(hull)
    inner, ones = K[np.ix_(hull, hull)], np.ones((m, 1))
    system = np.block([[inner, ones], [ones.T, np.zeros((1, 1))]])
    weights = np.linalg.solve(system, np.append(K[hull, n], 1.0))[:m]
    return K[n, n] - 2 * weights @ K[hull, n] + weights @ inner @ weights


class TestSpanEstimate:
    def test_formula(self):
        C, K = 3.0, rbf(X, gamma=4.0)
        f, alpha = outputs(K, Y, C, EVERY, EVERY)
        free = np.flatnonzero((alpha != 0) & (np.abs(alpha) < C))
        spans = np.array([squared_span(K, np.setdiff1d(free, [n]), n) for n in EVERY])
        excess = np.abs(alpha) * spans - Y * f
        found = objectives.span_estimate(gram(K), INDICES, Y, C=C, **OPTIONS)
        assert found == pytest.approx(np.mean(excess >= 0), rel=1e-12)
        found = objectives.span_estimate(gram(K), INDICES, Y, C=C, slope=5.0, **OPTIONS)
        np.testing.assert_allclose(found, np.mean(1 / (1 + np.exp(-5 * excess))), rtol=1e-7)

        stayed = 0
        for n in np.flatnonzero(alpha):
            value, beta = outputs(K, Y, C, np.delete(EVERY, n), [n])
            now = np.flatnonzero((beta != 0) & (np.abs(beta) < C))
            same = np.array_equal(np.delete(beta == 0, n), np.delete(alpha == 0, n))
            if same and np.array_equal(now, np.setdiff1d(free, [n])):
                stayed += 1
                np.testing.assert_allclose(-excess[n], Y[n] * value[0], rtol=1e-6)
        assert stayed >= 10

    @pytest.mark.slow
    def test_two_norm_machine(self):
        """No variable has an upper bound; where none leaves zero the estimate is exact."""
        wide = rbf(X, gamma=20.0)
        others = left_out(wide, Y, 3.0, squared_outputs)
        options = OPTIONS | {"machine": problems.squared_svc, "C": 3.0}
        count = objectives.support_vector_count(gram(wide), INDICES, Y, **options)
        assert count == N
        found = objectives.span_estimate(gram(wide), INDICES, Y, slope=5.0, **options)
        np.testing.assert_allclose(found, np.mean(1 / (1 + np.exp(5 * Y * others))), rtol=1e-6)


class TestRadiusMargin:
    @pytest.mark.parametrize("C", [np.inf, 2.0])
    def test_against_an_interior_point_method(self, C):
        Q = K + np.eye(N) / C
        bounds = np.where(Y > 0, 0.0, -np.inf), np.where(Y > 0, np.inf, 0.0)
        _, norm = solve_qp(Q, Y, *bounds, np.zeros(N), np.zeros(1))
        ball = 0.5 * np.diag(Q), np.zeros(N), np.full(N, np.inf), np.zeros(N), np.ones(1)
        _, radius = solve_qp(Q, *ball)
        found = objectives.radius_margin(gram(K), INDICES, Y, C=C, **OPTIONS)
        np.testing.assert_allclose(found, 4 * norm * radius, rtol=1e-6)

    def test_not_separable(self):
        y = np.where(np.arange(N) % 2 == 0, 1.0, -1.0)
        twins = np.repeat(np.repeat(K[:20, :20], 2, axis=0), 2, axis=1)

        def value(twins, C):
            return objectives.radius_margin(gram(twins), INDICES, y, C=C, **OPTIONS)

        assert value(twins, np.inf) == np.inf
        assert np.isfinite(value(twins, 2.0))


def best_likelihood(margins, steepest=100.0):
    """The maximum over slopes from zero to the limit, by a search on an interval."""
    limit = steepest / np.sqrt(np.mean(margins**2))

    def negative(slope):
        return np.sum(np.logaddexp(0.0, -slope * margins))

    found: Any = minimize_scalar(
        negative, bounds=(0.0, limit), method="bounded", options={"xatol": 1e-9}
    )
    return -min(found.fun, negative(0.0), negative(limit))


def mean_likelihood(key, splits=1):
    """Of scikit-learn's machines on the same splits."""
    drawn, values = random_splits(key, jnp.asarray(Y), 0.2, splits), []
    for train, test in zip(np.asarray(drawn.train), np.asarray(drawn.test), strict=True):
        values.append(best_likelihood(Y[test] * outputs(K, Y, 3.0, train, test)[0]))
    return np.mean(values)


class TestLikelihood:
    @pytest.mark.parametrize("key", range(5))
    def test_against_a_search_for_the_slope(self, key):
        found = objectives.log_likelihood(gram(K), INDICES, Y, C=3.0, key=key, **OPTIONS)
        np.testing.assert_allclose(found, mean_likelihood(key), rtol=1e-6)

    def test_key_decides(self):
        values = [
            float(objectives.log_likelihood(gram(K), INDICES, Y, C=3.0, key=key, **OPTIONS))
            for key in (3, jax.random.key(3), 4)
        ]
        assert values[0] == values[1] != values[2]

    def test_posterior_adds_the_prior(self):
        def prior(kernel, C):
            return -2.0 * jnp.log(C) + kernel.values[0, 0]

        options = OPTIONS | {"C": 3.0, "key": 2}
        likelihood = objectives.log_likelihood(gram(K), INDICES, Y, **options)
        found = objectives.log_posterior(gram(K), INDICES, Y, prior=prior, **options)
        np.testing.assert_allclose(found, likelihood - 2 * np.log(3.0) + 1.0, rtol=1e-12)

    @pytest.mark.slow
    def test_posterior_of_a_gaussian_kernel(self):
        kernel, options = kernels.RBF(1.0), OPTIONS | {"C": 3.0, "key": 2}
        likelihood = objectives.log_likelihood(kernel, X, Y, **options)
        centre = np.log(0.5 / np.median(cdist(X[Y > 0], X[Y < 0])) ** 2)
        prior = normal.logpdf(0.0, centre, 2.0) - 1e-6 * np.log(3.0)
        found = objectives.log_posterior(kernel, X, Y, **options)
        np.testing.assert_allclose(found, likelihood + prior, rtol=1e-12)

    @pytest.mark.slow
    def test_mean_over_splits(self):
        found = objectives.log_likelihood(gram(K), INDICES, Y, C=3.0, key=2, splits=3, **OPTIONS)
        np.testing.assert_allclose(found, mean_likelihood(2, 3), rtol=1e-6)


class TestPriors:
    prior = objectives.GaussianPrior(centre=0.3, width=1.5, escape=0.1)

    def test_densities_of_widths(self):
        found = self.prior(kernels.RBF(0.7), 2.0)
        expected = normal.logpdf(np.log(0.7), 0.3, 1.5) - 0.1 * np.log(2.0)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        gamma = np.array([0.2, 0.7, 4.0])
        found = self.prior(kernels.ARD(gamma), COSTS)
        expected = normal.logpdf(np.log(gamma), 0.3, 1.5).sum() - 0.1 * np.log(COSTS).mean()
        np.testing.assert_allclose(found, expected, rtol=1e-12)

    def test_density_of_a_matrix(self, rng):
        gamma = np.array([0.2, 0.7, 4.0])
        diagonal = self.prior(kernels.GeneralGaussian(np.diag(np.sqrt(2 * gamma))), 2.0)
        constant = 3 * normal.logpdf(0.0, 0.0, 1.5)  # of the three entries beside the diagonal
        expected = self.prior(kernels.ARD(gamma), 2.0) + constant
        np.testing.assert_allclose(diagonal, expected, rtol=1e-12)
        V = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        turned = self.prior(kernels.GeneralGaussian(V @ np.diag(np.sqrt(2 * gamma)) @ V.T), 2.0)
        np.testing.assert_allclose(turned, diagonal, rtol=1e-12)  # the norm is that of Frobenius

    @pytest.mark.parametrize("n", [7, 8, 40])
    def test_median_heuristic(self, n):
        y = np.where(np.arange(n) % 3 == 0, 1.0, -1.0)
        m = np.median(cdist(X[:n][y > 0], X[:n][y < 0]))
        found = objectives.median_heuristic(X[:n], y)
        np.testing.assert_allclose(found, 0.5 / m**2, rtol=1e-9)
        np.testing.assert_allclose(objectives.GaussianPrior.around(X[:n], y).centre, np.log(found))

    def test_median_of_other_pairs(self):
        points, y = np.array([[0.0], [0.0], [0.0], [3.0]]), np.array([1.0, 1.0, -1.0, 1.0])
        np.testing.assert_allclose(objectives.median_heuristic(points, y), 1 / 18)
        np.testing.assert_allclose(objectives.median_heuristic(points, np.ones(4)), 1 / 18)
        assert objectives.median_heuristic(np.zeros((4, 1)), y) == 1

    def test_other_kernels_have_none(self):
        with pytest.raises(ValueError, match="prior: there is none for kernel=Linear"):
            self.prior(kernels.Linear(), 1.0)


@settings(max_examples=5)
@given(seed=st.integers(0, 10**6), flip=st.sampled_from([1.0, -1.0]))
def test_order_and_sign_of_labels_do_not_matter(seed, flip):
    order = np.random.default_rng(seed).permutation(N)
    with jax.enable_x64(True):
        here = gram(K), INDICES, Y
        there = gram(K[np.ix_(order, order)]), INDICES, flip * Y[order]
        for objective in (objectives.kernel_target_alignment, objectives.kernel_polarization):
            np.testing.assert_allclose(objective(*there), objective(*here), rtol=1e-11)
        trained = objectives.radius_margin, objectives.span_bound, objectives.leave_one_out_error
        for objective in trained:
            found, expected = (objective(*which, C=3.0, **OPTIONS) for which in (there, here))
            np.testing.assert_allclose(found, expected, rtol=1e-7)


BAD = {
    "kernel='rbf' must be": (checked, {"kernel": "rbf"}),
    "X must have at least two rows": (checked, {"X": X[:1], "y": Y[:1]}),
    "X must be finite": (objectives.radius_margin, {"X": np.where(X > 3, np.inf, X)}),
    "y must hold 39 labels": (checked, {"X": X[1:]}),
    "y must hold the labels": (objectives.leave_one_out_error, {"y": 2 * Y, "C": 1.0}),
    r"C must be one number or 40": (objectives.span_bound, {"C": np.ones(3)}),
    "C=0.0 must be positive": (objectives.support_vector_count, {"C": 0.0}),
    "C=nan must be positive": (objectives.radius_margin, {"C": np.nan}),
    "test must hold indices below 40": (objectives.holdout_error, {"C": 1.0, "test": [40]}),
    "leave two examples to train": (objectives.holdout_error, {"C": 1.0, "test": range(39)}),
    "fraction=1.5 of": (objectives.holdout_error, {"C": 1.0, "fraction": 1.5}),
    "fraction=1e-13 of 40": (objectives.holdout_error, {"C": 1.0, "fraction": 1e-13}),
    "folds=2.5 must be": (objectives.cross_validation_error, {"C": 1.0, "folds": 2.5}),
    "fraction=0.99 of 40": (objectives.log_likelihood, {"C": 1.0, "key": 0, "fraction": 0.99}),
    "splits=0 must be": (objectives.bootstrap_error, {"C": 1.0, "key": 0, "splits": 0}),
    "folds=41 must be": (objectives.cross_validation_error, {"C": 1.0, "folds": 41}),
    "folds must be a number or": (objectives.cross_validation_error, {"C": 1.0, "folds": [0, 1]}),
    "at least two different": (objectives.cross_validation_error, {"C": 1.0, "folds": 0 * EVERY}),
    "slope=-1.0 must be": (objectives.span_estimate, {"C": 1.0, "slope": -1.0}),
    "steepest=0.0 must": (objectives.log_posterior, {"C": 1.0, "key": 0, "steepest": 0.0}),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_arguments_are_named(message):
    objective, arguments = BAD[message]
    with pytest.raises(ValueError, match=message):
        objective(**({"kernel": kernels.RBF(1.0), "X": X, "y": Y} | arguments))
