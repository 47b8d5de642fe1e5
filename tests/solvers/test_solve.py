"""Solving: every strategy, every degenerate case, properties, transformations, precision."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems_for_tests import chess, rbf, regression, two_classes
from references import gap as numpy_gap

from jsvm import Machine, kernels, problems, solve
from jsvm.numerics.arrays import bucket
from jsvm.problems import check
from jsvm.problems.certificate import gap, joachims
from jsvm.solvers import SMO, Status, Tuning, solve_batch
from jsvm.solvers.tile import loop, whole
from jsvm.solvers.tile.engine import CompiledLoop
from jsvm.solvers.tile.selection import SELECTIONS
from jsvm.solvers.tile.steps import STEPS

TIGHT = SMO(tol=1e-10)


def c_svc(seed=0, n=14, C=2.0):
    X, y = two_classes(np.random.default_rng(seed), n)
    return problems.c_svc(rbf(X), y, C)


# -- strategies ------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [pytest.param(True, marks=pytest.mark.slow), False])
@pytest.mark.parametrize(
    ("selection", "step"),
    [(s, "plain") for s in SELECTIONS if s != "maximum_gain"]
    + [("second_order", s) for s in STEPS],
)
def test_every_strategy_finds_the_same_optimum(selection, step, block):
    reference = solve(c_svc(), TIGHT)
    s = solve(c_svc(), SMO(selection=selection, step=step, block=block, tol=1e-8))
    assert s.status == Status.CONVERGED
    assert s.violation <= 1e-8
    np.testing.assert_allclose(s.objective, reference.objective, rtol=1e-10)
    assert (s.newton_steps > 0) == block


def test_block_steps_replace_pair_steps_on_the_chess_board():
    X, y = chess(250)
    s = solve(problems.c_svc((kernels.RBF(0.5), X), y, 1e6))
    assert s.status == Status.CONVERGED
    assert s.steps < 5_000
    K = rbf(X)
    G = y - K @ s.alpha  # recomputed here, in NumPy
    L, U = np.minimum(0, y * 1e6), np.maximum(0, y * 1e6)
    violation = G[s.alpha < U].max() - G[s.alpha > L].min()
    assert violation < 1e-3
    np.testing.assert_allclose(s.violation, max(violation, 0), atol=1e-6)
    assert abs(s.alpha.sum()) < 1e-6
    primal = 0.5 * s.alpha @ K @ s.alpha + 1e6 * np.maximum(0, 1 - y * (K @ s.alpha + s.bias)).sum()
    np.testing.assert_allclose(s.primal_objective, primal, rtol=1e-7)
    assert s.duality_gap <= 1e-6 * abs(s.objective)


def test_the_last_block_step_reaches_rounding_level():
    X, y = chess(96)
    program = problems.c_svc(rbf(X), y, 10.0)
    s, rough = solve(program, SMO(tol=1e-2)), solve(program, SMO(tol=1e-2, block=False))

    def spread(alpha):
        """Of G over the free variables: zero where their KKT system is solved."""
        free = (alpha > program.lower) & (alpha < program.upper)
        return np.ptp((program.linear - program.hessian.matrix @ alpha)[free])

    assert spread(s.alpha) < 1e-12
    assert spread(rough.alpha) > 1e-4


def test_joachims_rule_is_implied_by_the_gap():
    """Collobert & Bengio 2000, section 2: ψ ≤ τ implies Joachims' conditions with the same τ."""
    with jax.enable_x64(True):
        for seed in range(40):
            program = c_svc(seed)
            steps = seed % 12 + 1
            s = solve(program, SMO(max_steps=steps, block=False))
            alpha = jnp.asarray(s.alpha)
            G = program.gradient(alpha)
            tau = float(gap(program, alpha, G))
            free = (s.alpha > program.lower) & (s.alpha < program.upper)
            if not free.any():
                continue
            weaker = float(joachims(program, alpha, G))
            assert weaker <= tau + 1e-12
            # the conditions (2) of Collobert & Bengio 2000, written out
            level = np.asarray(G)[free].mean()
            G = np.asarray(G)
            at_lower, at_upper = s.alpha == program.lower, s.alpha == program.upper
            assert (np.abs(G[free] - level) <= weaker + 1e-12).all()
            assert (G[at_lower] <= level + weaker + 1e-12).all()
            assert (G[at_upper] >= level - weaker - 1e-12).all()


