"""The papers' algorithms, step by step, against NumPy twins that follow the printed text."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from problems_for_tests import chess, rbf, two_classes
from references import gap, planning_ahead_smo, select, smo, solve_qp

from jsvm import problems, solve
from jsvm.problems import Tile
from jsvm.solvers import SMO, Status
from jsvm.solvers.tile import selection
from jsvm.solvers.tile.selection import SELECTIONS, State
from jsvm.solvers.tile.steps import STEPS

C = 3.0


def problem(seed, n=16):
    X, y = two_classes(np.random.default_rng(seed), n)
    K = rbf(X)
    return K, y, np.minimum(0.0, y * C), np.maximum(0.0, y * C)


def tile(K, y, L, U):
    program = problems.QuadraticProgram(
        Tile.of(problems.Dense(jnp.asarray(K))),
        jnp.asarray(y),
        jnp.asarray(L),
        jnp.asarray(U),
        jnp.zeros(len(y), jnp.int32),
        jnp.zeros(1),
    )
    return program


def random_point(rng, L, U):
    """A feasible point with variables at both bounds and between them."""
    alpha = np.where(rng.uniform(size=len(L)) < 0.5, rng.uniform(L, U), 0.0)
    total = alpha.sum()
    for k in rng.permutation(len(L)):
        change = np.clip(alpha[k] - total, L[k], U[k]) - alpha[k]
        alpha[k] += change
        total += change
    return alpha


def compare_paths(twin, solver, at_least):
    """Follow a twin on many problems, on each as long as rounding has no say."""
    compared = 0
    for seed in range(20):
        K, y, L, U = problem(seed)
        steps = twin(K, y, L, U).certain
        there = twin(K, y, L, U, max_steps=steps)
        here = solve(problems.c_svc(K, y, C), replace(solver, max_steps=steps))
        assert here.steps == steps
        np.testing.assert_allclose(here.alpha, there.alpha, atol=1e-10)
        compared += steps
    assert compared >= at_least


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", SELECTIONS)
class TestSelections:
    def test_chooses_what_the_twin_chooses(self, name):
        choose = jax.jit(SELECTIONS[name])
        for seed in range(25):
            K, y, L, U = problem(seed)
            rng = np.random.default_rng(seed)
            alpha = random_point(rng, L, U)
            G = y - K @ alpha
            previous = tuple(int(k) for k in rng.choice(16, 2, replace=False))
            expected = select(name, K, G, alpha, L, U, previous)
            state = State(
                jnp.asarray(alpha), jnp.asarray(G), jnp.array([previous], jnp.int32), None
            )
            i, j = (int(k) for k in choose(state, tile(K, y, L, U)))
            if expected is not None:
                assert (i, j) == expected

    def test_returns_a_violating_pair_or_no_direction_of_progress(self, name):
        choose = jax.jit(SELECTIONS[name])
        for seed in range(25):
            K, y, L, U = problem(seed)
            alpha = random_point(np.random.default_rng(seed), L, U)
            G = y - K @ alpha
            none = jnp.full((1, 2), -1, jnp.int32)
            state = State(jnp.asarray(alpha), jnp.asarray(G), none, None)
            i, j = (int(k) for k in choose(state, tile(K, y, L, U)))
            assert gap(G, alpha, L, U) > 0
            assert alpha[i] < U[i]
            assert alpha[j] > L[j]
            assert G[i] > G[j]

    def test_the_path_is_the_twins(self, name):
        compare_paths(partial(smo, selection=name), SMO(selection=name, block=False), at_least=100)

    def test_pairs_stay_in_their_group(self, name):
        K, y, *_ = problem(2)
        program = problems.nu_svc(K, y, 0.5)
        s = solve(program, SMO(selection=name, block=False, tol=1e-6, max_steps=10_000))
        for g in range(2):
            total = s.alpha[program.groups == g].sum()
            np.testing.assert_allclose(total, program.totals[g], atol=1e-12)
        # Maximum gain alone never leaves the group of its first pair.
        stays = name == "maximum_gain"
        assert s.status == (Status.STALLED if stays else Status.CONVERGED)


class TestSteps:
    def test_overshooting_path_is_the_twins(self):
        compare_paths(partial(smo, factor=1.1), SMO(step="overshoot", block=False), at_least=100)

    @pytest.mark.parametrize("recent", [1, 2, 3])
    def test_planning_ahead_path_is_the_twins(self, recent):
        compare_paths(
            partial(planning_ahead_smo, recent=recent),
            SMO(step="planning_ahead", recent=recent, block=False),
            at_least=100,
        )

    def test_planning_ahead_plans(self):
        """The paths differ from plain SMO: otherwise the test above would show nothing."""
        K, y, L, U = problem(0)
        assert len(planning_ahead_smo(K, y, L, U).pairs) != len(smo(K, y, L, U).pairs)

    def test_planning_ahead_saves_steps_on_the_chess_board(self):
        X, y = chess(96)
        program = problems.c_svc(rbf(X), y, 1e4)
        plain = solve(program, SMO(block=False))
        planned = solve(program, SMO(block=False, step="planning_ahead"))
        assert planned.steps < 0.9 * plain.steps
        np.testing.assert_allclose(planned.objective, plain.objective, rtol=1e-6)

    @pytest.mark.parametrize("step", STEPS)
    def test_objective_falls_to_the_same_value(self, step):
        K, y, _, _ = problem(1)
        s = solve(problems.c_svc(K, y, C), SMO(step=step, block=False, tol=1e-8))
        reference = solve(problems.c_svc(K, y, C), SMO(tol=1e-10))
        assert s.status == Status.CONVERGED
        np.testing.assert_allclose(s.objective, reference.objective, rtol=1e-9)


class TestMaximumGain:
    """The counter-example of Glasmachers 2008, section 6.1.4."""

    K = np.array([
        [2, np.sqrt(3), -1, -np.sqrt(3)],
        [np.sqrt(3), 4, -np.sqrt(3), -3],
        [-1, -np.sqrt(3), 2, np.sqrt(3)],
        [-np.sqrt(3), -3, np.sqrt(3), 4],
    ])  # fmt: skip
    y = np.array([-1.0, -1.0, 1.0, 1.0])

    def path(self, name):
        """Start with the pair (3, 1) of the paper, as its greedy choice does, then select."""

        def select(state, program):
            def first(state, program):
                return jnp.int32(2), jnp.int32(0)

            begun = state.recent[0, 0] >= 0
            return jax.lax.cond(begun, getattr(selection, name), first, state, program)

        solver = SMO(selection=select, block=False, tol=1e-6)
        return solve(problems.c_svc(self.K, self.y, 0.1), solver)

    def test_eigenvalues_of_the_example(self):
        np.testing.assert_allclose(np.linalg.eigvalsh(self.K), [1, 1, 1, 9], atol=1e-12)

    def test_maximum_gain_alone_gets_stuck(self):
        s = self.path("maximum_gain")
        assert s.status == Status.STALLED
        np.testing.assert_allclose(s.alpha, [-0.1, 0.0, 0.1, 0.0])
        assert s.violation > 1.0

    def test_hybrid_maximum_gain_does_not(self):
        s = self.path("hybrid_maximum_gain")
        assert s.status == Status.CONVERGED
        # The second step is free: μ̂ = (1 − √3/5)/7 < C, where the figure of the paper draws C.
        b = (1 - np.sqrt(3) / 5) / 7
        np.testing.assert_allclose(s.alpha, [-0.1, -b, 0.1, b])
        exact, _ = solve_qp(
            self.K, self.y, np.minimum(0, 0.1 * self.y), np.maximum(0, 0.1 * self.y),
            np.zeros(4), np.zeros(1),
        )  # fmt: skip
        np.testing.assert_allclose(s.alpha, exact, atol=1e-8)

    def test_the_block_step_does_not_help_without_free_variables(self):
        solver = SMO(selection="maximum_gain", tol=1e-6)
        s = solve(problems.c_svc(self.K, self.y, 0.1), solver, start=[-0.1, 0.0, 0.1, 0.0])
        assert s.status == Status.CONVERGED  # a fresh start begins with second order


def test_the_first_maximum_wins_ties():
    values = jnp.array([1.0, 3.0, 3.0, 2.0])
    index, largest = selection.index_of_max(values)
    assert (int(index), float(largest)) == (1, 3.0)


def test_a_user_defined_selection_is_used():
    calls = []

    def mine(state, program):
        calls.append(1)
        return selection.most_violating(state, program)

    K, y, _, _ = problem(3)
    s = solve(problems.c_svc(K, y, C), SMO(selection=mine, block=False))
    named = solve(problems.c_svc(K, y, C), SMO(selection="most_violating", block=False))
    assert calls
    assert s.steps == named.steps


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"selection": "best"}, "selection='best'"),
        ({"step": "long"}, "step='long'"),
        ({"stopping": "never"}, "stopping='never'"),
        ({"tol": 0.0}, "tol=0.0"),
        ({"tol": np.nan}, "tol=nan"),
        ({"recent": 0}, "recent=0"),
        ({"max_steps": -1}, "max_steps=-1"),
        ({"step": "planning_ahead", "selection": "greedy"}, "defined with selection"),
    ],
)
def test_a_bad_configuration_is_an_error_at_once(arguments, message):
    with pytest.raises(ValueError, match=message):
        SMO(**arguments)
