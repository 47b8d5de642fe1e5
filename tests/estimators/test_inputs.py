"""What data may come as: sparse, frames, arrays of other libraries; and where results go."""

import copy
import pickle
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from joblib import Parallel, delayed
from scipy import sparse
from sklearn import datasets as untyped_datasets
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from jsvm import (
    PSVC,
    PSVR,
    SVC,
    SVR,
    NuSVC,
    NuSVR,
    OneClassSVM,
    PSVMSelector,
    SmallestBall,
    kernels,
)
from jsvm.estimators.checks import are_plain, encoded

datasets: Any = untyped_datasets

ALL = [SVC(), NuSVC(nu=0.3), SVR(), NuSVR(), OneClassSVM(), SmallestBall()]


def counts(n: int = 60, d: int = 30) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.poisson(0.2, (n, d)).astype(float)
    return X, (X[:, :10].sum(axis=1) + rng.normal(size=n) > 2).astype(int)


def output(machine: Any, X: Any) -> np.ndarray:
    return getattr(machine, "decision_function", machine.predict)(X)


@pytest.mark.parametrize("machine", ALL, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csc_array, sparse.coo_matrix])
def test_sparse_equals_dense(machine, container):
    X, y = counts()
    dense = machine.fit(X, y)
    expected, support = output(dense, X), dense.support_
    fitted = machine.fit(container(X), y)
    np.testing.assert_allclose(output(fitted, container(X)), expected, atol=1e-8)
    np.testing.assert_allclose(output(fitted, X), expected, atol=1e-8)  # dense points, sparse SVs
    np.testing.assert_array_equal(fitted.support_, support)
    assert sparse.issparse(fitted.support_vectors_)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(output(again, X), output(fitted, X))
    np.testing.assert_allclose(output(machine.fit(X, y), container(X)), expected, atol=1e-8)


@pytest.mark.parametrize(
    "kernel",
    [
        "linear",
        "poly",
        "sigmoid",
        kernels.RBF(0.1) + 0.5 * kernels.Linear(),
        kernels.Normalized(kernels.Polynomial(2, 1.0, 1.0)) * kernels.Plummer(),
    ],
    ids=["linear", "poly", "sigmoid", "sum", "product"],
)
def test_kernels_of_products_work_on_sparse_data(kernel):
    X, y = counts()
    dense = SVC(kernel, gamma=0.1).fit(X, y).decision_function(X)
    thin = SVC(kernel, gamma=0.1).fit(sparse.csr_matrix(X), y)
    np.testing.assert_allclose(thin.decision_function(sparse.csr_matrix(X)), dense, atol=1e-8)


@pytest.mark.parametrize(
    "kernel",
    ["laplacian", kernels.ARD(np.ones(30)), lambda A, B: A @ B.T],
    ids=["laplacian", "ard", "callable"],
)
def test_other_kernels_say_that_they_cannot(kernel):
    X, y = counts()
    with pytest.raises(ValueError, match="give a dense X"):
        SVC(kernel).fit(sparse.csr_matrix(X), y)


@pytest.mark.slow
def test_many_sparse_examples_are_never_dense():
    """More features than memory: 1500 examples in ten million dimensions."""
    n, d = 1500, 10_000_000
    rng = np.random.default_rng(1)
    columns = rng.integers(0, 200, (n, 5)) * 50_000
    X = sparse.csr_matrix(
        (np.ones(5 * n), (np.repeat(np.arange(n), 5), columns.ravel())), shape=(n, d)
    )
    y = (columns < 3_000_000).sum(axis=1) > 1
    machine = SVC(C=1.0, gamma=0.2).fit(X, y)
    assert machine.fit_status_ == 0
    assert machine.score(X, y) > 0.95
    assert machine.support_vectors_.shape[1] == d


