"""The host loop that people like: bars, limits, interruption, callbacks, checkpoints."""

import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from problems_for_tests import chess, rbf

import jsvm
from jsvm import SVC, kernels, problems, solve
from jsvm.compilation import Stopwatch
from jsvm.solvers import PSMO, SMO, Status, Tuning, checkpoint, monitor
from jsvm.solvers.smo import SMOWork

KERNEL = kernels.RBF(0.5)
LEVELS = {
    "whole": SMO(),
    "tiles": SMO(tuning=Tuning(largest_whole=0, tiles=(64,), tile_slots=(64,))),
}
TILES = LEVELS["tiles"]
KEYS = {
    "violation",
    "objective",
    "support_vectors",
    "kernel_rows",
    "steps",
    "newton_steps",
    "seconds",
}


@pytest.fixture(params=["whole", "tiles"])
def level(request):
    return request.param


def program(n=150, C=10.0):
    X, y = chess(n)
    return problems.c_svc((KERNEL, X), y, C)


def test_history_has_a_line_a_round(level):
    s = solve(program(), LEVELS[level])
    assert all(set(line) == KEYS for line in s.history)
    last = s.history[-1]
    assert last["steps"] == s.steps
    assert last["violation"] == pytest.approx(s.violation, abs=1e-9)
    assert last["objective"] == pytest.approx(s.objective, rel=1e-12)
    assert last["support_vectors"] == np.count_nonzero(s.alpha)
    assert last["kernel_rows"] == s.kernel_rows
    seconds = [line["seconds"] for line in s.history]
    assert seconds == sorted(seconds)
    if level == "tiles":
        assert len(s.history) > 2


def test_the_bar_shows_what_matters(level, capsys):
    solve(program(), LEVELS[level], progress=True)
    shown = capsys.readouterr().err
    for name in ("gap=", "objective=", "sv=", "rows="):
        assert name in shown


def test_silence_without_a_bar(level, capsys):
    solve(program(), LEVELS[level])
    assert capsys.readouterr() == ("", "")


def test_a_callback_sees_every_round_and_may_stop():
    seen = []
    full = solve(program(), TILES, callback=seen.append)
    assert tuple(seen) == full.history
    stopped = solve(program(), TILES, callback=lambda facts: facts["steps"] > 30)
    assert stopped.status == Status.INTERRUPTED
    assert stopped.steps < full.steps
    assert stopped.violation > 1e-3
    assert stopped.objective < 0
    rest = solve(program(), TILES, start=stopped)
    np.testing.assert_allclose(rest.objective, full.objective, rtol=1e-8)


def test_interruption_returns_a_certified_point():
    def press(facts):
        if facts["steps"] > 30:
            raise KeyboardInterrupt

    s = solve(program(), TILES, callback=press)
    assert s.status == Status.INTERRUPTED
    X, y = chess(150)
    assert s.objective == pytest.approx(0.5 * s.alpha @ rbf(X) @ s.alpha - y @ s.alpha, rel=1e-9)


def test_interruption_before_the_first_round_is_over():
    def press(_):
        raise KeyboardInterrupt

    work = monitor.Monitor(callback=press)
    assert work.history == []
    s = solve(program(), callback=press)
    assert s.status == Status.INTERRUPTED
    assert np.isfinite(s.objective)


