"""Copies of an example become one variable, and the answer that of all of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems_for_tests import chess, rbf, regression, two_classes
from references import gap as numpy_gap

from jsvm import SVC, evaluate, kernels, problems, solve
from jsvm.evaluate import decision_values
from jsvm.solvers import SMO, Tuning
from jsvm.solvers.canonical import canonical, innermost
from jsvm.solvers.tiles.copies import copies_in

KERNEL = kernels.RBF(0.5)
MANY = np.random.default_rng(0).integers(0, 24, 90)  # of which example each one is a copy


ANY_SIZE = Tuning(fewest_copied_entries=0)  # merge in small problems, too


def machines():
    X, y = (values[MANY] for values in chess(24))
    Z, t = (values[MANY] for values in regression(np.random.default_rng(0), 24))
    V, s = (values[MANY] for values in two_classes(np.random.default_rng(1), 24))
    half = np.where(np.arange(90) % 2, 1.0, 0.5)  # of two copies not every one is the same
    return {
        "c_svc": problems.c_svc((KERNEL, X), y, 10.0),
        "weighted": problems.c_svc((KERNEL, X), y, 10.0 * half),
        "squared_svc": problems.squared_svc((KERNEL, X), y, 10.0),
        "hard_margin": problems.hard_margin((KERNEL, V * 3), s),
        "epsilon_svr": problems.epsilon_svr((KERNEL, Z), t, 5.0, 0.1),
        "nu_svc": problems.nu_svc((KERNEL, X), y, 0.4),
        "nu_svr": problems.nu_svr((KERNEL, Z), t, 5.0, 0.4),
        "one_class": problems.one_class((KERNEL, X), 0.3),
        "smallest_ball": problems.smallest_ball((KERNEL, X)),
    }


@pytest.mark.parametrize("name", machines())
def test_the_answer_is_that_of_all_examples(name):
    program = machines()[name]
    merged = solve(program, SMO(tol=1e-8, tuning=ANY_SIZE))
    papers = solve(program, SMO(tol=1e-8, block=False))  # never merges
    assert merged.kernel_rows < papers.kernel_rows == 90
    np.testing.assert_allclose(merged.objective, papers.objective, rtol=1e-7)
    np.testing.assert_allclose(merged.primal_objective, papers.primal_objective, rtol=1e-6)
    np.testing.assert_allclose(merged.multipliers, papers.multipliers, atol=1e-6)
    K = rbf(np.asarray(innermost(program.hessian).X))
    a, b = (np.reshape(s.alpha, (-1, 90)).sum(axis=0) for s in (merged, papers))
    np.testing.assert_allclose(K @ a, K @ b, atol=1e-6)
    assert (merged.alpha >= program.lower).all()
    assert (merged.alpha <= program.upper).all()
    if program.l1 is None and program.groups is not None:
        for group, total in enumerate(np.asarray(program.totals)):
            members = np.asarray(program.groups) == group
            np.testing.assert_allclose(merged.alpha[members].sum(), total, atol=1e-10)


def test_the_certificate_holds_for_all_examples():
    X, y = (values[MANY] for values in chess(24))
    s = solve(problems.c_svc((KERNEL, X), y, 10.0), SMO(tuning=ANY_SIZE))
    C = np.full(90, 10.0)
    found = numpy_gap(y - rbf(X) @ s.alpha, s.alpha, np.minimum(0, y * C), np.maximum(0, y * C))
    np.testing.assert_allclose(max(found, 0.0), s.violation, atol=1e-10)


@settings(max_examples=50)
@given(seed=st.integers(0, 10**6), ridge=st.booleans(), endless=st.booleans())
def test_together_and_apart(seed, ridge, endless):
    rng = np.random.default_rng(seed)
    X, y = (values[MANY] for values in chess(24))
    C = np.inf if endless else rng.uniform(0.1, 10.0)
    machine = problems.squared_svc if ridge else problems.c_svc
    given = machine((KERNEL, X), y, 3.0 if ridge else C)
    found = copies_in(canonical(given)[0], ANY_SIZE)
    assert found is not None
    merged = found.merged()
    low, high = (np.clip(v, -50.0, 50.0) for v in (merged.lower, merged.upper))
    point = rng.choice([0.0, 0.5, 1.0, rng.random()], merged.size)
    point = np.where(point == 1.0, high, low + point * (high - low))
    alpha = found.apart(point)
    np.testing.assert_allclose(found.together(alpha), point, rtol=1e-13, atol=1e-13)
    assert (alpha >= given.lower).all()
    assert (alpha <= given.upper).all()
    np.testing.assert_array_equal(X[found.first][found.kind], X)
    for kind in range(merged.size):
        own = alpha[found.kind == kind]
        if ridge:
            np.testing.assert_allclose(own, own.mean(), rtol=1e-14)
        else:
            bounds = (
                np.asarray(given.lower)[found.kind == kind],
                np.asarray(given.upper)[found.kind == kind],
            )
            assert np.sum((own > bounds[0]) & (own < bounds[1])) <= 1


def test_what_differs_is_no_copy():
    X = np.repeat(np.eye(3), 30, axis=0)
    y = np.tile([1.0, -1.0], 45)
    found = copies_in(problems.c_svc((KERNEL, X), y, 1.0), ANY_SIZE)
    assert found is not None
    assert len(found.first) == 6
    costs = np.tile([1.0, 1.0, 2.0, 2.0, 3.0], 18)
    found = copies_in(problems.c_svc((KERNEL, X), y, costs), ANY_SIZE)
    assert found is not None
    assert len(found.first) == 18
    others = np.random.default_rng(0).random((90, 3))
    assert copies_in(problems.c_svc((KERNEL, others), y, 1.0), ANY_SIZE) is None
    assert copies_in(problems.c_svc(X @ X.T, y, 1.0), ANY_SIZE) is None


def test_few_examples_are_left_alone():
    X, y = (values[MANY] for values in chess(24))
    assert copies_in(problems.c_svc((KERNEL, X), y, 1.0), Tuning()) is None


def test_starts_and_checkpoints_are_of_all_examples(tmp_path):
    program = machines()["c_svc"]
    whole = solve(program, SMO(tol=1e-8, tuning=ANY_SIZE))
    again = solve(program, SMO(tol=1e-8, tuning=ANY_SIZE), start=whole)
    assert again.steps <= whole.steps / 2
    np.testing.assert_allclose(again.objective, whole.objective, rtol=1e-10)
    solve(program, SMO(tol=1e-8, tuning=ANY_SIZE), checkpoint=tmp_path / "run")
    with np.load(tmp_path / "run.npz") as content:
        assert content["alpha"].shape == (90,)
    resumed = solve(program, SMO(tol=1e-8, tuning=ANY_SIZE), checkpoint=tmp_path / "run")
    assert resumed.steps <= whole.steps / 2
    papers = solve(program, SMO(tol=1e-8, block=False), checkpoint=tmp_path / "run")
    np.testing.assert_allclose(papers.objective, whole.objective, rtol=1e-8)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_categories(dtype):
    """Two thousand examples of two dozen kinds."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, [4, 2, 2], (2000, 3)).astype(float)
    y = np.where(rng.random(2000) < 0.2 + 0.15 * X.sum(axis=1), 1, -1)
    machine = SVC(C=100.0, gamma=0.1, dtype=dtype).fit(X, y)
    assert machine.solutions_[0].kernel_rows <= 64  # of 32 kinds; float32 has to be confirmed
    assert machine.fit_status_ == 0
    inside = np.abs(machine.dual_coef_[0])
    assert np.sum((inside > 0) & (inside < 100.0)) <= 32


