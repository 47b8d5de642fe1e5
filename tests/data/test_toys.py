"""Toys of Hochreiter & Obermayer 2004 and sparse coordinates of Glasmachers 2008: their rules."""

from collections import Counter, defaultdict
from fractions import Fraction
from itertools import combinations

import jax
import numpy as np
import pytest
from sklearn.linear_model import Lasso
from sklearn.svm import SVC

from jsvm import data, kernels

DRAWS = {
    "four_clusters": data.four_clusters,
    "horseshoe": data.horseshoe,
    "noisy_curve": data.noisy_curve,
    "oscillating_regions": data.oscillating_regions,
    "sine_rings": lambda key: data.sine_rings(size=30, key=key),
    "sparse_coordinates": lambda key: data.sparse_coordinates(3, 4, 3, size=30, key=key),
    "weston": lambda key: data.weston(key=key, size=10, features=25),
}


def draw(name: str, **arguments) -> tuple[np.ndarray, ...]:
    return tuple(np.asarray(part) for part in getattr(data, name)(**arguments))


def error_and_features(kernel, epsilon: float, train, test, rows) -> tuple[float, int]:
    """Select features with the P-SVM (Hochreiter & Obermayer 2004, eq. 47), a normalised lasso."""
    X, y = train
    K, K_test = np.asarray(kernel(X, rows)), np.asarray(kernel(test[0], rows))
    mean, deviation = K.mean(axis=0), K.std(axis=0)
    lasso = Lasso(alpha=epsilon / len(y), max_iter=100_000).fit((K - mean) / deviation, y)
    wrong = np.sign(lasso.predict((K_test - mean) / deviation)) != test[1]
    return float(wrong.mean()), int(np.count_nonzero(lasso.coef_))


@pytest.mark.parametrize("name", DRAWS)
def test_a_seed_and_its_key_give_the_same_toy_and_another_seed_another(name):
    a, b, c = (DRAWS[name](key=key) for key in (7, jax.random.key(7), 8))
    for left, right in zip(a, b, strict=True):
        np.testing.assert_array_equal(left, right)
    assert not np.array_equal(a[0], c[0])


@pytest.mark.parametrize("name", sorted(set(DRAWS) - {"noisy_curve"}))
def test_classes_are_plus_and_minus_one(name):
    assert set(np.unique(DRAWS[name](key=0)[1])) == {-1.0, 1.0}


class TestHorseshoe:
    def test_it_has_the_sizes_of_the_paper_and_rows_all_over_the_square(self):
        X, y, Z = draw("horseshoe", key=0)
        assert X.shape == (34, 2)
        assert (y > 0).sum() == (y < 0).sum() == 17
        assert Z.shape == (50, 2)
        Z = draw("horseshoe", key=0, rows=5000)[2]
        np.testing.assert_allclose(Z.min(axis=0), -2, atol=0.01)
        np.testing.assert_allclose(Z.max(axis=0), 2, atol=0.01)
        np.testing.assert_allclose(Z.var(axis=0), 16 / 12, rtol=0.05)

    def test_a_line_fails_where_curved_kernels_succeed(self):
        X, y, Z = draw("horseshoe", key=0)
        test = draw("horseshoe", key=1, per_class=500)[:2]
        assert SVC(kernel="linear").fit(X, y).score(*test) < 0.8
        for kernel in (
            kernels.Polynomial(degree=3, gamma=1.0, coef0=1.0),
            kernels.RBF(gamma=2.0),
            kernels.Sine(theta=2.0),
        ):
            wrong, _ = error_and_features(kernel, 1.0, (X, y), test, Z)
            assert wrong < 0.05


class TestOscillatingRegions:
    def test_the_class_alternates_with_the_distance(self):
        X, y = draw("oscillating_regions", key=0)
        assert ((y > 0).sum(), (y < 0).sum()) == (28, 42)
        radius = np.linalg.norm(X, axis=1)
        assert radius.max() < 1
        assert X[:, 0].min() >= -1e-6
        np.testing.assert_array_equal(y, -np.sign(np.sin(5 * np.pi * radius)))

    @pytest.mark.parametrize("seed", range(3))
    def test_the_sine_kernel_needs_fewer_features_than_the_best_gaussian_and_errs_less(self, seed):
        train = draw("oscillating_regions", key=seed)
        test = draw("oscillating_regions", key=10 + seed, per_region=300)
        X = train[0]
        sine = error_and_features(kernels.Sine(theta=5 * np.pi), 3.0, train, test, X)
        gaussians = [
            error_and_features(kernels.RBF(gamma=gamma), epsilon, train, test, X)
            for gamma in (5.0, 20.0, 50.0, 200.0)
            for epsilon in (1.0, 3.0)
        ]
        best = min(gaussians)
        assert sine[0] < 0.1 < best[0]
        assert sine[1] < best[1]


