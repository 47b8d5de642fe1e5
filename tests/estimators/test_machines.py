"""All estimators beside scikit-learn's, over the built-in data sets and a grid of parameters.

LIBSVM keeps kernel values in single precision: its decision values are off by up to 2⁻²⁴ times
Σ|α||K|. Where that is more than the agreement asked for, it takes its place: :func:`agreement`.
"""

from typing import Any

import numpy as np
import pytest
import sklearn.svm as untyped_svm
from problems_for_tests import rbf
from sklearn import datasets as untyped_datasets
from sklearn.preprocessing import StandardScaler

import jsvm
from jsvm import SVC, SVR, NuSVC, NuSVR, OneClassSVM, SmallestBall

svm: Any = untyped_svm  # its types name less than it takes
datasets: Any = untyped_datasets

TOL, AGREEMENT, SINGLE = 1e-6, 1e-4, 2.0**-24


def agreement(theirs: Any, X: Any) -> float:
    """Return how far LIBSVM's decision values may be off."""
    largest = (np.linalg.norm(X, axis=1) ** 2).max() if theirs.kernel == "linear" else 1.0
    if theirs.kernel == "poly":
        gamma = 1.0 / X.shape[1]
        largest = (gamma * (np.linalg.norm(X, axis=1) ** 2).max() + 1.0) ** 2
    return max(AGREEMENT, SINGLE * largest * np.abs(theirs.dual_coef_).sum(axis=1).max())


def scaled(name: str) -> tuple[Any, Any]:
    """Return a data set with at most 256 variables a problem, two an example in regression."""
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    if name == "digits":
        return X[:250] / 16.0, y[:250]
    if name == "breast_cancer":
        X, y = X[:250], y[:250]
    if name == "diabetes":
        X, y = X[:125], y[:125]
        y = (y - y.mean()) / y.std()
    return StandardScaler().fit_transform(X), y


KERNELS = [
    {"kernel": "linear"},
    {"kernel": "rbf", "gamma": "scale"},
    {"kernel": "rbf", "gamma": 0.02},
    {"kernel": "poly", "degree": 2, "gamma": "auto", "coef0": 1.0},
    {"kernel": "sigmoid", "gamma": 0.002, "coef0": 0.0},
]
CLASSES = ["iris", "wine", "breast_cancer", "digits"]


def both(name: str, **parameters: Any) -> tuple[Any, Any]:
    ours = getattr(jsvm, name)(**parameters, tol=TOL)
    theirs = getattr(svm, name)(**parameters, tol=TOL)
    return ours, theirs


def same_kernel(theirs: Any, ours: Any) -> Any:
    """Give them our γ: theirs of 'scale' ignores the weights, so copies would change the kernel."""
    if theirs.gamma == "scale" and hasattr(ours.kernel_, "gamma"):
        theirs.set_params(gamma=float(ours.kernel_.gamma))
    return theirs


def weights(n: int) -> np.ndarray:
    return np.random.default_rng(n).choice([0.5, 1.0, 2.0], n)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("data", CLASSES)
def test_svc(data, kernel, C, weighted):
    X, y = scaled(data)
    # Were the classes of equal weight, all variables could be at bounds, and b not unique.
    class_weight = {c: 1.0 + 0.37 * c for c in np.unique(y)} if weighted else None
    ours, theirs = both(
        "SVC", **kernel, C=C, class_weight=class_weight, decision_function_shape="ovo"
    )
    w = weights(len(y)) if weighted else None
    ours.fit(X, y, sample_weight=w)
    same_kernel(theirs, ours).fit(X, y, sample_weight=w)
    difference = np.abs(ours.decision_function(X) - theirs.decision_function(X)).max()
    assert difference <= agreement(theirs, X)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("nu", [0.1234, 0.3217, 0.5923])  # νn/2 whole: vertices, and ρ not unique