def test_frames_and_feature_names():
    pandas = pytest.importorskip("pandas")
    X, y = datasets.load_iris(return_X_y=True, as_frame=True)
    machine = SVC().fit(X, y)
    assert list(machine.feature_names_in_) == list(X.columns)
    plain = SVC().fit(X.to_numpy(), y.to_numpy())
    np.testing.assert_array_equal(machine.predict(X), plain.predict(X.to_numpy()))
    with pytest.raises(ValueError, match="feature names"):
        machine.predict(X.rename(columns=str.upper))
    assert isinstance(y, pandas.Series)


class OnlyDlpack:
    """An array of a library that NumPy knows nothing of."""

    def __init__(self, values: np.ndarray) -> None:
        self._values = values

    def __dlpack__(self, **arguments: Any) -> Any:
        return self._values.__dlpack__(**arguments)

    def __dlpack_device__(self) -> Any:
        return self._values.__dlpack_device__()


@pytest.mark.parametrize("convert", [jnp.asarray, OnlyDlpack], ids=["jax", "dlpack"])
def test_arrays_of_other_libraries(convert):
    X, y = datasets.make_moons(50, noise=0.2, random_state=0)
    X = X.astype(np.float32)
    machine = SVC().fit(convert(X), y)
    values = machine.decision_function(convert(X))
    assert isinstance(values, np.ndarray)
    np.testing.assert_allclose(values, SVC().fit(X, y).decision_function(X), atol=1e-12)


def test_pickles_hold_plain_arrays_and_a_version():
    X, y = datasets.make_moons(50, noise=0.2, random_state=0)
    machine = SVC(kernels.RBF(jnp.float32(0.5))).fit(X, y)
    state = machine.__getstate__()
    assert state["_jsvm_format"] == 1
    assert isinstance(state["kernel_"].gamma, np.ndarray)
    other = copy.deepcopy(machine)
    np.testing.assert_array_equal(other.decision_function(X), machine.decision_function(X))
    with pytest.raises(ValueError, match="newer jsvm"):
        SVC().__setstate__(state | {"_jsvm_format": 99})


