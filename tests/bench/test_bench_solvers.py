"""The benchmark of the solvers: witness, turns, store, tables. LIBSVM stands in for jsvm's fits."""

import argparse
import json
import warnings
from typing import Any

import numpy as np
import pytest
import sklearn.svm
from sklearn.exceptions import ConvergenceWarning

from bench import cases, memory, peers, prediction, report, scaling, solvers, store, timing, witness
from bench.cases import Case
from bench.timing import Contestant, race, repeats

C, GAMMA = 2.0, 0.3


def blobs(rng: np.random.Generator, n: int = 120, d: int = 3) -> tuple[np.ndarray, np.ndarray]:
    y = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    return rng.normal(size=(n, d)) + 0.7 * y[:, None], y


def case_of(data: Any, **more: Any) -> Case:
    return Case("blobs", C, GAMMA, lambda: data, **more)


def options(**more: Any) -> argparse.Namespace:
    defaults = {"peers": ["libsvm"], "budget": 1800.0, "tol": 1e-3, "repeat": 2}
    return argparse.Namespace(**{**defaults, "no_precise": False, "no_write": True, **more})


def nothing_stored() -> dict[str, Any]:
    return {"rows": {}, "prediction": {}, "memory": {}}


@pytest.fixture(autouse=True)
def _no_collection(monkeypatch):
    """Skip the garbage collection before every run: it would take most of the time here."""
    monkeypatch.setattr(timing.gc, "collect", lambda: 0)


# Witness


@pytest.mark.parametrize("d", [3, 40])  # differences, and products
def test_witness_agrees_with_a_dense_computation(rng, monkeypatch, d):
    monkeypatch.setattr(witness, "BLOCK", 50)  # several blocks, the last one shorter
    X, y = blobs(rng, d=d)
    gamma = GAMMA / d
    model = peers.fit_libsvm(Case("blobs", C, gamma, lambda: None), X, y, 1e-3)
    alpha = witness.signed_alpha(model, len(y))
    answer = witness.judge(X, y, alpha, C, gamma)

    K = np.exp(-gamma * ((X[:, None] - X[None, :]) ** 2).sum(2))
    decision = K @ alpha + model.intercept_
    np.testing.assert_allclose(decision, model.decision_function(X), atol=1e-10)
    G = y - K @ alpha
    upper, lower = np.maximum(0, y * C), np.minimum(0, y * C)
    gap = G[alpha < upper - 1e-9].max() - G[alpha > lower + 1e-9].min()
    assert answer.objective == pytest.approx(alpha @ K @ alpha / 2 - y @ alpha, rel=1e-12)
    assert answer.gap == pytest.approx(gap, abs=1e-12)
    assert 0 < answer.gap <= 2e-3
    assert answer.support == len(model.support_)
    assert answer.bounded == np.sum(np.abs(alpha) > C - 1e-9)
    assert (answer.bounded > 0) == (d == 3)
    assert answer.infeasible < 1e-12


def test_witness_sees_a_wrong_answer(rng):
    X, y = blobs(rng)
    alpha = witness.signed_alpha(peers.fit_libsvm(case_of(None), X, y, 1e-6), len(y))
    right = witness.judge(X, y, alpha, C, GAMMA)
    assert witness.judge(X, y, 0.9 * alpha, C, GAMMA).gap > 1e-2
    assert witness.judge(X, y, 0.9 * alpha, C, GAMMA).objective > right.objective
    assert witness.judge(X, y, 1.1 * alpha, C, GAMMA).infeasible > 0.09  # out of the box
    assert witness.judge(X, y, -alpha, C, GAMMA).infeasible > 0.5  # wrong signs
    alpha[np.argmax(y)] += 0.5  # the sum is not zero
    assert witness.judge(X, y, alpha, C, GAMMA).infeasible > 0.2


def test_the_positive_class_is_the_second_one(rng):
    X, y = blobs(rng)
    machine = sklearn.svm.SVC(kernel="rbf", C=C).fit(X, y)
    assert list(machine.classes_) == [-1, 1]
    assert (np.ravel(machine.dual_coef_) * y[machine.support_] > 0).all()


# Turns


@pytest.mark.parametrize(
    ("seconds", "runs"), [(0.0, 5), (10.0, 5), (10.1, 2), (60.0, 2), (60.1, 1), (1e4, 1)]
)
def test_long_runs_are_repeated_less(seconds, runs):
    assert repeats(seconds, 5) == runs
    assert repeats(seconds, 1) == 1


order: list[str] = []


