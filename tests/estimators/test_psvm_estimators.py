"""The estimators of the Potential SVM: what they compute, weights, row objects, data, errors."""

import pickle
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from joblib import Parallel, delayed
from scipy import sparse
from sklearn import config_context
from sklearn import datasets as untyped_datasets
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from jsvm import PSVC, PSVR, kernels, solvers

datasets: Any = untyped_datasets

N, D = 40, 6
MODES = ["samples", "features", "centers", "axes", "points"]


def examples(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return X, labels of three classes, and values."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D)) * np.arange(1, D + 1) + 3.0
    values = np.sin(X[:, 0]) + 0.3 * X[:, 1] - 0.1 * X[:, 2] + 0.1 * rng.normal(size=N)
    return X, np.digitize(values, np.quantile(values, [0.3, 0.7])), values


def rows_of(mode: str) -> Any:
    return np.random.default_rng(5).normal(size=(9, D)) * 3 + 3.0 if mode == "points" else mode


def machines(**parameters: Any) -> list[Any]:
    return [PSVC(**parameters), PSVR(**parameters)]


def fitted(machine: Any, X: Any, labels: Any, values: Any, weight: Any = None) -> Any:
    return machine.fit(X, labels if isinstance(machine, PSVC) else values, weight)


def output(machine: Any, X: Any) -> np.ndarray:
    return machine.decision_function(X) if isinstance(machine, PSVC) else machine.predict(X)


def both(rows: Any, **parameters: Any) -> Any:
    """Parametrize over classification and regression."""
    return machines(rows=rows, random_state=0, **parameters)


# What is computed


@pytest.mark.parametrize("C", [2.0, np.inf])
@pytest.mark.parametrize("scaling", ["length", "variance"])
@pytest.mark.parametrize("mode", MODES)
def test_the_conditions_of_optimality_hold_for_the_matrix_as_numpy_has_it(mode, scaling, C):
    X, _, y = examples()
    epsilon = 0.1 if scaling == "length" else 0.1 * N**0.5
    C = C if scaling == "length" else C / N**0.5
    machine = PSVR(
        rows=rows_of(mode), gamma=0.05, C=C, epsilon=epsilon, scaling=scaling, random_state=0
    ).fit(X, y)
    made = getattr(machine, "row_objects_", None)
    Z: Any = {"samples": X, "points": machine.rows}.get(mode, made)
    K = X if mode == "features" else np.exp(-0.05 * ((X[:, None] - Z[None]) ** 2).sum(axis=2))
    centred = K - K.mean(axis=0)
    K = centred / np.sqrt((centred**2).sum(axis=0) / (1 if scaling == "length" else N))
    alpha = np.zeros(K.shape[1])
    alpha[machine.support_] = machine.dual_coef_[0]
    np.testing.assert_allclose(machine.intercept_, y.mean())
    np.testing.assert_allclose(machine.predict(X), K @ alpha + y.mean(), atol=1e-9)
    G = K.T @ (y - y.mean() - K @ alpha)
    free, top = (alpha != 0) & (np.abs(alpha) < C), np.abs(alpha) >= C
    assert np.abs(alpha).max() <= C
    assert free.any()
    np.testing.assert_allclose(G[free], epsilon * np.sign(alpha[free]), atol=1e-8)
    assert (np.abs(G[alpha == 0]) <= epsilon + 1e-8).all()
    assert (G[top] * np.sign(alpha[top]) >= epsilon - 1e-8).all()
    solution = machine.solutions_[0]
    assert solution.violation <= 1e-8
    assert -1e-9 <= solution.duality_gap <= 1e-6 * abs(solution.objective)
    assert solution.bias == machine.intercept_[0]


@pytest.mark.parametrize("epsilon", [0.02, 0.5, 2.0])
def test_without_bound_the_machine_on_features_is_the_lasso(epsilon):
    X, _, y = examples()
    centred = X - X.mean(axis=0)
    K = centred / np.linalg.norm(centred, axis=0)
    lasso = Lasso(alpha=epsilon / N, tol=1e-14, max_iter=100_000).fit(K, y)
    machine = PSVR(rows="features", C=np.inf, epsilon=epsilon).fit(X, y)
    coefficients = np.zeros(D)
    coefficients[machine.support_] = machine.dual_coef_[0]
    np.testing.assert_allclose(coefficients, lasso.coef_, atol=1e-6)
    np.testing.assert_allclose(machine.predict(X), lasso.predict(K), atol=1e-6)
    assert machine.n_support_.tolist() == [np.count_nonzero(lasso.coef_)]


def test_of_many_classes_each_has_the_machine_of_two():
    X, labels, _ = examples()
    machine = PSVC().fit(X, labels)
    decisions = machine.decision_function(X)
    assert decisions.shape == (N, 3)
    assert len(machine.solutions_) == len(machine.n_support_) == 3
    for k in range(3):
        two = PSVC().fit(X, labels == k)
        np.testing.assert_allclose(two.decision_function(X), decisions[:, k], atol=1e-9)
        np.testing.assert_array_equal(two.predict(X), decisions[:, k] > 0)
        assert two.n_support_[0] == machine.n_support_[k]
    np.testing.assert_array_equal(machine.predict(X), decisions.argmax(axis=1))


def test_a_classifier_is_the_regression_on_signs():
    X, labels, _ = examples()
    signs = np.where(labels == 2, 1.0, -1.0)
    ours = PSVC(epsilon=0.1).fit(X, np.where(labels == 2, "yes", "no"))
    theirs = PSVR(epsilon=0.1).fit(X, signs)
    np.testing.assert_allclose(ours.decision_function(X), theirs.predict(X), atol=1e-12)
    np.testing.assert_array_equal(ours.predict(X) == "yes", theirs.predict(X) > 0)


def test_an_indefinite_kernel_will_do():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (N, 2))
    y = np.sign(np.sin(6 * np.linalg.norm(X - 0.3, axis=1)))
    machine = PSVC(kernels.Sine(theta=6.0)).fit(X, y)
    K = np.asarray(kernels.Sine(theta=6.0)(X))
    assert np.linalg.eigvalsh(K).min() < -1  # indefinite indeed
    assert machine.score(X, y) > 0.95