def test_joachims_rule_stops_no_later_than_the_gap():
    by_gap = solve(c_svc(3), SMO(block=False, tol=1e-4))
    by_joachims = solve(c_svc(3), SMO(block=False, tol=1e-4, stopping="joachims"))
    assert by_joachims.status == Status.CONVERGED
    assert by_joachims.steps <= by_gap.steps


# -- degenerate problems ---------------------------------------------------------------------------


def test_all_variables_at_bounds():
    y = np.array([1.0, 1.0, -1.0, -1.0])
    s = solve(problems.c_svc(1e-6 * np.eye(4), y, 1.0))
    assert s.status == Status.CONVERGED
    np.testing.assert_allclose(s.alpha, y)
    np.testing.assert_allclose(s.bias, 0.0, atol=1e-12)  # the middle of the admissible interval
    assert s.duality_gap < 1e-9


def test_boxes_of_zero_width_never_move():
    program = c_svc()
    fixed = np.arange(14) < 6
    closed = problems.QuadraticProgram(
        program.hessian,
        program.linear,
        np.where(fixed, 0.0, program.lower),
        np.where(fixed, 0.0, program.upper),
        program.groups,
        program.totals,
    )
    s = solve(closed, TIGHT)
    assert s.status == Status.CONVERGED
    np.testing.assert_array_equal(s.alpha[:6], 0.0)


@pytest.mark.parametrize("C", [0.0, np.zeros(14)])
def test_a_cost_of_zero_has_the_answer_zero(C):
    X, y = two_classes(np.random.default_rng(0))
    s = solve(problems.c_svc(rbf(X), y, C))
    assert s.status == Status.CONVERGED
    np.testing.assert_array_equal(s.alpha, 0.0)
    assert np.isfinite(s.bias)
    assert s.violation == 0.0


def test_one_class_only_has_the_answer_zero():
    s = solve(problems.c_svc(np.eye(5), np.ones(5), 1.0))
    assert s.status == Status.CONVERGED
    np.testing.assert_array_equal(s.alpha, 0.0)
    np.testing.assert_allclose(s.bias, 1.0)


def test_constant_kernel():
    y = np.where(np.arange(14) < 5, 1.0, -1.0)
    s = solve(problems.c_svc(np.ones((14, 14)), y, 1.0))
    assert s.status == Status.CONVERGED
    assert s.duality_gap < 1e-9
    np.testing.assert_allclose(s.objective, -10.0)


@pytest.mark.parametrize("kernel", [kernels.Sine(theta=2.0), kernels.Sigmoid(2.0, -1.0)])
@pytest.mark.parametrize("block", [True, False])
def test_indefinite_kernels_reach_a_stationary_point(kernel, block):
    for seed in range(5):
        X, y = two_classes(np.random.default_rng(seed))
        s = solve(problems.c_svc((kernel, X), y, 1.0), SMO(tol=1e-6, block=block))
        assert s.status == Status.CONVERGED
        assert s.violation <= 1e-6
        assert np.isfinite(s.alpha).all()


@pytest.mark.parametrize("block", [True, False])
def test_opposite_labels_at_one_point_are_unbounded_without_a_box(block):
    X = np.array([[0.0], [0.0], [1.0], [2.0]])
    y = np.array([1.0, -1.0, 1.0, -1.0])
    s = solve(problems.hard_margin(rbf(X), y), SMO(block=block))
    assert s.status == Status.UNBOUNDED
    assert "finite C" in Status(s.status).message