class TestCtrlC:
    @pytest.fixture(autouse=True)
    def _handler_is_put_back(self):
        outside = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a job of &
        yield
        assert signal.signal(signal.SIGINT, outside) is signal.default_int_handler

    def test_waits_until_the_round_is_over(self, level, monkeypatch):
        round_of = SMOWork.round

        def broken(self, seconds):
            signal.raise_signal(signal.SIGINT)
            round_of(self, seconds)

        monkeypatch.setattr(SMOWork, "round", broken)
        s = solve(program(), LEVELS[level])
        assert s.status == Status.INTERRUPTED
        assert len(s.history) == 1
        assert problems.check(program(), s)

    @pytest.mark.parametrize("place", ["begin", "release"])
    def test_before_and_after_the_rounds_hands_back_a_point(self, place, level, monkeypatch):
        owner = {"begin": SMO, "release": SMOWork}[place]
        method = getattr(owner, place)

        def press(*args):
            signal.raise_signal(signal.SIGINT)
            return method(*args)

        monkeypatch.setattr(owner, place, press)
        s = solve(program(), LEVELS[level])
        assert s.status == (Status.CONVERGED if place == "release" else Status.INTERRUPTED)
        assert problems.check(program(), s)

    def test_at_the_very_end_is_not_lost(self, monkeypatch):
        solution_of = SMOWork.solution

        def late(self):
            signal.raise_signal(signal.SIGINT)
            return solution_of(self)

        monkeypatch.setattr(SMOWork, "solution", late)
        s = solve(program())
        assert s.status == Status.INTERRUPTED
        assert s.violation <= 1e-3

    def test_the_second_one_does_not_wait(self):
        def press(_):
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)

        with pytest.raises(KeyboardInterrupt):
            solve(program(), callback=press)
        assert solve(program()).status == Status.CONVERGED

    def test_another_handler_is_left_alone(self):
        rung = []
        previous = signal.signal(signal.SIGINT, lambda *_: rung.append(1))
        try:
            s = solve(program(), TILES, callback=lambda _: signal.raise_signal(signal.SIGINT))
        finally:
            signal.signal(signal.SIGINT, previous)
        assert s.status == Status.CONVERGED
        assert len(rung) == len(s.history)


@pytest.mark.parametrize("solver", [SMO, PSMO])
@pytest.mark.parametrize("limit", [-1.0, float("nan")])
def test_a_time_limit_is_a_number_of_seconds(solver, limit):
    with pytest.raises(ValueError, match=r"time_limit=.* must be a number of seconds"):
        solver(time_limit=limit)


SIGNALS = """
import signal, sys, traceback
import numpy as np
from jsvm import problems, solve, kernels
from jsvm.solvers import SMO, PSMO, Status, Tuning

random = np.random.default_rng(0)
X = random.uniform(0, 4, (150, 2))
y = np.where(np.floor(X).sum(1) % 2 == 0, 1.0, -1.0)
tiles = SMO(tuning=Tuning(largest_whole=0, tiles=(64,), tile_slots=(64,)))
K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(-1))
cases = [
    (problems.c_svc((kernels.RBF(0.5), X), y, 10.0), SMO(tol=1e-9, block=False)),
    (problems.c_svc((kernels.RBF(0.5), X), y, 10.0), tiles),
    (problems.psvm(K, y, 10.0, 0.1), PSMO()),
]
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
import time
for problem, solver in cases:
    solve(problem, solver)
    begun = time.perf_counter()
    solve(problem, solver)
    usual = time.perf_counter() - begun
    seen = {"raised": 0}
    for _ in range(int(sys.argv[1])):
        s = None
        try:
            signal.setitimer(signal.ITIMER_REAL, max(1e-5, 1.1 * usual * random.random()))
            s = solve(problem, solver)
            signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            inside = [frame.name for frame in traceback.extract_tb(sys.exc_info()[2])]
            assert "finish" not in inside, inside
            seen["raised"] += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
        if s is not None:
            report = problems.check(problem, s, tol=solver.tol)
            assert not report.complaints, report.complaints
            seen[Status(s.status).name] = seen.get(Status(s.status).name, 0) + 1
    assert seen.get("INTERRUPTED", 0) > 0, seen
    print(seen)
"""


def test_real_signals_at_any_time_hand_back_certified_points():
    command = [sys.executable, "-W", "ignore", "-c", SIGNALS, "60"]
    told: Any = {"capture_output": True, "text": True, "timeout": 200}
    done = subprocess.run(command, cwd=Path(jsvm.__file__).parents[1], **told)
    assert done.returncode == 0, done.stderr[-2000:]