class Pretended(Contestant):
    """Takes as long as it says."""

    def attempt(self, fresh: bool = True) -> float:
        order.append(self.name)
        return self.run()


def test_contestants_take_turns():
    order.clear()
    fast = Pretended("fast", lambda: 0.1)
    compiled = Pretended("compiled", lambda: 30.0, compiles=True)
    slow = Pretended("slow", lambda: 30.0)
    slowest = Pretended("slowest", lambda: 100.0)
    race([fast, compiled, slow, slowest], 3)
    warm, first, second, third = order[:4], order[4:6], order[6:9], order[9:]
    assert warm == ["fast", "compiled", "slow", "slowest"]
    assert first == ["fast", "compiled"]  # the long warm-ups of the others count as their first
    assert second == ["fast", "compiled", "slow"]
    assert third == ["fast"]
    assert [len(c.times) for c in (fast, compiled, slow, slowest)] == [3, 2, 2, 1]


def test_a_turn_of_short_runs_is_made_of_several():
    order.clear()
    seconds = iter([9.0, 0.01, 0.02, 0.03, 0.2])  # the first one is the warm-up
    short = Pretended("short", lambda: next(seconds))
    race([short], 2)
    assert short.times == [0.02, 0.2]
    assert len(order) == 5


def test_an_error_is_kept_as_text_and_a_warning_as_a_mark():
    def fail() -> None:
        raise MemoryError("no room\nfor it")

    def warn() -> int:
        warnings.warn("stopped early", ConvergenceWarning, stacklevel=1)
        return 7

    failing, warning = Contestant("failing", fail), Contestant("warning", warn)
    race([failing, warning], 2)
    assert (failing.error, failing.times, failing.median) == ("MemoryError: no room", [], None)
    assert (warning.warning, warning.result, len(warning.times)) == ("stopped early", 7, 2)


def test_kernel_rows_of_the_limit_are_kernel_rows(rng, monkeypatch):
    X, _ = blobs(rng)
    support, squares = np.arange(0, 100, 2), (X**2).sum(1)
    block = X[support] @ X.T
    peers.gaussian_in_place(block, squares[support], squares, GAMMA)
    np.testing.assert_allclose(block, witness.gaussian(X[support], X, GAMMA), rtol=1e-12)

    heights = []
    monkeypatch.setattr(peers, "gaussian_in_place", lambda block, *_: heights.append(len(block)))
    peers.kernel_rows(X, support, GAMMA)
    assert heights == [50]
    monkeypatch.setattr(peers, "BLOCK", 16)
    peers.kernel_rows(X, support, GAMMA)
    assert heights[1:] == [16, 16, 16, 2]
    heights.clear()
    monkeypatch.setattr(peers, "SMALL", 0)
    monkeypatch.setattr(peers, "CORES", 3)
    peers.kernel_rows(X, support, GAMMA)
    assert sorted(heights) == [2, 16, 16, 16]


# Store


def entry(seconds: float | None, *, when: str = "now", gap: float = 5e-4, **more: Any) -> dict:
    answer = {"objective": -10.0, "gap": gap, "support": 20, "bounded": 5, "infeasible": 0.0}
    return {
        "attempted": True,
        "times": [] if seconds is None else [seconds, seconds],
        "median": seconds,
        "first": 3.0,
        "answer": None if seconds is None else answer,
        "warning": "",
        "error": "",
        "when": when,
        **more,
    }


def fabricated(name: str, n: int, when: str = "now", **entries: dict) -> dict[str, Any]:
    case = cases.CASES[name]
    shape = {"n": n, "d": 2, "C": case.C, "gamma": case.gamma, "tol": 1e-3}
    return {**shape, "family": case.family, "when": when, "solvers": entries}


def test_a_new_row_keeps_old_times_of_solvers_that_did_not_run():
    old = fabricated(
        "heart", 270, "old", jsvm=entry(1.0, when="old"), libsvm=entry(9.0, when="old")
    )
    skipped = {"attempted": False, "times": [], "answer": None, "error": "skipped", "when": "now"}
    new = fabricated("heart", 270, jsvm=entry(0.5), libsvm=skipped)
    merged = store.merge(old, new)
    assert merged["solvers"]["jsvm"]["median"] == 0.5
    assert merged["solvers"]["libsvm"]["median"] == 9.0
    assert report.seconds(merged, "libsvm").endswith(report.OLD)
    assert not report.seconds(merged, "jsvm").endswith(report.OLD)
    assert store.merge(None, new) is new
    assert store.merge({**old, "tol": 1e-6}, new) is new  # of another problem
    failed = fabricated("heart", 270, jsvm=entry(0.5), libsvm=entry(None, error="MemoryError"))
    assert store.merge(old, failed)["solvers"]["libsvm"]["error"] == "MemoryError"