def test_overlapping_classes_are_unbounded_for_a_linear_hard_margin():
    X, y = two_classes(np.random.default_rng(0), noise=2.0)
    s = solve(problems.hard_margin((kernels.Linear(), X), y))
    assert s.status == Status.UNBOUNDED


@pytest.mark.parametrize("size", [40, pytest.param(400, id="many tiles")])
def test_an_indefinite_matrix_has_no_minimum_in_an_open_box(size):
    solver = SMO(tuning=Tuning(largest_whole=256))
    for seed in range(20 if size == 40 else 2):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(size, 3)), np.where(rng.random(size) < 0.5, 1.0, -1.0)
        s = solve(problems.squared_svc(np.tanh(X @ X.T - 1), y, 50.0), solver)
        assert s.status == Status.UNBOUNDED


@pytest.mark.parametrize("dtype", ["float64", pytest.param("float32", marks=pytest.mark.slow)])
@pytest.mark.parametrize("gamma", [1e-3, 1e-2])
def test_hulls_that_touch_to_rounding_are_not_separable(gamma, dtype):
    """The hard margin has α of 1e13 and more: at that size rounding errors of K are margins."""
    X, y = chess(40)
    problem = problems.hard_margin((kernels.RBF(gamma), X / 4), y)
    s = solve(problem, dtype=dtype)
    assert s.status == Status.UNBOUNDED
    assert s.steps < 1_000_000


def test_a_narrow_margin_is_not_called_unbounded():
    """Two points at a distance of 1e-6: α = 2e12, and a curvature of 1e-12."""
    for distance in (1e-3, 1e-6):
        X = np.array([[0.0], [distance]])
        s = solve(problems.hard_margin((kernels.Linear(), X), np.array([1.0, -1.0])))
        assert s.status == Status.CONVERGED
        np.testing.assert_allclose(s.objective, -2 / distance**2, rtol=1e-9)


@pytest.mark.parametrize("level", ["one tile", "many tiles"])
def test_the_tolerance_follows_the_unit_of_the_gradient(level, rng):
    X = rng.normal(size=(40, 2))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    solver = SMO(tuning=Tuning(largest_whole=16)) if level == "many tiles" else SMO()
    for kernel, nu in ((kernels.RBF(0.5), 1e-6), (1e-8 * kernels.RBF(0.5), 0.3)):
        unit = nu * 40 * float(kernel.diagonal(X)[0])
        for problem in (problems.one_class((kernel, X), nu), problems.nu_svc((kernel, X), y, nu)):
            s = solve(problem, solver)
            assert s.status == Status.CONVERGED
            assert s.steps > 0
            assert s.violation <= 1e-3 * unit
            assert check(problem, s, tol=1e-3 * unit)


def test_hard_margin_equals_a_large_cost():
    X, y = chess(40)
    hard = solve(problems.hard_margin(rbf(X), y), TIGHT)
    soft = solve(problems.c_svc(rbf(X), y, 1e9), TIGHT)
    assert hard.status == Status.CONVERGED
    np.testing.assert_allclose(hard.objective, soft.objective, rtol=1e-8)
    assert 0 <= hard.duality_gap <= 1e-6 * abs(hard.objective)


def test_one_variable_and_two_variables():
    one = solve(problems.one_class(np.ones((1, 1)), 1.0))
    assert one.status == Status.CONVERGED
    np.testing.assert_allclose(one.alpha, [1.0])
    two = solve(problems.smallest_ball(np.array([[1.0, 0.0], [0.0, 3.0]])), TIGHT)
    radius = 2 * two.multipliers[0] + two.alpha @ np.diag([1.0, 3.0]) @ two.alpha
    np.testing.assert_allclose(radius, 1.0)  # half the distance 2 of the two points, squared


