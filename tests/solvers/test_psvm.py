"""The Potential SVM: every solver against a generic one, certificates, paths, folds, streams."""

import itertools
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems_for_tests import rbf
from references import solve_qp
from scipy.sparse import csr_array
from sklearn.linear_model import Lasso

from jsvm import kernels, problems, solve
from jsvm.numerics.elimination import solve_positive
from jsvm.problems.matrix_data import MatrixData
from jsvm.problems.potential import violations
from jsvm.solvers import PSMO, SMO, Status, epsilon_path, held_out
from jsvm.solvers.potential import PotentialTuning
from jsvm.solvers.potential.paper_steps import block_update, minimise_pair

TOL = 1e-9
VARIANTS = {
    "newton": PSMO(tol=TOL),
    "newton, screening": PSMO(tol=TOL, screening=True),
    "newton, annealing": PSMO(tol=TOL, annealing=True),
} | {
    f"{step}, {block}, annealing={annealing}": PSMO(step, block, annealing, tol=TOL)
    for step, block, annealing in itertools.product(
        ("dual", "single"), ("paper", None), (True, False)
    )
}


def unit_columns(K):
    K = K - K.mean(axis=0)
    return K / np.sqrt((K**2).sum(axis=0))


def random_matrix(kind, rng):
    """Return K, C and ε of one kind of problem."""
    if kind == "tall":
        return unit_columns(rng.normal(size=(40, 24))), 3.0, 0.1
    if kind == "wide":
        return unit_columns(rng.normal(size=(24, 40))), 3.0, 0.2
    if kind == "rank-deficient":
        return unit_columns(rng.normal(size=(30, 4)) @ rng.normal(size=(4, 24))), 2.0, 0.05
    if kind == "indefinite":
        X = rng.uniform(-1, 1, (30, 2))
        K = np.sin(4 * np.sqrt(((X[:, None] - X[None]) ** 2).sum(-1)))
        assert np.linalg.eigvalsh(K)[0] < -1
        return unit_columns(K), 5.0, 0.1
    if kind == "C active":
        return unit_columns(rng.normal(size=(40, 24))), 0.2, 0.05
    if kind == "no bound":
        return unit_columns(rng.normal(size=(40, 24))), np.inf, 0.1
    if kind == "epsilon large":
        return unit_columns(rng.normal(size=(40, 24))), 3.0, 2.0
    raise AssertionError(kind)


KINDS = (
    "tall", "wide", "rank-deficient", "indefinite", "C active", "no bound", "epsilon large",
)  # fmt: skip


def made(kind, seed=0):
    rng = np.random.default_rng(seed)
    K, C, epsilon = random_matrix(kind, rng)
    y = rng.normal(size=len(K)) + 2 * K[:, 0] * np.sqrt(len(K))
    return K, y - y.mean(), C, epsilon


def kkt(K, y, alpha, C, epsilon):
    """Return the largest d_j of Knebel et al. 2008, eq. 25, case by case."""
    F = K.T @ (K @ alpha - y)
    worst = 0.0
    for a, f in zip(alpha, F, strict=True):
        if a == 0:
            d = max(-f - epsilon, f - epsilon)
        elif 0 < a < C:
            d = abs(f + epsilon)
        elif a == C:
            d = f + epsilon
        elif -C < a < 0:
            d = abs(-f + epsilon)
        else:
            d = -f + epsilon
        worst = max(worst, d)
    return worst


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_equals_a_generic_solver(name, kind):
    for seed in range(2):
        K, y, C, epsilon = made(kind, seed)
        s = solve(problems.psvm(K, y, C, epsilon), VARIANTS[name])
        assert s.status == Status.CONVERGED
        bound = np.full(K.shape[1], C)
        _, value = solve_qp(K.T @ K, K.T @ y, -bound, bound, None, None, epsilon)
        assert abs(s.objective - value) <= 1e-7 * max(1.0, abs(value))
        assert kkt(K, y, s.alpha, C, epsilon) <= 1e-7
        assert abs(s.violation - kkt(K, y, s.alpha, C, epsilon)) <= 1e-11
        smooth = 0.5 * np.sum((K @ s.alpha) ** 2) - y @ K @ s.alpha
        assert np.isclose(s.objective, smooth + epsilon * np.abs(s.alpha).sum(), atol=1e-12)
        assert -1e-9 <= s.duality_gap <= 1e-6 * max(1.0, abs(value))
        assert s.bias == y.mean()


