"""What must hold of regression, ν-machines, one class, the smallest ball and the P-SVM."""

from typing import Any

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from random_problems import (
    EPS,
    FEATURES,
    SEEDS,
    N,
    assert_same,
    most_nu,
    powers,
    samples,
    solved,
    thorough,
)

from jsvm import SVC, SVR, problems
from jsvm.solvers import PSMO

FRACTIONS = st.floats(0.02, 0.95)

# -- regression ------------------------------------------------------------------------------------


@thorough
@given(sample=samples(), shift=powers(-2, 3), epsilon=powers(-3, 0))
def test_a_shift_of_the_targets_shifts_the_offset_only(sample, shift, epsilon):
    here = solved(problems.epsilon_svr(sample.given, sample.target, sample.C, epsilon))
    there = solved(problems.epsilon_svr(sample.given, sample.target + shift, sample.C, epsilon))
    assert_same(there, here, multipliers=here.solution.multipliers + shift)


@settings(max_examples=10)
@given(sample=samples(), excess=powers(-6, 3))
def test_a_tube_around_all_targets_needs_no_support_vector(sample, excess):
    target = sample.target
    epsilon = 0.5 * np.ptp(target) * (1.0 + excess)
    here = solved(problems.epsilon_svr(sample.K, target, sample.C, epsilon))
    np.testing.assert_array_equal(here.alpha, 0.0)
    rounding = 4 * EPS * (np.abs(target).max() + epsilon)
    assert np.abs(target - here.solution.bias).max() <= epsilon + rounding


@thorough
@given(sample=samples(), nu=FRACTIONS)
def test_nu_svr_bounds_its_fractions_and_is_epsilon_svr_with_its_epsilon(sample, nu):
    """Each side of the tube has Σ|α| = νnC/2, and α = C beyond its edge."""
    here = solved(problems.nu_svr(sample.given, sample.target, sample.C, nu))
    upper, lower = here.solution.multipliers
    gradient = sample.target - sample.K @ here.alpha.reshape(2, N).sum(axis=0)
    error = here.gap + here.error
    above, below = gradient > upper + error, gradient < lower - error
    assert max(np.sum(above), np.sum(below)) <= nu * N / 2 * (1 + N * EPS)
    assert min(np.count_nonzero(part) for part in here.alpha.reshape(2, N)) >= nu * N / 2 - N * EPS
    epsilon = 0.5 * (upper - lower)
    assert epsilon >= -error
    there = problems.epsilon_svr(sample.given, sample.target, sample.C, max(epsilon, 0.0))
    # Each multiplier is within ψ of the extremes of its group: twice ψ for both together.
    assert_same(solved(there), here, multipliers=[0.5 * (upper + lower)], stretch=2.0)


# -- classification with ν -------------------------------------------------------------------------


@thorough
@given(sample=samples(), part=FRACTIONS)
def test_nu_bounds_margin_errors_and_support_vectors(sample, part):
    nu = part * most_nu(sample.y)
    here = solved(problems.nu_svc(sample.given, sample.y, nu))
    positive, negative = here.solution.multipliers
    offset, rho = 0.5 * (positive + negative), 0.5 * (negative - positive)
    margins = sample.y * (sample.K @ here.alpha + offset)
    error = here.gap + here.error
    assert np.sum(margins < rho - error) <= nu * N * (1 + N * EPS)
    assert np.count_nonzero(here.alpha) >= nu * N * (1 - N * EPS)
    assert rho >= -error


@thorough
@given(sample=samples(), part=FRACTIONS)
def test_nu_svc_is_c_svc_with_the_inverse_of_its_margin(sample, part):
    here = solved(problems.nu_svc(sample.given, sample.y, part * most_nu(sample.y)))
    positive, negative = here.solution.multipliers
    offset, rho = 0.5 * (positive + negative), 0.5 * (negative - positive)
    assume(rho > 1e4 * (here.gap + here.error))  # or the classes coincide
    there = solved(problems.c_svc(sample.given, sample.y, 1.0 / rho))
    # The two groups become one: their multipliers meet, each within ψ of its extremes.
    assert_same(there, here, here.alpha / rho, [offset / rho], stretch=4.0 / rho)


# -- one class, and the smallest ball --------------------------------------------------------------


@thorough
@given(sample=samples(), nu=FRACTIONS)
def test_nu_bounds_outliers_and_support_vectors(sample, nu):
    here = solved(problems.one_class(sample.given, nu))
    heights = sample.K @ here.alpha + here.solution.bias
    assert np.sum(heights < -(here.gap + here.error)) <= nu * N * (1 + N * EPS)
    assert np.count_nonzero(here.alpha) >= nu * N * (1 - N * EPS)


def squared_radius(ball):
    """Return R² = −2f*, and how far it may be off: Σ|α − α*|/2 is at most one."""
    return -2.0 * ball.report.objective, 2.0 * (ball.gap + ball.report.objective_error)


@thorough
@given(sample=samples())
def test_the_smallest_ball_holds_all_points_and_touches_its_support_vectors(sample):
    ball = solved(problems.smallest_ball(sample.given))
    square, error = squared_radius(ball)
    alpha, K = ball.alpha, sample.K
    distances = np.diagonal(K) - 2.0 * K @ alpha + alpha @ K @ alpha
    error += 2.0 * (ball.gap + 2.0 * ball.error)
    assert (distances <= square + error).all()
    assert (np.abs(distances - square) <= error)[alpha > 0].all()