def test_features_of_very_different_scales():
    X, y = two_classes(np.random.default_rng(1))
    K = (X * np.array([1e4, 1.0])) @ (X * np.array([1e4, 1.0])).T
    s = solve(problems.c_svc(K, y, 1.0), SMO(tol=1e-6))
    assert s.status == Status.CONVERGED
    assert s.duality_gap <= 1e-5


def test_features_with_a_huge_offset_end_soon_and_not_worse_than_the_start():
    """All digits of K are lost: nothing can be found, but that has to be said."""
    X, y = two_classes(np.random.default_rng(0), 60)
    for offset, C in ((1e8, 1.0), (1e6, 1e6)):
        K = (X + offset) @ (X + offset).T
        s = solve(problems.c_svc(K, y, C))
        assert s.status in (Status.STALLED, Status.CONVERGED)
        assert s.steps < 1_000_000
        assert s.objective <= 0.0


@pytest.mark.parametrize(
    "program",
    [
        problems.squared_svc(1e8 * np.outer(np.arange(16.0), np.arange(16.0)),
                             np.where(np.arange(16) % 2 == 0, 1.0, -1.0), 1e6),
        problems.QuadraticProgram(
            problems.Dense(1e6 * np.outer(np.arange(16.0), np.arange(16.0))),
            np.sin(np.arange(16)), np.full(16, -1e10), np.full(16, 1e10)),
    ],
)  # fmt: skip
def test_bounded_problems_are_not_called_unbounded(program):
    assert solve(program).status != Status.UNBOUNDED


@pytest.mark.parametrize("level", ["one tile", "many tiles"])
def test_what_float32_cannot_do_is_done_in_float64(level, rng):
    X, y = chess(40)
    target = X[:, 0] + rng.normal(size=40)
    solver = SMO(tuning=Tuning(largest_whole=16)) if level == "many tiles" else SMO()
    for problem in (
        problems.nu_svr((kernels.RBF(0.5), X), target, 4e7, 0.4),
        problems.hard_margin((kernels.RBF(0.1), X), y),
    ):
        s = solve(problem, solver, dtype="float32")
        assert s.status == Status.CONVERGED
        assert check(problem, s, tol=1e-3)


# -- starts, budgets, interruption -----------------------------------------------------------------


def test_a_solution_is_a_start_that_needs_no_step():
    s = solve(c_svc(), TIGHT)
    again = solve(c_svc(), SMO(tol=1e-8), start=s)
    assert again.steps == 0
    np.testing.assert_allclose(again.alpha, s.alpha, atol=1e-12)


def test_any_feasible_start_leads_to_the_optimum():
    program, exact = c_svc(), solve(c_svc(), TIGHT)
    inside = 0.3 * (program.lower + program.upper)
    inside -= inside.mean()
    corner = np.where(np.arange(14) < 4, np.where(program.upper > 0, 2.0, -2.0), 0.0)
    for start in (np.clip(inside, program.lower, program.upper) * 0, corner):
        s = solve(program, TIGHT, start=start)
        np.testing.assert_allclose(s.objective, exact.objective, rtol=1e-10)


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (np.zeros(3), "14 finite numbers"),
        (np.full(14, np.nan), "14 finite numbers"),
        (np.full(14, 5.0), "outside its bounds"),
        (np.where(np.arange(14) == 0, 1.0, 0.0), "group 0 sums to 1.0"),
    ],
)
def test_an_infeasible_start_is_an_error(start, message):
    with pytest.raises(ValueError, match=message):
        solve(c_svc(), start=start)


def test_a_start_is_judged_on_its_own_scale():
    X, y = two_classes(np.random.default_rng(0))
    with pytest.raises(ValueError, match="group 0 sums to"):
        solve(problems.c_svc(rbf(X), y, 1e-8), start=np.where(y > 0, 1e-8, 0.0))


def test_a_huge_budget_is_a_budget():
    assert solve(c_svc(), SMO(max_steps=10**12)).status == Status.CONVERGED