class TestPace:
    def test_a_round_fits_into_what_is_left(self):
        pace = monitor.Pace()
        assert pace.steps(np.inf, 10**6) == 10**6
        assert pace.steps(5.0, 10**6) == monitor.FIRST_STEPS
        pace.note(30_000, 0.1)
        assert pace.steps(1.0, 10**6) == 150_000
        assert pace.steps(1.0, 1000) == 1000
        assert pace.steps(-1.0, 10**6) == monitor.FEWEST_STEPS
        pace.note(0, 0.1)
        assert pace.steps(1.0, 10**6) == 150_000

    def test_a_run_that_would_take_long_ends_soon(self):
        solver = SMO(tol=1e-12, block=False, time_limit=0.02)
        s = solve(program(n=300, C=1e6), solver)
        assert s.status == Status.TIME_LIMIT
        assert 0 < s.steps < 10**6  # what a round without a limit would take


def test_compiling_does_not_count():
    watch, other = Stopwatch(), Stopwatch()
    slow = jax.jit(lambda x: jax.lax.fori_loop(0, 3, lambda i, x: jnp.sin(x) @ x, x) * 1.2345)
    begun = time.perf_counter()
    slow(np.ones((7, 7))).block_until_ready()
    passed = time.perf_counter() - begun
    assert 0 <= watch.seconds() < passed
    assert abs(watch.seconds() - other.seconds()) < 0.01


def test_what_was_compiled_is_forgotten_with_the_stopwatches():
    watch = Stopwatch()
    compiling = watch._compiling
    for _ in range(3):
        compiling.note("/jax/core/compile/backend_compile_duration", 1e-9)
    assert len(compiling.intervals) == 3
    later = Stopwatch()
    del watch
    compiling.note("/jax/core/compile/backend_compile_duration", 1e-9)
    assert len(compiling.intervals) == 1
    assert all(begin >= later.begun for begin, _ in compiling.intervals)
    del later
    compiling.note("/jax/core/compile/backend_compile_duration", 1e-9)
    assert compiling.intervals == []


def test_the_time_limit_is_kept(level):
    s = solve(program(C=1e6), replace(LEVELS[level], tol=1e-12, time_limit=0.0))
    assert s.status in (Status.TIME_LIMIT, Status.CONVERGED, Status.STALLED)
    if level == "tiles":
        assert s.status == Status.TIME_LIMIT
        assert len(s.history) == 1