def test_stored_measurements_come_back(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "PATH", tmp_path / "stored.json")
    assert store.load() == nothing_stored()
    stored = {**nothing_stored(), "rows": {"heart": fabricated("heart", 270, jsvm=entry(1.0))}}
    store.save(stored)
    assert store.load() == stored
    assert [path.name for path in tmp_path.iterdir()] == ["stored.json"]


def test_forecast_is_quadratic_from_the_next_smaller_one():
    rows = {
        "chess-board-1000": fabricated("chess-board-1000", 1000, libsvm=entry(2.0)),
        "chess-board-10000": fabricated("chess-board-10000", 10_000, libsvm=entry(50.0)),
        "heart": fabricated("heart", 270, libsvm=entry(1.0)),
    }
    stored = {**nothing_stored(), "rows": rows}
    assert store.forecast(stored, "chess-board", "libsvm", 100_000) == pytest.approx(5000)
    assert store.forecast(stored, "chess-board", "libsvm", 10_000) == pytest.approx(200)
    assert store.forecast(stored, "chess-board", "libsvm", 1000) is None
    assert store.forecast(stored, "chess-board", "intelex", 10_000) is None
    assert store.forecast(stored, "", "libsvm", 10_000) is None

    case = cases.CASES["chess-board-100000"]
    reasons = solvers.excused(case, 100_000, ["libsvm"], 1800, stored)
    assert reasons == {"libsvm": "skipped (estimated 5,000 s)"}
    assert not solvers.excused(case, 100_000, ["libsvm"], 6000, stored)
    never = solvers.excused(case._replace(libsvm=False), 100_000, ["libsvm"], 6000, stored)
    assert never == {"libsvm": "skipped (far too long)"}


# Cases and rows


def test_cases_are_those_of_the_thesis():
    thesis = [case for case in cases.CASES.values() if case.thesis]
    assert len(thesis) == 22
    assert sum(case.family == "chess-board" for case in thesis) == 3
    assert cases.CASES["king-rook-vs-king"].C == 10
    assert cases.CASES["mnist-5000"].gamma == pytest.approx(1 / (2 * 3500**2))
    # n is the order within a family, as forecasts need it
    for family in ("chess-board", "mnist"):
        members = [name for name, case in cases.CASES.items() if case.family == family]
        assert members == sorted(members, key=lambda name: int(name.split("-")[-1]))


def test_labels_become_signs(tmp_path, monkeypatch):
    monkeypatch.setenv("JSVM_DATA", str(tmp_path))
    X = np.asfortranarray(np.arange(12, dtype=np.uint8).reshape(6, 2))
    np.savez(tmp_path / "connect-4.npz", X=X, y=np.array([1, 0, -1, 1, 0, -1], np.int8))
    np.savez(tmp_path / "krkopt.npz", X=X, y=np.array([-1, 0, 16, -1, 3, 1], np.int8))
    np.savez(tmp_path / "mnist.npz", X=X, y=np.array([0, 4, 5, 9, 1, 7], np.uint8))
    expected = {
        "connect-4": [1, -1, 1, -1],
        "king-rook-vs-king": [1, -1, -1, 1, -1, -1],
        "mnist-5000": [1, 1, -1, -1, 1, -1],
    }
    for name, labels in expected.items():
        loaded = cases.CASES[name].load()
        assert loaded is not None
        assert list(loaded[1]) == labels
        assert loaded[0].dtype == np.float64
        assert loaded[0].flags.c_contiguous
    loaded = cases.CASES["connect-4"].load()
    assert loaded is not None
    np.testing.assert_array_equal(loaded[0], X[[0, 2, 3, 5]])