def test_the_budget_of_steps_is_kept_and_resumed():
    program = c_svc()
    s = solve(program, SMO(block=False, max_steps=5, tol=1e-8))
    assert s.status == Status.MAX_STEPS
    assert s.steps == 5
    assert s.violation > 1e-8
    whole = solve(program, SMO(block=False, tol=1e-8))
    rest = solve(program, SMO(block=False, tol=1e-8), start=s)
    assert rest.steps == whole.steps - 5
    assert solve(program, SMO(max_steps=0)).status == Status.MAX_STEPS


SHORT_TURNS = SMO(block=False, tol=1e-6, tuning=Tuning(turn_work=1.0, shortest_turn=7))


def test_turns_do_not_change_the_path():
    X, y = chess(96)
    program = problems.c_svc(rbf(X), y, 100.0)
    whole = solve(program, SMO(block=False, tol=1e-6))
    turns = solve(program, SHORT_TURNS)
    assert len(turns.history) > 3
    assert turns.steps == whole.steps
    np.testing.assert_array_equal(turns.alpha, whole.alpha)
    assert [h["steps"] for h in turns.history] == sorted(h["steps"] for h in turns.history)


def test_the_time_limit_returns_the_point_reached():
    X, y = chess(96)
    s = solve(problems.c_svc(rbf(X), y, 100.0), replace(SHORT_TURNS, time_limit=0.0))
    assert s.status == Status.TIME_LIMIT
    assert s.steps == 7
    assert s.objective < 0
    assert s.violation > 1e-6


def test_interruption_loses_nothing(monkeypatch):
    X, y = chess(96)
    program = problems.c_svc(rbf(X), y, 100.0)
    calls, advance = [], CompiledLoop.advance

    def interrupted(self, tile, start, progress, *limits):
        if progress is None:
            return advance(self, tile, start, progress, *limits)
        calls.append(1)
        raise KeyboardInterrupt

    monkeypatch.setattr(CompiledLoop, "advance", interrupted)
    s = solve(program, SHORT_TURNS)
    assert s.status == Status.INTERRUPTED
    assert s.steps == 7
    monkeypatch.undo()
    assert len(calls) == 1
    full = solve(program, SMO(block=False, tol=1e-6))
    rest = solve(program, SMO(block=False, tol=1e-6), start=s)
    assert rest.steps + 7 == pytest.approx(full.steps, rel=0.05)  # G is fresh: ties may differ
    np.testing.assert_allclose(rest.objective, full.objective, rtol=1e-8)


def test_a_tolerance_below_the_precision_stalls_and_says_so():
    X, y = chess(250)
    s = solve(problems.c_svc(rbf(X), y, 1e6), SMO(tol=1e-300))
    assert s.status in (Status.STALLED, Status.CONVERGED)
    assert s.violation < 1e-6
    assert s.status == Status.CONVERGED or "precision" in Status(s.status).message


# -- properties ------------------------------------------------------------------------------------

SEEDS = st.integers(0, 10**6)


@settings(max_examples=20)
@given(seed=SEEDS)
def test_permuting_the_examples_permutes_the_answer(seed):
    rng = np.random.default_rng(seed)
    X, y = two_classes(rng)
    order = rng.permutation(14)
    a = solve(problems.c_svc(rbf(X), y, 2.0), TIGHT)
    b = solve(problems.c_svc(rbf(X[order]), y[order], 2.0), TIGHT)
    np.testing.assert_allclose(a.alpha[order], b.alpha, atol=1e-7)
    np.testing.assert_allclose(a.bias, b.bias, atol=1e-7)


@settings(max_examples=20)
@given(seed=SEEDS)
def test_flipping_the_labels_flips_the_answer(seed):
    X, y = two_classes(np.random.default_rng(seed))
    a = solve(problems.c_svc(rbf(X), y, 2.0), TIGHT)
    b = solve(problems.c_svc(rbf(X), -y, 2.0), TIGHT)
    np.testing.assert_allclose(a.alpha, -b.alpha, atol=1e-7)
    np.testing.assert_allclose(a.bias, -b.bias, atol=1e-7)