def test_works_inside_scikit_learn():
    X, y = datasets.load_iris(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), SVC())
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.9
    search = GridSearchCV(NuSVC(), {"nu": [0.1, 0.3]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.9
    assert OneVsRestClassifier(SVC()).fit(X, y).score(X, y) > 0.9
    calibrated = CalibratedClassifierCV(SVC(), cv=3).fit(X, y)
    assert calibrated.predict_proba(X).shape == (150, 3)


def test_metadata_is_routed():
    import sklearn

    X, y = datasets.make_moons(60, noise=0.3, random_state=0)
    weights = np.where(y == 1, 5.0, 1.0)
    with sklearn.config_context(enable_metadata_routing=True):
        estimator = SVC().set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, estimator)
        pipeline.fit(X, y, sample_weight=weights)
    direct = SVC().fit(StandardScaler().fit_transform(X), y, sample_weight=weights)
    np.testing.assert_allclose(
        pipeline.decision_function(X),
        direct.decision_function(StandardScaler().fit_transform(X)),
        atol=1e-9,
    )


def _fit_and_decide(C: float, X: Any, y: Any) -> np.ndarray:
    return SVC(C=C).fit(X, y).decision_function(X)


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_joblib_with_two_workers(backend):
    X, y = datasets.make_moons(60, noise=0.3, random_state=0)
    costs = [0.1, 1.0, 10.0, 100.0]
    together = Parallel(2, backend=backend)(delayed(_fit_and_decide)(C, X, y) for C in costs)
    for C, values in zip(costs, together, strict=True):
        np.testing.assert_array_equal(values, _fit_and_decide(C, X, y))


def test_plain_arrays_and_what_has_to_be_converted_give_the_same_machine():
    X, y = counts(d=20)
    plain = SVC(gamma=0.1).fit(X, y)
    for other in (X.tolist(), np.asfortranarray(X), X.astype(np.longdouble)):
        machine = SVC(gamma=0.1).fit(other, y)
        np.testing.assert_array_equal(machine.dual_coef_, plain.dual_coef_)
        assert machine.n_features_in_ == plain.n_features_in_ == X.shape[1]


def test_names_of_features_are_forgotten_with_the_next_plain_array():
    pandas = pytest.importorskip("pandas")
    X, y = counts(d=2)
    machine = SVC().fit(pandas.DataFrame(X, columns=["a", "b"]), y)
    assert list(machine.feature_names_in_) == ["a", "b"]
    assert not hasattr(machine.fit(X, y), "feature_names_in_")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("estimator", [SVC(), SVR(), OneClassSVM()], ids=str)
def test_plain_arrays_that_are_not_finite_are_errors_with_words(estimator, bad):
    X, y = counts(d=2)
    X[3, 1] = bad
    with pytest.raises(ValueError, match=r"X contains (NaN|infinity)"):
        estimator.fit(X, y)


def test_what_is_in_doubt_is_left_to_scikit_learn():
    X, y = counts(d=2)
    X = np.where(y[:, None] > 0, 1e308, 0.0) * np.ones(2)
    X[:3] = 1e308
    assert not are_plain(X, y)  # the sum is not finite
    assert are_plain(X * 1e-300, y)
    assert not are_plain(X * 1e-300, y, ensure_min_samples=len(y) + 1)
    assert not are_plain(X * 1e-300, y[:-1])
    assert not are_plain(X * 1e-300, y.astype(str))
    assert not are_plain(X * 1e-300, y, something_new=True)


@pytest.mark.parametrize(
    "labels", [np.array([-100, 100], np.int8), [3, 5, 9], [-1.0, 1.0], [-7, 10**9]]
)
def test_labels_are_numbered_in_their_order(labels, rng):
    y = rng.choice(np.asarray(labels), 500)
    expected = np.unique(y, return_inverse=True)
    for found, wanted in zip(encoded(y), expected, strict=True):
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    "machine", [*ALL, PSVC(), PSVR(), PSVMSelector()], ids=lambda m: type(m).__name__
)
def test_masked_entries_are_an_error(machine):
    X, y = counts(40, 4)
    mask = np.zeros(X.shape, bool)
    whole = np.ma.array(X, mask=mask.copy())
    weighs = not isinstance(machine, PSVMSelector)
    fitted = machine.fit(whole, np.ma.array(y, mask=mask[:, 0]))
    mask[3, 1] = mask[5, 0] = True
    holes = np.ma.array(X, mask=mask)
    with pytest.raises(ValueError, match=r"X has 2 masked entries; fill them .* or impute"):
        machine.fit(holes, y)
    if not isinstance(machine, OneClassSVM | SmallestBall):  # they ignore y
        with pytest.raises(ValueError, match="y has 1 masked entries"):
            machine.fit(X, np.ma.array(y, mask=mask[:, 1]))
    if weighs:
        with pytest.raises(ValueError, match="sample_weight has 1 masked entries"):
            machine.fit(X, y, np.ma.array(np.ones(40), mask=mask[:, 0]))
        machine.fit(X, y, np.ma.array(np.ones(40)))
        with pytest.raises(ValueError, match="X has 2 masked entries"):
            fitted.predict(holes)
        np.testing.assert_array_equal(fitted.predict(whole), fitted.predict(X))


def test_masked_kernel_matrices_are_an_error():
    X, y = counts()
    K = X @ X.T
    for machine in (SVC("precomputed"), PSVC("precomputed")):
        fitted = machine.fit(K, y)
        for call in (lambda Z, machine=machine: machine.fit(Z, y), fitted.predict):
            with pytest.raises(ValueError, match="X has 30 masked entries"):
                call(np.ma.array(K, mask=np.eye(60) * (np.arange(60) < 30) > 0))


@pytest.mark.parametrize("factor", [1e-140, 1e150])
def test_gamma_scale_makes_the_unit_of_the_features_irrelevant(factor):
    X, y = counts()
    expected = SVC().fit(X, y).decision_function(X)
    found = SVC().fit(factor * X, y).decision_function(factor * X)
    np.testing.assert_allclose(found, expected, atol=1e-6)
