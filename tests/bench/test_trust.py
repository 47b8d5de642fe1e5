"""The trust harness: trials by number, damages, what is a finding, faults, and the report."""

import json
import time
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from bench import (
    trust,
    trust_common,
    trust_faults,
    trust_fuzz,
    trust_mutants,
    trust_mutations,
    trust_soak,
)
from bench.trust_common import NoAnswerError, Rows, Worker

TEXT = b"1 1:0.5 2:1\n-1 2:2\n"


@pytest.fixture(autouse=True)
def _own_files(tmp_path, monkeypatch):
    """Rows, findings and the report are written into a folder of the test."""
    monkeypatch.setattr(trust_common, "FOLDER", tmp_path)
    for module, name in (
        (trust_soak, "TRIALS"),
        (trust_faults, "ROWS"),
        (trust_fuzz, "ROWS"),
        (trust_mutants, "MUTANTS"),
    ):
        monkeypatch.setattr(module, name, Rows(getattr(module, name).path.name))
    monkeypatch.setattr(trust_fuzz, "FINDINGS", tmp_path / "findings")
    monkeypatch.setattr(trust, "REPORT", tmp_path / "TRUST.md")
    monkeypatch.setattr(trust_faults, "NAMES", ("one tile",))
    folder = Path(str(jax.config.jax_compilation_cache_dir)).with_name("programs")  # pyright: ignore
    monkeypatch.setenv("JSVM_CACHE", str(folder))  # for spawned processes


# Damages


def test_an_input_depends_on_reader_and_number_only():
    for reader in ("data", "kernel-matrix", "csv-first"):
        inputs = [trust_fuzz.drawn(reader, number) for number in range(20)]
        assert inputs == [trust_fuzz.drawn(reader, number) for number in range(20)]
        assert len(set(inputs)) > 15
    assert trust_fuzz.drawn("data", 1) != trust_fuzz.drawn("data-dense", 1)
    assert trust_soak.drawn(7).facts == trust_soak.drawn(7).facts


@pytest.mark.parametrize("damage", trust_mutations.TEXT, ids=lambda f: f.__name__)
def test_damages_take_any_bytes_and_change_most(damage, rng):
    results = {damage(TEXT, rng) for _ in range(50)}
    assert results != {TEXT}
    assert all(isinstance(damage(content, rng), bytes) for content in (b"", b"\n", b"\xff\x00"))


def test_damages_do_what_they_say(rng):
    for _ in range(30):
        assert TEXT.startswith(trust_mutations.truncate(TEXT, rng))
        assert len(trust_mutations.delete_piece(TEXT, rng)) <= len(TEXT)
        assert len(trust_mutations.repeat_piece(TEXT, rng)) >= len(TEXT)
        assert len(trust_mutations.move_piece(TEXT, rng)) >= len(TEXT)
        changed = trust_mutations.change_byte(TEXT, rng)
        assert sum(a != b for a, b in zip(changed, TEXT, strict=False)) <= 1
        assert trust_mutations.delete_line(TEXT, rng) in TEXT.splitlines(keepends=True)
        exchanged = trust_mutations.exchange_lines(TEXT, rng)
        assert sorted(exchanged.splitlines()) == sorted(TEXT.splitlines())
        assert trust_mutations.insert_zeros(TEXT, rng).replace(b"\0", b"") == TEXT
        assert b"\n" not in trust_mutations.other_line_ends(b"\n", rng)[:-1].strip(b"\r\n\x0c")
    longest = [max(map(len, trust_mutations.long_line(TEXT, rng).splitlines())) for _ in range(5)]
    assert max(longest) >= trust_mutations.LONG // 2


def test_parts_of_a_checkpoint_are_damaged_within_a_sound_archive(rng):
    file = BytesIO()
    np.savez(file, alpha=np.arange(6.0), fingerprint="name")
    for _ in range(30):
        damaged = trust_mutations.checkpoint_parts(file.getvalue(), rng)
        with zipfile.ZipFile(BytesIO(damaged)) as archive:
            assert archive.testzip() is None
    assert trust_mutations.checkpoint_parts(b"no archive", rng) == b"no archive"


# Findings


def test_only_refusals_that_name_the_file_are_no_findings(tmp_path, monkeypatch):
    path = tmp_path / "data.1.txt"
    path.write_bytes(TEXT)
    assert trust_fuzz.judged("data", path) == "accepted"
    path.write_bytes(b"1 1:nan\n")
    assert trust_fuzz.judged("data", path) == "refused"

    def reader(error: BaseException) -> trust_fuzz.Reader:
        def read(_: Path) -> None:
            raise error

        return trust_fuzz.Reader(read, "data")

    for error, finding in (
        (KeyError("a"), "KeyError: 'a'"),
        (MemoryError(), "MemoryError: "),
        (ValueError("no name"), "does not name the file: no name"),
        (SystemExit(2), "SystemExit: 2"),
        (trust_fuzz.WrongError("shapes"), "wrong: shapes"),
    ):
        monkeypatch.setitem(trust_fuzz.READERS, "data", reader(error))
        assert trust_fuzz.judged("data", path) == finding
        assert trust_fuzz.replay(path) == finding