@settings(max_examples=20)
@given(seed=SEEDS, factor=st.floats(1e-3, 1e3))
def test_scaling_the_kernel_is_scaling_the_cost(seed, factor):
    X, y = two_classes(np.random.default_rng(seed))
    a = solve(problems.c_svc(rbf(X), y, 2.0), TIGHT)
    b = solve(problems.c_svc(factor * rbf(X), y, 2.0 / factor), TIGHT)
    np.testing.assert_allclose(a.alpha, factor * b.alpha, atol=1e-6)


@settings(max_examples=20)
@given(seed=SEEDS)
def test_two_copies_at_half_the_cost_are_one_example(seed):
    X, y = two_classes(np.random.default_rng(seed), 8)
    a = solve(problems.c_svc(rbf(X), y, 2.0), TIGHT)
    X2, y2 = np.concatenate([X, X]), np.concatenate([y, y])
    b = solve(problems.c_svc(rbf(X2), y2, 1.0), TIGHT)
    np.testing.assert_allclose(a.objective, b.objective, rtol=1e-9)
    np.testing.assert_allclose(a.alpha, b.alpha[:8] + b.alpha[8:], atol=1e-6)


@settings(max_examples=20)
@given(seed=SEEDS, C=st.floats(1e-3, 1e4))
def test_every_answer_has_its_certificate(seed, C):
    X, y = two_classes(np.random.default_rng(seed))
    s = solve(problems.c_svc(rbf(X), y, C), SMO(tol=1e-3))
    assert s.status == Status.CONVERGED
    G = y - rbf(X) @ s.alpha
    L, U = np.minimum(0, y * C), np.maximum(0, y * C)
    psi = G[s.alpha < U].max(initial=-np.inf) - G[s.alpha > L].min(initial=np.inf)
    np.testing.assert_allclose(s.violation, max(psi, 0.0), atol=1e-9)
    # ψ times the size of the box bounds the duality gap.
    assert -1e-9 * C <= s.duality_gap <= (s.violation + 1e-12) * C * 14


# -- transformations -------------------------------------------------------------------------------


@pytest.mark.usefixtures("x64")
def test_vmap_equals_a_loop():
    X, y = two_classes(np.random.default_rng(2))
    K, y = jnp.asarray(rbf(X)), jnp.asarray(y)
    costs = np.array([0.01, 0.5, 2.0, 1e3])
    batch = jax.jit(jax.vmap(lambda C: solve(problems.c_svc(K, y, C), TIGHT)))(costs)
    assert (batch.status == Status.CONVERGED).all()
    for k, C in enumerate(costs):
        alone = solve(problems.c_svc(np.asarray(K), np.asarray(y), C), TIGHT)
        np.testing.assert_allclose(batch.objective[k], alone.objective, rtol=1e-10)
        np.testing.assert_allclose(batch.bias[k], alone.bias, atol=1e-7)
        np.testing.assert_allclose(batch.primal_objective[k], alone.primal_objective, rtol=1e-8)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("machine", ["epsilon_svr", "nu_svr", "l1"])
def test_doubled_programs_run_under_jit(machine):
    X, t = regression(np.random.default_rng(0))
    K = jnp.asarray(rbf(X))

    def build(K, t):
        if machine == "epsilon_svr":
            return problems.epsilon_svr(K, t, 2.0, 0.1)
        if machine == "nu_svr":
            return problems.nu_svr(K, t, 2.0, 0.4)
        low = jnp.full(14, -2.0)
        return problems.QuadraticProgram(problems.Dense(K), t, low, -low, l1=0.1)

    inside = jax.jit(lambda t: solve(build(K, t), TIGHT))(jnp.asarray(t))
    outside = solve(build(np.asarray(K), t), TIGHT)
    np.testing.assert_allclose(inside.objective, outside.objective, rtol=1e-9)
    assert inside.alpha.shape == outside.alpha.shape


