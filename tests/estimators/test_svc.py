"""The first classifier: agreement with scikit-learn's SVC (LIBSVM), and what users expect."""

import pickle
from typing import Any

import jax
import numpy as np
import pytest
import sklearn.svm
from problems_for_tests import chess, rbf
from sklearn import datasets
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from jsvm import SVC, kernels
from jsvm.estimators import two_class
from jsvm.solvers import SMO, Status


def scaled(load: Any) -> tuple[Any, Any]:
    X, y = load(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def digits():
    X, y = datasets.load_digits(return_X_y=True)
    return X[:250] / 16.0, y[:250]


def blobs(seed: int, **arguments: Any) -> tuple[Any, Any]:
    X, y, *_ = datasets.make_blobs(n_samples=150, random_state=seed, **arguments)
    return X, np.array(["red", "green", "blue", "grey"])[y]


def imbalanced():
    return datasets.make_classification(
        n_samples=200, n_features=6, weights=[0.9], flip_y=0.1, random_state=3
    )


# name -> data and parameters common to both libraries. LIBSVM keeps kernel values in single
# precision, so its own answer is off by 1e-7 times the sum of |α|: moderate C, see the test below.
PROBLEMS = {
    "iris, rbf": (lambda: datasets.load_iris(return_X_y=True), {"C": 10.0}),
    "wine, linear": (lambda: scaled(datasets.load_wine), {"kernel": "linear", "C": 0.5}),
    "breast cancer, rbf": (
        lambda: (part[:250] for part in scaled(datasets.load_breast_cancer)),
        {"C": 2.0},
    ),
    "digits, poly": (digits, {"kernel": "poly", "degree": 2, "coef0": 1.0, "gamma": "auto"}),
    "moons, rbf": (
        lambda: datasets.make_moons(200, noise=0.25, random_state=0),
        {"C": 1.0, "gamma": 2.0},
    ),
    "circles, rbf": (
        lambda: datasets.make_circles(150, noise=0.1, factor=0.5, random_state=1),
        {"C": 1.0, "gamma": "auto"},
    ),
    "blobs of four classes, linear": (
        lambda: blobs(0, centers=4, cluster_std=2.5),
        {"kernel": "linear", "C": 0.01},
    ),
    "chess board, rbf": (lambda: chess(200), {"C": 1.0, "gamma": 0.5}),
    "sigmoid": (lambda: blobs(5, centers=3), {"kernel": "sigmoid", "gamma": 0.001, "C": 1.0}),
    "imbalanced, balanced weights": (imbalanced, {"class_weight": "balanced", "C": 5.0}),
}


@pytest.mark.parametrize(("tol", "agreement"), [(1e-3, 1e-2), (1e-8, 1e-5)])
@pytest.mark.parametrize("name", PROBLEMS)
def test_agrees_with_libsvm(name, tol, agreement):
    make, parameters = PROBLEMS[name]
    X, y = make()
    ours = SVC(**parameters, tol=tol, decision_function_shape="ovo").fit(X, y)
    theirs = sklearn.svm.SVC(**parameters, tol=tol, decision_function_shape="ovo").fit(X, y)
    assert ours.fit_status_ == 0
    ours_values, their_values = ours.decision_function(X), theirs.decision_function(X)
    assert ours_values.shape == their_values.shape
    assert np.abs(ours_values - their_values).max() <= agreement
    sure = np.abs(their_values.reshape(len(X), -1)).min(axis=1) > agreement
    np.testing.assert_array_equal(ours.predict(X)[sure], theirs.predict(X)[sure])
    for solution in ours.solutions_:
        assert solution.violation <= tol
        assert solution.status == Status.CONVERGED


def test_where_libsvm_differs_it_is_its_single_precision():
    """The chess board at C = 1000: both gaps recomputed in double precision, in NumPy."""
    X, y = chess(200)
    K, C = rbf(X), 1000.0
    ours = SVC(C=C, gamma=0.5, tol=1e-8).fit(X, y)
    parameters: dict[str, Any] = {"C": C, "gamma": 0.5, "tol": 1e-8}
    theirs = sklearn.svm.SVC(**parameters).fit(X, y)

    def gap(machine):
        alpha = np.zeros(200)
        alpha[machine.support_] = machine.dual_coef_[0]
        G = y - K @ alpha
        return G[alpha < np.maximum(0, C * y)].max() - G[alpha > np.minimum(0, C * y)].min()

    difference = np.abs(ours.decision_function(X) - theirs.decision_function(X)).max()
    assert difference > 1e-5
    assert gap(ours) <= 1e-8
    assert gap(theirs) > 1e-6  # it believes 1e-8


@pytest.mark.parametrize("name", ["iris, rbf", "moons, rbf"])
def test_attributes_are_laid_out_as_in_scikit_learn(name):
    make, parameters = PROBLEMS[name]
    X, y = make()
    ours = SVC(**parameters, tol=1e-8).fit(X, y)
    theirs = sklearn.svm.SVC(**parameters, tol=1e-8).fit(X, y)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    np.testing.assert_array_equal(ours.n_support_, theirs.n_support_)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-5)
    np.testing.assert_array_equal(ours.support_vectors_, theirs.support_vectors_)
    assert ours.n_iter_.shape == theirs.n_iter_.shape
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5)