# Row objects


@pytest.mark.parametrize("kind", [PSVC, PSVR])
def test_row_modes_agree_where_they_coincide(kind):
    X, labels, values = examples()

    def trained(X: Any, **parameters: Any) -> Any:
        return fitted(kind(**parameters), X, labels, values)

    def agree(a: np.ndarray, b: np.ndarray) -> None:
        np.testing.assert_allclose(a, b, atol=1e-7)

    K = np.exp(-0.05 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    by_kernel = output(trained(X, gamma=0.05), X)
    agree(output(trained(K, kernel="precomputed"), K), by_kernel)
    agree(output(trained(K, rows="features"), K), by_kernel)
    agree(output(trained(X, rows=X, gamma=0.05), X), by_kernel)
    agree(output(trained(X, kernel=kernels.RBF(0.05)), X), by_kernel)

    by_features = output(trained(X, rows="features"), X)
    agree(output(trained(X, kernel="linear", rows=np.eye(D)), X), by_features)
    for mode in ("centers", "axes"):
        machine = trained(X, rows=mode, n_rows=4, random_state=0)
        Z = machine.row_objects_
        assert Z.shape == (4, D)
        agree(output(trained(X, rows=Z), X), output(machine, X))
        fitted(machine.set_params(rows="samples", n_rows=None), X, labels, values)
        assert not hasattr(machine, "row_objects_")


def test_axes_are_principal_and_centres_are_means():
    X, _, y = examples()
    Z = PSVR(rows="axes").fit(X, y).row_objects_
    components = PCA().fit(X).components_
    np.testing.assert_allclose(np.abs((Z * components).sum(axis=1)), 1.0, atol=1e-9)
    assert (Z[np.arange(D), np.abs(Z).argmax(axis=1)] > 0).all()
    tight = np.repeat([[0.0, 0.0], [5.0, 0.0], [0.0, 5.0]], 10, axis=0)
    machine = PSVR(rows="centers", n_rows=3, random_state=0).fit(tight, np.repeat([1.0, 2, 4], 10))
    assert sorted(machine.row_objects_.round(9).tolist()) == [[0, 0], [0, 5], [5, 0]]
    assert len(PSVR(rows="centers", random_state=0).fit(X, y).row_objects_) == N  # at most 50
    flat = np.column_stack([X[:, 0], 2 * X[:, 0]])  # varies along one axis only
    assert PSVR(rows="axes").fit(flat, y).row_objects_.shape == (1, 2)


@pytest.mark.parametrize("shape", [(N, D), (N, 70)])
def test_a_measured_matrix_may_have_any_shape_and_predicts_from_its_support(shape, rng):
    K = rng.normal(size=shape) + 5.0
    y = K[:, 0] - K[:, 3] + 0.1 * rng.normal(size=N)
    for machine in (
        PSVR("precomputed", epsilon=0.5).fit(K, y),
        PSVR(rows="features", epsilon=0.5).fit(K, y),
        PSVC("precomputed", epsilon=0.5).fit(K, np.digitize(y, [-1.0, 1.0])),
    ):
        assert 0 < len(machine.support_) < shape[1]
        assert machine.support_vectors_.shape[0] == 0
        expected = output(machine, K)
        np.testing.assert_array_equal(output(machine, K[:, machine.support_]), expected)
        wrong = K[:, : len(machine.support_) - 1]
        with pytest.raises(ValueError, match=f"is expecting {shape[1]} features.*support_"):
            machine.predict(wrong)


def test_cross_validation_of_a_measured_matrix_splits_examples_only(rng):
    K = rng.normal(size=(N, 12))
    y = (K[:, 0] + K[:, 1] > 0).astype(int)
    assert cross_val_score(PSVC("precomputed"), K, y, cv=3).mean() > 0.8


# Weights


@pytest.mark.parametrize("scaling", ["length", "variance"])
@pytest.mark.parametrize("mode", ["samples", "features", "points", "axes", "precomputed"])
def test_weights_are_copies_and_zero_is_absence(mode, scaling):
    X, labels, values = examples()
    count = np.random.default_rng(3).integers(0, 4, N)
    copies = np.repeat(np.arange(N), count)
    parameters = {"kernel": mode} if mode == "precomputed" else {"rows": rows_of(mode)}
    for machine in machines(scaling=scaling, C=2.0 if scaling == "length" else 0.3, **parameters):
        weighted = fitted(machine, X, labels, values, count)
        repeated = fitted(clone(machine), X[copies], labels[copies], values[copies])
        np.testing.assert_allclose(output(weighted, X), output(repeated, X), atol=1e-7)
        present = count > 0
        absent = fitted(
            clone(machine), X[present], labels[present], values[present], count[present]
        )
        np.testing.assert_array_equal(output(absent, X), output(weighted, X))
        if mode == "samples":
            assert (count[weighted.support_] > 0).all()
            np.testing.assert_array_equal(X[weighted.support_], weighted.support_vectors_)
            places = np.flatnonzero(present)[absent.support_]
            np.testing.assert_array_equal(places, weighted.support_)
            # A bound of several copies was reached, and not that of one.
            assert (np.abs(weighted.dual_coef_) > 1.01 * machine.C).any()


def test_class_weights_multiply_weights():
    X, labels, _ = examples()
    weight = np.random.default_rng(1).uniform(0.5, 2.0, N)
    factors = {0: 1.0, 1: 3.0, 2: 0.5}
    ours = PSVC(class_weight=factors, gamma=0.05).fit(X, labels, weight)
    product = weight * np.array([factors[label] for label in labels])
    theirs = PSVC(gamma=0.05).fit(X, labels, product)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-9)
    balanced = PSVC(class_weight="balanced").fit(X, labels == 0)
    np.testing.assert_allclose(balanced.intercept_, 0.0, atol=1e-12)  # both classes weigh the same
    copies = np.repeat(np.arange(N), 1 + (labels == 1))
    np.testing.assert_allclose(
        PSVC(class_weight="balanced").fit(X, labels, 1.0 + (labels == 1)).decision_function(X),
        PSVC(class_weight="balanced").fit(X[copies], labels[copies]).decision_function(X),
        atol=1e-7,
    )