@pytest.mark.usefixtures("x64")
def test_a_start_can_be_traced():
    program = jax.tree.map(jnp.asarray, c_svc())
    exact = solve(c_svc(), TIGHT)
    s = jax.jit(lambda a: solve(program, SMO(tol=1e-8), start=a))(jnp.asarray(exact.alpha))
    assert int(s.steps) == 0


def test_a_problem_of_constants_is_solved_inside_jit():
    program = c_svc()
    inside = jax.jit(lambda scale: scale * solve(program).bias)(1.0)
    np.testing.assert_allclose(inside, solve(program).bias, rtol=1e-6)


def test_a_malformed_batch_is_an_error():
    batch = jax.tree.map(lambda leaf: np.asarray(leaf)[None], c_svc())

    def changed(**fields):
        return replace(batch, **fields)

    for bad, message in (
        (changed(l1=np.ones(1)), "no l1 term"),
        (changed(totals=np.full((1, 1), 1e3)), "infeasible"),
        (changed(totals=None, groups=None), "needs groups"),
        (changed(hessian=problems.Dense(np.full((1, 14, 14), np.nan))), "NaN"),
        (changed(hessian=problems.Dense(np.eye(14))), "leading axis"),
    ):
        with pytest.raises(ValueError, match=message):
            solve_batch(bad)


def test_a_batch_equals_single_solutions():
    programs = [c_svc(seed) for seed in range(5)]
    batch = solve_batch(jax.tree.map(lambda *leaves: np.stack(leaves), *programs), TIGHT)
    for k, program in enumerate(programs):
        alone = solve(program, TIGHT)
        np.testing.assert_allclose(batch.objective[k], alone.objective, rtol=1e-10)
        np.testing.assert_allclose(batch.alpha[k], alone.alpha, atol=1e-7)


def test_more_free_variables_than_slots_still_converge():
    X, y = chess(80)
    program = problems.squared_svc(rbf(X, gamma=4.0), y, 10.0)
    exact = solve(program, TIGHT)
    assert (exact.alpha != 0).sum() > 40
    few = SMO(tol=1e-9, slots=8)
    np.testing.assert_allclose(solve(program, few).objective, exact.objective, rtol=1e-9)
    stacked = jax.tree.map(lambda leaf: np.asarray(leaf)[None], program)
    np.testing.assert_allclose(solve_batch(stacked, few).objective, exact.objective, rtol=1e-9)


def test_slots_follow_the_free_variables():
    assert [whole.slots_for(f, 1000) for f in (2, 256, 257, 300, 900)] == [256, 256, 512, 512, 1000]
    assert [whole.slots_for(f, 700) for f in (2, 128, 129, 300, 600)] == [128, 128, 256, 512, 700]
    assert [whole.slots_for(f, 200) for f in (2, 129, 199)] == [128, 200, 200]
    for n in (100, 200, 1000):
        for free in range(2, n):
            assert loop.fits(whole.slots_for(free, n), free)


# -- precision and padding -------------------------------------------------------------------------


def test_results_are_numpy_in_float64_whatever_the_input():
    for dtype in (np.float32, np.float64):
        X, y = two_classes(np.random.default_rng(0))
        s = solve(problems.c_svc((kernels.RBF(0.5), X.astype(dtype)), y.astype(dtype), 1.0))
        assert type(s.alpha) is np.ndarray
        assert s.alpha.dtype == np.float64
        assert type(s.bias) is float
        assert type(s.steps) is int
    assert jnp.zeros(1).dtype == jnp.float32  # the scope was closed again


def test_float32_is_honest():
    X, y = two_classes(np.random.default_rng(0))
    program = problems.c_svc(rbf(X), y, 2.0)
    s = solve(program, SMO(tol=1e-3), dtype="float32")
    assert s.alpha.dtype == np.float64  # the last word has float64
    assert s.status == Status.CONVERGED
    exact = solve(program, SMO(tol=1e-3))
    np.testing.assert_allclose(s.alpha, exact.alpha, atol=1e-5)
    with pytest.raises(ValueError, match="dtype='float16'"):
        solve(program, dtype="float16")