def test_a_nan_is_no_consistent_data():
    with pytest.raises(trust_fuzz.WrongError, match="X is not finite"):
        trust_fuzz._consistent_data(np.array([[np.nan]]), np.ones(1))
    with pytest.raises(trust_fuzz.WrongError, match="shapes do not fit"):
        trust_fuzz._consistent_data(np.ones((2, 1)), np.ones(1))


class AtOnce:
    """Stands in for a worker: answers in this process."""

    def __init__(self, answer: Any, prepare: Any = None) -> None:
        self.ask = lambda request, seconds: answer(request)

    def __enter__(self) -> "AtOnce":
        return self

    def __exit__(self, *_: Any) -> None:
        pass


def test_fuzzing_counts_and_keeps_its_findings(monkeypatch, capsys):
    monkeypatch.setattr(trust_fuzz, "Worker", AtOnce)
    monkeypatch.setattr(trust_fuzz, "BATCH", 30)
    trust.main(["fuzz", "--minutes", "0", "--only", "data", "--first", "60"])
    (row,) = trust_fuzz.ROWS.read()
    assert (row["reader"], row["first"], row["inputs"]) == ("data", 60, 30)
    assert row["accepted"] + row["refused"] == 30
    assert row["accepted"] > 0 < row["refused"]
    assert not trust_fuzz.FINDINGS.exists()

    def fail(path: Path) -> None:
        raise KeyError(path.name)

    monkeypatch.setitem(trust_fuzz.READERS, "data", trust_fuzz.Reader(fail, "data"))
    trust.main(["fuzz", "--minutes", "0", "--only", "data"])
    assert len(list(trust_fuzz.FINDINGS.iterdir())) == 30
    kept = trust_fuzz.FINDINGS / "data.7.txt"
    assert kept.read_bytes() == trust_fuzz.drawn("data", 7)
    capsys.readouterr()
    trust.main(["replay-file", str(kept)])
    assert capsys.readouterr().out == "KeyError: 'data.7.txt'\n"
    assert f"| data | 60 | {row['accepted']} | {row['refused']} | 30 |" in trust_fuzz.report()


# Faults


def test_each_fault_of_one_process_is_survived():
    for fault in ("SIGINT", "full disk", "folder lost", "callback fails"):
        for number in range(4):
            row = trust_faults.judged((fault, number))
            assert row["wrong"] == [], row


def test_a_promise_that_is_broken_is_a_finding(monkeypatch):
    def changed(_: Any) -> trust_faults.Outcome:
        return "another answer", trust_faults.same_bits([b"a", b"b"], [b"a", b"c"])

    def fails(_: Any) -> trust_faults.Outcome:
        raise OSError("on purpose")

    for inject, wrong in ((changed, "1 of 2 differ"), (fails, "OSError: on purpose")):
        monkeypatch.setitem(trust_faults.FAULTS, "SIGINT", trust_faults.Fault(inject, 1, ""))
        assert trust_faults.judged(("SIGINT", 0))["wrong"] == [wrong]


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["kill −9", "threads", "processes"])
def test_each_fault_of_several_processes_is_survived(fault):
    row = trust_faults.judged((fault, 0))
    assert row["wrong"] == [], row


@pytest.mark.slow
def test_a_fork_that_hangs_is_given_up(monkeypatch):
    monkeypatch.setattr(trust_faults, "FORK_SECONDS", 3.0)
    row = trust_faults.judged(("fork after use", 0))
    assert row["outcome"] in ("hang", "RuntimeError", "worked")
    assert bool(row["wrong"]) == (row["outcome"] == "hang")


@pytest.mark.slow
def test_a_worker_that_hangs_or_dies_is_replaced():
    with Worker(eval) as worker:
        assert worker.ask("1 + 1", 60.0) == 2
        begun = time.perf_counter()
        with pytest.raises(NoAnswerError, match=r"no answer within 0\.2 s"):
            worker.ask("__import__('time').sleep(60)", 0.2)
        assert time.perf_counter() - begun < 30.0
        with pytest.raises(NoAnswerError, match="died"):
            worker.ask("__import__('os')._exit(1)", 60.0)


# Report