@pytest.mark.parametrize("kernel", KERNELS[:4], ids=str)
@pytest.mark.parametrize("data", CLASSES)
def test_nu_svc(data, kernel, nu, weighted):
    X, y = scaled(data)
    ours, theirs = both("NuSVC", **kernel, nu=nu, decision_function_shape="ovo")
    w = weights(len(y)) if weighted else None
    ours.fit(X, y, sample_weight=w)
    same_kernel(theirs, ours).fit(X, y, sample_weight=w)
    # Division by ρ multiplies the tolerance: agreement relative to the decision values.
    a, b = ours.decision_function(X), theirs.decision_function(X)
    assert np.abs(a - b).max() <= agreement(theirs, X) * max(1.0, np.abs(b).max())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_svr(kernel, C, epsilon, weighted):
    X, y = scaled("diabetes")
    ours, theirs = both("SVR", **kernel, C=C, epsilon=epsilon)
    w = weights(len(y)) if weighted else None
    ours.fit(X, y, sample_weight=w)
    same_kernel(theirs, ours).fit(X, y, sample_weight=w)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=agreement(theirs, X))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("nu", [0.2, 0.8])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_nu_svr(kernel, nu, weighted):
    X, y = scaled("diabetes")
    ours, theirs = both("NuSVR", **kernel, C=1.0, nu=nu)
    w = weights(len(y)) if weighted else None
    ours.fit(X, y, sample_weight=w)
    same_kernel(theirs, ours).fit(X, y, sample_weight=w)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=agreement(theirs, X))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("nu", [0.05, 0.5])
@pytest.mark.parametrize("kernel", KERNELS[:3], ids=str)
@pytest.mark.parametrize("data", [*CLASSES, "diabetes"])
def test_one_class(data, kernel, nu, weighted):
    X, _ = scaled(data)
    if kernel["kernel"] == "linear":
        X = X + 3.0  # around the origin the machine is w = 0, and LIBSVM takes 10⁸ steps to see it
    ours, theirs = both("OneClassSVM", **kernel, nu=nu)
    w = weights(len(X)) if weighted else None
    ours.fit(X, sample_weight=w)
    same_kernel(theirs, ours).fit(X, sample_weight=w)
    a, b = ours.decision_function(X), theirs.decision_function(X)
    assert np.abs(a - b).max() <= agreement(theirs, X) * max(1.0, np.abs(theirs.offset_).max())


MACHINES = {
    "SVC": SVC(gamma=0.5, C=2.0),
    "SVC squared": SVC(gamma=0.5, loss="squared_hinge"),
    "SVC against the rest": SVC(gamma=0.5, multiclass="ovr"),
    "SVC scale": SVC(),
    "NuSVC": NuSVC(gamma=0.5, nu=0.3),
    "SVR": SVR(gamma=0.5, C=3.0),
    "NuSVR": NuSVR(gamma=0.5, nu=0.4),
    "OneClassSVM": OneClassSVM(gamma=0.5, nu=0.3),
    "SmallestBall": SmallestBall(gamma=0.5),
}


def output(machine: Any, X: Any) -> np.ndarray:
    return (
        machine.predict(X)
        if hasattr(machine, "epsilon") or isinstance(machine, NuSVR)
        else machine.decision_function(X)
    )


def sample(classes: int = 3) -> tuple[Any, Any]:
    X, y, *_ = datasets.make_blobs(60, centers=classes, cluster_std=2.0, random_state=2)
    return X, y


@pytest.mark.parametrize("name", MACHINES)
def test_a_weight_is_a_number_of_copies_and_zero_is_absence(name):
    X, y = sample()
    counts = np.random.default_rng(5).integers(0, 4, len(y))
    machine = MACHINES[name].set_params(tol=1e-3)
    weighted = output(machine.fit(X, y, sample_weight=counts), X)
    copies = output(machine.fit(np.repeat(X, counts, axis=0), np.repeat(y, counts)), X)
    np.testing.assert_allclose(weighted, copies, atol=1e-7)


@pytest.mark.parametrize("name", MACHINES)
def test_the_order_of_the_examples_does_not_matter(name):
    X, y = sample()
    order = np.random.default_rng(1).permutation(len(y))
    machine = MACHINES[name].set_params(tol=1e-3)
    first = output(machine.fit(X, y), X)
    np.testing.assert_allclose(first, output(machine.fit(X[order], y[order]), X), atol=1e-7)