# Symmetries


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("mode", ["samples", "features", "points", "axes"])
def test_the_order_of_examples_does_not_matter(mode, seed):
    X, labels, values = examples(seed)
    order = np.random.default_rng(seed).permutation(N)
    for machine in both(rows_of(mode)):
        one = output(fitted(machine, X, labels, values), X)
        other = output(fitted(machine, X[order], labels[order], values[order]), X)
        np.testing.assert_allclose(one, other, atol=1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_scale_and_origin_of_a_feature_do_not_matter(seed):
    X, labels, values = examples(seed)
    rng = np.random.default_rng(seed)
    scale, shift = 10.0 ** rng.uniform(-3, 3, D), rng.normal(size=D)
    for machine in both("features"):
        one = fitted(clone(machine), X, labels, values)
        other = fitted(clone(machine), X * scale + shift, labels, values)
        np.testing.assert_allclose(output(other, X * scale + shift), output(one, X), atol=1e-8)
        np.testing.assert_allclose(other.dual_coef_, one.dual_coef_, atol=1e-8)


@pytest.mark.parametrize("mode", MODES)
def test_flipped_targets_flip_the_machine(mode):
    X, labels, values = examples()
    rows = rows_of(mode)
    machine = PSVR(rows=rows, random_state=0)
    one, other = machine.fit(X, values).predict(X), machine.fit(X, -values).predict(X)
    np.testing.assert_allclose(one, -other, atol=1e-9)
    machine = PSVC(rows=rows, random_state=0)
    one = machine.fit(X, labels > 0).decision_function(X)
    np.testing.assert_allclose(machine.fit(X, labels == 0).decision_function(X), -one, atol=1e-9)


def test_scalings_are_the_same_machines_in_other_units():
    X, labels, values = examples()
    for length, variance in zip(
        machines(C=3.0, epsilon=0.2),
        machines(C=3.0 / N**0.5, epsilon=0.2 * N**0.5, scaling="variance"),
        strict=True,
    ):
        one, other = (fitted(m, X, labels, values) for m in (length, variance))
        np.testing.assert_allclose(output(one, X), output(other, X), atol=1e-8)
        np.testing.assert_allclose(one.dual_coef_, other.dual_coef_ * N**0.5, atol=1e-7)


# Columns that are constant


def test_constant_columns_are_dropped_with_a_warning():
    X, labels, values = examples()
    X[:, [1, 4]] = 0.1
    for machine in both("features"):
        with pytest.warns(UserWarning, match="2 of 6 columns of K are constant") as caught:
            fitted(machine, X, labels, values)
        assert len(caught) == 1
        assert machine.dropped_.tolist() == [1, 4]
        assert not np.isin(machine.support_, [1, 4]).any()
        fewer = fitted(clone(machine), np.delete(X, [1, 4], axis=1), labels, values)
        assert fewer.dropped_.tolist() == []
        expected = output(fewer, np.delete(X, [1, 4], axis=1))
        np.testing.assert_allclose(output(machine, X), expected, atol=1e-12)


@pytest.mark.parametrize("mode", ["samples", "features", "axes", "points"])
def test_without_any_column_the_mean_or_the_most_frequent_class_is_told(mode):
    X, labels, values = np.full((N, D), 0.3), *examples()[1:]
    weight = np.where(labels == 1, 3.0, 1.0)
    for machine in both(rows_of(mode)):
        with pytest.warns(UserWarning, match="columns of K are constant"):
            fitted(machine, X, labels, values, weight)
        assert len(machine.support_) == 0
        assert machine.fit_status_ == 0
        if isinstance(machine, PSVC):
            assert (machine.predict(X) == 1).all()
            share = [weight[labels == k].sum() / weight.sum() for k in range(3)]
            np.testing.assert_allclose(machine.decision_function(X)[0], 2 * np.array(share) - 1)
        else:
            np.testing.assert_allclose(machine.predict(X), np.average(values, weights=weight))


# Solving


def test_warm_starts_take_fewer_steps_and_are_cut_to_the_box():
    X, labels, values = examples()
    for machine in machines(warm_start=True, C=np.inf):
        cold = fitted(machine, X, labels, values)
        expected, steps = output(cold, X), cold.n_iter_.sum()
        again = fitted(machine, X, labels, values)
        assert again.n_iter_.sum() < steps
        np.testing.assert_allclose(output(again, X), expected, atol=1e-8)
        largest = np.abs(again.dual_coef_).max()
        smaller = fitted(machine.set_params(C=0.3 * largest), X, labels, values)
        assert np.abs(smaller.dual_coef_).max() <= 0.3 * largest
        fresh = fitted(clone(machine), X, labels, values)
        np.testing.assert_allclose(output(smaller, X), output(fresh, X), atol=1e-7)
        fitted(machine, X[:30], labels[:30], values[:30])  # another size: from the beginning


def test_a_fit_can_be_watched_stopped_and_resumed(tmp_path, capsys):
    X, labels, values = examples()
    rounds: list[dict[str, Any]] = []
    fitted(PSVC(callback=rounds.append, progress=True), X, labels, values)
    assert {"violation", "objective", "newton_steps"} <= set(rounds[0])
    assert "jsvm" in capsys.readouterr().err
    fitted(PSVC(checkpoint=tmp_path / "run"), X, labels, values)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"run.{k}.npz" for k in range(3)]
    first = fitted(PSVR(checkpoint=tmp_path / "one"), X, labels, values)
    again = fitted(PSVR(checkpoint=tmp_path / "one"), X, labels, values)
    assert again.n_iter_ < first.n_iter_
    np.testing.assert_allclose(again.predict(X), first.predict(X), atol=1e-8)
    with pytest.warns(ConvergenceWarning, match="PSVC stopped at a KKT gap of .*budget"):
        stopped = PSVC(max_iter=1).fit(X, labels)
    assert stopped.fit_status_ == 1
    assert np.isfinite(stopped.decision_function(X)).all()
    with pytest.warns(ConvergenceWarning, match="time limit"):
        PSVR(time_limit=0.0, tol=1e-12).fit(X, 1e3 * values)


