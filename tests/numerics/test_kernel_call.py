"""A kernel does what the plain function does, whatever XLA thinks of its parameters."""

import subprocess
import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jsvm import problems
from jsvm.numerics.arrays import cast
from jsvm.numerics.indexing import add_rows, index_of_max, largest, put, put_cross, put_rows, repeat
from jsvm.numerics.kernel_call import LONG_REDUCTION, in_one_kernel
from jsvm.solvers import SMO
from jsvm.solvers.status import Status
from jsvm.solvers.tile.loop import advance
from jsvm.solvers.tile.progress import Limits, begin
from jsvm.solvers.tile.selection import SELECTIONS
from jsvm.solvers.tile.steps import Recipe
from jsvm.solvers.tile.whole import start_whole

on_cpu = pytest.mark.skipif(jax.default_backend() != "cpu", reason="kernels are for CPUs")


def powers(tree, count):
    """Double x `count` times; `dead` is overwritten before it is read, `unused` never read."""

    def body(carry):
        x, _, k = carry
        return 2.0 * x, x[0], k + 1

    x, _, k = lax.while_loop(lambda c: c[2] < count, body, (tree["x"], tree["dead"], 0))
    return {"x": x, "count": k, "same": tree["kept"]}


def arguments(**more):
    tree = {"x": jnp.arange(32.0), "dead": jnp.float32(7), "kept": jnp.ones(3)}
    return tree | {"unused": jnp.zeros((2, 2))} | more


@on_cpu
def test_a_tagged_call_is_compiled_as_one_kernel():
    program = jax.jit(in_one_kernel(powers)).lower(arguments(), 3).compile().as_text()
    assert 'xla_cpu_small_call="true"' in (program or "")


@pytest.mark.parametrize("count", [0, 1, 5])
def test_a_kernel_equals_the_plain_function(count):
    plain, kernel = powers(arguments(), count), jax.jit(in_one_kernel(powers))(arguments(), count)
    assert kernel.keys() == plain.keys()
    for name in plain:
        np.testing.assert_array_equal(kernel[name], plain[name])


def test_dead_parameters_are_harmless_inside_other_control_flow():
    def outer(tree, counts):
        def turn(total, count):
            out = in_one_kernel(powers)(tree | {"dead": total}, count)
            extra = lax.cond(
                count > 1, lambda: in_one_kernel(powers)(tree, count)["x"][1], lambda: total
            )
            return total + jnp.sum(out["x"]) + extra, out["count"]

        return lax.scan(turn, jnp.float32(0), counts)

    total, counts = jax.jit(outer)(arguments(), jnp.arange(4))
    base, expected = 31 * 16.0, 0.0
    for k in range(4):
        expected = expected + base * 2**k + (2.0**k if k > 1 else expected)
    np.testing.assert_allclose(total, expected)
    np.testing.assert_array_equal(counts, np.arange(4))


def test_vmap_gives_every_member_its_own_loop():
    axes = {"x": 0, "dead": None, "kept": None, "unused": None}
    tree = arguments(x=jnp.stack([jnp.ones(16), jnp.full(16, 3.0), jnp.zeros(16)]))
    out = jax.jit(jax.vmap(in_one_kernel(powers), (axes, 0)))(tree, jnp.array([1, 2, 3]))
    np.testing.assert_array_equal(out["x"][:, 0], [2.0, 12.0, 0.0])
    np.testing.assert_array_equal(out["count"], [1, 2, 3])


def test_vmap_of_vmap():
    def add(x, y):
        return repeat(3, lambda k, s: s + y, x)

    kernel = jax.vmap(jax.vmap(in_one_kernel(add), (0, None)), (None, 0))
    out = jax.jit(kernel)(jnp.arange(4.0), jnp.arange(2.0))
    np.testing.assert_array_equal(out, [[0, 1, 2, 3], [3, 4, 5, 6]])


@pytest.mark.parametrize("n", [1, 7, 16, 48, 1000, 4096])
def test_index_of_max_is_the_first_of_the_largest(n):
    rng = np.random.default_rng(n)
    for values in (rng.normal(size=n), rng.integers(0, 3, n).astype(float), np.full(n, -np.inf)):
        index, top = index_of_max(jnp.asarray(values, jnp.float32))
        assert top == np.float32(values.max())
        assert index == np.argmax(values) or np.isneginf(values).all()
        assert largest(jnp.asarray(values, jnp.float32)) == np.float32(values.max())


