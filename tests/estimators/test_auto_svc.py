"""AutoSVC: selection, then a fit to all examples."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

from jsvm import SVC, AutoSVC, data, kernels
from jsvm.estimators.auto_svc import BUDGETS, _some
from jsvm.search import SearchResult


@pytest.fixture(scope="module")
def board():
    X, y = data.chess_board(2, 2, size=64, key=5)
    return np.asarray(X, float), np.where(np.asarray(y) > 0, "white", "black")


@pytest.fixture(scope="module")
def fitted(board):
    return AutoSVC(budget=200, random_state=0).fit(*board)


def fixed(X, y, kernel, *, key, budget, progress):
    """A strategy that knows already."""
    return SearchResult(kernels.RBF(1.5), 20.0, -1.0, {"value": np.array([-1.0])})


class TestFit:
    def test_is_an_svc_with_what_was_selected(self, board, fitted):
        X, y = board
        plain = SVC(kernel=fitted.kernel_, C=fitted.C_).fit(X, y)
        np.testing.assert_array_equal(fitted.support_, plain.support_)
        np.testing.assert_allclose(fitted.dual_coef_, plain.dual_coef_, rtol=1e-6)
        np.testing.assert_allclose(
            fitted.decision_function(X), plain.decision_function(X), rtol=1e-6, atol=1e-9
        )
        assert fitted.score(X, y) > 0.9
        assert fitted.fit_status_ == 0
        assert fitted.solutions_[0].duality_gap < 1e-6

    @pytest.mark.slow  # or every worker would compile the search
    def test_history(self, fitted):
        assert len(fitted.history_["value"]) == len(fitted.history_["gamma"]) == 200
        assert fitted.best_value_ == pytest.approx(fitted.history_["value"][150:].mean())
        last = np.exp(np.log(fitted.history_["C"][150:]).mean())
        assert pytest.approx(last) == fitted.C_

    @pytest.mark.slow  # or every worker would compile the search
    def test_the_same_random_state_selects_the_same(self, board, fitted):
        again = AutoSVC(**fitted.get_params()).fit(*board)
        assert again.C_ == fitted.C_
        assert float(again.kernel_.gamma) == float(fitted.kernel_.gamma)

    @pytest.mark.slow  # or every worker would compile the search
    def test_pickles(self, board, fitted):
        other = pickle.loads(pickle.dumps(fitted))
        np.testing.assert_array_equal(other.predict(board[0]), fitted.predict(board[0]))
        assert other.C_ == fitted.C_

    def test_a_callable_strategy(self, board):
        machine = AutoSVC(fixed).fit(*board)
        assert machine.C_ == 20.0
        assert machine.best_value_ == -1.0
        np.testing.assert_array_equal(
            machine.predict(board[0]), SVC(gamma=1.5, C=20.0).fit(*board).predict(board[0])
        )

    def test_sparse_points(self, board):
        X, y = board
        machine = AutoSVC(fixed).fit(sparse.csr_array(X), y)
        dense = AutoSVC(fixed).fit(X, y)
        np.testing.assert_allclose(
            machine.decision_function(sparse.csr_array(X)), dense.decision_function(X), rtol=1e-7
        )

    def test_probabilities(self, board):
        machine = AutoSVC(fixed, calibration="sigmoid", random_state=0).fit(*board)
        chosen = machine.classes_[machine.predict_proba(board[0]).argmax(axis=1)]
        np.testing.assert_array_equal(chosen, machine.predict(board[0]))
        with pytest.raises(AttributeError, match="predict_proba"):
            AutoSVC(fixed).fit(*board).predict_proba(board[0])


@pytest.mark.slow
@pytest.mark.parametrize("strategy", sorted(BUDGETS))
def test_every_strategy_on_three_classes(strategy):
    X, y = load_iris(return_X_y=True)
    budget = {"span_bound": 3, "cross_validation": 3}.get(strategy, 50)
    machine = AutoSVC(strategy, "ard", budget=budget, random_state=0).fit(X[::2], y[::2])
    assert machine.score(X[1::2], y[1::2]) > 0.9
    assert machine.kernel_.gamma.shape == (4,)
    assert machine.decision_function(X).shape == (150, 3)


@pytest.mark.slow
def test_default_budget_on_the_chess_board():
    X, y = data.chess_board(4, 2, size=200, key=2)
    Z, labels = data.chess_board(4, 2, size=5000, key=3)
    assert AutoSVC(random_state=0).fit(X, y).score(Z, labels) > 0.85


class TestExamplesOfTheSearch:
    def test_all_or_some(self):
        codes = np.repeat([0, 1, 2], [500, 495, 5])
        random = np.random.RandomState(0)
        np.testing.assert_array_equal(_some(random, codes, None), np.arange(1000))
        np.testing.assert_array_equal(_some(random, codes, 1000), np.arange(1000))
        some = _some(random, codes, 100)
        assert len(some) == len(set(some)) == 100
        assert np.bincount(codes[some]).min() >= 3  # a rare class is there

    def test_the_strategy_sees_no_more(self, board):
        seen = []

        def record(X, y, kernel, **options):
            seen.append(X.shape)
            return fixed(X, y, kernel, **options)

        AutoSVC(record, max_examples=30, random_state=1).fit(*board)
        assert seen == [(30, 2)]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"strategy": "guess"}, "strategy='guess'"),
        ({"kernel": "precomputed"}, "precomputed"),
        ({"kernel": "poly"}, "kernel='poly'"),
        ({"budget": 0}, "budget=0"),
        ({"strategy": "kta", "prior": lambda kernel, C: 0.0}, "prior"),
        ({"max_examples": 1}, "max_examples=1"),
        ({"multiclass": "tree"}, "multiclass='tree'"),
        ({"tol": -1.0}, "tol=-1.0"),
    ],
)
def test_bad_parameters(board, parameters, message):
    with pytest.raises(ValueError, match=message):
        AutoSVC(**parameters).fit(*board)


def test_bad_data(board):
    with pytest.raises(ValueError, match="one class"):
        AutoSVC().fit(board[0], np.zeros(len(board[0])))
    with pytest.raises(NotFittedError):
        AutoSVC().predict(board[0])
