"""Tuning constants are declared in one place, documented and checked; rules declare themselves."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
from problems_for_tests import chess, rbf

from jsvm import kernels, problems, solve
from jsvm.problems import check
from jsvm.solvers import SMO, Move, Status, Tuning, runs_in_kernel
from jsvm.solvers.potential import PotentialTuning
from jsvm.solvers.tile.selection import SELECTIONS
from jsvm.solvers.tile.steps import STEPS, line, newton_step, plain


@pytest.mark.parametrize("tuning", [Tuning, PotentialTuning])
def test_every_constant_has_unit_origin_and_range(tuning):
    for field in dataclasses.fields(tuning):
        assert field.metadata["unit"], field.name
        assert field.metadata["origin"], field.name
        least, most = field.metadata["range"]
        assert least < most, field.name


def test_a_constant_out_of_range_is_an_error():
    with pytest.raises(ValueError, match=r"tile_fraction=1\.5 must be from 0 to 1"):
        Tuning(tile_fraction=1.5)
    with pytest.raises(ValueError, match="tiles="):
        Tuning(tiles=(512, 0))


def test_equal_tunings_share_compiled_programs():
    assert Tuning() == Tuning()
    assert hash(Tuning()) == hash(Tuning())
    assert SMO(tuning=Tuning(max_hits=8)) != SMO()


def test_tuning_changes_the_path_not_the_answer():
    X, y = chess(96)
    program = problems.c_svc(rbf(X), y, 100.0)
    short = SMO(tol=1e-6, tuning=Tuning(max_factors=1, max_hits=1, max_refinements=0))
    few, usual = solve(program, short), solve(program, SMO(tol=1e-6))
    assert few.status == usual.status == Status.CONVERGED
    np.testing.assert_allclose(few.objective, usual.objective, rtol=1e-8)


def test_rules_declare_whether_they_run_inside_a_kernel():
    declared = {name for name, rule in SELECTIONS.items() if hasattr(rule, "runs_in_kernel")}
    assert declared == set(SELECTIONS) - {"greedy"}
    assert all(hasattr(step, "runs_in_kernel") for step in STEPS.values())
    assert SMO().recipe(16, elastic=False).runs_in_kernel
    assert not SMO(selection="greedy").recipe(16, elastic=False).runs_in_kernel


def test_a_step_may_be_a_function():
    def short(state, program, select):
        i, j = select(state, program)
        now = line(state, program, i, j)
        return Move(i, j, jnp.clip(0.9 * newton_step(now), now.low, now.high), state.memory)

    X, y = chess(64)
    program = problems.c_svc(rbf(X), y, 10.0)
    usual = solve(program, SMO(block=False))
    named = solve(program, SMO(block=False, step=plain))
    assert named.steps == usual.steps
    for step in (short, runs_in_kernel(lambda *given: short(*given))):
        other = solve(program, SMO(block=False, step=step))
        assert other.status == Status.CONVERGED
        assert other.steps != usual.steps
        np.testing.assert_allclose(other.objective, usual.objective, rtol=1e-5)


def test_one_tile_begins_again_in_float64_where_float32_takes_too_many_steps():
    X, y = chess(200)
    problem = problems.c_svc((kernels.RBF(0.5), X), y, 1e6)
    tuning = Tuning(turn_work=1e4, shortest_turn=100)
    exact = solve(problem, SMO(tuning=tuning))
    begun = dataclasses.replace(tuning, rough_sweeps=1)
    s = solve(problem, SMO(tuning=begun), dtype="float32")
    assert s.status == Status.CONVERGED
    assert s.steps > exact.steps + 200  # those of float32, and all of float64
    assert s.kernel_rows == 2 * exact.kernel_rows
    np.testing.assert_allclose(s.objective, exact.objective, rtol=1e-9)
    short = solve(problem, SMO(tuning=begun, max_steps=400), dtype="float32")
    assert short.status == Status.MAX_STEPS
    assert 200 < short.steps <= 400


def linear_problem(n):
    draw = np.random.default_rng(0)
    X = draw.normal(size=(n, 3))
    y = np.where(X[:, 0] + draw.normal(size=n) > 0, 1.0, -1.0)
    return problems.c_svc((kernels.Linear(), X), y, 10.0)


@pytest.mark.parametrize("options", [{"largest_explicit": 64}, {"largest_in_kernel": 64}])
def test_slots_above_any_limit_of_a_kernel(options):
    problem = linear_problem(200)
    s = solve(problem, SMO(tuning=Tuning(**options)))
    assert s.status == Status.CONVERGED
    assert check(problem, s).violation <= 1e-3


def test_block_steps_on_a_tile_that_no_kernel_can_hold():
    problem = linear_problem(4200)
    s = solve(problem, SMO(tuning=Tuning(tiles=(4096,))))
    assert s.status == Status.CONVERGED
    assert s.newton_steps > 0
    assert check(problem, s).violation <= 1e-3
