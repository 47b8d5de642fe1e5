"""Whatever the path, the answer is the same: starts, rules, tiles, batches and precisions."""

from dataclasses import replace
from tempfile import TemporaryDirectory

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from random_problems import (
    EPS,
    MACHINES,
    SEEDS,
    TIGHT,
    N,
    assert_same,
    checked,
    powers,
    samples,
    solved,
    thorough,
)

from jsvm import problems, solve
from jsvm.problems import Tile
from jsvm.solvers import SMO, Solution, Tuning, solve_batch
from jsvm.solvers.tile.block_step import block_step
from jsvm.solvers.tile.selection import SELECTIONS
from jsvm.solvers.tile.steps import STEPS

LOOSE = SMO(tol=1e-8)
SLOWER = SMO(block=False, tol=1e-6)  # pair steps alone take long at large costs


@thorough
@given(sample=samples(), name=st.sampled_from(sorted(MACHINES)))
def test_a_solution_is_a_start_that_needs_no_step(sample, name):
    problem = MACHINES[name](sample.given, sample.y, sample.target, sample.C)
    here = solved(problem)
    again = solved(problem, LOOSE, start=here.solution)
    assert_same(here, again)
    if here.gap <= LOOSE.tol:
        assert again.solution.steps == 0


@thorough
@given(sample=samples(), other=powers(-3, 3))
def test_a_scaled_solution_of_another_cost_is_a_start(sample, other):
    problem = problems.c_svc(sample.given, sample.y, sample.C)
    rough = solved(problems.c_svc(sample.given, sample.y, other * sample.C))
    assert_same(solved(problem), solved(problem, start=rough.alpha / other))


@thorough
@given(sample=samples(), steps=st.integers(0, 40))
def test_a_run_that_was_stopped_goes_on_from_its_checkpoint(sample, steps):
    problem = problems.c_svc(sample.given, sample.y, sample.C)
    with TemporaryDirectory() as folder:
        stopped = solve(problem, replace(TIGHT, max_steps=steps), checkpoint=f"{folder}/run")
        resumed = solved(problem, checkpoint=f"{folder}/run")
    assert stopped.steps <= steps
    assert_same(solved(problem), resumed)


RULES = [(selection, "plain") for selection in SELECTIONS] + [("second_order", s) for s in STEPS]


@thorough
@given(
    sample=samples(costs=powers(-3, 1), widths=powers(-1, 1)),
    rule=st.sampled_from(RULES),
    block=st.booleans(),
)
def test_every_rule_reaches_the_same_machine(sample, rule, block):
    problem = problems.c_svc(sample.K, sample.y, sample.C)
    selection, step = rule
    solver = SMO(selection=selection, step=step, block=block, tol=1e-5)
    assert_same(solved(problem), solved(problem, solver))


@thorough
@given(sample=samples(costs=powers(-6, 2)), name=st.sampled_from(sorted(MACHINES)))
def test_pair_steps_alone_and_block_steps_agree(sample, name):
    problem = MACHINES[name](sample.given, sample.y, sample.target, sample.C)
    assert_same(solved(problem), solved(problem, SLOWER))


SMALL = Tuning(largest_whole=0, tiles=(16,), tile_slots=(16,), fewest_newcomers=4)


@thorough
@given(sample=samples(), name=st.sampled_from(sorted(MACHINES)))
def test_many_tiles_and_one_agree(sample, name):
    problem = MACHINES[name](sample.given, sample.y, sample.target, sample.C)
    many = solved(problem, replace(TIGHT, tuning=SMALL))
    assert_same(solved(problem), many)


@thorough
@given(several=st.lists(samples(), min_size=4, max_size=4))
def test_a_batch_equals_single_solutions(several):
    programs = [problems.c_svc(one.K, one.y, one.C) for one in several]
    batch = solve_batch(jax.tree.map(lambda *leaves: np.stack(leaves), *programs), TIGHT)
    for k, program in enumerate(programs):
        own = {name: np.asarray(getattr(batch, name))[k] for name in PER_PROBLEM}
        member = checked(program, replace(batch, **own), TIGHT.tol)
        assert_same(solved(program), member)