def test_pairs_in_a_batch_equal_pairs_alone(monkeypatch):
    X, y = datasets.load_iris(return_X_y=True)
    alone = SVC(tol=1e-8, decision_function_shape="ovo").fit(X, y)
    monkeypatch.setattr(two_class, "default_platform", lambda: "gpu")
    together = SVC(tol=1e-8, decision_function_shape="ovo").fit(X, y)
    np.testing.assert_allclose(together.decision_function(X), alone.decision_function(X), atol=1e-7)
    np.testing.assert_array_equal(together.support_, alone.support_)


def test_break_ties_and_shapes():
    X, y = blobs(0, centers=4, cluster_std=2.5)
    machine = SVC(kernel="linear", break_ties=True).fit(X, y)
    theirs = sklearn.svm.SVC(kernel="linear", break_ties=True).fit(X, y)
    assert machine.decision_function(X).shape == (150, 4)
    assert (machine.predict(X) == theirs.predict(X)).mean() > 0.99
    best = machine.classes_[machine.decision_function(X).argmax(axis=1)]
    np.testing.assert_array_equal(machine.predict(X), best)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_weight_is_a_number_of_copies_and_zero_is_absence(loss):
    X, y = datasets.make_moons(40, noise=0.3, random_state=0)
    weights = np.random.default_rng(0).integers(0, 3, 40)
    weighted = SVC(loss=loss, tol=1e-8, gamma=1.0).fit(X, y, sample_weight=weights)
    copies = SVC(loss=loss, tol=1e-8, gamma=1.0).fit(
        np.repeat(X, weights, axis=0), np.repeat(y, weights)
    )
    np.testing.assert_allclose(
        weighted.decision_function(X), copies.decision_function(X), atol=1e-7
    )


def test_precomputed_kernel_equals_the_kernel():
    X, y = datasets.make_moons(60, noise=0.2, random_state=0)
    direct = SVC(gamma=0.5, tol=1e-8).fit(X, y)
    matrix = SVC(kernel="precomputed", tol=1e-8).fit(rbf(X), y)
    np.testing.assert_allclose(
        direct.decision_function(X), matrix.decision_function(rbf(X)), atol=1e-8
    )
    with pytest.raises(ValueError, match="square X"):
        SVC(kernel="precomputed").fit(rbf(X)[:, :10], y)


def test_kernel_objects_and_functions():
    X, y = datasets.make_moons(60, noise=0.2, random_state=0)

    def slow(A, B):
        assert isinstance(A, np.ndarray)
        return rbf(A, B)

    reference = SVC(gamma=0.5, tol=1e-8).fit(X, y).decision_function(X)
    for kernel in (kernels.RBF(0.5), slow):
        values = SVC(kernel=kernel, tol=1e-8).fit(X, y).decision_function(X)
        np.testing.assert_allclose(values, reference, atol=1e-8)


def test_hard_margin():
    X, y = chess(60)
    machine = SVC(C=np.inf, gamma=0.5).fit(X, y)
    assert machine.score(X, y) == 1.0
    assert (machine.decision_function(X) * y).min() > 1 - 1e-3
    moons = datasets.make_moons(40, noise=0.4, random_state=0)
    with pytest.raises(ValueError, match=r"not separable.*finite C"):
        SVC(kernel="linear", C=np.inf).fit(*moons)


def test_non_convergence_is_a_warning_with_the_gap():
    X, y = chess(60)
    with pytest.warns(ConvergenceWarning, match="KKT gap of .*raise max_steps"):
        machine = SVC(C=1e6, max_iter=3).fit(X, y)
    assert machine.fit_status_ == 1
    assert machine.n_iter_[0] <= 3