@thorough
@given(sample=samples(names=("linear",)), shift=powers(-2, 2), scale=powers(-3, 3), seed=SEEDS)
def test_the_smallest_ball_moves_and_grows_with_its_points(sample, shift, scale, seed):
    direction = shift * np.random.default_rng(seed).normal(size=FEATURES)
    square, error = squared_radius(solved(problems.smallest_ball(sample.gram(sample.X))))
    moved = solved(problems.smallest_ball(sample.gram(sample.X + direction)))
    grown = solved(problems.smallest_ball(sample.gram(scale * sample.X)))
    for ball, factor in ((moved, 1.0), (grown, scale**2)):
        other, other_error = squared_radius(ball)
        assert abs(other - factor * square) <= other_error + factor * error


@thorough
@given(sample=samples())
def test_the_squared_hinge_is_a_hard_margin_with_a_ridge(sample):
    here = solved(problems.squared_svc(sample.K, sample.y, sample.C))
    there = solved(problems.hard_margin(sample.K + np.eye(N) / sample.C, sample.y))
    assert_same(there, here)


# -- the P-SVM -------------------------------------------------------------------------------------

PSVM = PSMO(tol=1e-9)
COSTS = powers(-2, 2) | st.just(np.inf)


@thorough
@given(sample=samples(), C=COSTS, epsilon=powers(-3, 0), seed=SEEDS)
def test_normalisation_undoes_the_scale_of_a_column(sample, C, epsilon, seed):
    rng = np.random.default_rng(seed)
    data = problems.normalised(sample.K)
    assume(data.varies.all())
    scaled = problems.normalised(sample.K * 2.0 ** rng.integers(-8, 8, N))
    here = solved(problems.psvm(data, sample.target, C, epsilon), PSVM)
    there = solved(problems.psvm(scaled, sample.target, C, epsilon), PSVM)
    assert_same(here, there)


@thorough
@given(sample=samples(), C=COSTS, epsilon=powers(-3, 0))
def test_flipping_the_targets_flips_the_potential_svm(sample, C, epsilon):
    data = problems.normalised(sample.K)
    here = solved(problems.psvm(data, sample.target, C, epsilon), PSVM)
    there = solved(problems.psvm(data, -sample.target, C, epsilon), PSVM)
    assert_same(here, there, -there.alpha)


@settings(max_examples=10)
@given(sample=samples(), C=COSTS, excess=powers(-9, 2))
def test_no_feature_is_left_at_a_large_epsilon(sample, C, excess):
    epsilon = np.abs(sample.K.T @ sample.target).max() * (1.0 + excess)
    here = solved(problems.psvm(sample.K, sample.target, C, epsilon), PSVM)
    np.testing.assert_array_equal(here.alpha, 0.0)


# -- estimators ------------------------------------------------------------------------------------

TOL = 1e-10
CLASSES = np.repeat([0, 1, 2], 10)


def blobs(seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(30, FEATURES)) + 1.5 * np.eye(3)[CLASSES]


@thorough
@given(seed=SEEDS, C=powers(-3, 3), gamma=powers(-2, 1))
def test_names_of_classes_and_order_of_examples_do_not_matter(seed, C, gamma):
    X, names = blobs(seed), np.array(["ant", "bee", "cow"])
    order = np.random.default_rng(seed).permutation(30)
    machine = SVC(C=C, gamma=gamma, tol=TOL)
    expected = machine.fit(X, CLASSES).decision_function(X)
    labels = machine.predict(X)
    named = machine.fit(X, names[CLASSES])
    np.testing.assert_array_equal(named.decision_function(X), expected)
    np.testing.assert_array_equal(named.predict(X), names[labels])
    permuted = machine.fit(X[order], CLASSES[order])
    agrees = permuted.predict(X) == labels
    # Where the values of two classes are as close as rounding, any of them may be the largest.
    first, second = np.sort(expected, axis=1)[:, [-1, -2]].T
    assert agrees[first - second > 1e-6].all()


@thorough
@given(seed=SEEDS, C=powers(-3, 3), regression=st.booleans())
def test_a_linear_machine_turns_with_its_points(seed, C, regression):
    rng = np.random.default_rng(seed)
    X, rotation = blobs(seed), np.linalg.qr(rng.normal(size=(FEATURES, FEATURES)))[0]
    if regression:
        machine, target = SVR("linear", C=C, tol=TOL), X.sum(axis=1) + rng.normal(size=30)
        values = machine.fit(X, target).predict(X)
        turned = machine.fit(X @ rotation, target).predict(X @ rotation)
    else:
        machine, target = SVC("linear", C=C, tol=TOL), np.where(CLASSES == 0, 1, -1)
        values = machine.fit(X, target).decision_function(X)
        turned = machine.fit(X @ rotation, target).decision_function(X @ rotation)
    np.testing.assert_allclose(turned, values, rtol=1e-6, atol=1e-6)


@thorough
@given(seed=SEEDS, C=powers(-3, 3), gamma=powers(-2, 1), regression=st.booleans())
def test_a_weight_of_zero_is_absence(seed, C, gamma, regression):
    rng = np.random.default_rng(seed)
    X, weight = blobs(seed), (rng.random(30) < 0.8).astype(float)
    weight[[0, 10, 20]] = 1.0
    machine: Any = (SVR if regression else SVC)(C=C, gamma=gamma, tol=TOL)
    target = X.sum(axis=1) if regression else CLASSES
    output = machine.predict if regression else machine.decision_function
    machine.fit(X, target, sample_weight=weight)
    weighted = output(X)
    machine.fit(X[weight > 0], target[weight > 0])
    np.testing.assert_allclose(output(X), weighted, rtol=1e-6, atol=1e-6)