def test_absent_data_are_skipped(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("JSVM_DATA", str(tmp_path))
    stored = nothing_stored()
    solvers.run_cases(options(only=["heart", "connect-4", "mnist-5000"]), stored)
    solvers.run_prediction(options(), stored)
    assert stored == nothing_stored()
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 5
    assert all(line.endswith("skipped, the data are absent") for line in said)
    assert memory.measure("heart", 1e-3) == {"error": "the data are absent"}
    assert scaling.measure(scaling.FAMILIES["adult"][0], 2000, 1.0, 1.0) is None


def test_a_row_is_measured_and_a_failure_does_not_end_it(rng, monkeypatch):
    def fail(*_: Any) -> None:
        raise RuntimeError("no device")

    monkeypatch.setattr(solvers.jax, "clear_caches", lambda: None)  # other tests live on them
    monkeypatch.setattr(peers, "fit_jsvm", peers.fit_libsvm)
    monkeypatch.setitem(peers.PEERS, "intelex", fail)
    monkeypatch.setattr(peers, "has_intelex", lambda: True)
    case = case_of(blobs(rng))
    row = solvers.measure(case, options(peers=["libsvm", "intelex"]), nothing_stored())
    assert list(row["solvers"]) == ["jsvm", "jsvm 1e-8", "libsvm", "intelex", "limit", "product"]
    assert row["solvers"]["intelex"]["error"] == "RuntimeError: no device"
    assert row["solvers"]["intelex"]["times"] == []
    for name in ("jsvm", "jsvm 1e-8", "libsvm", "limit", "product"):
        assert len(row["solvers"][name]["times"]) == 2, name
    assert (
        row["solvers"]["jsvm 1e-8"]["answer"]["gap"] < 1e-5
    )  # LIBSVM's kernel is in single precision
    assert row["solvers"]["limit"]["answer"] is None
    assert json.loads(json.dumps(row)) == row
    assert "intelex: RuntimeError: no device" in report.line("blobs", row)

    monkeypatch.setattr(peers, "has_intelex", lambda: False)
    row = solvers.measure(case, options(peers=["intelex"], no_precise=True), nothing_stored())
    assert list(row["solvers"]) == ["jsvm", "limit", "product", "intelex"]
    assert "not installed" in row["solvers"]["intelex"]["error"]


def test_prediction_compares_decision_values(rng, monkeypatch):
    monkeypatch.setattr(peers, "fit_jsvm", peers.fit_libsvm)
    measured = prediction.measure(case_of(blobs(rng)), 80, points=500, wanted=1)
    assert measured is not None
    assert (measured["n"], measured["points"], measured["difference"]) == (80, 500, 0.0)
    assert measured["jsvm"] > 0
    assert measured["libsvm"] > 0


# Tables


@pytest.fixture
def stored() -> dict[str, Any]:
    def row(name: str, n: int, jsvm: float, libsvm: float | None, **more: dict) -> dict:
        reason = "" if libsvm else "skipped (estimated 9,000 s)"
        entries = {
            "jsvm": entry(jsvm),
            "jsvm 1e-8": entry(2 * jsvm, gap=5e-9),
            "libsvm": entry(libsvm, error=reason),
            "limit": entry(jsvm / 4, answer=None),
        }
        return {**fabricated(name, n), "solvers": {**entries, **more}}

    rows = {
        "chess-board-1000": row("chess-board-1000", 1000, 1.0, 16.0),
        "heart": row("heart", 270, 0.5, 1.0, intelex=entry(0.25, gap=3e-3)),
        "thyroid": row("thyroid", 215, 0.5, 4.0),
        "chess-board-100000": row("chess-board-100000", 100_000, 50.0, None),
    }
    rows["thyroid"]["solvers"]["jsvm"]["warning"] = "stopped"
    rows["thyroid"]["solvers"]["jsvm"]["answer"]["objective"] = -9.9
    predicted = {"n": 10, "points": 100, "support": 3, "jsvm": 1.0, "libsvm": 5.0}
    return {
        "rows": rows,
        "prediction": {"adult": {**predicted, "difference": 1e-6, "error": ""}},
        "memory": {
            "adult-C1": {"data": 30.0, "before": 300.0, "peak": 1234.0},
            "connect-4": {"error": "ended with 1"},
        },
    }


def tables_in(text: str) -> list[list[list[str]]]:
    """Return tables as lists of rows of cells, without the line below the head."""
    blocks = [part.splitlines() for part in text.split("\n\n") if part.startswith("|")]
    cells = [[[c.strip() for c in line[1:-1].split(" | ")] for line in block] for block in blocks]
    return [[lines[0], *lines[2:]] for lines in cells]


def test_tables_have_every_row_and_as_many_cells_as_the_head(stored):
    tables = tables_in(report.text(stored))
    assert len(tables) == 4
    for lines in tables:
        assert {len(line) for line in lines} == {len(lines[0])}
    times, answers, predicted, peaks = tables
    in_order = ["thyroid", "heart", "chess-board-1000", "chess-board-100000"]
    assert [line[0] for line in times[1:]] == in_order
    assert [line[0] for line in answers[1:]] == in_order

    heart = dict(zip(times[0], times[2], strict=True))
    assert heart["jsvm"] == "0.5 (0.5)"
    assert heart["SV (bounded)"] == "20 (5)"
    assert heart["LIBSVM / jsvm"] == "2"
    assert heart["intelex / jsvm"] == "0.5"
    assert heart["limit / jsvm"] == "25%"
    assert heart["1e-8 / 1e-3"] == "2"
    assert heart["first fit"] == "3"
    largest = dict(zip(times[0], times[4], strict=True))
    assert largest["LIBSVM"] == "skipped (estimated 9,000 s)"
    assert largest["LIBSVM / jsvm"] == ""

    thyroid = dict(zip(answers[0], answers[1], strict=True))
    assert thyroid["objective jsvm"] == "1.0e-02"
    assert thyroid["objective LIBSVM"] == "0.0e+00"
    assert thyroid["notes"] == "jsvm: not converged"
    assert "✗" in dict(zip(answers[0], answers[2], strict=True))["gap intelex"]
    assert "✗" not in dict(zip(answers[0], answers[2], strict=True))["gap jsvm"]
    assert predicted[1][6] == "5"
    assert peaks[1][3] == "1,234"
    assert peaks[2][3] == "ended with 1"


def test_summary_has_means_with_and_without_chess_boards(stored):
    lines = report.text(stored).splitlines()
    without, with_them, precise, loose, missing = (line for line in lines if line.startswith("* "))
    assert "geometric mean 4, minimum 2 (heart), over 2 problems" in without
    assert "geometric mean 6.35, minimum 2 (heart), over 3 problems" in with_them
    assert "geometric mean 2, over 4 problems" in precise
    assert loose.endswith("tolerance: intelex on heart.")
    assert "banana" in missing
    assert "heart" not in missing


def test_the_section_and_the_figure_are_written(stored, tmp_path, monkeypatch):
    monkeypatch.setattr(report.results, "PATH", tmp_path / "RESULTS.md")
    monkeypatch.setattr(store, "PATH", tmp_path / "stored.json")
    monkeypatch.setattr(report, "FIGURE", tmp_path / "solvers.png")
    (tmp_path / "RESULTS.md").write_text("# Measured results\n\n## Another\n\nkept\n")
    for _ in range(2):
        solvers.keep(options(no_write=False), stored)
    written = (tmp_path / "RESULTS.md").read_text()
    assert written.count(f"## {report.TITLE}\n") == 1
    assert "## Another\n\nkept\n" in written
    assert "(solvers.png)" in written
    assert 1000 < (tmp_path / "solvers.png").stat().st_size < 100_000
    assert store.load() == stored


# Scaling


def test_sizes_double_up_to_the_largest():
    assert scaling.sizes(32_561) == [1000, 2000, 4000, 8000, 16_000, 32_561]
    assert scaling.sizes(100_000)[-2:] == [64_000, 100_000]
    assert scaling.sizes(700) == [700]


def test_exponents_are_slopes():
    n = [1000, 2000, 4000, 8000]
    rows = [{"n": k, "jsvm": 1e-6 * k**1.5, "libsvm": None} for k in n]
    assert scaling.exponents(rows, "jsvm") == pytest.approx((1.5, 1.5))
    assert scaling.exponents(rows, "libsvm") == (None, None)
    rows[3]["jsvm"] = rows[2]["jsvm"] * 8
    assert scaling.exponents(rows, "jsvm")[1] == pytest.approx(3)


def test_scaling_stops_at_the_limits(rng, monkeypatch, tmp_path):
    monkeypatch.setattr(peers, "fit_jsvm", peers.fit_libsvm)
    monkeypatch.setattr(scaling, "SMALLEST", 20)
    case = case_of(blobs(rng))
    rows = scaling.measure(case, 120, limit=1e9, libsvm_limit=0.0)
    assert rows is not None
    assert [row["n"] for row in rows] == [20, 40, 80, 120]
    assert [row["libsvm"] is None for row in rows] == [False, True, True, True]
    stopped = scaling.measure(case, 120, limit=0.0, libsvm_limit=1e9)
    assert stopped is not None
    assert [row["n"] for row in stopped] == [20]

    times, slopes = tables_in(scaling.text({"blobs": rows}))
    assert len(times) == 5
    assert [line[1] for line in slopes[1:]] == ["jsvm", "LIBSVM"]
    assert slopes[2][2:] == ["–", "–"]
    scaling.figure({"blobs": rows}, tmp_path / "scaling.png")
    assert (tmp_path / "scaling.png").stat().st_size < 100_000