def test_a_solver_replaces_the_parameters_that_describe_one():
    X, _, values = examples()
    machine = PSVR(tol=1.0, solver=solvers.PSMO(tol=1e-5, screening=True)).fit(X, values)
    np.testing.assert_allclose(machine.predict(X), PSVR().fit(X, values).predict(X), atol=1e-6)
    with pytest.raises(ValueError, match=r"solver=.* must be None or a solvers\.PSMO"):
        PSVR(solver=solvers.SMO()).fit(X, values)


@pytest.mark.parametrize("mode", ["samples", "features", "points"])
def test_a_matrix_that_is_not_kept_gives_the_same_machine(mode):
    X, labels, values = examples()
    weight = np.random.default_rng(0).uniform(0.5, 2.0, N)
    for kept, computed in zip(
        both(rows_of(mode)), both(rows_of(mode), cache_size=1e-5), strict=True
    ):
        one, other = (fitted(m, X, labels, values, weight) for m in (kept, computed))
        np.testing.assert_allclose(output(one, X), output(other, X), atol=1e-8)


def test_float32_is_near():
    X, labels, values = examples()
    for machine in machines(dtype="float32", epsilon=0.3):
        one = fitted(machine, X.astype(np.float32), labels, values)
        other = fitted(type(machine)(epsilon=0.3), X, labels, values)
        assert one.fit_status_ == 0
        np.testing.assert_allclose(output(one, X), output(other, X), atol=1e-3)


