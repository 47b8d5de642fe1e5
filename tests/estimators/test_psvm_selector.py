"""Feature selection with the Potential SVM."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone as untyped_clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline

from jsvm import PSVC, PSVR, SVC, PSVMSelector, data, solvers

clone: Any = untyped_clone

N, P = 60, 12


def examples(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return X, labels of three classes, and values; the first four features count."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, P)) * np.arange(1, P + 1) + 2.0
    X[:, 5] += 0.5 * X[:, 4]
    values = (X[:, :4] / np.arange(1, 5)) @ [2.0, -1.5, 1.0, 0.5] + 0.5 * rng.normal(size=N)
    return X, np.digitize(values, np.quantile(values, [0.3, 0.7])), values


def normalised(X: np.ndarray, scaling: str) -> np.ndarray:
    centred = X - X.mean(axis=0)
    return centred / np.sqrt((centred**2).sum(axis=0) / (1 if scaling == "length" else len(X)))


@pytest.mark.parametrize("scaling", ["length", "variance"])
def test_support_features_are_those_of_the_machine(scaling):
    X, labels, values = examples()
    epsilon = 1.0 if scaling == "length" else N**0.5
    same = {"epsilon": epsilon, "C": np.inf, "scaling": scaling}
    for y, machine in ((values, PSVR), (labels == 0, PSVC), (labels, PSVC)):
        selector = PSVMSelector(**same).fit(X, y)
        fitted = machine(rows="features", **same).fit(X, y)
        np.testing.assert_array_equal(selector.get_support(indices=True), fitted.support_)
        alpha = np.atleast_2d(selector.alpha_)
        np.testing.assert_allclose(alpha[:, fitted.support_], fitted.dual_coef_, atol=1e-8)
        assert selector.epsilon_ == epsilon
        assert selector.n_features_ == len(fitted.support_) < P
        assert selector.fit_status_ == 0
        assert all(s.violation <= 1e-3 * epsilon for s in selector.solutions_)


@pytest.mark.parametrize("C", [np.inf, 1.0, 0.3])
@pytest.mark.parametrize("scaling", ["length", "variance"])
@pytest.mark.parametrize("epsilon", [0.05, 1.0])
def test_the_bound_bounds_what_a_feature_is_worth(scaling, C, epsilon):
    X, labels, values = examples()
    if scaling == "variance":
        epsilon, C = epsilon * N**0.5, C / N**0.5
    K = normalised(X, scaling)
    targets = {"values": values[None], "classes": np.where(labels == np.arange(3)[:, None], 1, -1)}
    for kind, y in (("values", values), ("classes", labels)):
        selector = PSVMSelector(epsilon=epsilon, C=C, scaling=scaling, target=kind).fit(X, y)
        bounds, coefficients = np.atleast_2d(selector.importance_bound_, selector.alpha_)
        at_bound = 0
        for target, alpha, bound in zip(targets[kind], coefficients, bounds, strict=True):

            def error(alpha: np.ndarray, y: Any = target) -> float:
                return float(((K @ alpha + y.mean() - y) ** 2).sum() / (2 * N))

            for j in range(P):
                without = np.where(np.arange(P) == j, 0.0, alpha)
                increase = error(without) - error(alpha)
                assert increase <= bound[j] + 1e-12
                assert increase >= 0.99 * bound[j] - 1e-9  # and it is no larger than that
            free = (alpha != 0) & (np.abs(alpha) < C)
            square = 1 if scaling == "length" else N
            # Hochreiter & Obermayer 2004, eq. 43
            printed = (epsilon * np.abs(alpha) + 0.5 * square * alpha**2) / N
            np.testing.assert_allclose(bound[free], printed[free], rtol=1e-6)
            at_bound += np.count_nonzero(np.abs(alpha) >= C)
        assert (at_bound > 0) == np.isfinite(C)


@pytest.mark.parametrize("y", [0, 1, 2], ids=["two classes", "three classes", "values"])
def test_a_number_of_features_is_found(y):
    X, labels, values = examples()
    target: Any = (labels == 0, labels, values)[y]
    last = np.inf
    for count in (1, 3, 5, 9, P):
        selector = PSVMSelector(n_features_to_select=count).fit(X, target)
        assert selector.n_features_ == count
        np.testing.assert_array_equal(selector.support_, selector.ranking_ <= count)
        used = np.atleast_2d(selector.alpha_).any(axis=0)
        assert used.sum() >= count  # so the selected ones are support features
        assert (used | ~selector.support_).all()
        # A slightly larger ε would not do, unless this one does exactly.
        if used.sum() > count:
            larger = PSVMSelector(epsilon=1.001 * selector.epsilon_).fit(X, target)
            assert larger.n_features_ < count
        assert selector.epsilon_ < last
        last = selector.epsilon_
    half = PSVMSelector(n_features_to_select=0.5).fit(X, target)
    assert half.n_features_ == P // 2
    given = PSVMSelector(n_features_to_select=3, epsilon=0.01).fit(X, target)
    assert given.epsilon_ == 0.01
    assert given.n_features_ == 3


def test_ranking_is_by_coefficient_then_by_nearness_to_the_threshold():
    X, _, values = examples()
    selector = PSVMSelector(epsilon=2.0).fit(X, values)
    alpha = selector.alpha_
    order = np.argsort(selector.ranking_)
    assert sorted(selector.ranking_) == list(range(1, P + 1))
    used = np.count_nonzero(alpha)
    assert 2 <= used <= P - 2
    assert (np.diff(np.abs(alpha[order[:used]])) <= 0).all()
    K = normalised(X, "length")
    near = np.abs(K.T @ (values - values.mean() - K @ alpha))
    assert (alpha[order[used:]] == 0).all()
    assert (np.diff(near[order[used:]]) <= 0).all()
    assert near[order[used:]].max() <= 2.0


def test_without_arguments_a_fifth_of_the_largest_correlation_is_the_threshold():
    X, labels, values = examples()
    K = normalised(X, "length")
    largest = np.abs(K.T @ (values - values.mean())).max()
    selector = PSVMSelector().fit(X, values)
    assert selector.epsilon_ == pytest.approx(0.2 * largest, rel=1e-12)
    assert {0, 1} <= set(np.flatnonzero(selector.support_)) < set(range(P))
    assert PSVMSelector().fit(X, labels).classes_.tolist() == [0, 1, 2]


def test_more_features_than_examples_can_bear_are_filled_up_in_order(rng):
    X = rng.normal(size=(12, 40))
    y = X[:, 0] + 0.1 * rng.normal(size=12)
    selector = PSVMSelector(n_features_to_select=30).fit(X, y)
    used = np.count_nonzero(selector.alpha_)
    assert used < 12
    assert selector.n_features_ == 30
    assert selector.support_[selector.alpha_ != 0].all()
    assert selector.ranking_[0] == 1


def test_labels_and_values_are_told_apart_or_given():
    X, labels, _ = examples()
    words = np.array(["low", "middle", "high"])[labels]
    by_words, by_numbers = (PSVMSelector(epsilon=0.5).fit(X, y) for y in (words, labels))
    assert by_words.classes_.tolist() == ["high", "low", "middle"]
    assert by_words.alpha_.shape == (3, P)
    np.testing.assert_array_equal(by_words.support_, by_numbers.support_)
    as_values = PSVMSelector(epsilon=0.5, target="values").fit(X, labels)
    assert as_values.alpha_.shape == (P,)
    assert not hasattr(by_numbers.set_params(target="values").fit(X, labels), "classes_")
    machine = PSVR(rows="features", C=np.inf, epsilon=0.5).fit(X, labels)
    np.testing.assert_array_equal(as_values.get_support(indices=True), machine.support_)
    with pytest.raises(ValueError, match="one class only"):
        PSVMSelector().fit(X, np.ones(N, int))


def test_repeated_runs_count_how_often_a_feature_is_used():
    X, labels, values = examples()
    for y in (values, labels):
        selector = PSVMSelector(epsilon=1.0, n_resamples=10, random_state=0).fit(X, y)
        frequency = selector.selection_frequency_
        assert frequency.shape == (P,)
        assert set(np.round(10 * frequency, 9)) <= set(range(11))
        assert (frequency[:2] == 1).all()  # the strong ones always
        np.testing.assert_array_equal(selector.support_, frequency >= 0.5)
        order = np.argsort(selector.ranking_)
        assert (np.diff(frequency[order]) <= 0).all()
        again = clone(selector).fit(X, y)
        np.testing.assert_array_equal(again.selection_frequency_, frequency)
        other = clone(selector).set_params(random_state=1).fit(X, y)
        assert not np.array_equal(other.selection_frequency_, frequency)
        some = clone(selector).set_params(n_features_to_select=3).fit(X, y)
        assert some.n_features_ == 3
        np.testing.assert_array_equal(some.support_, some.ranking_ <= 3)
        # All examples in every run: the same support every time.
        whole = clone(selector).set_params(resample_fraction=1.0, n_resamples=2).fit(X, y)
        np.testing.assert_array_equal(
            whole.selection_frequency_, np.atleast_2d(whole.alpha_).any(axis=0)
        )
        assert not hasattr(whole.set_params(n_resamples=0).fit(X, y), "selection_frequency_")


def test_runs_take_the_same_share_of_every_class_without_repetition():
    from jsvm.estimators.psvm_selector import _part

    codes = np.repeat([0, 1, 2], [50, 9, 1])
    some = _part(codes, 0.8, np.random.RandomState(0))
    assert len(set(some)) == len(some)
    assert np.bincount(codes[some]).tolist() == [40, 7, 1]


def test_scale_of_features_order_of_examples_and_signs_do_not_matter():
    X, labels, values = examples()
    order = np.random.default_rng(0).permutation(N)
    scale = 10.0 ** np.random.default_rng(1).uniform(-3, 3, P)
    for y, flipped in ((values, -values), (labels == 0, labels != 0)):
        one = PSVMSelector(n_features_to_select=4).fit(X, y)
        for other in (
            PSVMSelector(n_features_to_select=4).fit(X[order], y[order]),
            PSVMSelector(n_features_to_select=4).fit(X * scale, y),
            PSVMSelector(n_features_to_select=4).fit(X, flipped),
        ):
            np.testing.assert_array_equal(other.ranking_, one.ranking_)
            np.testing.assert_allclose(np.abs(other.alpha_), np.abs(one.alpha_), atol=1e-7)


def test_units_of_the_target_do_not_matter():
    X, _, values = examples()
    one = PSVMSelector(n_features_to_select=5).fit(X, values)
    for unit in (1e-6, 1e6):
        other = PSVMSelector(n_features_to_select=5).fit(X, unit * values)
        np.testing.assert_array_equal(other.ranking_, one.ranking_)
        np.testing.assert_allclose(other.alpha_, unit * one.alpha_, atol=1e-7 * unit)


def test_constant_features_come_last():
    X, _, values = examples()
    X[:, [2, 7]] = 0.1
    selector = PSVMSelector(n_features_to_select=5).fit(X, values)
    assert set(selector.ranking_[[2, 7]]) == {P - 1, P}
    nothing = PSVMSelector(n_features_to_select=5).fit(np.ones((N, P)), values)
    assert nothing.n_features_ == 5  # as asked for, though none is of any use
    assert not nothing.alpha_.any()


@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csc_array])
def test_sparse_equals_dense(container):
    rng = np.random.default_rng(0)
    X = rng.poisson(0.4, (N, P)).astype(float)
    y = X[:, 0] - X[:, 1] + 0.3 * rng.normal(size=N)
    for target in (y, np.digitize(y, [-0.5, 0.5])):
        dense = PSVMSelector(n_features_to_select=4, n_resamples=3, random_state=0).fit(X, target)
        thin = clone(dense).fit(container(X), target)
        np.testing.assert_array_equal(thin.ranking_, dense.ranking_)
        np.testing.assert_allclose(thin.alpha_, dense.alpha_, atol=1e-8)
        np.testing.assert_allclose(thin.importance_bound_, dense.importance_bound_, atol=1e-8)
        chosen = thin.transform(container(X))
        assert sparse.issparse(chosen)
        np.testing.assert_array_equal(chosen.toarray(), dense.transform(X))


def test_it_is_a_selector_of_scikit_learn():
    X, labels, _ = examples()
    frame = pd.DataFrame(X, columns=[f"f{k}" for k in range(P)])
    selector: Any = PSVMSelector(n_features_to_select=3).set_output(transform="pandas")
    chosen = selector.fit_transform(frame, labels)
    names = frame.columns[selector.support_].tolist()
    assert chosen.columns.tolist() == names == selector.get_feature_names_out().tolist()
    selector.set_output(transform="default")
    back = selector.inverse_transform(selector.transform(frame))
    np.testing.assert_array_equal(back, np.where(selector.support_, X, 0.0))
    pipeline = make_pipeline(PSVMSelector(n_features_to_select=4), PSVC())
    assert pipeline.fit(X, labels).score(X, labels) > 0.8


def test_relevant_features_of_microarray_data_are_found():
    """The data of Hochreiter & Obermayer 2004, 3.3.2: 20 of 2000 features count (11 of 30)."""
    X, y = (np.asarray(part, float) for part in data.weston(key=0))
    train, test = slice(0, 100), slice(100, None)
    selector = PSVMSelector(n_features_to_select=30).fit(X[train], y[train])
    assert selector.support_[:20].sum() >= 9
    X = X / X[train].std(axis=0)
    chosen = selector.transform(X)
    machine = SVC("linear", C=0.1)
    assert machine.fit(chosen[train], y[train]).score(chosen[test], y[test]) > 0.7
    assert machine.fit(X[train], y[train]).score(X[test], y[test]) < 0.7


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"epsilon": -1.0}, "epsilon=-1.0 must be a finite number >= 0"),
        ({"n_features_to_select": 0}, "n_features_to_select=0 must be a whole number >= 1"),
        ({"n_features_to_select": P + 1}, f"n_features_to_select={P + 1} is more than the {P}"),
        ({"n_features_to_select": 1.5}, r"n_features_to_select=1.5 must be in \(0, 1\]"),
        ({"n_features_to_select": "all"}, r"n_features_to_select='all' must be in \(0, 1\]"),
        ({"C": -1.0}, "C=-1.0 must be a positive number"),
        ({"scaling": "range"}, "scaling='range' must be one of"),
        ({"target": "labels"}, "target='labels' must be one of"),
        ({"n_resamples": -1}, "n_resamples=-1 must be a whole number >= 0"),
        ({"resample_fraction": 0.0}, r"resample_fraction=0.0 must be in \(0, 1\]"),
        ({"threshold": 2.0}, r"threshold=2.0 must be in \(0, 1\]"),
        ({"tol": -1.0}, "tol=-1.0 must be a positive number"),
        ({"solver": solvers.SMO()}, r"must be None or a solvers\.PSMO"),
    ],
)
def test_errors_name_the_argument(parameters, message):
    X, labels, _ = examples()
    with pytest.raises(ValueError, match=message):
        PSVMSelector(**parameters).fit(X, labels)


def test_what_does_not_converge_is_told():
    X, _, values = examples()
    with pytest.warns(ConvergenceWarning, match="PSVMSelector stopped at a KKT gap"):
        selector = PSVMSelector(max_iter=1, epsilon=0.01).fit(X, values)
    assert selector.fit_status_ == 1
    exact = PSVMSelector(epsilon=0.01, solver=solvers.PSMO(tol=1e-6)).fit(X, values)
    assert exact.fit_status_ == 0