def test_the_solver_can_be_given():
    X, y = chess(60)
    solver = SMO(selection="hybrid_maximum_gain", block=False, tol=1e-4)
    machine = SVC(C=100.0, gamma=0.5, solver=solver).fit(X, y)
    assert machine.solutions_[0].newton_steps == 0
    reference = SVC(C=100.0, gamma=0.5, tol=1e-4).fit(X, y)
    np.testing.assert_allclose(
        machine.decision_function(X), reference.decision_function(X), atol=1e-3
    )


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"C": 0.0}, "C=0.0"),
        ({"C": np.nan}, "C=nan"),
        ({"C": None}, "C=None"),
        ({"C": "a"}, "C='a'"),
        ({"gamma": None}, "gamma=None"),
        ({"max_iter": 10.5}, "max_iter=10.5"),
        ({"solver": "smo"}, "solver='smo'"),
        ({"class_weight": {-1: np.nan, 1: 1.0}}, "class_weight="),
        ({"class_weight": {-1: -2.0, 1: 1.0}}, "class_weight="),
        ({"class_weight": {-1: 0.0, 1: 1.0}}, "class_weight is zero on all of class"),
        ({"loss": "huber"}, "loss='huber'"),
        ({"gamma": -1.0}, "gamma=-1.0"),
        ({"kernel": "rbff"}, "kernel='rbff'"),
        ({"tol": -1.0}, "tol=-1.0"),
        ({"max_iter": -5}, "max_iter=-5"),
        ({"decision_function_shape": "both"}, "decision_function_shape='both'"),
        ({"break_ties": True, "decision_function_shape": "ovo"}, "break_ties"),
        ({"dtype": "int8"}, "dtype='int8'"),
    ],
)
def test_errors_name_the_argument(parameters, message):
    X, y = chess(30)
    with pytest.raises(ValueError, match=message):
        SVC(**parameters).fit(X, y)


def test_bad_data_are_errors():
    X, y = chess(30)
    with pytest.raises(ValueError, match="one class"):
        SVC().fit(X, np.ones(30))
    with pytest.raises(ValueError, match="NaN"):
        SVC().fit(np.where(X > 2, np.nan, X), y)
    with pytest.raises(ValueError, match="Negative values"):
        SVC().fit(X, y, sample_weight=-np.ones(30))
    with pytest.raises(ValueError, match="zero on all of class"):
        SVC().fit(X, y, sample_weight=(y > 0).astype(float))
    with pytest.raises(ValueError, match="features"):
        SVC().fit(X, y).predict(X[:, :1])
    three = np.arange(30) % 3
    with jax.debug_nans(False), pytest.raises(ValueError, match="NaN or infinity"):
        SVC("poly", gamma=1.0, coef0=np.inf).fit(X, three)
    with pytest.raises(NotFittedError):
        SVC().predict(X)


def test_degenerate_data_are_fitted():
    X, y = np.ones((20, 3)), np.where(np.arange(20) < 12, "a", "b")
    constant = SVC().fit(X, y)  # constant columns: the majority wins
    assert (constant.predict(X) == "a").all()
    duplicated = np.repeat(chess(15)[0], 2, axis=0)
    contradiction = np.tile([1.0, -1.0], 15)
    assert SVC(C=1e6, gamma=0.5).fit(duplicated, contradiction).fit_status_ == 0


def test_float32_runs_in_float32():
    X, y = datasets.make_moons(60, noise=0.2, random_state=0)
    machine = SVC(dtype="float32").fit(X, y)
    assert machine.decision_function(X).dtype == np.float32
    reference = SVC().fit(X, y)
    np.testing.assert_allclose(
        machine.decision_function(X), reference.decision_function(X), atol=1e-3
    )


def test_pickle_clone_and_determinism():
    X, y = datasets.load_iris(return_X_y=True)
    machine = SVC(kernel=kernels.RBF(0.3)).fit(X, y)
    again = pickle.loads(pickle.dumps(machine))
    np.testing.assert_array_equal(machine.decision_function(X), again.decision_function(X))
    copy: Any = clone(machine)
    copy.fit(X, y)
    np.testing.assert_array_equal(machine.dual_coef_, copy.dual_coef_)


def test_whole_numbers_are_predicted_as_others_are(rng):
    X = rng.integers(0, 256, (60, 40)).astype(float)
    y = np.where(X[:, 0] > 128, 1, -1)
    machine = SVC(C=10.0, gamma=1e-6).fit(X, y)
    distances = ((X[:, None] - machine.support_vectors_[None]) ** 2).sum(-1)
    expected = np.exp(-1e-6 * distances) @ machine.dual_coef_[0] + machine.intercept_
    np.testing.assert_allclose(machine.decision_function(X), expected, rtol=1e-12, atol=1e-12)
    beside = X + 0.25
    distances = ((beside[:, None] - machine.support_vectors_[None]) ** 2).sum(-1)
    expected = np.exp(-1e-6 * distances) @ machine.dual_coef_[0] + machine.intercept_
    np.testing.assert_allclose(machine.decision_function(beside), expected, rtol=1e-9, atol=1e-9)


def test_prediction_in_blocks_equals_prediction_at_once(monkeypatch):
    from jsvm import evaluate

    X, y = chess(200)
    machine = SVC(C=10.0, gamma=0.5).fit(X, y)
    whole = machine.decision_function(X)
    monkeypatch.setattr(evaluate, "BLOCK_BYTES", 2**15)
    np.testing.assert_allclose(machine.decision_function(X), whole, atol=1e-12)


def test_works_inside_scikit_learn():
    X, y = datasets.load_iris(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), SVC())
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.9
    search = GridSearchCV(SVC(), {"C": [0.1, 10.0]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.9