def test_the_steps_of_the_paper_count_rows_for_variables_that_moved():
    K, y, C, epsilon = made("tall")
    s = solve(problems.psvm(K, y, C, epsilon), PSMO("single", None, tol=TOL))
    assert np.count_nonzero(s.alpha) <= s.kernel_rows <= K.shape[1]
    assert s.steps >= s.kernel_rows
    assert s.newton_steps == 0
    few = PSMO("single", None, tol=TOL, cache_size=8 * 32 * 6 / 1e6)  # room for six rows
    again = solve(problems.psvm(K, y, C, epsilon), few)
    assert again.status == Status.CONVERGED
    assert again.kernel_rows > s.kernel_rows
    assert np.isclose(again.objective, s.objective, rtol=1e-12)


def test_block_optimisation_saves_steps():
    problem = problems.psvm(rbf_columns(), rbf_target(), np.inf, 0.001)
    plain = solve(problem, PSMO("dual", None, tol=1e-6))
    block = solve(problem, PSMO("dual", "paper", tol=1e-6))
    assert block.newton_steps > 0
    assert block.steps < plain.steps / 5
    assert np.isclose(block.objective, plain.objective, rtol=1e-7)


def rbf_points():
    return np.random.default_rng(4).uniform(-1, 1, (40, 2))


def rbf_columns():
    return unit_columns(rbf(rbf_points()))


def rbf_target():
    X = rbf_points()
    y = np.sin(3 * X[:, 0]) + X[:, 1] ** 2
    return y - y.mean()


class TestDegenerate:
    def test_epsilon_above_all_correlations_gives_zero(self):
        K, y, C, _ = made("tall")
        s = solve(problems.psvm(K, y, C, 1.01 * np.abs(K.T @ y).max()))
        assert not s.alpha.any()
        assert s.status == Status.CONVERGED

    def test_no_bound_and_no_epsilon_is_least_squares(self):
        K, y, _, _ = made("tall")
        s = solve(problems.psvm(K, y, np.inf, 0.0), PSMO(tol=1e-10))
        expected = np.linalg.lstsq(K, y, rcond=None)[0]
        np.testing.assert_allclose(s.alpha, expected, atol=1e-8)

    def test_singular_and_without_epsilon_fits_as_well_as_least_squares(self):
        K, y, _, _ = made("wide")
        s = solve(problems.psvm(K, y, np.inf, 0.0), PSMO(tol=1e-8))
        best = K @ np.linalg.lstsq(K, y, rcond=None)[0]
        assert np.isfinite(s.alpha).all()
        np.testing.assert_allclose(K @ s.alpha, best, atol=1e-6)

    def test_bounds_of_zero(self):
        K, y, _, epsilon = made("tall")
        for solver in (PSMO(), PSMO("dual", "paper"), PSMO("single", None)):
            s = solve(problems.psvm(K, y, 0.0, epsilon), solver)
            assert not s.alpha.any()
            assert s.status == Status.CONVERGED

    def test_a_variable_with_bound_zero_is_as_if_it_were_not_there(self):
        K, y, _, epsilon = made("tall")
        C = np.where(np.arange(24) % 3 == 0, 0.0, 2.0)
        s = solve(problems.psvm(K, y, C, epsilon), VARIANTS["newton"])
        t = solve(problems.psvm(K[:, C > 0], y, 2.0, epsilon), VARIANTS["newton"])
        np.testing.assert_allclose(s.alpha[C > 0], t.alpha, atol=1e-8)

    @pytest.mark.parametrize("name", VARIANTS)
    def test_duplicated_and_zero_columns(self, name):
        K, y, C, epsilon = made("tall")
        K = np.concatenate([K[:, :11], K[:, :11], -K[:, 3:4], np.zeros((40, 1))], axis=1)
        s = solve(problems.psvm(K, y, C, epsilon), VARIANTS[name])
        bounds = C * np.where(np.arange(11) == 3, 3.0, 2.0)  # of all copies together
        once = solve(problems.psvm(K[:, :11], y, bounds, epsilon), VARIANTS["newton"])
        assert s.status == Status.CONVERGED
        assert np.isclose(s.objective, once.objective, atol=1e-7)

    def test_one_example_and_one_object(self):
        s = solve(problems.psvm(np.array([[2.0]]), np.array([3.0]), np.inf, 1.0))
        assert np.isclose(s.alpha[0], (2 * 3 - 1) / 4)

    def test_columns_of_very_different_scales(self):
        K, y, _, _ = made("tall")
        scales = 10.0 ** np.linspace(-3, 3, K.shape[1])
        s = solve(problems.psvm(K * scales, y, np.inf, 0.0), PSMO(tol=1e-9, max_steps=5000))
        fit = K @ np.linalg.lstsq(K, y, rcond=None)[0]
        np.testing.assert_allclose((K * scales) @ s.alpha, fit, atol=1e-4)