# What data may come as


@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csc_array])
@pytest.mark.parametrize("mode", MODES)
def test_sparse_equals_dense(mode, container):
    rng = np.random.default_rng(0)
    X = rng.poisson(0.4, (N, D)).astype(float)
    X[0] = 1.0
    values = X[:, 0] - X[:, 1] + 0.3 * rng.normal(size=N)
    labels, weight = np.digitize(values, [-0.5, 0.5]), rng.integers(0, 3, N)
    few = {"n_rows": 4} if mode == "centers" else {}  # many centres depend on rounding
    for machine in both(rows_of(mode), gamma=0.3, **few):
        dense = fitted(clone(machine), X, labels, values, weight)
        thin = fitted(machine, container(X), labels, values, weight)
        np.testing.assert_array_equal(thin.support_, dense.support_)
        for given in (container(X), X):
            np.testing.assert_allclose(output(thin, given), output(dense, X), atol=1e-8)
        np.testing.assert_allclose(output(dense, container(X)), output(dense, X), atol=1e-8)
        if mode == "features":
            reduced = container(X)[:, thin.support_]
            np.testing.assert_allclose(output(thin, reduced), output(dense, X), atol=1e-8)
        if mode == "points":
            machine.set_params(rows=container(machine.rows))
            for given in (container(X), X):
                thin = fitted(machine, given, labels, values, weight)
                np.testing.assert_allclose(output(thin, X), output(dense, X), atol=1e-8)