@pytest.mark.parametrize("name", MACHINES)
def test_every_machine_converges_and_warm_start_needs_no_step(name):
    X, y = sample()
    machine = MACHINES[name].set_params(warm_start=True)
    machine.fit(X, y)
    assert machine.fit_status_ == 0
    assert all(solution.violation <= 1e-3 for solution in machine.solutions_)
    before = output(machine, X)
    machine.fit(X, y)
    assert machine.n_iter_.max() <= 2
    np.testing.assert_allclose(output(machine, X), before, atol=1e-6)
    machine.set_params(warm_start=False)


@pytest.mark.parametrize("name", [n for n in MACHINES if n != "SVC scale"])
def test_precomputed_needs_only_the_columns_of_the_support_vectors(name):
    X, y = sample()
    direct = MACHINES[name].fit(X, y)
    expected = output(direct, X[:7])
    matrix = type(direct)(**{**direct.get_params(), "kernel": "precomputed"}).fit(rbf(X), y)
    K = rbf(X[:7], X)
    some = K[:, matrix.support_]
    if len(matrix.support_) == len(X):  # then both are all columns, in the order of the examples
        some = K
    if name == "SmallestBall":
        ones = np.ones(7)
        np.testing.assert_allclose(matrix.decision_function(K, ones), expected, atol=1e-7)
        np.testing.assert_allclose(matrix.decision_function(some, ones), expected, atol=1e-7)
        with pytest.raises(ValueError, match="diagonal="):
            matrix.decision_function(K)
        assert (matrix.predict(rbf(X), np.ones(60)) == 1).all()
    else:
        np.testing.assert_allclose(output(matrix, K), expected, atol=1e-7)
        np.testing.assert_allclose(output(matrix, some), expected, atol=1e-7)
    with pytest.raises(ValueError, match=r"support vectors.*support_"):
        matrix.predict(K[:, :3])


def test_one_against_rest_is_scikit_learns():
    from sklearn.multiclass import OneVsRestClassifier

    X, y = sample(4)
    ours = SVC(C=2.0, gamma=0.1, multiclass="ovr", tol=TOL).fit(X, y)
    theirs = OneVsRestClassifier(svm.SVC(C=2.0, gamma=0.1, tol=TOL)).fit(X, y)
    np.testing.assert_allclose(
        ours.decision_function(X), theirs.decision_function(X), atol=AGREEMENT
    )
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    assert ours.dual_coef_.shape == (4, len(ours.support_))
    with pytest.raises(ValueError, match="trains no pairs"):
        SVC(multiclass="ovr", decision_function_shape="ovo").fit(X, y)


def test_cost_by_class_and_by_example():
    X, y = sample(2)
    by_class = SVC(C={0: 1.0, 1: 5.0}, gamma=0.1, tol=TOL).fit(X, y)
    weighted = SVC(C=1.0, class_weight={0: 1.0, 1: 5.0}, gamma=0.1, tol=TOL).fit(X, y)
    by_example = SVC(C=np.where(y == 1, 5.0, 1.0), gamma=0.1, tol=TOL).fit(X, y)
    expected = weighted.decision_function(X)
    np.testing.assert_allclose(by_class.decision_function(X), expected, atol=1e-9)
    np.testing.assert_allclose(by_example.decision_function(X), expected, atol=1e-9)
    with pytest.raises(ValueError, match="no cost of class"):
        SVC(C={0: 1.0}).fit(X, y)
    with pytest.raises(ValueError, match="60 positive numbers"):
        SVC(C=np.ones(3)).fit(X, y)
    regression = SVR(C=np.full(60, 2.0), gamma=0.1, tol=TOL).fit(X, y)
    same = SVR(C=2.0, gamma=0.1, tol=TOL).fit(X, y)
    np.testing.assert_allclose(regression.predict(X), same.predict(X), atol=1e-9)