class TestCheckpoint:
    def test_a_stopped_run_goes_on(self, level, tmp_path):
        path = tmp_path / "run.npz"
        solver = LEVELS[level]
        stopped = solve(program(), replace(solver, max_steps=40), checkpoint=path)
        assert stopped.status == Status.MAX_STEPS
        assert path.exists()
        rest = solve(program(), solver, checkpoint=path)
        full = solve(program(), solver)
        assert rest.status == Status.CONVERGED
        assert rest.history[0]["objective"] <= stopped.objective  # not from the beginning
        np.testing.assert_allclose(rest.objective, full.objective, rtol=1e-8)
        again = solve(program(), solver, checkpoint=path)
        assert again.steps <= 2

    def test_regression_keeps_both_variables_of_an_example(self, tmp_path):
        X = np.linspace(0, 3, 40)[:, None]
        program = problems.epsilon_svr((KERNEL, X), np.sin(X[:, 0]), 5.0, 0.01)
        first = solve(program, checkpoint=tmp_path / "run")
        again = solve(program, checkpoint=tmp_path / "run")
        assert (tmp_path / "run.npz").exists()
        assert again.steps <= 2
        np.testing.assert_allclose(again.alpha, first.alpha, atol=1e-8)

    def test_saved_now_and_then(self, tmp_path, monkeypatch):
        monkeypatch.setattr(checkpoint.Checkpoint, "interval", 0.0)
        path = tmp_path / "run.npz"
        there = []
        solve(program(), TILES, checkpoint=path, callback=lambda _: there.append(path.exists()))
        assert there[0] is False
        assert all(there[1:])
        assert [p.name for p in tmp_path.iterdir()] == ["run.npz"]

    def test_another_problem_is_an_error(self, tmp_path):
        path = tmp_path / "run.npz"
        solve(program(), checkpoint=path)
        with pytest.raises(ValueError, match="another problem"):
            solve(program(C=11.0), checkpoint=path)

    def test_another_file_is_an_error(self, tmp_path):
        path = tmp_path / "run.npz"
        path.write_bytes(b"nothing")
        with pytest.raises(ValueError, match="no checkpoint of jsvm"):
            solve(program(), checkpoint=path)
        with pytest.raises(ValueError, match="no folder"):
            solve(program(), checkpoint=tmp_path / "absent" / "run.npz")

    def complaint(self, path, content):
        """Return the message about a checkpoint of these bytes; empty if they are accepted."""
        path.write_bytes(content)
        try:
            solve(program(), checkpoint=path)
        except ValueError as error:
            return str(error)
        return ""

    def test_a_damaged_file_is_named(self, tmp_path, rng):
        path = tmp_path / "run.npz"
        solve(program(), checkpoint=path)
        whole = path.read_bytes()
        with np.load(path) as content:
            fingerprint, alpha = content["fingerprint"], content["alpha"]
        damaged = {b"", whole[:100], whole[: len(whole) // 2], whole[:-1], whole[30:]}
        for _ in range(100):
            place, value = rng.integers(len(whole)), bytes([rng.integers(256)])
            damaged.add(whole[:place] + value + whole[place + 1 :])
        refused = [message for content in damaged if (message := self.complaint(path, content))]
        assert len(refused) > 50
        assert all(str(path) in m and "delete it or give another path" in m for m in refused)
        outside, unbalanced = np.where(alpha > 0, 11.0, alpha), 0.5 * alpha + 1e-3 * (alpha > 0)
        unlike = (alpha[1:], np.full_like(alpha, np.nan), alpha.astype(str)[:, None])
        for wrong in (*unlike, outside, unbalanced):
            np.savez(path, alpha=wrong, fingerprint=fingerprint)
            with pytest.raises(ValueError, match=r"run\.npz .* damaged \(start .*delete it"):
                solve(program(), checkpoint=path)
        with path.open("wb") as file:
            np.save(file, alpha)
        with pytest.raises(ValueError, match="no checkpoint of jsvm, or damaged"):
            solve(program(), checkpoint=path)

    def test_a_folder_that_vanishes_does_not_cost_the_solution(self, tmp_path):
        folder = tmp_path / "folder"
        folder.mkdir()
        with pytest.warns(RuntimeWarning, match="was not written .* the run goes on"):
            s = solve(program(), checkpoint=folder / "run", callback=lambda _: folder.rmdir())
        assert s.status == Status.CONVERGED


class TestEstimator:
    def data(self, n=120):
        return chess(n)

    def test_warm_start(self):
        X, y = self.data()
        svc = SVC(C=10.0, gamma=0.5, tol=1e-6, warm_start=True).fit(X, y)
        first = svc.n_iter_[0]
        again = svc.fit(X, y)
        assert again.n_iter_[0] <= 2 < first
        for C in (5.0, 50.0):
            warm = svc.set_params(C=C).fit(X, y)
            cold = SVC(C=C, gamma=0.5, tol=1e-6).fit(X, y)
            np.testing.assert_allclose(
                warm.decision_function(X), cold.decision_function(X), atol=1e-4
            )
        svc.fit(X[:80], y[:80])  # another size begins anew
        assert svc.solutions_[0].alpha.shape == (80,)

    def test_callback_progress_and_checkpoint(self, tmp_path, capsys):
        X, y = self.data()
        rounds = []
        svc = SVC(C=10.0, gamma=0.5, progress=True, callback=rounds.append)
        svc.set_params(checkpoint=tmp_path / "fit").fit(X, y)
        assert len(rounds) == len(svc.solutions_[0].history) > 0
        assert "gap=" in capsys.readouterr().err
        assert (tmp_path / "fit.npz").exists()

    def test_each_pair_has_its_own_checkpoint(self, tmp_path, monkeypatch):
        from jsvm.estimators import two_class

        monkeypatch.setattr(two_class, "BATCH_BYTES", 0)
        X, y = self.data()
        y = y + (X[:, 0] > 2)
        SVC(C=1.0, gamma=0.5, checkpoint=tmp_path / "fit").fit(X, y)
        count = len(np.unique(y))
        assert len(list(tmp_path.glob("fit.*.npz"))) == count * (count - 1) // 2

    def test_cache_size_is_checked(self):
        X, y = self.data()
        with pytest.raises(ValueError, match="cache_size=0"):
            SVC(cache_size=0).fit(X, y)