def test_a_sparse_measured_matrix_is_refused():
    X, _, values = examples()
    with pytest.raises(TypeError, match="Sparse data was passed"):
        PSVR("precomputed").fit(sparse.csr_matrix(X), values)


def test_wide_axes_of_sparse_data_are_those_of_dense_data(rng):
    X = rng.poisson(0.3, (12, 30)).astype(float)
    y = rng.normal(size=12)
    weight = rng.integers(1, 4, 12)
    dense = PSVR("linear", rows="axes").fit(X, y, weight)
    thin = PSVR("linear", rows="axes").fit(sparse.csr_array(X), y, weight)
    assert dense.row_objects_.shape == (11, 30)
    np.testing.assert_allclose(thin.row_objects_, dense.row_objects_, atol=1e-8)


def test_pickles_clones_threads_and_processes():
    X, labels, values = examples()
    for machine in [*both("centers"), *both(rows_of("points"), kernel=kernels.RBF(0.05))]:
        expected = output(fitted(machine, X, labels, values), X)
        np.testing.assert_array_equal(output(pickle.loads(pickle.dumps(machine)), X), expected)
        parts = Parallel(2, prefer="threads")(
            delayed(fitted)(clone(machine), X, labels, values) for _ in range(2)
        )
        for part in parts:
            np.testing.assert_array_equal(output(part, X), expected)
    search = GridSearchCV(PSVC(), {"C": [1.0, 10.0], "rows": ["samples", "features"]}, cv=3)
    assert search.fit(X, labels).best_score_ > 0.5


def test_frames_and_arrays_of_other_libraries():
    X, labels, values = examples()
    frame = pd.DataFrame(X, columns=[f"f{k}" for k in range(D)])
    machine: Any = PSVR(rows="features", epsilon=0.5).fit(frame, values)
    expected = machine.predict(frame)
    assert machine.feature_names_in_.tolist() == list(frame.columns)
    assert len(machine.support_) < D
    some = frame.iloc[:, machine.support_]
    np.testing.assert_array_equal(machine.predict(some), expected)
    with pytest.raises(ValueError, match="feature names should match"):
        machine.predict(some.rename(columns={some.columns[0]: "other"}))
    with pytest.raises(ValueError, match="feature names should match"):
        machine.predict(frame[frame.columns[::-1]])
    points = jnp.asarray(rows_of("points"), jnp.float32)
    for given in (jnp.asarray(X, jnp.float32), frame):
        assert np.isfinite(
            PSVC(rows=points).fit(np.asarray(given), labels).decision_function(X)
        ).all()


