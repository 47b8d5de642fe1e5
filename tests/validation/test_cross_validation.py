"""Grids in batches: the scores are those of GridSearchCV."""

from typing import Any

import numpy as np
import pytest
import sklearn.svm as untyped_svm
from problems_for_tests import rbf
from scipy.sparse import csr_matrix
from sklearn import datasets as untyped_datasets
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.preprocessing import StandardScaler

from jsvm import SVC, SVR, NuSVC, NuSVR, OneClassSVM, kernels, search
from jsvm.validation import part_training

svm: Any = untyped_svm  # its types name less than it takes
datasets: Any = untyped_datasets

COSTS, GAMMAS = [0.1, 10.0, 1.0], [0.3, 0.03]


def table(search_of_theirs: Any, costs: Any, gammas: Any, folds: int) -> np.ndarray:
    results = search_of_theirs.cv_results_
    scores = np.stack([results[f"split{k}_test_score"] for k in range(folds)], axis=1)
    grid = {(p["C"], p.get("gamma")): s for p, s in zip(results["params"], scores, strict=True)}
    return np.array([[grid[c, g] for g in gammas] for c in costs])


def moons():
    return datasets.make_moons(120, noise=0.3, random_state=0)


def wine():
    X, y = datasets.load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.mark.parametrize("data", [moons, pytest.param(wine, marks=pytest.mark.slow)])
def test_the_scores_are_those_of_grid_search(data):
    X, y = data()
    ours = search.cross_validate(SVC(), X, y, cv=4, C=COSTS, gamma=GAMMAS)
    theirs = GridSearchCV(svm.SVC(), {"C": COSTS, "gamma": GAMMAS}, cv=4).fit(X, y)
    assert ours.scores.shape == (3, 2, 4)
    np.testing.assert_allclose(ours.scores, table(theirs, COSTS, GAMMAS, 4), atol=1e-12)
    assert ours.converged.all()
    assert (ours.violation <= 1e-3).all()
    assert ours.best_score == pytest.approx(theirs.best_score_)
    assert (ours.best_C, ours.best_gamma) == (
        theirs.best_params_["C"],
        theirs.best_params_["gamma"],
    )


@pytest.mark.slow
def test_regression():
    X, y = datasets.load_diabetes(return_X_y=True)
    X, y = StandardScaler().fit_transform(X[:150]), (y[:150] - 150) / 80
    folds = KFold(3)
    for ours, theirs in (
        (SVR(epsilon=0.2, tol=1e-6), svm.SVR(epsilon=0.2, tol=1e-6)),
        (NuSVR(nu=0.4, tol=1e-6), svm.NuSVR(nu=0.4, tol=1e-6)),
    ):
        result = search.cross_validate(ours, X, y, cv=folds, C=COSTS, gamma=GAMMAS)
        grid = GridSearchCV(theirs, {"C": COSTS, "gamma": GAMMAS}, cv=folds).fit(X, y)
        np.testing.assert_allclose(result.scores, table(grid, COSTS, GAMMAS, 3), atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("given", ["dense", "sparse", "matrix", "object", "callable"])
def test_one_by_one_equals_batches(given, monkeypatch):
    X, y = wine()
    estimator, gammas = SVC(gamma=0.1), GAMMAS
    if given == "sparse":
        X = csr_matrix(np.where(np.abs(X) > 0.7, X, 0.0))
    elif given == "matrix":
        estimator, X, gammas = SVC(kernel="precomputed"), rbf(X), None
    elif given == "object":
        estimator, gammas = SVC(kernels.RBF(0.1) + kernels.Linear()), None
    elif given == "callable":
        estimator, gammas = SVC(lambda A, B: np.asarray(A) @ np.asarray(B).T), None
    batches = search.cross_validate(estimator, X, y, cv=3, C=COSTS, gamma=gammas)
    monkeypatch.setattr(part_training, "LARGEST_PART", 0)
    singly = search.cross_validate(estimator, X, y, cv=3, C=COSTS, gamma=gammas)
    np.testing.assert_allclose(batches.scores, singly.scores, atol=1e-12)
    assert singly.converged.all()
    assert batches.scores.max() > 0.85


@pytest.mark.slow
def test_polynomial_and_other_kernels_share_products():
    X, y = wine()
    for kernel in ("poly", "laplacian"):
        ours = search.cross_validate(
            SVC(kernel, coef0=0.5), X, y, cv=3, C=[0.1, 1.0], gamma=[0.01, 0.1]
        )
        for g, gamma in enumerate(ours.gamma):
            for c, C in enumerate(ours.C):
                fits = SVC(kernel, coef0=0.5, C=float(C), gamma=float(gamma))
                own = GridSearchCV(fits, {}, cv=3).fit(X, y)
                assert ours.mean_scores[c, g] == pytest.approx(own.best_score_)


@pytest.mark.slow
def test_weights_classes_and_scoring():
    X, y = moons()
    rare = np.concatenate([np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:20]])
    X, y = X[rare], y[rare]
    estimator: Any = SVC(class_weight="balanced", gamma=0.5)
    result = search.cross_validate(
        estimator, X, y, cv=4, C=[1.0, 10.0], scoring=balanced_accuracy_score
    )
    theirs = GridSearchCV(
        svm.SVC(class_weight="balanced", gamma=0.5),
        {"C": [1.0, 10.0]},
        cv=4,
        scoring="balanced_accuracy",
    ).fit(X, y)
    np.testing.assert_allclose(
        result.mean_scores[:, 0], theirs.cv_results_["mean_test_score"], atol=1e-12
    )
    assert result.gamma == [0.5]
    weights = np.where(np.arange(len(y)) % 3 == 0, 0.0, 2.0)
    weighted = search.cross_validate(SVC(gamma=0.5), X, y, cv=4, C=[1.0], sample_weight=weights)
    # absence: the same folds without the absent examples
    split = list(KFold(4, shuffle=True, random_state=0).split(X))
    some = search.cross_validate(
        SVC(gamma=0.5, C=2.0), X, y, cv=[(t[weights[t] > 0], s) for t, s in split]
    )
    same = search.cross_validate(SVC(gamma=0.5), X, y, cv=split, C=[1.0], sample_weight=weights)
    np.testing.assert_allclose(same.scores, some.scores)
    assert weighted.converged.all()


@pytest.mark.slow
def test_nu_svc_and_errors():
    X, y = moons()
    result = search.cross_validate(
        NuSVC(nu=0.317, tol=1e-6), X, y, cv=3, gamma=GAMMAS, progress=True
    )
    theirs = GridSearchCV(svm.NuSVC(nu=0.317, tol=1e-6), {"gamma": GAMMAS}, cv=3).fit(X, y)
    np.testing.assert_allclose(
        result.mean_scores[0], theirs.cv_results_["mean_test_score"], atol=1e-12
    )
    wrong: Any = (
        ({"C": []}, "C="),
        ({"C": [1.0, -1.0]}, "C="),
        ({"gamma": [np.nan]}, "gamma="),
        ({"C": [np.inf]}, "C="),
    )
    for arguments, message in wrong:
        with pytest.raises(ValueError, match=message):
            search.cross_validate(SVC(), X, y, **arguments)
    with pytest.raises(ValueError, match="has no C"):
        search.cross_validate(NuSVC(), X, y, C=[1.0])
    with pytest.raises(ValueError, match="cannot be trained in batches"):
        search.cross_validate(OneClassSVM(), X, y, C=[1.0])
    with pytest.raises(ValueError, match="no number"):
        search.cross_validate(SVC(C={0: 1.0, 1: 2.0}), X, y, gamma=[1.0])