def test_the_report_is_written_from_the_rows(capsys):
    kept = {"fault": "SIGINT", "number": 0, "outcome": "INTERRUPTED solution", "wrong": [], "s": 1}
    for row in (kept, kept | {"wrong": ["x"]}, kept | {"outcome": trust_faults.TOO_LATE}):
        trust_faults.ROWS.append(row)
    counts = {"accepted": 3, "refused": 6, "inputs": 10, "findings": [["model.0.model", "?"]]}
    trust_fuzz.ROWS.append({"reader": "model", "first": 0, **counts})
    solved = {"machine": "c_svc", "kernel": "rbf", "n": 5, "tol": 1e-3, "status": "CONVERGED"}
    solved |= {"violation": 1e-4, "violation_error": 1e-16, "disagreement": 0.1, "seconds": 2.0}
    trust_soak.TRIALS.append({"number": 0, **solved, "wrong": []})
    trust_soak.TRIALS.append({"number": 1, "refused": "nu"})
    trust.main(["report"])
    text = trust.REPORT.read_text(encoding="utf-8")
    assert capsys.readouterr().out == text + "\n"
    assert [line for line in text.splitlines() if line.startswith("#")] == [
        "# What can be trusted",
        "## Soak",
        "## Faults",
        "## Fuzzing",
        "## Mutants",
    ]
    assert "| c_svc | 1 | 0 | 0 | 0 | 0 | 2.0 |" in text
    promise = trust_faults.FAULTS["SIGINT"].promise
    assert f"| SIGINT | {promise} | 2 | 1 | 2 INTERRUPTED solution |" in text
    assert "| model | 10 | 3 | 6 | 1 |" in text


def test_trials_that_failed_are_run_again(monkeypatch):
    solved = {"machine": "c_svc", "kernel": "rbf", "n": 5, "d": 2, "C": 1.0, "dtype": "float64"}
    solved |= {"tol": 1e-3, "violation_error": 1e-16, "disagreement": 0.1, "seconds": 2.0}
    good = solved | {"status": "CONVERGED", "violation": 1e-4, "wrong": []}
    stalled = solved | {"status": "STALLED", "violation": 1.0, "wrong": []}
    outcomes = [good, stalled, good | {"wrong": ["gap"]}, stalled | {"violation": 1e-4}]
    monkeypatch.setattr(trust_soak, "judged", lambda number: {"number": number, **outcomes[number]})
    monkeypatch.setattr(trust_soak, "PROGRAMS", "off")
    trust.main(["soak", "--problems", "4"])
    assert "| c_svc | 4 | 1 | 2 | 1 | 0 | 2.0 |" in trust.report()

    outcomes[:] = [good] * 4
    trust.main(["soak", "--failed"])
    assert [row["number"] for row in trust_soak.TRIALS.read()] == [0, 1, 2, 3, 1, 2]
    assert "| c_svc | 4 | 0 | 1 | 1 | 0 | 2.0 |" in trust.report()
    assert "4 random problems" in trust.report()
    assert "2 of them once more" in trust.report()


def test_nothing_measured_is_a_report_too():
    assert "| SIGINT | " in trust.report()
    assert list(Rows("absent.jsonl").read()) == []
    rows = Rows("some.jsonl")
    rows.append({"a": 1})
    assert json.loads(rows.path.read_text()) == {"a": 1}


# Mutants

CODE = """
def step(x: int, y: int = 1) -> bool:
    return bool(np.where(x < y, np.minimum(x + 1, -y), 2.0) == ~x)
"""


def test_a_mutant_has_one_change_of_the_code_and_none_of_its_types():
    mutants = {trust_mutants.mutated(CODE, number)[0] for number in range(200)}
    parts = ["x <= y", "maximum", "x - 1", "x + 2", "+y", "3.0", "!= ~x", "~~x", "int=2"]
    parts.append("2.0, np.minimum")
    assert len(mutants) == len(parts)
    for part in parts:
        assert sum(part in mutant for mutant in mutants) == 1, part
    assert all("x: int, y: int" in mutant for mutant in mutants)


def test_every_change_of_every_target_is_python():
    for path in trust_mutants.TARGETS:
        source = (trust_mutants.ROOT / path).read_text(encoding="utf-8")
        for number in range(30):
            mutant, told = trust_mutants.mutated(source, number)
            compile(mutant, path, "exec")
            before, after = told.split(": ", 1)[1].split(" → ")
            assert before != after


def test_mutants_are_counted_and_survivors_named():
    for number, killed in ((0, "FAILED tests/test_a.py"), (5, "")):
        row = {"number": number, "file": f"{trust_mutants.CORE}/selection.py", "killed": killed}
        trust_mutants.MUTANTS.append(row | {"change": f"line {number}: 0 → 1"})
    text = trust_mutants.report()
    assert "| jsvm/solvers/tile/selection.py | 2 | 1 | 50% |" in text
    assert "- 5: jsvm/solvers/tile/selection.py, line 5: 0 → 1" in text
