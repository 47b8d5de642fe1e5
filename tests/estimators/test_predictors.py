"""Support vectors are uploaded once for a fitted estimator, as long as it is the same."""

import gc
import pickle
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
import pytest

from jsvm import PSVC, SVC, SVR, evaluate, kernels
from jsvm.estimators.kernel_estimator import PREDICTORS

RNG = np.random.default_rng(0)
X, T = RNG.normal(size=(40, 3)), RNG.normal(size=(10, 3))
Y = (X[:, 0] > 0) * 2 + (X[:, 1] > 0)


@pytest.fixture
def uploads(monkeypatch):
    """The machines that are uploaded from here on."""
    found, upload = [], evaluate._upload

    def watched(machine, dtype):
        found.append(machine)
        return upload(machine, dtype)

    monkeypatch.setattr(evaluate, "_upload", watched)
    return found


@pytest.mark.parametrize("machine", [SVC(), SVC(multiclass="ovr"), SVR(), PSVC()])
def test_points_are_uploaded_once(machine, uploads):
    machine.fit(X, Y)
    first = machine.predict(T)
    for _ in range(3):
        np.testing.assert_array_equal(machine.predict(T), first)
    assert len(uploads) == 1
    machine.fit(X, Y)
    machine.predict(T)
    assert len(uploads) == 2


@pytest.mark.parametrize("name", ["dual_coef_", "intercept_", "support_vectors_", "kernel_"])
@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_assigned_attributes_are_used(name, multiclass):
    machine = SVC(multiclass=multiclass, decision_function_shape="ovr", gamma=0.5).fit(X, Y)
    before = machine.decision_function(T)
    last = getattr(machine, name)
    setattr(machine, name, kernels.RBF(2.0) if name == "kernel_" else 1.5 * last)
    after = machine.decision_function(T)
    assert np.abs(after - before).max() > 1e-3
    fresh = pickle.loads(pickle.dumps(machine))
    np.testing.assert_array_equal(fresh.decision_function(T), after)
    setattr(machine, name, last)
    np.testing.assert_array_equal(machine.decision_function(T), before)


def test_coefficients_changed_in_place_are_used():
    machine = SVR().fit(X, Y)
    before = machine.predict(T)
    machine.intercept_ += 1.0
    np.testing.assert_allclose(machine.predict(T), before + 1.0)


def test_dtypes_and_devices_have_their_own(uploads):
    machine = SVR().fit(X, Y)
    exact = machine.predict(T)
    machine.set_params(dtype="float32")
    assert machine.predict(T).dtype == np.float32
    np.testing.assert_allclose(machine.predict(T), exact, rtol=1e-4, atol=1e-4)
    machine.set_params(dtype=None)
    np.testing.assert_array_equal(machine.predict(T), exact)
    assert len(uploads) == 2
    with jax.default_device(jax.devices()[0]):
        np.testing.assert_array_equal(machine.predict(T), exact)


def test_predictors_are_not_pickled_and_go_with_their_estimator():
    machine = SVR().fit(X, Y)
    size = len(pickle.dumps(machine))
    machine.predict(T)
    assert len(pickle.dumps(machine)) == size
    assert machine in PREDICTORS._kept
    count = len(PREDICTORS._kept)
    del machine
    gc.collect()
    assert len(PREDICTORS._kept) < count


def test_threads_share_a_machine(uploads):
    machine = SVC().fit(X, Y)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: machine.predict(T), range(8)))
    assert all((labels == found[0]).all() for labels in found)
    assert len(uploads) == 1