class TestErrors:
    def test_arguments(self):
        K, y, C, epsilon = made("tall")
        for K_, y_, C_, e_, words in (
            (K, y[:-1], C, epsilon, "y must hold 40"),
            (K, y, -1.0, epsilon, "C="),
            (K, y, np.ones(3), epsilon, "C must be one number or 24"),
            (K, y, C, -0.1, "epsilon="),
            (K, np.full(40, np.nan), C, epsilon, "y must be finite"),
            (K[0], y, C, epsilon, "K must be a matrix"),
            ((K, y), y, C, epsilon, "K must be a matrix"),
        ):
            with pytest.raises(ValueError, match=words):
                problems.psvm(K_, y_, C_, e_)
        bad = np.where(np.arange(24) == 3, np.nan, K)
        hessian = problems.Normal(problems.DenseMatrix(bad.T), y)
        program = replace(problems.psvm(K, y, C, epsilon), hessian=hessian)
        with pytest.raises(ValueError, match="kernel matrix holds NaN"):
            solve(program)
        with pytest.raises(ValueError, match="scaling="):
            problems.normalised(K, "range")
        with pytest.raises(ValueError, match="weight must hold 40"):
            problems.normalised(K, weight=np.ones(3))

    def test_solver(self):
        bad: dict[str, Any]
        for bad in (
            dict(step="triple"), dict(block="lapack"), dict(tol=0.0), dict(changed=0),
            dict(max_steps=-1), dict(cache_size=0), dict(screening=True, block=None),
        ):  # fmt: skip
            with pytest.raises(ValueError, match=next(iter(bad))):
                PSMO(**bad)
        with pytest.raises(ValueError, match=r"for problems\.psvm"):
            solve(problems.c_svc(np.eye(2), np.array([1.0, -1.0]), 1.0), PSMO())
        K, y, C, epsilon = made("tall")
        problem = problems.psvm(K, y, C, epsilon)
        with pytest.raises(ValueError, match="start must hold 24"):
            solve(problem, start=np.zeros(3))
        with pytest.raises(ValueError, match="outside its bounds"):
            solve(problem, start=np.full(24, 99.0))
        with pytest.raises(ValueError, match="block='newton'"):
            epsilon_path(problem, [1.0], PSMO(block=None))
        with pytest.raises(ValueError, match="epsilons"):
            epsilon_path(problem, [-1.0])
        with pytest.raises(ValueError, match="square"):
            held_out(K, y, C, epsilon, pairwise=True)
        with pytest.raises(ValueError, match="train on"):
            held_out(K, y, C, epsilon, [np.arange(40)])


def test_the_general_solver_agrees():
    K, y, C, epsilon = made("tall")
    problem = problems.psvm(K, y, C, epsilon)
    s, t = solve(problem, SMO(tol=1e-9)), solve(problem, VARIANTS["newton"])
    np.testing.assert_allclose(s.alpha, t.alpha, atol=1e-7)