class TestSineRings:
    def test_the_column_of_the_centre_tells_the_class_and_the_gram_matrix_is_indefinite(self):
        X, y = draw("sine_rings", size=80, key=3, theta=9.0)
        K = np.asarray(kernels.Sine(theta=9.0)(X), dtype=float)
        np.testing.assert_array_equal(np.where(K[:, 0] >= 0, 1.0, -1.0), y)
        eigenvalues = np.linalg.eigvalsh(K)
        assert eigenvalues[0] < -1
        assert eigenvalues[-1] > 1

    def test_a_few_features_suffice(self):
        train = draw("sine_rings", size=100, key=0)
        test = draw("sine_rings", size=2000, key=1)
        wrong, features = error_and_features(
            kernels.Sine(theta=4 * np.pi), 20.0, train, test, train[0]
        )
        assert wrong < 0.05
        assert features <= 5


class TestNoisyCurve:
    def test_fifty_noisy_points_and_an_outlier(self):
        X, y = draw("noisy_curve", key=0)
        assert X.shape == (51, 1)
        assert X[-1, 0] == 0
        assert y[-1] == 3
        X, y = draw("noisy_curve", key=1, size=5000)
        residual = (y - np.asarray(data.curve(X[:, 0])))[:-1]
        assert abs(residual.mean()) < 0.01
        assert residual.std() == pytest.approx(0.2, rel=0.05)
        assert np.ptp(X) == pytest.approx(8, abs=0.01)

    def test_the_curve_has_an_extremum_at_minus_two_and_is_zero_at_the_outlier(self):
        slope = jax.grad(data.curve)(np.float32(-2.0))
        assert float(slope) == pytest.approx(0, abs=1e-5)
        assert float(data.curve(np.zeros(1))[0]) == 0


class TestFourClusters:
    def test_opposite_corners_belong_together(self):
        X, y, Z = draw("four_clusters", key=0)
        assert (y > 0).sum() == (y < 0).sum() == 25
        assert Z.shape == (100, 2)
        np.testing.assert_array_equal(np.sign(X[:, 0] * X[:, 1]), y)

    def test_corners_noise_and_rows_have_their_distribution(self):
        X, _, Z = draw("four_clusters", key=1, per_class=4000, rows=5000)
        corner = np.sign(X)
        shares = np.array(list(Counter(map(tuple, corner)).values())) / len(X)
        np.testing.assert_allclose(shares, 0.25, atol=0.02)
        np.testing.assert_allclose((X - corner).std(axis=0), 0.1, rtol=0.05)
        np.testing.assert_allclose(np.abs(Z).max(axis=0), 1.2, atol=0.01)


class TestWeston:
    def test_balanced_unless_the_labels_are_coins(self):
        y = draw("weston", key=0, features=20)[1]
        assert (y > 0).sum() == (y < 0).sum() == 300
        assert abs(y[:100].mean()) < 0.5  # in random order
        coins = draw("weston", key=0, features=20, balanced=False, size=4000)[1]
        assert 0 < abs(coins.mean()) < 0.1

    def test_moments_follow_from_the_mixture_of_modes(self):
        X, y = draw("weston", key=1, size=40_000, features=24)
        tau = np.arange(20) % 4 + 1
        np.testing.assert_allclose((X[:, :20] * y[:, None]).mean(axis=0), 0.2 * 2, atol=0.05)
        squares = 0.2 * (2**2 + (0.5 * tau) ** 2) + 0.8
        np.testing.assert_allclose((X[:, :20] ** 2).mean(axis=0), squares, rtol=0.05)
        np.testing.assert_allclose(X[:, 20:].std(axis=0), 20, rtol=0.03)
        assert np.abs((X[:, 20:] * y[:, None]).mean(axis=0)).max() < 0.5

    def test_one_mode_is_active_at_a_time(self):
        X, y = draw("weston", key=2, size=40_000, features=20)
        products = (X * y[:, None]).T @ (X * y[:, None]) / len(X)
        same = np.arange(20)[:, None] // 4 == np.arange(20)[None, :] // 4
        np.testing.assert_allclose(products[~same], 0, atol=0.05)
        np.testing.assert_allclose(products[same & ~np.eye(20, dtype=bool)], 0.2 * 4, atol=0.08)

    def test_errors_with_and_without_selection_are_near_those_of_the_paper(self):
        errors = []
        for seed in range(10):
            X, y = draw("weston", key=seed)
            X = (X - X[:100].mean(axis=0)) / X[:100].std(axis=0)
            for columns in (20, 2000):
                machine = SVC(kernel="linear", C=0.1).fit(X[:100, :columns], y[:100])
                errors.append(1 - machine.score(X[100:, :columns], y[100:]))
        perfect, none = np.reshape(errors, (10, 2)).mean(axis=0)
        assert perfect == pytest.approx(0.071, abs=0.015)  # 0.10 in the paper
        assert none == pytest.approx(0.371, abs=0.03)  # 0.38 in the paper