@pytest.mark.slow
def test_float32_is_refined_on_gradients_in_float64():
    X, y = chess(200)
    K = rbf(X)
    program = problems.c_svc(K, y, 1e6)
    s = solve(program, SMO(tol=1e-5), dtype="float32")
    assert s.status == Status.CONVERGED
    twin = numpy_gap(y - K @ s.alpha, s.alpha, program.lower, program.upper)
    assert twin <= 1e-5
    assert s.violation == pytest.approx(twin, abs=1e-8)
    assert abs(s.alpha.sum()) <= 1e-9 * np.abs(s.alpha).sum()
    exact = solve(program, SMO(tol=1e-8))
    np.testing.assert_allclose(s.objective, exact.objective, rtol=1e-6)


@pytest.mark.slow
def test_float32_reports_what_it_cannot_reach():
    X, y = chess(200)
    K = rbf(X)
    program = problems.c_svc(K, y, 1e6)
    s = solve(program, SMO(tol=1e-13), dtype="float32")
    assert s.status == Status.STALLED
    assert s.violation > 1e-13
    assert s.violation == pytest.approx(
        numpy_gap(y - K @ s.alpha, s.alpha, program.lower, program.upper), rel=1e-2, abs=1e-8
    )


@pytest.mark.parametrize("n", [13, 15, 16, 17, 31])
def test_padding_changes_nothing(n):
    X, y = two_classes(np.random.default_rng(n), n)
    s = solve(problems.c_svc((kernels.RBF(0.5), X), y, 2.0), TIGHT)
    matrix = solve(problems.c_svc(rbf(X), y, 2.0), TIGHT)
    assert s.alpha.shape == (n,)
    np.testing.assert_allclose(s.alpha, matrix.alpha, atol=1e-9)


def test_buckets_are_few_and_large_enough():
    sizes = [bucket(n) for n in range(1, 5000)]
    assert all(size >= n for n, size in enumerate(sizes, start=1))
    assert all(size <= 2 * n for n, size in enumerate(sizes, start=1) if n > 64)
    assert all(size <= 1.5 * n for n, size in enumerate(sizes, start=1) if n > 256)
    assert all(size <= 1.25 * n for n, size in enumerate(sizes, start=1) if n > 512)
    assert len({size for size in sizes if size <= 2048}) < 15
    assert len(set(sizes)) < 35
    assert all(bucket(size) == size for size in set(sizes))


def test_the_same_input_gives_the_same_bits():
    a, b = solve(c_svc(), SMO()), solve(c_svc(), SMO())
    np.testing.assert_array_equal(a.alpha, b.alpha)


def test_a_kernel_on_the_host_is_solved_too():
    X, y = two_classes(np.random.default_rng(0))
    on_host = kernels.Function(lambda A, B: np.exp(-0.5 * np.array(
        [[((a - b) ** 2).sum() for b in B] for a in A])), on_host=True)  # fmt: skip
    s = solve(problems.c_svc((on_host, X), y, 2.0), TIGHT)
    np.testing.assert_allclose(
        s.alpha, solve(problems.c_svc(rbf(X), y, 2.0), TIGHT).alpha, atol=1e-8
    )


@pytest.mark.usefixtures("x64")
def test_machine_is_the_decision_function():
    X, t = regression(np.random.default_rng(0))
    s = solve(problems.epsilon_svr((kernels.RBF(0.5), X), t, 10.0, 0.05), TIGHT)
    f = Machine.of(kernels.RBF(0.5), X, s)
    inside = np.abs(np.asarray(f(X)) - t) <= 0.05 + 1e-8
    bounded = np.abs(s.alpha[:14] + s.alpha[14:]) >= 10.0 - 1e-9
    assert (inside | bounded).all()