class TestData:
    def same(self, K, dense):
        assert isinstance(K, MatrixData)
        assert K.shape == dense.shape
        some = np.array([3, 0, 3])
        r = np.arange(dense.shape[0], dtype=float)
        with jax.enable_x64(True):
            np.testing.assert_allclose(K.objects(some), dense.T[some], atol=1e-12)
            np.testing.assert_allclose(K.all_objects(), dense.T, atol=1e-12)
            np.testing.assert_allclose(K.correlations(jnp.asarray(r)), dense.T @ r, atol=1e-10)
            two = np.stack([r, np.cos(r)], axis=1)
            np.testing.assert_allclose(K.correlations(jnp.asarray(two)), dense.T @ two, atol=1e-10)

    def test_the_same_matrix_in_all_forms(self, rng):
        X, Z = rng.normal(size=(20, 3)), rng.normal(size=(7, 3))
        X[np.abs(X) < 0.5] = 0.0
        K = rbf(X, Z, gamma=0.5)
        kernel = kernels.RBF(0.5)
        self.same(problems.DenseMatrix(K.T), K)
        self.same(problems.KernelMatrix(kernel, X, Z), K)
        self.same(problems.KernelMatrix(kernel, csr_array(X), csr_array(Z)), K)
        on_host = kernels.Function(lambda a, b: np.exp(-((a[:, None] - b) ** 2).sum(-1) / 2), True)
        self.same(problems.KernelMatrix(on_host, X, Z), K)
        wide = np.concatenate([X, 2 * X], axis=1)
        self.same(problems.SparseMatrix(csr_array(wide)), wide)

    @pytest.mark.parametrize("scaling", ["length", "variance"])
    def test_normalised_columns(self, scaling, rng):
        K = rng.normal(size=(20, 6)) * 10.0 ** np.arange(-3, 3) + 5.0
        K[:, 2] = 0.1  # constant: its mean is rounded
        w = rng.integers(0, 4, 20).astype(float)
        with jax.enable_x64(True):
            for given_ in (K, csr_array(K)):
                N = problems.normalised(given_, scaling, w)
                assert [bool(v) for v in N.varies] == [True, True, False, True, True, True]
                mean = w @ K / w.sum()
                centred = np.sqrt(w)[:, None] * (K - mean)
                length = np.sqrt((centred**2).sum(0) / (w.sum() if scaling == "variance" else 1))
                length[2] = np.inf
                expected = centred / length
                self.same(N, expected)
                copies = problems.normalised(np.repeat(K, w.astype(int), axis=0), scaling)
                np.testing.assert_allclose(copies.mean, mean, rtol=1e-12)
                keep = np.arange(6) != 2
                np.testing.assert_allclose(np.asarray(copies.scale)[keep], length[keep], rtol=1e-9)

    def test_sparse_columns_that_are_constant_or_far_from_zero(self, rng):
        X = np.concatenate([rng.normal(size=(1, 50)).repeat(30, axis=0), np.zeros((30, 3))], axis=1)
        assert not problems.normalised(csr_array(X)).varies.any()
        far = rng.normal(size=(30, 4)) + 1e6
        sparse, dense = problems.normalised(csr_array(far)), problems.normalised(far)
        np.testing.assert_allclose(sparse.scale, dense.scale, rtol=1e-9)

    def test_checkpoint_of_sparse_data(self, tmp_path, rng):
        X = csr_array(rng.normal(size=(30, 9)) * (rng.uniform(size=(30, 9)) < 0.4))
        for K in (X, problems.KernelMatrix(kernels.RBF(0.5), X, X)):
            problem = problems.psvm(problems.normalised(K), np.arange(30.0) - 14.5, 9.0, 0.1)
            path = tmp_path / type(K).__name__
            first = solve(problem, checkpoint=path)
            assert solve(problem, checkpoint=path).newton_steps < first.newton_steps
        with pytest.raises(ValueError, match="another problem"):
            solve(
                problems.psvm(problems.normalised(2 * X), np.zeros(30), 9.0, 0.1), checkpoint=path
            )

    @pytest.mark.parametrize("name", ["newton", "dual, paper, annealing=False"])
    def test_streamed_equals_dense(self, name):
        X, y = rbf_points(), rbf_target()
        problem = problems.psvm(problems.normalised((kernels.RBF(0.5), X)), y, 10.0, 0.01)
        dense = solve(problem, PSMO(tol=1e-9))
        little = replace(VARIANTS[name], cache_size=0.02)
        streamed = solve(problem, little)
        assert np.isclose(streamed.objective, dense.objective, rtol=1e-10)
        assert streamed.status == Status.CONVERGED

    def test_sparse_equals_dense(self, rng):
        X = rng.normal(size=(40, 24)) * (rng.uniform(size=(40, 24)) < 0.3)
        y = rng.normal(size=40)
        sparse, dense = problems.normalised(csr_array(X)), problems.normalised(X)
        s = solve(problems.psvm(sparse, y - y.mean(), 2.0, 0.1), PSMO(tol=1e-9))
        t = solve(problems.psvm(dense, y - y.mean(), 2.0, 0.1), PSMO(tol=1e-9))
        np.testing.assert_allclose(s.alpha, t.alpha, atol=1e-8)