def decisions(points, coefficients, X, gamma=1e-6):
    dtype = np.dtype("float64")
    bias = np.array([0.5, -1.0])
    values = decision_values(kernels.RBF(gamma), points, coefficients, bias, X, dtype)
    distances = ((X[:, None] - points[None]) ** 2).sum(-1)
    expected = np.exp(-gamma * distances) @ coefficients + bias
    np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-12)


def test_copies_of_support_vectors_are_summed(monkeypatch):
    monkeypatch.setattr(evaluate, "MANY_ENTRIES", 0)
    rng = np.random.default_rng(0)
    points = rng.normal(size=(24, 40))[MANY]
    merged, sums = evaluate._merged(points, np.ones((90, 2)))
    assert merged.shape[0] == sums.shape[0] == len(np.unique(MANY))
    assert sums.sum() == 180
    decisions(points, rng.normal(size=(90, 2)), rng.normal(size=(30, 40)), gamma=0.01)


@pytest.mark.parametrize("case", ["small", "long", "very long", "halves", "halves later"])
def test_decisions_on_whole_numbers_are_exact(case, monkeypatch):
    monkeypatch.setattr(evaluate, "BLOCK_BYTES", 2**13)  # blocks of 16 rows
    rng = np.random.default_rng(0)
    largest = {"small": 3, "long": 900, "very long": 50_000}.get(case, 3)
    points, X = (rng.integers(0, largest, (n, 48)).astype(float) for n in (64, 40))
    if "halves" in case:
        X[0 if case == "halves" else -1, 7] += 0.5
    decisions(points, rng.normal(size=(64, 2)), X, gamma=1.0 / largest**2)
