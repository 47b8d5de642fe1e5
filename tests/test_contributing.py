"""The four walks of CONTRIBUTING.md: each diff is short, applies, and what it adds works."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
WALK = re.compile(r"^### (Add an? \w+)$.*?^```diff\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WALKS = dict(WALK.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")))
MOST_LINES = 30

# What a user of the addition writes; X and y are given.
USES = {
    "Add a kernel": """
        kernel = kernels.Cauchy(gamma=0.5)
        assert np.allclose(kernel(X), kernels.pairwise(kernel, X, X), atol=1e-6)
        slope = jax.grad(lambda k: k(X).sum())(kernel).gamma
        assert np.isfinite(slope) and slope < 0
    """,
    "Add a selection": """
        problem = problems.c_svc((kernels.RBF(0.5), X), y, 1.0)
        other = solve(problem, solvers.SMO(selection="longest_step", block=False, tol=1e-6))
        assert solvers.Status(other.status) == solvers.Status.CONVERGED
        best = solve(problem, solvers.SMO(block=False, tol=1e-6))
        assert np.isclose(other.objective, best.objective, rtol=1e-9)
    """,
    "Add an objective": """
        means = X[y > 0].mean(axis=0) - X[y < 0].mean(axis=0)
        value = objectives.class_distance(kernels.Linear(), X, y)
        assert np.isclose(value, means @ means, rtol=1e-4)
        slope = jax.grad(objectives.class_distance)(kernels.RBF(0.5), X, y).gamma
        assert np.isfinite(slope) and slope != 0
    """,
    "Add an estimator": """
        from sklearn.base import clone
        machine = clone(jsvm.MedianSVR("linear", C=2.0))
        assert machine.get_params()["C"] == 2.0
        assert "C : float" in jsvm.MedianSVR.__doc__
        same = jsvm.SVR("linear", C=2.0, epsilon=0.0).fit(X, X[:, 0])
        assert np.allclose(machine.fit(X, X[:, 0]).predict(X), same.predict(X))
    """,
}
GIVEN = """
        import jax, numpy as np, jsvm, pathlib
        from jsvm import kernels, objectives, problems, solve, solvers
        assert pathlib.Path(jsvm.__file__).is_relative_to(pathlib.Path.cwd())
        X = np.random.default_rng(0).normal(size=(12, 2))
        y = np.where(X[:, 0] > 0, 1.0, -1.0)
"""


def run(*command: object, cwd: Path, **options) -> None:
    done = subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the code with all walks applied."""
    there = tmp_path_factory.mktemp("walks")
    for part in ("jsvm", "tests", "bench"):
        shutil.copytree(ROOT / part, there / part, ignore=shutil.ignore_patterns("__pycache__"))
    for diff in WALKS.values():
        run("git", "apply", "--verbose", "-", cwd=there, input=diff)
    return there


def test_the_walks_are_there_and_short():
    assert set(WALKS) == set(USES)
    for diff in WALKS.values():
        changed = re.findall(r"^[+-](?!\+\+|--)", diff, flags=re.MULTILINE)
        assert 0 < len(changed) < MOST_LINES


@pytest.mark.parametrize("walk", USES)
def test_what_a_walk_adds_works(walk: str, package: Path):
    program = re.sub(r"^ {8}", "", GIVEN + USES[walk], flags=re.MULTILINE)
    environment = os.environ | {
        "JAX_COMPILATION_CACHE_DIR": str(ROOT / ".pytest_cache" / "compiled"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.2",
    }
    run(sys.executable, "-c", program, cwd=package, env=environment)


def test_the_walks_pass_the_lint(package: Path):
    shutil.copy(ROOT / "pyproject.toml", package)
    run(sys.executable, "-m", "ruff", "check", ".", cwd=package)
    run(sys.executable, "-m", "ruff", "format", "--check", ".", cwd=package)