class TestLargerThanATile:
    def problem(self, epsilon=0.05, C=np.inf):
        rng = np.random.default_rng(2)
        X = rng.uniform(-1, 1, (400, 3))
        K = unit_columns(rbf(X, gamma=2.0))
        y = np.sin(4 * X[:, 0]) * X[:, 1] + 0.3 * rng.normal(size=400)
        return K, y - y.mean(), C, epsilon

    @pytest.mark.parametrize("C", [np.inf, 1.0])
    @pytest.mark.parametrize("screening", [False, True])
    def test_many_tiles(self, C, screening):
        K, y, C, epsilon = self.problem(C=C)
        s = solve(problems.psvm(K, y, C, epsilon), PSMO(tol=1e-6, screening=screening))
        assert s.status == Status.CONVERGED
        assert len(s.history) > 1
        assert kkt(K, y, s.alpha, C, epsilon) <= 1e-6
        assert -1e-8 <= s.duality_gap <= 1e-4

    def test_is_the_lasso(self):
        K, y, _, epsilon = self.problem(0.5)
        s = solve(problems.psvm(K, y, np.inf, epsilon), PSMO(tol=1e-9))
        lasso = Lasso(alpha=epsilon / 400, fit_intercept=False, tol=1e-12, max_iter=10**6)
        coefficients = lasso.fit(K, y).coef_
        np.testing.assert_allclose(K @ s.alpha, K @ coefficients, atol=1e-5)

    def test_float32_is_as_good(self):
        K, y, C, epsilon = self.problem()
        s = solve(problems.psvm(K, y, C, epsilon), PSMO(tol=1e-6), dtype="float32")
        assert s.status == Status.CONVERGED
        assert kkt(K, y, s.alpha, C, epsilon) <= 1e-6

    def test_what_float32_cannot_do_is_done_in_float64(self):
        K, y, C, epsilon = self.problem()
        s = solve(problems.psvm(K, y, C, epsilon), PSMO(tol=1e-10), dtype="float32")
        assert s.status == Status.CONVERGED
        assert kkt(K, y, s.alpha, C, epsilon) <= 1e-10

    def test_start_and_history(self):
        K, y, C, epsilon = self.problem()
        problem = problems.psvm(K, y, C, epsilon)
        cold = solve(problem)
        warm = solve(problem, start=cold)
        assert warm.newton_steps < cold.newton_steps
        objectives = [facts["objective"] for facts in cold.history]
        assert all(b <= a + 1e-9 for a, b in itertools.pairwise(objectives))
        assert cold.history[-1]["support_vectors"] == np.count_nonzero(cold.alpha)

    def test_budget_callback_and_checkpoint(self, tmp_path):
        K, y, C, epsilon = self.problem()
        problem = problems.psvm(K, y, C, epsilon)
        short = solve(problem, PSMO(max_steps=3))
        assert short.status == Status.MAX_STEPS
        assert short.newton_steps <= 3
        stopped = solve(problem, callback=lambda facts: True, checkpoint=tmp_path / "run")
        assert stopped.status == Status.INTERRUPTED
        resumed = solve(problem, checkpoint=tmp_path / "run")
        assert resumed.status == Status.CONVERGED
        steps = solve(problem, PSMO("dual", None, tol=1e-9, max_steps=50))
        assert (steps.status, steps.steps) == (Status.MAX_STEPS, 50)
        late = solve(problem, PSMO("single", None, tol=1e-12, time_limit=0.01))
        assert late.status == Status.TIME_LIMIT

    def test_path(self):
        K, y, C, _ = self.problem()
        problem = problems.psvm(K, y, C, 0.0)
        epsilons = [0.1, 2.0, 0.5]
        path = epsilon_path(problem, epsilons, PSMO(tol=1e-8))
        for epsilon, s in zip(epsilons, path, strict=True):
            alone = solve(problems.psvm(K, y, C, epsilon), PSMO(tol=1e-8))
            assert s.status == Status.CONVERGED
            assert np.isclose(s.objective, alone.objective, rtol=1e-10)
            assert kkt(K, y, s.alpha, C, epsilon) <= 1e-8