class TestSparseCoordinates:
    @staticmethod
    def probabilities(n: int, m: int, k: int) -> dict[tuple[frozenset[int], int], Fraction]:
        """P(x, y) by following the recipe of Glasmachers 2008 through all choices."""
        table = defaultdict(Fraction)
        for place in range(2 * n):
            others = [j for j in range(2 * n + m) if j != place]
            choices = list(combinations(others, k - 1))
            for choice in choices:
                y = 1 if place < n else -1
                table[frozenset((place, *choice)), y] += Fraction(1, 2 * n * len(choices))
        return table

    def test_errors_printed_in_the_paper(self):
        assert data.sparse_coordinates_bayes_error(3, 14, 3) == 144 / 1026
        assert data.sparse_coordinates_bayes_error(3, 14, 5) == 5262 / 23256

    @pytest.mark.parametrize("shape", [(3, 14, 3), (1, 0, 1), (1, 0, 2), (2, 0, 3), (4, 3, 6)])
    def test_bayes_error_equals_the_sum_over_all_vectors(self, shape):
        table = self.probabilities(*shape)
        assert sum(table.values()) == 1
        error = sum(min(table[x, 1], table[x, -1]) for x in {x for x, _ in table})
        assert data.sparse_coordinates_bayes_error(*shape) == pytest.approx(float(error), rel=1e-14)

    @pytest.mark.parametrize("shape", [(3, 14, 3), (3, 14, 5)])
    def test_the_bayes_rule_errs_that_often(self, shape):
        n, m, k = shape
        X, y = draw("sparse_coordinates", n=n, m=m, k=k, size=200_000, key=0)
        rule = np.where(X[:, :n].sum(axis=1) >= X[:, n : 2 * n].sum(axis=1), 1.0, -1.0)
        error = data.sparse_coordinates_bayes_error(*shape)
        assert (rule != y).mean() == pytest.approx(error, abs=0.003)

    def test_frequencies_follow_the_recipe(self):
        table = self.probabilities(2, 2, 3)
        X, y = draw("sparse_coordinates", n=2, m=2, k=3, size=100_000, key=1)
        assert set(np.unique(X)) == {0.0, 1.0}
        drawn = Counter(
            (frozenset(np.flatnonzero(x).tolist()), int(label))
            for x, label in zip(X, y, strict=True)
        )
        assert set(drawn) == set(table)
        for case, chance in table.items():
            assert drawn[case] / len(y) == pytest.approx(float(chance), rel=0.1)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("four_clusters", {"per_class": 0}),
        ("horseshoe", {"rows": -1}),
        ("noisy_curve", {"noise": -0.1}),
        ("oscillating_regions", {"per_region": 0}),
        ("sine_rings", {"size": 3, "theta": 0.0}),
        ("sparse_coordinates", {"n": 0, "m": 1, "k": 1, "size": 3}),
        ("sparse_coordinates", {"n": 1, "m": 1, "k": 4, "size": 3}),
        ("sparse_coordinates", {"n": 1, "m": 1, "k": 1, "size": -1}),
        ("weston", {"features": 19}),
    ],
)
def test_numbers_that_make_no_sense_are_refused(name, arguments):
    with pytest.raises(ValueError, match=r"must (be|not)"):
        getattr(data, name)(key=0, **arguments)