def test_class_weights_count_in_nu_svc():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (80, 2)), rng.normal(1.5, 1, (20, 2))])
    y = np.repeat([0, 1], [80, 20])
    with pytest.warns(UserWarning, match=r"nu=0.6 is infeasible.*at most 0.4; that is used"):
        cut = NuSVC(nu=0.6, gamma=0.5).fit(X, y)
    feasible = NuSVC(nu=0.4, gamma=0.5).fit(X, y)
    np.testing.assert_allclose(cut.decision_function(X), feasible.decision_function(X), atol=1e-9)
    balanced = NuSVC(nu=0.6, class_weight="balanced", gamma=0.5).fit(X, y)
    # The balanced machine is that of four copies of the smaller class.
    copies = np.where(y == 1, 4, 1)
    repeated = NuSVC(nu=0.6, gamma=0.5).fit(np.repeat(X, copies, axis=0), np.repeat(y, copies))
    np.testing.assert_allclose(
        balanced.decision_function(X), repeated.decision_function(X), atol=1e-7
    )
    with pytest.raises(ValueError, match="the classes coincide"):
        NuSVC(nu=0.5).fit(np.ones((10, 2)), np.arange(10) % 2)


def test_nu_bounds_the_fractions():
    X, y = scaled("diabetes")
    machine = NuSVR(nu=0.3, C=1.0, gamma=0.05).fit(X, y)
    errors = np.abs(machine.predict(X) - y) > machine.epsilon_ + 1e-3
    assert errors.mean() <= 0.3
    assert len(machine.support_) >= 0.3 * len(y) - 1
    outliers = OneClassSVM(nu=0.2, gamma=0.05).fit(X)
    assert (outliers.decision_function(X) < -1e-3).mean() <= 0.2 <= len(outliers.support_) / len(X)


def test_the_smallest_ball_of_points_on_a_line_and_of_a_simplex():
    ball = SmallestBall("linear").fit([[0.0], [1.0], [4.0]])
    assert ball.radius_ == pytest.approx(2.0)
    np.testing.assert_allclose(ball.distance([[2.0], [5.0]]), [0.0, 3.0], atol=1e-6)
    np.testing.assert_allclose(ball.decision_function([[2.0], [5.0]]), [2.0, -1.0], atol=1e-6)
    simplex = SmallestBall("linear").fit(np.eye(4))
    assert simplex.radius_ == pytest.approx(np.sqrt(0.75))
    assert (simplex.predict(np.eye(4)) == 1).all()  # the corners are on the sphere
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    loose = SmallestBall("linear", tol=0.05, solver=jsvm.solvers.SMO(tol=0.05, block=False)).fit(X)
    assert (loose.predict(X) == 1).all()  # whatever the tolerance, it holds all
    tight = SmallestBall("linear", tol=1e-9).fit(X)
    assert tight.radius_ <= loose.radius_ * (1 + 1e-9)
    absent = SmallestBall("linear").fit([[0.0], [1.0], [9.0]], sample_weight=[1.0, 3.0, 0.0])
    assert absent.radius_ == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("machine", "message"),
    [
        (SVR(epsilon=-1.0), "epsilon=-1.0"),
        (SVR(C=0.0), "C=0.0"),
        (SVR(tol=0.0), "tol=0.0"),
        (NuSVR(nu=0.0), "nu=0.0"),
        (NuSVR(C=np.inf), "C=inf must be finite"),
        (NuSVC(nu=1.5), "nu=1.5"),
        (NuSVC(nu=True), "nu=True"),
        (OneClassSVM(nu=-0.1), "nu=-0.1"),
        (OneClassSVM(cache_size="a"), "cache_size='a'"),
        (SVC(calibration="isotonic"), "calibration='isotonic'"),
        (SVC(multiclass="crammer"), "multiclass='crammer'"),
        (SmallestBall(gamma=-1.0), "gamma=-1.0"),
    ],
)
def test_errors_name_the_argument(machine, message):
    X, y = sample(2)
    with pytest.raises(ValueError, match=message):
        machine.fit(X, y)