def test_rows_are_added_and_values_put():
    rng = np.random.default_rng(0)
    matrix, places = rng.normal(size=(9, 33)), np.array([3, 3, 8, 0, 5], np.int32)
    weights = np.array([1.0, 2.0, -1.0, 0.5, 0.0])
    total = jax.jit(add_rows)(
        np.ones(33, np.float32), matrix.astype(np.float32), places, weights, 4
    )
    np.testing.assert_allclose(total, 1 + weights @ matrix[places], rtol=1e-5)
    vector = jax.jit(put)(
        np.zeros(9, np.float32),
        places[2:],
        np.array([7.0, 8.0, 9.0]),
        np.array([True, True, False]),
    )
    np.testing.assert_array_equal(vector, [8, 0, 0, 0, 0, 0, 0, 0, 7])


def separable(n, dtype, groups):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(n, 2)).astype(dtype), np.where(np.arange(n) % 2, 1.0, -1.0)
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1))
    if groups == 1:
        return problems.c_svc(K, y.astype(dtype), 2.0)
    return problems.nu_svc(K, y.astype(dtype), 0.4)


RECIPES = [
    SMO(block=block, selection=name, step=step, stopping=stopping)
    for block in (True, False)
    for name, step, stopping in (
        *((name, "plain", "gap") for name in SELECTIONS),
        ("second_order", "planning_ahead", "gap"),
        ("second_order", "overshoot", "joachims"),
    )
]


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("solver", RECIPES, ids=str)
def test_every_recipe_compiles_and_agrees_with_its_plain_program(solver, dtype, groups):
    program = separable(48, dtype, groups)
    recipe = solver.recipe(16, elastic=False)
    program = jax.tree.map(partial(cast, dtype=np.dtype(dtype)), program)
    program, _ = start_whole(program, None, recipe)
    tol = 1e-3 if dtype == "float32" else 1e-6

    def run(recipe: Recipe, tile):
        start = begin(tile, tile.feasible_point(), recipe)
        limits = Limits(tol, jnp.int32(10_000), jnp.int32(10_000))
        return advance(tile, start, limits, recipe)

    kernel = run(recipe, program)
    # A selection of one's own is the same rule outside of a kernel.
    own = recipe._replace(select=lambda state, program: recipe.select(state, program))
    plain = run(own, program)
    if solver.selection == "maximum_gain":  # the rule may get stuck; both then do
        assert kernel.status == plain.status
    else:
        assert kernel.status == plain.status == Status.CONVERGED
    np.testing.assert_allclose(
        program.objective(kernel.state.alpha, kernel.state.gradient),
        program.objective(plain.state.alpha, plain.state.gradient),
        rtol=10 * tol,  # rounding may steer them along other ways
    )


@pytest.mark.slow
@on_cpu
@pytest.mark.parametrize("block", [True, False])
def test_sizes_beyond_what_a_kernel_reduces_run_in_a_fresh_process(block):
    # In a process of its own, because XLA aborts where it meets a kernel that it cannot compile.
    code = (
        "import numpy as np, jsvm\n"
        f"n = {LONG_REDUCTION + 64}\n"
        "X = np.random.default_rng(0).normal(size=(n, 2)); y = np.sign(X[:, 0] + 0.1)\n"
        f"s = jsvm.solvers.SMO(block={block}, stopping='joachims')\n"
        "m = jsvm.SVC(C=1.0, gamma=0.5, solver=s).fit(X, y)\n"
        "assert m.fit_status_ == 0\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


@pytest.mark.slow
@on_cpu
def test_a_traced_problem_beyond_that_size_runs_in_a_fresh_process():
    code = (
        "import jax, numpy as np, jsvm\n"
        "from jsvm import problems, kernels, solve\n"
        f"n = {LONG_REDUCTION + 5}\n"
        "X = np.random.default_rng(0).normal(size=(n, 2)); y = np.sign(X[:, 0] + 0.1)\n"
        "k = kernels.RBF(0.5)\n"
        "run = jax.jit(lambda X, y: solve(problems.c_svc((k, X), y, 1.0)))\n"
        "with jax.enable_x64(True):\n"
        "    s = run(X, y)\n"
        "assert s.status == 0 and s.violation <= 1e-3\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


@pytest.mark.parametrize("donated", [False, True])
def test_rows_and_columns_are_written_in_their_places(rng, donated):
    square, block = rng.normal(size=(9, 9)), rng.normal(size=(4, 9))
    places = np.array([7, 0, 3, 7])  # a place that is repeated has the same row twice
    block[3] = block[0]
    rows, cross = square.copy(), square.copy()
    rows[places] = cross[places] = block
    cross[:, places] = block.T
    donated_ones = (0,) if donated else ()
    for function, expected in ((put_rows, rows), (put_cross, cross)):
        program = jax.jit(function, donate_argnums=donated_ones)
        found = program(jnp.asarray(square), block, places.astype(np.int32))
        np.testing.assert_array_equal(found, expected.astype(found.dtype))
