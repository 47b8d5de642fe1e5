"""Many tiles: the same answers as one tile, rows computed once, within the budget."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from problems_for_tests import chess, rbf, regression, two_classes
from references import gap as numpy_gap

from jsvm import kernels, problems, solve
from jsvm.solvers import SMO, Status, Tuning
from jsvm.solvers.canonical import Layout
from jsvm.solvers.tile.engine import CompiledLoop
from jsvm.solvers.tiles.rows import Rows
from jsvm.solvers.tiles.sources import KernelSource, MatrixSource, source_of
from jsvm.solvers.tiles.square import Square
from jsvm.solvers.tiles.working_set import Vectors, choose, look

KERNEL = kernels.RBF(0.5)
DOUBLE = np.dtype("float64")


# Small tiles for small problems; one size, so that few programs are compiled.
SMALL = Tuning(largest_whole=0, tiles=(64,), tile_slots=(64,), fewest_newcomers=8)
TILES = SMO(tuning=SMALL)


def machines(n=150):
    X, y = chess(n)
    Z, t = regression(np.random.default_rng(0), n)
    signs = two_classes(np.random.default_rng(1), n)
    given = KERNEL, X
    return {
        "c_svc": problems.c_svc(given, y, 10.0),
        "weighted": problems.c_svc(given, y, np.where(y > 0, 1.0, 30.0)),
        "matrix": problems.c_svc(rbf(X), y, 10.0),
        "squared_svc": problems.squared_svc(given, y, 10.0),
        "hard_margin": problems.hard_margin((KERNEL, signs[0] * 3), signs[1]),
        "epsilon_svr": problems.epsilon_svr((KERNEL, Z), t, 5.0, 0.1),
        "nu_svc": problems.nu_svc(given, y, 0.4),
        "nu_svr": problems.nu_svr((KERNEL, Z), t, 5.0, 0.4),
        "one_class": problems.one_class(given, 0.3),
        "smallest_ball": problems.smallest_ball(given),
    }


# Each kind of program is compiled anew; two of them here, the others among the slow tests.
KINDS = [
    name if name in ("c_svc", "epsilon_svr") else pytest.param(name, marks=pytest.mark.slow)
    for name in machines()
]


@pytest.mark.parametrize("name", KINDS)
def test_many_tiles_agree_with_one(name):
    program = machines()[name]
    many = solve(program, replace(TILES, tol=1e-7))
    one = solve(program, SMO(tol=1e-7))
    assert many.status == one.status == Status.CONVERGED
    assert len(many.history) > 2
    np.testing.assert_allclose(many.objective, one.objective, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(many.multipliers, one.multipliers, atol=1e-5)
    np.testing.assert_allclose(many.primal_objective, one.primal_objective, rtol=1e-5, atol=1e-6)
    Q = np.asarray(program.hessian.dense().matrix)
    np.testing.assert_allclose(Q @ many.alpha, Q @ one.alpha, atol=1e-5)


def test_the_certificate_is_that_of_the_point():
    X, y = chess(200)
    K = rbf(X)
    s = solve(problems.c_svc((KERNEL, X), y, 1e4), replace(TILES, tol=1e-4))
    assert s.status == Status.CONVERGED
    G = y - K @ s.alpha
    lower, upper = np.minimum(0, 1e4 * y), np.maximum(0, 1e4 * y)
    assert s.violation == pytest.approx(numpy_gap(G, s.alpha, lower, upper), abs=1e-7)
    assert s.violation <= 1e-4
    assert s.objective == pytest.approx(0.5 * s.alpha @ K @ s.alpha - y @ s.alpha, rel=1e-9)
    assert abs(s.alpha.sum()) <= 1e-12 * np.abs(s.alpha).sum()


def test_few_free_variables_are_solved_to_rounding():
    X, y = chess(200)
    s = solve(problems.c_svc((KERNEL, X), y, 10.0), replace(TILES, tol=1e-3))
    assert s.violation < 1e-9


def test_more_free_variables_than_a_tile_holds():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 20)), np.where(np.arange(300) % 2 == 0, 1.0, -1.0)
    program = problems.c_svc((kernels.RBF(0.3), X), y, 100.0)  # almost all are free
    s = solve(program, replace(TILES, tol=1e-5))
    free = (s.alpha > program.lower) & (s.alpha < program.upper)
    assert free.sum() > 64
    assert s.status == Status.CONVERGED
    assert s.violation <= 1e-5


def test_only_rows_of_variables_that_moved_are_computed():
    X = np.concatenate([np.full((100, 2), 50.0), chess(60)[0]])
    y = np.concatenate([np.ones(100), chess(60)[1]])
    cost = np.concatenate([np.zeros(100), np.full(60, 10.0)])  # a hundred are absent
    s = solve(problems.c_svc((KERNEL, X), y, cost), replace(TILES, tol=1e-5))
    assert np.count_nonzero(s.alpha) <= s.kernel_rows <= 60


@pytest.mark.parametrize("block", [True, False])
def test_a_small_cache_changes_the_rows_not_the_answer(block):
    X, y = chess(200)
    program = problems.c_svc((KERNEL, X), y, 10.0)
    roomy = solve(program, replace(TILES, tol=1e-6))
    tight = solve(program, replace(TILES, tol=1e-6, cache_size=0.04))  # 25 rows
    assert tight.kernel_rows > roomy.kernel_rows
    assert roomy.kernel_rows <= 200
    np.testing.assert_allclose(tight.objective, roomy.objective, rtol=1e-9)


def test_budgets_of_steps_and_statuses():
    X, y = chess(150)
    s = solve(problems.c_svc((KERNEL, X), y, 10.0), replace(TILES, max_steps=20))
    assert s.status == Status.MAX_STEPS
    assert 20 <= s.steps <= 21
    same = np.ones((40, 2))
    labels = np.where(np.arange(40) % 2 == 0, 1.0, -1.0)
    s = solve(problems.hard_margin((kernels.Linear(), same), labels), TILES)
    assert s.status == Status.UNBOUNDED


def test_a_start_is_kept():
    X, y = chess(150)
    program = problems.c_svc((KERNEL, X), y, 10.0)
    first = solve(program, replace(TILES, tol=1e-6))
    again = solve(program, replace(TILES, tol=1e-6), start=first)
    assert again.steps <= 2
    np.testing.assert_allclose(again.objective, first.objective, rtol=1e-12)


def test_a_kernel_of_the_host():
    X, y = chess(80)
    slow = kernels.Function(lambda A, B: rbf(np.asarray(A), np.asarray(B)), on_host=True)
    s = solve(problems.c_svc((slow, X), y, 10.0), replace(TILES, tol=1e-6))
    t = solve(problems.c_svc((KERNEL, X), y, 10.0), replace(TILES, tol=1e-6))
    np.testing.assert_allclose(s.objective, t.objective, rtol=1e-9)


def test_a_kernel_with_nan_is_an_error():
    X, y = chess(80)

    def broken(A, B):
        return np.full((len(A), len(B)), np.nan)

    with pytest.raises(ValueError, match="NaN or infinity"):
        solve(problems.c_svc((kernels.Function(broken, on_host=True), X), y, 10.0), TILES)


def test_classes_that_overlap_have_no_hard_margin():
    X = np.random.default_rng(0).normal(size=(80, 2))
    y = np.where(np.arange(80) % 2, 1.0, -1.0)
    s = solve(problems.hard_margin((kernels.Linear(), X), y), TILES)
    assert s.status == Status.UNBOUNDED


def test_float32_rows_give_float64_answers():
    X, y = chess(150)
    program = problems.c_svc((KERNEL, X), y, 1e4)
    s = solve(program, replace(TILES, tol=1e-4), dtype="float32")
    exact = solve(program, replace(TILES, tol=1e-8))
    assert s.status == Status.CONVERGED
    assert numpy_gap(y - rbf(X) @ s.alpha, s.alpha, program.lower, program.upper) <= 1e-4
    np.testing.assert_allclose(s.objective, exact.objective, rtol=1e-5)


class TestRows:
    def rows(self, n=70, budget=1e9, **tuning):
        X = np.random.default_rng(0).normal(size=(n, 3))
        source = KernelSource.of(KERNEL, jnp.asarray(X), DOUBLE)
        return Rows(source, n, DOUBLE, float(budget), Tuning(**tuning)), rbf(X)

    @pytest.mark.usefixtures("x64")
    def test_sums(self):
        rows, K = self.rows()
        some = np.array([3, 60, 3, 7])
        weights = np.array([1.0, -2.0, 0.5, 4.0])
        np.testing.assert_allclose(rows.sum(some, weights), weights @ K[some], atol=1e-12)
        assert rows.computed == 3
        rows.sum(np.arange(20), np.ones(20))
        assert rows.computed == 21  # 60 and the first twenty

    @pytest.mark.usefixtures("x64")
    def test_no_row_twice_while_there_is_room(self):
        rows, K = self.rows()
        rng = np.random.default_rng(1)
        for _ in range(10):
            some, weights = rng.integers(0, 70, 40), rng.normal(size=40)
            np.testing.assert_allclose(rows.sum(some, weights), weights @ K[some], atol=1e-11)
        assert rows.computed <= 70

    @pytest.mark.usefixtures("x64")
    def test_rows_that_an_interruption_lost_are_computed_again(self):
        rows, K = self.rows()
        some, weights = np.arange(20), np.random.default_rng(0).normal(size=20)
        rows.sum(some, weights)
        for slab in rows._slabs.values():
            slab.rows.delete()  # as a program does with what is donated to it
        np.testing.assert_allclose(rows.sum(some, weights), weights @ K[some], atol=1e-12)
        assert rows.computed == 40
        rows.release()

    @pytest.mark.usefixtures("x64")
    def test_rows_that_pass_are_not_kept_where_the_budget_is_tight(self):
        some, weights = np.arange(20), np.random.default_rng(0).normal(size=20)
        passing = some >= 5
        for budget, computed_again in ((1e9, 0), (64 * 70 * 8, 15)):
            rows, K = self.rows(budget=budget)
            for _ in range(2):
                total = rows.sum(some, weights, passing)
                np.testing.assert_allclose(total, weights @ K[some], atol=1e-12)
            assert rows.computed == 20 + computed_again

    @pytest.mark.usefixtures("x64")
    def test_blocks_that_take_the_memory_of_others_are_right(self):
        rows, K = self.rows(budget=48 * 70 * 8, large_block_bytes=16 * 70 * 8)
        rng = np.random.default_rng(2)
        for _ in range(20):
            some, weights = rng.permutation(70)[:32], rng.normal(size=32)
            np.testing.assert_allclose(rows.sum(some, weights), weights @ K[some], atol=1e-11)
        rows.reserve(None, 40 * 70 * 8)  # others need most of the budget
        some, weights = np.arange(70), np.ones(70)
        np.testing.assert_allclose(rows.sum(some, weights), weights @ K[some], atol=1e-11)

    @pytest.mark.usefixtures("x64")
    def test_the_slab_that_was_not_used_for_the_longest_time_goes(self):
        rows, K = self.rows(budget=64 * 70 * 8)
        one = np.ones(1)
        for k in range(64):  # four slabs of sixteen rows
            rows.sum(np.array([k]), one)
        assert rows.computed == 64
        rows.sum(np.array([0]), one)  # now the second slab is the oldest
        rows.sum(np.array([65]), one)
        assert rows.computed == 65
        rows.sum(np.array([0]), one)
        rows.sum(np.array([32, 63]), np.ones(2))
        assert rows.computed == 65
        np.testing.assert_allclose(rows.sum(np.array([16]), one), K[16], atol=1e-13)
        assert rows.computed == 66

    @pytest.mark.usefixtures("x64")
    def test_more_rows_than_the_budget_holds(self):
        rows, K = self.rows(budget=1.0)
        np.testing.assert_allclose(rows.sum(np.arange(70), np.ones(70)), K.sum(0), atol=1e-10)

    @pytest.mark.usefixtures("x64")
    def test_a_matrix_is_its_own_cache(self):
        _, K = self.rows()
        rows = Rows(MatrixSource(jnp.asarray(K)), 70, DOUBLE, 1.0)
        some = np.array([5, 6, 6])
        np.testing.assert_allclose(rows.sum(some, np.ones(3)), K[5] + 2 * K[6], atol=1e-13)
        assert rows.computed == 0


def source_for(X, gamma):
    """Return where the solver would take the kernel rows of these 40 points from."""
    program = problems.one_class((kernels.RBF(gamma), X), 0.5)
    source = source_of(program.hessian, Layout.of(program, shuffled=False), DOUBLE)
    assert isinstance(source, KernelSource)
    return source


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("features", "largest", "parts"),
    [(40, 255, 1), (300, 255, 1), (600, 1, 1), (800, 400, 2), (800, 800, 8), (144, 4000, 9)],
)
def test_products_of_whole_numbers_are_exact(features, largest, parts):
    rng = np.random.default_rng(0)
    X = rng.integers(-largest // 2, largest // 2 + 1, (40, features)).astype(float)
    source = source_for(X, 1e-4 / features)
    if parts > 8:  # even short parts are too long
        assert source.points.coordinates.dtype == np.float64
    else:
        assert len(source.points.coordinates) == parts
        assert all(part.dtype == np.float32 for part in source.points.coordinates)
    K = Rows(source, 40, DOUBLE, 1e9).part(np.arange(40), np.arange(40))
    distances = ((X[:, None] - X[None]) ** 2).sum(-1)  # exact in float64
    np.testing.assert_array_equal(np.log(K) == 0.0, distances == 0)
    np.testing.assert_allclose(K, np.exp(-1e-4 / features * distances), rtol=1e-13)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("change", [0.5, 5000.0, 1e-9])
def test_other_numbers_keep_their_precision(change):
    X = np.zeros((40, 50))
    X[20, 30] = change
    assert source_for(X, 1.0).points.coordinates.dtype == np.float64


@pytest.mark.usefixtures("x64")
def test_the_square_follows_its_variables():
    X = np.random.default_rng(0).normal(size=(60, 3))
    K = rbf(X)
    square = Square(Rows(KernelSource.of(KERNEL, jnp.asarray(X), DOUBLE), 60, DOUBLE, 1e9), DOUBLE)
    rng = np.random.default_rng(1)
    for size in (16, 16, 16, 32, 32, 16, 48):
        # Variables 60 … 119 are the second copies of the examples.
        some = rng.permutation(120)[: size - 3]
        there = square.arrange(some, size)
        assert set(there[there >= 0]) == set(some)
        places = np.flatnonzero(there >= 0)
        examples = there[places] % 60
        part = np.asarray(square.matrix)[np.ix_(places, places)]
        np.testing.assert_allclose(part, K[np.ix_(examples, examples)], atol=1e-13)


def vectors(alpha, gradient):
    n = len(alpha)
    return Vectors(
        linear=np.zeros(n),
        lower=np.zeros(n),
        upper=np.ones(n),
        groups=np.zeros(n, np.int32),
        totals=np.zeros(1),
        alpha=np.asarray(alpha, float),
        gradient=np.asarray(gradient, float),
    )


def test_the_working_set_has_the_free_and_the_worst_of_both_sides():
    alpha = [0.5, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0]
    gradient = [0.1, 3.0, 2.0, -5.0, -3.0, -1.0, 1.0, 4.0]
    view = look(vectors(alpha, gradient))
    assert view.gap == 6.0
    assert list(view.free) == [0]
    random = np.random.default_rng(0)
    assert sorted(choose(view, 3, 1.0, random)) == [0, 1, 4]
    assert sorted(choose(view, 5, 1.0, random)) == [0, 1, 2, 4, 5]
    assert sorted(choose(view, 6, 1.0, random)) == [0, 1, 2, 4, 5, 6]  # 3, 7 violate nothing
    assert sorted(choose(view, 7, 1.0, random)) == [0, 1, 2, 4, 5, 6, 7]  # 7 is nearer to it
    assert len(choose(view, 8, 1.0, random)) == 8


def test_what_is_far_from_a_violation_stays_outside():
    view = look(vectors([0.5, 0.0, 1.0, 0.0, 0.0], [0.0, 1.0, -1.0, -1.5, -2.5]))
    assert view.gap == 2.0
    assert list(view.near) == [3]
    assert sorted(choose(view, 5, 1.0, np.random.default_rng(0))) == [0, 1, 2, 3]


def test_free_variables_fill_the_places_that_violators_leave():
    free = np.linspace(-1.0, 1.0, 20)
    view = look(vectors(np.r_[np.full(20, 0.5), 0.0], np.r_[free, 3.0]))
    chosen = choose(view, 16, 1.0, np.random.default_rng(0))
    assert sorted(chosen) == [*range(15), 20]  # of the free ones those farthest from λ = 1


def test_some_of_the_working_set_are_the_worst_and_the_others_any_violators():
    ups = np.linspace(1.0, 2.0, 100)  # of variables that can only go up
    alpha, gradient = np.r_[np.zeros(100), 1.0, 1.0], np.r_[ups, -2.0, 9.0]
    view = look(vectors(alpha, gradient))
    sets = [choose(view, 21, 0.25, np.random.default_rng(seed)) for seed in (0, 0, 1)]
    for chosen in sets:
        assert len(chosen) == len(set(chosen)) == 21
        assert 100 in chosen  # the only one of the other side
        assert 101 not in chosen  # violates nothing
        assert set(range(95, 100)) <= set(chosen)  # a quarter of the twenty others
        assert min(chosen) < 80
    assert set(sets[0]) == set(sets[1]) != set(sets[2])


def test_one_side_gives_its_places_to_the_other():
    view = look(vectors([0, 0, 0, 0, 1], [4.0, 3.0, 2.0, 1.0, -4.0]))
    assert sorted(choose(view, 4, 1.0, np.random.default_rng(0))) == [0, 1, 2, 4]


@pytest.mark.usefixtures("x64")
def test_prepared_points_give_the_same_matrix():
    X = np.random.default_rng(0).normal(size=(9, 3)) + 5.0
    for kernel in (
        kernels.Linear(),
        kernels.Polynomial(degree=2, coef0=1.0),
        kernels.RBF(0.5),
        kernels.ARD(np.array([0.5, 0.0, 2.0])),
        kernels.Laplacian(0.5),
        kernels.Plummer(rho=0.5),
        kernels.Sine(2.0),
        kernels.Sigmoid(0.1),
        kernels.RBF(0.5) + kernels.Linear(),
        kernels.RBF(0.5) * (2.0 * kernels.RBF(0.1)),
        kernels.Normalized(kernels.Polynomial(degree=2, coef0=1.0)),
    ):
        P = kernel.prepare(jnp.asarray(X))
        assert all(leaf.shape[0] == 9 for leaf in jax.tree.leaves(P))
        some = jax.tree.map(lambda leaf: leaf[jnp.array([2, 7])], P)
        np.testing.assert_allclose(
            kernel.between(some, P), kernel(X)[jnp.array([2, 7])], atol=1e-12
        )
        assert isinstance(KernelSource.of(kernel, jnp.asarray(X), DOUBLE), KernelSource)


@pytest.mark.usefixtures("x64")
def test_a_large_square_is_computed_in_strips():
    X = np.random.default_rng(3).normal(size=(60, 3))
    source = KernelSource.of(KERNEL, jnp.asarray(X), DOUBLE)
    square = Square(Rows(source, 60, DOUBLE, 1e9, Tuning(strip_rows=16)), DOUBLE)
    variables = square.arrange(np.arange(0, 60, 2), 40)
    present = variables >= 0
    expected = rbf(X[variables[present]])
    np.testing.assert_allclose(square.matrix[np.ix_(present, present)], expected, atol=1e-12)


@pytest.mark.parametrize("key", [0, 2])
def test_an_answer_that_passes_is_polished(key):
    """A variable that has to leave its bound is no reason to stop at the tolerance."""
    X, y = chess(300, key)
    s = solve(problems.c_svc((KERNEL, X), y, 1000.0), TILES)
    assert s.status == Status.CONVERGED
    assert s.violation < 1e-9
    again = solve(problems.c_svc((KERNEL, X), y, 1000.0), TILES, start=s)  # nothing to do
    assert again.steps == 0
    assert again.violation < 1e-9


def test_tiles_of_half_the_bytes(monkeypatch):
    """Pair steps in float32 lead to the same answer, with sums kept in float64."""
    X, y = chess(200)
    used, relax = [], CompiledLoop.relax
    monkeypatch.setattr(
        CompiledLoop,
        "relax",
        lambda self, tile, *rest: used.append(tile.matrix.dtype) or relax(self, tile, *rest),
    )
    without_blocks = replace(SMALL, tile_slots=(1,))
    s = solve(problems.c_svc((KERNEL, X), y, 10.0), SMO(tol=1e-6, tuning=without_blocks))
    assert np.float32 in used
    assert np.float64 in used
    assert s.status == Status.CONVERGED
    assert abs(s.alpha.sum()) < 1e-12
    best = solve(problems.c_svc(rbf(X), y, 10.0), SMO(tol=1e-10, block=False))
    np.testing.assert_allclose(s.objective, best.objective, rtol=1e-9)