class TestHeldOut:
    def by_hand(self, K, y, C, epsilon, fold, pairwise):
        rest = np.setdiff1d(np.arange(len(y)), fold)
        columns = rest if pairwise else np.arange(K.shape[1])
        part = K[np.ix_(rest, columns)]
        mean = part.mean(0)
        scale = np.sqrt(((part - mean) ** 2).sum(0))
        target = y[rest] - y[rest].mean()
        s = solve(problems.psvm((part - mean) / scale, target, C, epsilon), PSMO(tol=1e-9))
        return (K[np.ix_(fold, columns)] - mean) / scale @ s.alpha + y[rest].mean()

    @pytest.mark.parametrize("pairwise", [False, True])
    @pytest.mark.parametrize("together", [False, True])
    def test_equals_training_without(self, pairwise, together):
        X = rbf_points()[:20]
        K, y = rbf(X), np.sign(rbf_target()[:20] + 0.1)
        folds = [np.array([i]) for i in range(19)] + [np.array([19])]
        found = held_out(
            K, y, 1.0, 0.05, pairwise=pairwise, together=together, solver=PSMO(tol=1e-9)
        )
        assert found.converged
        for fold in folds[::6]:
            expected = self.by_hand(K, y, 1.0, 0.05, fold, pairwise)
            np.testing.assert_allclose(found.outputs[fold], expected, atol=1e-6)
        assert found.support.shape == (20,)

    def test_folds_of_several(self):
        X = rbf_points()[:20]
        K, y = rbf(X, X[:7]), rbf_target()[:20]
        folds = np.array_split(np.random.default_rng(0).permutation(20), 4)
        found = held_out(K, y, np.inf, 0.05, folds)
        for fold in folds:
            expected = self.by_hand(K, y, np.inf, 0.05, fold, False)
            np.testing.assert_allclose(found.outputs[fold], expected, atol=1e-5)


class TestTraced:
    def test_jit_and_vmap(self, x64):
        K, y, C, _ = made("tall")
        alone = [solve(problems.psvm(K, y, C, e), PSMO(tol=1e-9)) for e in (0.05, 0.1, 0.4)]

        def traced(e):
            s = solve(problems.psvm(jnp.asarray(K), jnp.asarray(y), C, e), PSMO(tol=1e-9))
            return s.alpha, s.violation, s.objective, s.duality_gap, s.status

        batch = jax.vmap(traced)(jnp.array([0.05, 0.1, 0.4]))
        for k, s in enumerate(alone):
            np.testing.assert_allclose(batch[0][k], s.alpha, atol=1e-8)
            assert batch[1][k] <= 1e-9
            assert np.isclose(batch[2][k], s.objective)
            assert abs(batch[3][k]) <= 1e-6
            assert batch[4][k] == Status.CONVERGED
        np.testing.assert_allclose(jax.jit(traced)(0.1)[0], alone[1].alpha, atol=1e-8)