PER_PROBLEM = (
    "alpha",
    "bias",
    "multipliers",
    "objective",
    "primal_objective",
    "violation",
    "status",
)


@jax.jit
def inside(K, y, C) -> Solution:
    return solve(problems.c_svc(K, y, C), TIGHT)


@thorough
@given(sample=samples())
def test_a_solution_inside_jit_equals_one_outside(sample):
    program = problems.c_svc(sample.K, sample.y, sample.C)
    with jax.enable_x64(True):
        solution = jax.tree.map(np.asarray, inside(sample.K, sample.y, sample.C))
    assert_same(solved(program), checked(program, solution, TIGHT.tol))


@thorough
@given(sample=samples(), name=st.sampled_from(sorted(MACHINES)))
def test_float32_keeps_its_word_in_float64(sample, name):
    """What it claims is checked in float64; a stalled run is within its own rounding errors."""
    problem = MACHINES[name](sample.given, sample.y, sample.target, sample.C)
    tol, single = 1e-3, float(np.finfo(np.float32).eps)
    solution = solve(problem, SMO(tol=tol), dtype="float32")
    rough = checked(problem, solution, tol, eps=single)
    assert_same(solved(problem), rough)


# -- the block step --------------------------------------------------------------------------------

MATRICES = {
    "positive": lambda rng, X: np.exp(-((X[:, None] - X[None]) ** 2).sum(-1)),
    "of low rank": lambda rng, X: X @ X.T,
    "with copies": lambda rng, X: np.tile(X[:12] @ X[:12].T + np.eye(12), (2, 2)),
    "indefinite": lambda rng, X: np.sin(np.linalg.norm(X[:, None] - X[None], axis=-1)),
    "negative": lambda rng, X: -X @ X.T,
    "any": lambda rng, X: (lambda A: A + A.T)(rng.normal(size=(N, N))),
    "zero": lambda rng, X: np.zeros((N, N)),
}
step = jax.jit(block_step, static_argnames=("slots", "low_rank"))


@thorough
@given(
    seed=SEEDS,
    kind=st.sampled_from(sorted(MATRICES)),
    slots=st.sampled_from([4, N]),
    groups=st.sampled_from([1, 2]),
    scale=powers(-6, 6),
    width=powers(-6, 6),
    low_rank=st.booleans(),
)
def test_a_block_step_never_raises_the_objective(seed, kind, slots, groups, scale, width, low_rank):
    """Whatever the matrix: the box and the sums are kept, what is at a bound stays there."""
    rng = np.random.default_rng(seed)
    Q = scale * MATRICES[kind](rng, rng.normal(size=(N, 3)))
    linear, group = rng.normal(size=N), rng.integers(0, groups, N)
    upper = width * rng.uniform(0.1, 1.0, N)
    share = rng.choice([0.0, 1.0, 0.5, 0.1], N)
    alpha = np.where(share == 1.0, upper, (2 * share - 1) * upper)
    lower = -upper
    program = problems.QuadraticProgram(
        problems.Dense(Q), linear, lower, upper, group.astype(np.int32), np.zeros(groups)
    )
    gradient = linear - Q @ alpha
    with jax.enable_x64(True):
        tile = replace(program, hessian=Tile.of(program.hessian))
        tile = jax.tree.map(jnp.asarray, tile)
        found = step(tile, alpha, gradient, slots=slots, low_rank=low_rank)
        new, new_gradient = (np.asarray(v) for v in found[:2])
    assert ((lower <= new) & (new <= upper)).all()
    at_bound = (alpha == lower) | (alpha == upper)
    np.testing.assert_array_equal(new[at_bound], alpha[at_bound])
    for g in range(groups):
        moved = np.abs(new - alpha)[group == g].sum() + np.abs(alpha)[group == g].sum()
        assert abs((new - alpha)[group == g].sum()) <= N * EPS * moved

    change = new - alpha
    gain = gradient @ change - 0.5 * change @ Q @ change
    size = np.abs(alpha) + np.abs(new)
    error = N * EPS * (np.abs(linear) + np.abs(Q) @ size)
    assert gain >= -error @ np.abs(change)
    assert (np.abs(new_gradient - (linear - Q @ new)) <= 8 * error).all()