def test_weights_are_routed():
    X, labels, _ = examples()
    weight = np.where(labels == 2, 0.0, 1.0) + 1e-3 * (np.arange(N) % 7)
    with config_context(enable_metadata_routing=True):
        pipeline: Any = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=False),
            PSVC(gamma=0.1).set_fit_request(sample_weight=True),
        )
        routed = pipeline.fit(X, labels, sample_weight=weight)
    direct = PSVC(gamma=0.1).fit(StandardScaler().fit_transform(X), labels, weight)
    scaled = StandardScaler().fit_transform(X)
    np.testing.assert_allclose(routed.decision_function(X), direct.decision_function(scaled))


def test_large_means_do_no_harm_to_features():
    X, _, values = examples()
    X = np.round(X * 64) / 64  # so that 2^30 can be added without rounding
    for machine in (PSVR(rows="features"), PSVR("precomputed")):
        one = machine.fit(X, values).predict(X)
        np.testing.assert_allclose(
            machine.fit(X + 2.0**30, values).predict(X + 2.0**30), one, atol=1e-6
        )


# Errors


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"rows": "columns"}, "rows='columns' is unknown"),
        ({"rows": np.ones((3, D + 1))}, f"rows has {D + 1} features, X has {D}"),
        ({"rows": np.full((3, D), np.nan)}, "rows contains NaN"),
        ({"kernel": "precomputed", "rows": "features"}, "rows='features' has no meaning with"),
        ({"kernel": "precomputed", "rows": np.ones((3, D))}, "rows=an array has no meaning with"),
        ({"n_rows": 5}, "n_rows=5 is for rows='centers' and rows='axes' only"),
        ({"rows": "centers", "n_rows": 0}, "n_rows=0 must be a whole number >= 1"),
        ({"rows": "centers", "n_rows": N + 1}, f"n_rows={N + 1} is more than the {N} different"),
        ({"rows": "axes", "n_rows": D + 1}, f"n_rows={D + 1} is more than the {D}"),
        ({"C": 0.0}, "C=0.0 must be a positive number"),
        ({"C": "large"}, "C='large' must be a positive number"),
        ({"epsilon": -0.1}, "epsilon=-0.1 must be a finite number >= 0"),
        ({"epsilon": np.inf}, "epsilon=inf must be a finite number"),
        ({"scaling": "norm"}, "scaling='norm' must be one of"),
        ({"tol": 0.0}, "tol=0.0 must be a positive number"),
        ({"max_iter": -2}, "max_iter=-2 must be a whole number >= -1"),
        ({"gamma": "wide"}, "gamma='wide' is unknown"),
        ({"kernel": "gauss"}, "kernel='gauss' is unknown"),
    ],
)
def test_errors_name_the_argument(parameters, message):
    X, labels, values = examples()
    for machine in machines(**parameters):
        with pytest.raises(ValueError, match=message):
            fitted(machine, X, labels, values)


def test_a_matrix_that_is_not_finite_is_told():
    X, _, values = examples()
    kernel = kernels.Function(lambda X, Z: np.asarray(X) @ np.asarray(Z).T * np.nan, on_host=True)
    with jax.debug_nans(False), pytest.raises(ValueError, match="kernel matrix holds NaN"):
        PSVR(kernel).fit(X, values)


def test_errors_of_labels_and_weights():
    X, labels, _ = examples()
    with pytest.raises(ValueError, match="one class only"):
        PSVC().fit(X, np.zeros(N))
    with pytest.raises(ValueError, match="zero on all of class"):
        PSVC().fit(X, labels, labels != 2)
    with pytest.raises(ValueError, match=r"class_weight=.* must be finite numbers >= 0"):
        PSVC(class_weight={0: -1.0, 1: 1.0, 2: 1.0}).fit(X, labels)
    with pytest.raises(ValueError, match=r"at least one non-zero number|is zero everywhere"):
        PSVR().fit(X, labels, np.zeros(N))


# How well the defaults do


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "least"), [("iris", 0.94), ("wine", 0.96), ("breast_cancer", 0.96), ("diabetes", 0.4)]
)
def test_defaults_do_well_on_standard_data(name, least):
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    machine = make_pipeline(StandardScaler(), PSVR() if name == "diabetes" else PSVC())
    order = np.random.default_rng(0).permutation(len(y))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cross_val_score(machine, X[order], y[order], cv=5).mean() > least
