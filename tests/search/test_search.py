"""Searches: hyperparameters as vectors, gradients, CMA-ES, grids and the strategies."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jsvm import data, kernels, objectives, optim, search
from jsvm.search import strategies
from jsvm.search.cma_es import default_generations, default_population
from jsvm.search.objective_grid import scouted
from jsvm.search.pairs import (
    held_out_errors,
    likelihood,
    pair_folds,
    pairs_of,
    posterior,
    span,
    target_alignment,
)
from jsvm.search.problem import SearchProblem, as_data, values_of
from jsvm.search.space import LARGEST_COST, Space

SIZE = 60  # of all data sets here: programs are shared


@pytest.fixture(scope="module")
def board():
    X, y = data.chess_board(2, 2, size=SIZE, key=3)
    return np.asarray(X, float), np.asarray(y, float)


# The distance of the logarithms of γ and C from 2 and 50, or a random function around it.
def bowl(kernel, X, y, *, C):
    return (jnp.log(kernel.gamma) - jnp.log(2.0)) ** 2 + (jnp.log(C) - jnp.log(50.0)) ** 2


def noisy_bowl(kernel, X, y, *, C, key):
    shift = jax.random.normal(key, (2,))
    places = jnp.stack([jnp.log(kernel.gamma / 2.0), jnp.log(C / 50.0)])
    return jnp.sum((places + shift) ** 2)


def hill(kernel, X, y):
    return -((jnp.log(kernel.gamma) - 1.0) ** 2)


class TestSpace:
    KERNELS = (
        kernels.RBF(0.3),
        kernels.ARD(np.array([0.1, 2.0, 30.0])),
        kernels.GeneralGaussian(np.array([[2.0, 0.5], [0.5, 1.0]])),
        kernels.Polynomial(3, 0.5, 1.5),
        2.0 * kernels.RBF(0.3) + kernels.Linear(),
        kernels.RBF(1.0) * kernels.Precomputed(np.eye(3)),
    )

    @pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: type(kernel).__name__)
    def test_decode_is_the_inverse_of_encode(self, kernel):
        space = Space.of(kernel, 7.0)
        found, C = space.decode(space.encode(kernel, 7.0), kernel)
        assert jax.tree.structure(found) == jax.tree.structure(kernel)
        assert jax.tree.all(jax.tree.map(lambda a, b: np.allclose(a, b, atol=1e-12), found, kernel))
        assert float(C) == pytest.approx(7.0)

    @pytest.mark.usefixtures("x64")
    @pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: type(kernel).__name__)
    def test_numpy_and_jax_decode_alike_also_many(self, kernel, rng):
        space = Space.of(kernel, 1.0)
        thetas = rng.normal(size=(4, space.size))
        kernels_, costs = space.decode(thetas, kernel)
        for k, theta in enumerate(thetas):
            one, C = jax.jit(space.decode)(theta, kernel)
            for leaf, many, own in zip(*map(jax.tree.leaves, (one, kernels_, kernel)), strict=True):
                fixed = np.shape(many) == np.shape(own)
                np.testing.assert_allclose(leaf, many if fixed else many[k], rtol=1e-10, atol=1e-12)
            assert float(C) == pytest.approx(float(costs[k]))

    def test_sizes(self):
        expected = (2, 4, 4, 3, 3, 2)  # with C
        assert [Space.of(kernel, 1.0).size for kernel in self.KERNELS] == list(expected)
        assert Space.of(kernels.RBF(1.0)).size == 1

    def test_numbers_that_are_not_positive_enter_as_they_are(self):
        kernel = kernels.Polynomial(2, 0.5, 0.0)
        space = Space.of(kernel)
        assert space.kinds == ("log", "plain")
        np.testing.assert_allclose(space.encode(kernel), [np.log(0.5), 0.0])

    def test_equal_spaces_share_programs(self):
        first, second = (Space.of(kernels.RBF(gamma), 1.0) for gamma in (0.1, 9.0))
        assert first == second
        assert hash(first) == hash(second)

    def test_scaled(self):
        for kernel in self.KERNELS[:3]:
            space = Space.of(kernel, 1.0)
            found, C = space.decode(space.scaled(space.encode(kernel, 5.0), 4.0), kernel)
            Z = np.random.default_rng(0).normal(size=(3, np.size(space.shapes[0]) and 3))
            Z = Z[:, : {"ARD": 3}.get(type(kernel).__name__, 2)]
            # four times γ is the fourth power of a Gaussian kernel
            np.testing.assert_allclose(found(Z), np.asarray(kernel(Z)) ** 4, rtol=2e-5, atol=1e-7)
            assert float(C) == pytest.approx(5.0)

    def test_nothing_to_search_for(self):
        with pytest.raises(ValueError, match="no parameter"):
            Space.of(kernels.Linear())

    def test_limits_hold_the_start(self):
        space = Space.of(kernels.RBF(1.0), 1e9)
        theta = space.encode(kernels.RBF(1.0), 1e9)
        low, high = space.limits(theta)
        assert (low <= theta).all()
        assert (theta <= high).all()
        assert space.limits(space.encode(kernels.RBF(1.0), 1.0))[1][-1] == np.log(LARGEST_COST)


class TestGradient:
    def test_finds_a_minimum_and_says_so(self, board):
        result = search.gradient(bowl, kernels.RBF(0.1), *board, steps=300)
        assert float(result.kernel.gamma) == pytest.approx(2.0, rel=1e-4)
        assert pytest.approx(50.0, rel=1e-4) == result.C
        assert result.status == "converged"
        assert result.evaluations < 300
        assert result.value == np.min(result.history["value"])

    def test_maximise_without_cost(self, board):
        result = search.gradient(hill, kernels.RBF(0.1), *board, C=None, maximise=True, steps=200)
        assert float(result.kernel.gamma) == pytest.approx(np.e, rel=1e-4)
        assert result.C is None
        assert "C" not in result.history
        assert result.value == pytest.approx(0.0, abs=1e-6)

    @pytest.mark.parametrize(
        "optimizer",
        [optax.adam(0.1), optim.rprop(0.1), optax.chain(optax.clip(1.0), optax.sgd(0.2))],
    )
    def test_any_transformation(self, board, optimizer):
        result = search.gradient(bowl, kernels.RBF(0.1), *board, steps=400, optimizer=optimizer)
        assert float(result.kernel.gamma) == pytest.approx(2.0, rel=1e-2)
        assert pytest.approx(50.0, rel=1e-2) == result.C

    def test_a_random_objective(self, board):
        options = {"key": 5, "steps": 4000}
        result = search.gradient(noisy_bowl, kernels.RBF(0.1), *board, **options)
        assert abs(np.log(float(result.kernel.gamma) / 2.0)) < 0.3
        assert abs(np.log(result.C / 50.0)) < 0.3
        assert result.value == pytest.approx(2.0, abs=0.5)  # the variance of the noise
        again = search.gradient(noisy_bowl, kernels.RBF(0.1), *board, **options)
        assert again.C == result.C

    def test_history_is_the_way(self, board):
        kernel = kernels.RBF(0.1)
        result = search.gradient(bowl, kernel, *board, C=3.0, steps=25, tol=0.0)
        assert {name: len(part) for name, part in result.history.items()} == {
            "value": 25,
            "gamma": 25,
            "C": 25,
        }
        assert result.history["gamma"][0] == pytest.approx(0.1)
        assert result.history["C"][0] == pytest.approx(3.0)
        first = bowl(kernel, None, None, C=3.0)
        assert result.history["value"][0] == pytest.approx(float(first), rel=1e-6)

    def test_restarts_take_the_best(self, board):
        def two_valleys(kernel, X, y):
            place = jnp.log(kernel.gamma)
            return jnp.minimum((place - 2.0) ** 2, (place + 2.0) ** 2 + 1.0)

        stuck = search.gradient(two_valleys, kernels.RBF(0.1), *board, C=None, steps=60)
        best = search.gradient(
            two_valleys, kernels.RBF(0.1), *board, C=None, steps=60, restarts=6, spread=3.0
        )
        assert stuck.value == pytest.approx(1.0, abs=1e-4)
        assert best.value == pytest.approx(0.0, abs=1e-4)

    def test_time_limit_callback_and_interruption(self, board):
        options = {"steps": 10**6, "tol": 0.0}
        limited = search.gradient(bowl, kernels.RBF(0.1), *board, time_limit=0.5, **options)
        assert limited.status == "time limit"
        assert limited.evaluations < 10**6

        seen = []

        def stop(facts):
            seen.append(facts)
            return len(seen) == 3

        stopped = search.gradient(bowl, kernels.RBF(0.1), *board, callback=stop, **options)
        assert stopped.status == "stopped by the callback"
        assert [set(facts) for facts in seen] == [{"steps", "value", "seconds"}] * 3
        assert stopped.evaluations == seen[-1]["steps"]

        def interrupt(facts):
            raise KeyboardInterrupt

        kept = search.gradient(bowl, kernels.RBF(0.1), *board, callback=interrupt, **options)
        assert kept.status == "interrupted"
        assert kept.evaluations > 0

    def test_flat_objectives_end_in_the_box(self, board):
        def slope(kernel, X, y):
            return -jnp.log(kernel.gamma)

        result = search.gradient(slope, kernels.RBF(1.0), *board, C=None, steps=200)
        assert float(result.kernel.gamma) == pytest.approx(1e8, rel=1e-6)

    def test_bad_arguments(self, board):
        with pytest.raises(ValueError, match="time_limit"):
            search.gradient(bowl, kernels.RBF(0.1), *board, time_limit=-1.0)
        with pytest.raises(ValueError, match="steps=0"):
            search.gradient(bowl, kernels.RBF(0.1), *board, steps=0)
        with pytest.raises(ValueError, match="dtype"):
            search.gradient(bowl, kernels.RBF(0.1), *board, dtype="float16")


class TestGridAndEvolution:
    def test_grid_is_the_objective_everywhere(self, board):
        gammas, costs = (0.1, 1.0, 10.0), [100.0, 1.0]
        family = [kernels.RBF(gamma) for gamma in gammas]
        result = search.grid(objectives.cross_validation_error, family, *board, C=costs)
        with jax.enable_x64(True):
            expected = [
                [objectives.cross_validation_error(k, *board, C=C) for C in costs] for k in family
            ]
        np.testing.assert_allclose(result.history["value"], np.array(expected), atol=1e-12)
        np.testing.assert_allclose(result.history["gamma"][:, 0], gammas)
        np.testing.assert_allclose(result.history["C"][0], costs)
        assert result.value == np.min(expected)

    def test_of_equal_ones_the_smallest_cost(self, board):
        def flat(kernel, X, y, *, C):
            return 0.0 * C * kernel.gamma

        family = [kernels.RBF(2.0), kernels.RBF(1.0)]
        result = search.grid(flat, family, *board, C=[5.0, 1.0, 3.0])
        assert result.C == 1.0
        assert result.kernel is family[0]

    def test_bad_grids(self, board):
        with pytest.raises(ValueError, match="at least one"):
            search.grid(bowl, [], *board, C=[1.0])
        with pytest.raises(ValueError, match="positive"):
            search.grid(bowl, kernels.RBF(1.0), *board, C=[0.0])
        with pytest.raises(ValueError, match="one class"):
            search.grid(bowl, [kernels.RBF(1.0), kernels.Laplacian(1.0)], *board, C=[1.0])
        with pytest.raises(ValueError, match="finite nowhere"):
            search.grid(lambda k, X, y, C: jnp.inf * C, kernels.RBF(1.0), *board, C=[1.0])

    def test_evolution_finds_a_minimum(self, board):
        result = search.cma_es(bowl, kernels.RBF(0.1), *board, generations=60, population=8)
        assert float(result.kernel.gamma) == pytest.approx(2.0, rel=1e-2)
        assert pytest.approx(50.0, rel=1e-2) == result.C
        assert result.evaluations % 8 == 0
        again = search.cma_es(bowl, kernels.RBF(0.1), *board, generations=60, population=8)
        assert again.C == result.C

    def test_evolution_in_one_dimension_and_random(self, board):
        result = search.cma_es(
            hill, kernels.RBF(0.1), *board, C=None, maximise=True, generations=30
        )
        assert float(result.kernel.gamma) == pytest.approx(np.e, rel=1e-2)
        noisy = search.cma_es(noisy_bowl, kernels.RBF(0.1), *board, key=1, generations=5)
        assert noisy.evaluations == 5 * default_population(2)

    def test_numbers_of_the_paper(self):
        assert [default_population(n) for n in (1, 2, 21)] == [5, 6, 13]
        assert [default_generations(n) for n in (1, 4, 21)] == [100, 200, 459]

    def test_values_in_threads_are_in_order(self, board):
        space = Space.of(kernels.RBF(1.0), 1.0)
        thetas = np.random.default_rng(0).normal(size=(11, 2))
        with jax.enable_x64(True):
            given = as_data(kernels.RBF(1.0), board[0], board[1], np.dtype("float64"))
            problem = SearchProblem(bowl, space, maximise=False, random=False)
            found = values_of(problem, given, thetas, jax.random.key(0))
        expected = (thetas[:, 0] - np.log(2.0)) ** 2 + (thetas[:, 1] - np.log(50.0)) ** 2
        np.testing.assert_allclose(found, expected, rtol=1e-12)

    def test_scouting_finds_the_best_of_its_grid(self, board):
        kernel, C = scouted(bowl, kernels.RBF(0.1), *board, with_cost=True)
        assert isinstance(kernel, kernels.RBF)
        assert float(kernel.gamma) == pytest.approx(1.6)  # 0.1 · 4²
        assert pytest.approx(100.0) == C


class TestPairs:
    """For two classes the objectives are those of `jsvm.objectives`; for more they are sums."""

    @pytest.mark.usefixtures("x64")
    def test_two_classes(self, board):
        X, y = board
        kernel, pairs = kernels.RBF(0.7), pairs_of((y > 0).astype(int))
        np.testing.assert_allclose(
            target_alignment(kernel, X, pairs),
            objectives.kernel_target_alignment(kernel, X, y),
            rtol=1e-12,
        )
        folds = pair_folds(pairs, seed=0)
        of_example = np.empty(SIZE, int)
        for k, test in enumerate(folds.test):
            of_example[test] = k
        np.testing.assert_allclose(
            held_out_errors(kernel, jnp.asarray(X), folds, C=jnp.asarray(3.0)),
            objectives.cross_validation_error(kernel, X, y, C=3.0, folds=of_example),
            atol=1e-12,
        )

    @pytest.mark.slow
    @pytest.mark.usefixtures("x64")
    def test_span_of_two_classes(self, board):
        X, y = board
        kernel, pairs = kernels.RBF(0.7), pairs_of((y > 0).astype(int))
        expected = objectives.span_bound(kernel, X, y, C=3.0)
        found = span(kernel, jnp.asarray(X), pairs, C=jnp.asarray(3.0))
        np.testing.assert_allclose(found, expected, rtol=1e-9)
        more = pairs_of((y > 0).astype(int), SIZE + 12)
        found = span(kernel, jnp.asarray(X), more, C=jnp.asarray(3.0))
        np.testing.assert_allclose(found, expected, rtol=1e-9)

    @pytest.mark.slow
    @pytest.mark.usefixtures("x64")
    def test_likelihood_has_the_same_mean(self, board):
        """The splits are drawn in another way: compare means over many."""
        X, y = board
        kernel, pairs = kernels.RBF(2.0), pairs_of((y > 0).astype(int))
        keys = jax.random.split(jax.random.key(0), 200)
        C = jnp.asarray(3.0)
        one = jax.jit(lambda key: likelihood(kernel, jnp.asarray(X), pairs, C=C, key=key))
        found = np.array([one(key) for key in keys])
        expected = float(objectives.log_likelihood(kernel, X, y, C=C, key=1, splits=200))
        error = 4 * found.std() / np.sqrt(len(found)) * np.sqrt(2)
        assert abs(found.mean() - expected) < error
        prior = objectives.GaussianPrior.around(X, y)
        with_prior = pairs._replace(prior=prior)
        np.testing.assert_allclose(
            posterior(kernel, jnp.asarray(X), with_prior, C=C, key=keys[0]),
            one(keys[0]) + prior(kernel, C),
            rtol=1e-12,
        )

    def test_pairs_and_folds_hold_every_example_once(self, rng):
        codes = rng.integers(0, 3, size=50)
        pairs = pairs_of(codes, 48)
        assert pairs.examples.shape == (3, 48)
        for (a, b), examples, labels in zip(
            ((0, 1), (0, 2), (1, 2)), pairs.examples, pairs.labels, strict=True
        ):
            meant = examples[labels != 0]
            assert sorted(meant) == sorted(np.flatnonzero((codes == a) | (codes == b)))
            assert set(codes[examples[labels < 0]]) == {a}
            assert set(codes[examples[labels > 0]]) == {b}
        folds = pair_folds(pairs, seed=1)
        assert len(folds.train) == 15
        for p in range(3):
            rows = range(5 * p, 5 * p + 5)
            held = np.concatenate([folds.test[k][folds.test_labels[k] != 0] for k in rows])
            assert sorted(held) == sorted(pairs.examples[p][pairs.labels[p] != 0])
            for k in rows:
                train = folds.train[k][folds.labels[k] != 0]
                test = folds.test[k][folds.test_labels[k] != 0]
                assert not set(train) & set(test)
                assert len(train) + len(test) == len(held)


class TestStrategies:
    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["cross_validation", "kta", "span_bound", "likelihood"])
    def test_find_good_machines(self, name, board):
        budget = {"likelihood": 600, "span_bound": 15}.get(name, 20)
        result = getattr(strategies, name)(*board, kernel="rbf", budget=budget)
        Z, labels = data.chess_board(2, 2, size=2000, key=99)
        error = objectives.holdout_error(
            result.kernel,
            np.concatenate([board[0], Z]),
            np.concatenate([board[1], labels]),
            C=result.C,
            test=np.arange(SIZE, SIZE + 2000),
        )
        assert error < 0.15

    @pytest.mark.slow
    def test_posterior_of_three_classes_padded_or_not(self, rng):
        X = rng.normal(size=(45, 2))
        y = np.repeat(["a", "b", "c"], 15)
        X[y == "b"] += 2.5
        X[y == "c", 0] -= 3.0
        plain = strategies.posterior(X, y, "rbf", budget=60, key=1)
        assert 0 < plain.C < LARGEST_COST
        assert plain.evaluations == 60
        padded = strategies.posterior(X, y, "rbf", budget=60, key=1, padded=True)
        assert padded.value == pytest.approx(plain.value, abs=3.0)

    @pytest.mark.slow
    def test_own_prior(self, board):
        def prior(kernel, C):
            return -50.0 * (jnp.log(kernel.gamma) - jnp.log(0.03)) ** 2

        result = strategies.posterior(*board, kernel="rbf", budget=400, prior=prior)
        assert float(result.kernel.gamma) == pytest.approx(0.03, rel=0.5)

    def test_budgets_of_the_paper(self, board, monkeypatch):
        asked = {}

        def record(objective, kernel, X, y, **options):
            asked.update(options)
            kernel = kernels.ARD(np.ones(2))
            return search.SearchResult(kernel, 1.0, 0.0, {"value": np.zeros(1)})

        monkeypatch.setattr(strategies, "gradient", record)
        strategies.likelihood(*board, kernel="ard", scout=False)
        assert asked["steps"] == np.ceil(10_000 * np.sqrt(3))
        strategies.span_bound(*board, kernel="rbf", scout=False)
        assert asked["steps"] == np.ceil(100 * np.sqrt(2))

    @pytest.mark.parametrize(
        ("arguments", "options", "message"),
        [
            ((np.zeros((4, 2)), np.ones(4), "rbf"), {}, "one class"),
            ((np.zeros((4, 2)), np.arange(3), "rbf"), {}, "one label an example"),
            ((np.full((4, 2), np.nan), np.arange(4) % 2, "rbf"), {}, "finite"),
            ((np.zeros((4, 2)), np.arange(4) % 2, "poly"), {}, "kernel='poly'"),
            ((np.eye(4), np.arange(4) % 2, "rbf"), {"budget": 0}, "budget=0"),
            ((np.eye(4), np.arange(4) % 2, "rbf"), {"prior": 3}, "prior=3"),
        ],
    )
    def test_bad_arguments(self, arguments, options, message):
        with pytest.raises(ValueError, match=message):
            strategies.posterior(*arguments, scout=False, **options)

    def test_unknown_options(self, board):
        with pytest.raises(TypeError, match="'steps'"):
            strategies.kta(*board, steps=3)
