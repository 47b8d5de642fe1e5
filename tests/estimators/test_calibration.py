"""Probabilities: the fits against generic optimisers and LIBSVM's, and what they must not do."""

from typing import Any

import numpy as np
import pytest
import sklearn.svm as untyped_svm
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn import datasets as untyped_datasets
from sklearn.metrics import log_loss

from jsvm import SVC, NuSVC
from jsvm.estimators.calibration import Logistic, couple, fit_platt, fit_slope

svm: Any = untyped_svm  # its types name less than it takes
datasets: Any = untyped_datasets


def sample(seed: int, n: int = 60):
    rng = np.random.default_rng(seed)
    f = rng.normal(size=n) * 10.0 ** rng.integers(-3, 3)
    signs = np.where(f + np.abs(f).mean() * rng.normal(size=n) > 0, 1.0, -1.0)
    return f, signs, rng.uniform(0.2, 3.0, n)


def loss(parameters, f, signs, weight):
    positive = signs > 0
    more, fewer = weight[positive].sum(), weight[~positive].sum()
    targets = np.where(positive, (more + 1) / (more + 2), 1 / (fewer + 2))
    z = parameters[0] * f + (parameters[1] if len(parameters) > 1 else 0.0)
    return weight @ (targets * z + np.logaddexp(0.0, -z))


@pytest.mark.parametrize("seed", range(12))
def test_newton_finds_what_a_generic_optimiser_finds(seed):
    f, signs, weight = sample(seed)
    unit = np.abs(f).max()
    two = fit_platt(f, signs, weight)
    best = minimize(lambda p: loss(p, f / unit, signs, weight), np.zeros(2), tol=1e-12)
    assert loss([two.slope * unit, two.offset], f / unit, signs, weight) <= best.fun + 1e-9
    np.testing.assert_allclose([two.slope * unit, two.offset], best.x, atol=1e-4)
    one = fit_slope(f, signs, weight)
    best = minimize(lambda p: loss(p, f / unit, signs, weight), np.zeros(1), tol=1e-12)
    if best.x[0] < -1e-3:
        np.testing.assert_allclose(one.slope * unit, best.x[0], atol=1e-4)
    assert one.slope < 0
    assert one.offset == 0.0


@given(st.integers(0, 10_000), st.integers(2, 30))
def test_a_weight_is_a_number_of_copies(seed, n):
    f, signs, _ = sample(seed, n)
    counts = np.random.default_rng(seed).integers(1, 4, n).astype(float)
    copies = np.repeat(f, counts.astype(int)), np.repeat(signs, counts.astype(int))
    for fit in (fit_platt, fit_slope):
        weighted, repeated = fit(f, signs, counts), fit(*copies)
        probability = weighted.probability(f)
        np.testing.assert_allclose(probability, repeated.probability(f), atol=1e-5)
        assert np.isfinite(probability).all()


def test_separated_and_degenerate_decisions_stay_finite():
    f = np.array([-3.0, -2.0, 2.0, 3.0])
    signs = np.sign(f)
    for fit in (fit_platt, fit_slope):
        p = fit(f, signs).probability(f)
        assert (p > 0).all()
        assert (p < 1).all()
        np.testing.assert_allclose(fit(np.zeros(4), signs).probability(np.zeros(4)), 0.5)
        assert fit(1e300 * f, signs).probability(np.array([1e300]))[0] > 0.5
        assert fit(1e-300 * f, signs).probability(np.array([3e-300]))[0] > 0.5
    upside_down = fit_slope(f, -signs)
    assert upside_down.slope < 0
    assert upside_down.probability(np.array([1.0]))[0] > 0.5
    with pytest.raises(ValueError, match="decisions must be finite"):
        fit_platt(np.array([np.nan, 1.0]), signs[:2])
    assert Logistic(-1.0, 0.0).probability(np.array([1e4, -1e4])).tolist() == [1.0, 0.0]


@given(st.integers(0, 10_000), st.integers(3, 6))
def test_coupling_recovers_consistent_probabilities(seed, classes):
    p = np.random.default_rng(seed).dirichlet(np.ones(classes), 4) + 1e-3
    p /= p.sum(axis=1, keepdims=True)
    a, b = np.triu_indices(classes, 1)
    pairwise = p[:, a] / (p[:, a] + p[:, b])
    np.testing.assert_allclose(couple(pairwise, classes), p, atol=1e-6)


def test_coupling_is_the_minimiser():
    rng = np.random.default_rng(3)
    pairwise, (a, b) = rng.uniform(0.05, 0.95, (5, 6)), np.triu_indices(4, 1)

    def objective(p, r):
        return (((1 - r) * p[a] - r * p[b]) ** 2).sum()

    for r, p in zip(pairwise, couple(pairwise, 4), strict=True):
        assert p.sum() == pytest.approx(1.0)
        for _ in range(50):
            other = rng.dirichlet(np.ones(4))
            moved = p + 1e-3 * (other - p)
            assert objective(moved, r) >= objective(p, r) - 1e-15


@pytest.mark.parametrize("calibration", ["platt", "sigmoid"])
@pytest.mark.parametrize("machine", [SVC, NuSVC])
@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_are_probabilities(calibration, machine, classes):
    X, y, *_ = datasets.make_blobs(150, centers=classes, cluster_std=3.0, random_state=0)
    model = machine(calibration=calibration, random_state=0, gamma=0.1).fit(X, y)
    p = model.predict_proba(X)
    assert p.shape == (150, classes)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert (p >= 0).all()
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(p))
    uninformed = np.log(classes)
    assert log_loss(y, p) < 0.8 * uninformed
    if calibration == "sigmoid":
        np.testing.assert_array_equal(model.predict(X), model.classes_[p.argmax(axis=1)])
        if classes == 2:
            np.testing.assert_array_equal(p[:, 1] > 0.5, model.decision_function(X) > 0)
    again = machine(calibration=calibration, random_state=0, gamma=0.1).fit(X, y)
    np.testing.assert_array_equal(again.predict_proba(X), p)


@pytest.mark.slow
def test_platt_is_close_to_libsvms():
    X, y = datasets.make_classification(400, 6, flip_y=0.2, random_state=1)
    ours = SVC(calibration="platt", random_state=0, tol=1e-6).fit(X, y).predict_proba(X)
    with pytest.warns(FutureWarning) if _probability_is_deprecated() else _nothing():
        theirs = svm.SVC(probability=True, random_state=0, tol=1e-6).fit(X, y)
    # The folds are drawn at random, so the sigmoids differ a little.
    assert np.abs(ours - theirs.predict_proba(X)).max() < 0.1
    assert log_loss(y, ours) < log_loss(y, theirs.predict_proba(X)) + 0.01


def _nothing():
    from contextlib import nullcontext

    return nullcontext()


def _probability_is_deprecated() -> bool:
    import warnings

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        svm.SVC(probability=True).fit(np.arange(20.0)[:, None], np.arange(20) > 9)
    return bool(seen)


def test_without_calibration_there_are_no_probabilities():
    X, y = datasets.make_moons(40, random_state=0)
    model = SVC().fit(X, y)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match="predict_proba"):
        model.predict_proba(X)
    lonely = SVC(calibration="platt", random_state=0).fit(X[:5], [0, 0, 0, 0, 1])
    assert np.isfinite(lonely.predict_proba(X)).all()