class TestParts:
    @given(seed=st.integers(0, 10**6))
    @settings(max_examples=30)
    def test_a_pair_step_is_the_minimum_in_its_box(self, seed):
        rng = np.random.default_rng(seed)
        q = rng.uniform(-0.99, 0.99)
        a, g = rng.uniform(0, 1, 2), 3 * rng.normal(size=2)
        with jax.enable_x64(True):
            one = jnp.ones(1)
            new = minimise_pair(
                (jnp.asarray(a[0]), a[1] * one),
                (jnp.asarray(g[0]), g[1] * one),
                (jnp.asarray(1.0), one, q * one),
                (jnp.asarray(0.0), jnp.asarray(1.5)),
                (0.0 * one, 1.5 * one),
                PotentialTuning().flat_pair,
            )
        new = np.array([float(new[0][0]), float(new[1][0])])
        Q = np.array([[1.0, q], [q, 1.0]])
        _, value = solve_qp(Q, g + Q @ a, np.zeros(2), np.full(2, 1.5), None, None)
        mine = 0.5 * new @ Q @ new - (g + Q @ a) @ new
        assert mine <= value + 1e-7
        assert ((new >= 0) & (new <= 1.5)).all()

    @given(seed=st.integers(0, 10**6))
    @settings(max_examples=40)
    def test_block_update_never_raises_the_objective(self, seed):
        rng = np.random.default_rng(seed)
        A = rng.normal(size=(8, 5))
        Q, linear = A.T @ A, 3 * rng.normal(size=5)
        alpha = rng.uniform(-1, 1, 5)
        new = block_update(Q, linear, alpha, -np.ones(5), np.ones(5))
        value = lambda a: 0.5 * a @ Q @ a - linear @ a  # noqa: E731
        assert value(new) <= value(alpha) + 1e-12
        assert (np.abs(new) <= 1).all()

    def test_block_update_finds_the_minimum_with_few_bounds(self):
        rng = np.random.default_rng(1)
        hits = 0
        for _ in range(50):
            A = rng.normal(size=(12, 5))
            Q, linear = A.T @ A, 6 * rng.normal(size=5)
            box = np.ones(5)
            new = block_update(Q, linear, 0 * box, -box, box)
            _, value = solve_qp(Q, linear, -box, box, None, None)
            hits += 0.5 * new @ Q @ new - linear @ new <= value + 1e-7
        assert hits >= 40  # the recursion as printed is not exact, and may give up

    def test_block_update_gives_up_on_a_singular_block(self):
        ones = np.ones(2)
        assert (block_update(np.ones((2, 2)), 3 * ones, 0.5 * ones, -ones, ones) == 0.5).all()

    @pytest.mark.parametrize("size", [1, 7, 64, 200, 530])
    def test_solve_positive(self, size, rng, x64):
        A = rng.normal(size=(size, size))
        A, b = A @ A.T + np.eye(size), rng.normal(size=size)
        x = jax.jit(solve_positive)(A, b)
        np.testing.assert_allclose(x, np.linalg.solve(A, b), rtol=1e-7, atol=1e-9)

    def test_solve_positive_is_not_finite_for_an_indefinite_matrix(self, x64):
        A = np.diag([1.0, -1.0, 1.0, 1.0])
        with jax.debug_nans(False):
            assert not np.isfinite(jax.jit(solve_positive)(A, np.ones(4))).all()

    def test_violations_of_the_paper(self):
        alpha = np.array([0.0, 0.0, 0.5, -0.5, 1.0, -1.0, 1.0, 0.0])
        G = np.array([0.3, -2.0, 0.3, 0.3, 0.3, 0.3, 2.0, 9.0])
        upper = np.array([1.0] * 7 + [0.0])
        expected = [-0.7, 1.0, 0.7, 1.3, 0.7, 1.3, -1.0, -np.inf]
        np.testing.assert_allclose(violations(alpha, G, -upper, upper, 1.0), expected)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=10)
def test_symmetries(seed):
    rng = np.random.default_rng(seed)
    K, y, C, epsilon = made("tall", seed)
    base = solve(problems.psvm(K, y, C, epsilon), VARIANTS["newton"]).alpha
    order = rng.permutation(24)
    permuted = solve(problems.psvm(K[:, order], y, C, epsilon), VARIANTS["newton"]).alpha
    np.testing.assert_allclose(permuted, base[order], atol=1e-8)
    flipped = solve(problems.psvm(K, -y, C, epsilon), VARIANTS["newton"]).alpha
    np.testing.assert_allclose(flipped, -base, atol=1e-8)
    scaled = solve(problems.psvm(K, 10 * y, 10 * C, 10 * epsilon), VARIANTS["newton"]).alpha
    np.testing.assert_allclose(scaled, 10 * base, atol=1e-7)
    signs = rng.choice([-1.0, 1.0], 24)
    reflected = solve(problems.psvm(K * signs, y, C, epsilon), VARIANTS["newton"]).alpha
    np.testing.assert_allclose(reflected, signs * base, atol=1e-8)
