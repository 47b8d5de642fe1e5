"""Settings of JAX that forbid what jsvm does, forks, and threads: fits work or say why not."""

import multiprocessing
import os
import subprocess
import sys
import threading
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from problems_for_tests import chess
from test_kernels import KERNELS, TRACEABLE, points

import jsvm
from jsvm import PSVC, SVC, SVR, AutoSVC, NuSVC, OneClassSVM, kernels, objectives, problems, solve
from jsvm.precision import scope
from jsvm.solvers import SMO, Tuning

SETTINGS = {
    "strict promotion": ("jax_numpy_dtype_promotion", "strict"),
    "no transfers": ("jax_transfer_guard", "disallow"),
}
TILES = SMO(tuning=Tuning(largest_whole=0, tiles=(64,), tile_slots=(64,)))
ESTIMATORS = {
    "SVC": SVC(gamma=0.5),
    "SVC of many tiles": SVC(gamma=0.5, solver=TILES),
    "SVC in float32": SVC(gamma=0.5, dtype="float32"),
    "SVR": SVR(gamma=0.5),
    "NuSVC": NuSVC(gamma=0.5),
    "OneClassSVM": OneClassSVM(gamma=0.5),
    "PSVC": PSVC(gamma=0.5),
    "AutoSVC": AutoSVC(budget=3, random_state=0),
}
X, Y = chess(100)


@pytest.fixture(params=SETTINGS)
def setting(request):
    """A setting of the whole process, so that other threads have it, too."""
    name, value = SETTINGS[request.param]
    before = getattr(jax.config, name)
    jax.config.update(name, value)
    yield request.param
    jax.config.update(name, before or "allow")


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_work_whatever_the_user_forbids(name, setting):
    estimator = ESTIMATORS[name]
    found = estimator.fit(X, Y).predict(X)
    # In another scope nothing is forbidden.
    with jax.transfer_guard("allow"), jax.numpy_dtype_promotion("standard"):
        np.testing.assert_array_equal(found, estimator.fit(X, Y).predict(X))


def test_a_problem_of_several_tiles_of_the_usual_size(setting):
    X, y = chess(2600)
    problem = problems.c_svc((kernels.RBF(0.5), X), y, 1.0)
    assert problems.check(problem, solve(problem), tol=1e-3).complaints == ()


def test_the_users_setting_is_back_after_a_fit(setting):
    name, value = SETTINGS[setting]
    SVC(gamma=0.5).fit(X, Y)
    assert getattr(jax.config, name) == value


def test_a_scope_does_not_compile_programs_again():
    double, traced = np.dtype(float), []

    @jax.jit
    def program(x):
        traced.append(x)
        return 2.0 * x

    for strict in (False, True):
        with jax.numpy_dtype_promotion("strict" if strict else "standard"), scope(double):
            program(np.ones(3))
    with jax.transfer_guard("disallow"), scope(double):
        program(np.ones(3))
    assert len(traced) == 1


@pytest.mark.parametrize("wide", [False, True])
class TestTraced:
    """What is traced in the user's program has no scope of its own."""

    @pytest.fixture(autouse=True)
    def _strict(self, wide):
        with jax.enable_x64(wide), jax.numpy_dtype_promotion("strict"):
            yield

    @pytest.mark.parametrize("name", TRACEABLE)
    def test_kernels(self, name, rng):
        some = jnp.asarray(points(name, rng, 5))
        shape = jax.eval_shape(jax.jit(lambda kernel, Z: kernel(Z, Z[:2])), KERNELS[name], some)
        assert shape.shape == (5, 2)

    @pytest.mark.parametrize("machine", ["c_svc", "squared_svc", "epsilon_svr", "nu_svr", "psvm"])
    def test_solutions_and_their_derivatives(self, machine):
        x, y = jnp.asarray(X[:16]), jnp.asarray(Y[:16])
        more = {"epsilon_svr": (0.1,), "nu_svr": (0.5,), "psvm": (0.1,)}.get(machine, ())

        def bias(gamma, C):
            K = kernels.RBF(gamma)(x)
            return solve(getattr(problems, machine)(K, y, C, *more)).bias

        slope = jax.eval_shape(jax.jit(jax.grad(bias)), 0.5, 1.0)
        assert slope.dtype == x.dtype

    @pytest.mark.parametrize("name", ["log_likelihood", "span_bound", "cross_validation_error"])
    def test_objectives_and_their_gradients(self, name):
        options = {"log_likelihood": {"key": 0}, "cross_validation_error": {"folds": 4}}
        given = {"loss": objectives.squared_error} if name == "cross_validation_error" else {}
        given |= options.get(name, {})

        def value(kernel, C):
            return getattr(objectives, name)(kernel, X[:16], Y[:16], C=C, **given)

        kernel = kernels.RBF(0.5)
        slopes = jax.eval_shape(jax.jit(jax.grad(value, argnums=(0, 1))), kernel, 1.0)
        assert [leaf.shape for leaf in jax.tree.leaves(slopes)] == [(), ()]


@pytest.mark.usefixtures("x64")
def test_a_compiled_solution_is_the_same_under_strict_promotion():
    @jax.jit
    def alpha(gamma):
        return solve(problems.c_svc(kernels.RBF(gamma)(jnp.asarray(X[:16])), Y[:16], 1.0)).alpha

    usual = alpha(0.5)
    with jax.numpy_dtype_promotion("strict"):
        np.testing.assert_array_equal(alpha(0.5), usual)


FORKED = """
import multiprocessing, sys
import numpy as np
from jsvm import SVC

X = np.arange(12.0).reshape(6, 2)
y = np.arange(6) % 2

def work(queue):
    try:
        SVC().fit(X, y)
        queue.put("fitted")
    except RuntimeError as error:
        queue.put(str(error))

if __name__ == "__main__":
    used = sys.argv[1] == "used"
    if used:
        SVC().fit(X, y)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=work, args=(queue,), daemon=True)
    child.start()
    print(queue.get(timeout=100))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform cannot fork")
@pytest.mark.parametrize("before", ["used", "unused"])
def test_a_fork_after_use_is_an_error_and_one_before_works(before):
    command = [sys.executable, "-W", "ignore", "-c", FORKED, before]
    told: Any = {"capture_output": True, "text": True, "timeout": 120, "check": True}
    done = subprocess.run(command, cwd=Path(jsvm.__file__).parents[1], **told)
    if before == "unused":
        assert done.stdout.strip() == "fitted"
    else:
        assert "do not survive a fork" in done.stdout
        assert "get_context('spawn')" in done.stdout


def test_spawned_processes_work():
    context = multiprocessing.get_context("spawn")
    expected = SVC(gamma=0.5).fit(X, Y)
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        found = pool.submit(SVC(gamma=0.5).fit, X, Y).result(timeout=120)
    np.testing.assert_array_equal(found.support_, expected.support_)


def test_threads_work():
    found = []
    workers = [
        threading.Thread(target=lambda: found.append(SVC(gamma=0.5).fit(X, Y).score(X, Y)))
        for _ in range(3)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=120)
    assert found == [SVC(gamma=0.5).fit(X, Y).score(X, Y)] * 3
