"""Compiling ahead, and the word on a terminal while a first call compiles."""

import io
import json
import os
import subprocess
import sys
import time

import pytest

import jsvm
from jsvm import notice
from jsvm.command import main
from jsvm.notice import Notice
from jsvm.programs import SUFFIX, keep_compiled_programs

SCRIPT = """
import json, sys
import numpy as np
import jsvm
from jsvm import programs
done = jsvm.warm_up(n=100, d=3, kernels=["rbf"])
before = programs.tally.compiled
X = np.random.default_rng(1).normal(size=(90, 4))
jsvm.SVC(C=10.0, gamma=0.3).fit(X, np.where(X[:, 0] > 0, "a", "b")).predict(X)
print(json.dumps([done.compiled, done.loaded, programs.tally.compiled - before, str(done)]))
"""


def test_a_fit_of_a_size_nearby_compiles_nothing_and_the_next_process_loads(tmp_path):
    # In processes of their own: what comes from JAX's cache is not kept.
    told = []
    for _ in range(2):
        environment = {**os.environ, "JSVM_CACHE": str(tmp_path / "programs")}
        command = [sys.executable, "-c", SCRIPT]
        process = subprocess.run(command, env=environment, capture_output=True, check=True)
        told.append(json.loads(process.stdout))
    kept = len(list((tmp_path / "programs").glob(f"*{SUFFIX}")))
    (compiled, loaded, later, words), again = told
    assert (compiled, loaded, later) == (kept, 0, 0)
    assert words.startswith(f"{kept} programs compiled, 0 loaded in ")
    assert f"; {kept} (" in words
    assert again[:3] == [0, kept, 0]


def test_nothing_is_kept_where_keeping_is_off():
    keep_compiled_programs("off")
    done = jsvm.warm_up(n=20, d=2, kernels=["rbf"])
    assert done.folder is None
    assert "none are kept" in str(done)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n": 1}, "n=.* at least 2"),
        ({"n": []}, "n=.* whole numbers"),
        ({"d": 0}, "d=.* whole numbers"),
        ({"estimators": ["SCV"]}, "'SCV' is unknown; use .*SVC"),
        ({"n": 20, "d": 2, "kernels": ["rbv"]}, "rbv"),
    ],
)
def test_wrong_arguments_are_named(options, words):
    with pytest.raises(ValueError, match=words):
        jsvm.warm_up(**options)


def test_the_command_tells_what_was_kept(folder, capsys):
    assert main(["warm-up", "--n", "30", "--d", "2", "--kernels", "rbf", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["compiled"] + told["loaded"] > 0
    assert told["folder"] == str(folder)
    assert main(["warm-up", "-q", "--n", "30", "--d", "2", "--kernels", "rbf"]) == 0
    assert capsys.readouterr().out == ""
    with pytest.raises(SystemExit):
        main(["warm-up", "--n", "many"])


class Terminal(io.StringIO):
    def isatty(self):
        return True


def told_on(stream, seconds, patience, monkeypatch, folder):
    """Return the words that two long compilations cause."""
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr(notice, "PATIENCE", patience)
    one = Notice()
    for _ in range(2):
        with one.while_compiling(folder):
            time.sleep(seconds)
    return stream.getvalue()


def test_a_terminal_is_told_once(monkeypatch, tmp_path):
    words = told_on(Terminal(), 0.2, 0.01, monkeypatch, tmp_path)
    assert words.count("compiling") == 1
    assert str(tmp_path) in words
    assert "jsvm warm-up" in words


def test_what_is_short_or_not_a_terminal_is_not_told(monkeypatch, tmp_path):
    assert told_on(Terminal(), 0.0, 60.0, monkeypatch, tmp_path) == ""
    assert told_on(io.StringIO(), 0.2, 0.01, monkeypatch, tmp_path) == ""


def test_times_add_up(monkeypatch, tmp_path):
    words = told_on(Terminal(), 0.2, 0.3, monkeypatch, tmp_path)
    assert words.count("compiling") == 1
