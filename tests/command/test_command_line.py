"""The command line: what it prints and writes, what it refuses, and how it ends."""

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from problems_for_tests import rbf

from jsvm.__main__ import main
from jsvm.command import fitting
from jsvm.command.fitting import read_csv
from jsvm.command.options import spelled_out
from jsvm.command.select import grid
from jsvm.io import load_model, save_data
from jsvm.solvers import Status

N = 60


def blobs(classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    codes = np.arange(N) % classes
    return rng.normal(size=(N, 2)) + 3.0 * np.eye(classes, 2)[codes], codes


def curve(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(seed).uniform(-2, 2, (N, 2))
    return X, np.sin(2 * X[:, 0])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in an empty folder with some files."""
    monkeypatch.chdir(tmp_path)
    X, codes = blobs(2)
    save_data("two.txt", X, 2 * codes - 1)
    save_data("curve.txt", *curve())
    K = rbf(X)
    save_data("kernel.txt", K, codes, precomputed=True)
    table = np.column_stack([X, codes])
    np.savetxt("two.csv", table, delimiter=",", header="x,y,class", comments="")
    return tmp_path


def run(*arguments: str) -> int:
    return main([str(argument) for argument in arguments])


def result(capsys: Any) -> Any:
    return json.loads(capsys.readouterr().out)


def test_train_and_predict(folder, capsys):
    assert run("train", "-c", "10", "-g", "0.5", "two.txt") == 0
    out = capsys.readouterr().out
    assert "c_svc with RBF(gamma=0.5): 60 examples of 2 features" in out
    assert "model: two.txt.model" in out
    assert run("predict", "two.txt", "two.txt.model", "labels.txt") == 0
    machine = load_model("two.txt.model")
    X, codes = blobs(2)
    right = int((machine.predict(X) == 2 * codes - 1).sum())
    assert capsys.readouterr().out == (
        f"Accuracy = {100 * right / N:g}% ({right}/{N}) (classification)\n"
    )
    written = np.loadtxt("labels.txt")
    np.testing.assert_array_equal(written, machine.predict(X))
    assert Path("labels.txt").read_text().split()[0] in ("1", "-1")


def test_options_may_stand_anywhere_and_be_long(folder, capsys):
    assert run("train", "two.txt", "--cost", "10", "a.model", "--gamma=0.5", "-q") == 0
    assert run("train", "-q", "-c", "10", "-g", "0.5", "-s", "c_svc", "two.txt", "b.model") == 0
    assert capsys.readouterr().out == ""
    assert Path("a.model").read_text() == Path("b.model").read_text()


def test_weights_as_in_svm_train(folder):
    for name, words in (
        ("a.model", ["-w1", "5", "-w-1", "0.5"]),
        ("b.model", ["--weight", "1=5", "--weight", "-1=0.5"]),
        ("c.model", []),
    ):
        assert run("train", "-q", *words, "two.txt", name) == 0
    texts = [Path(name).read_text() for name in ("a.model", "b.model", "c.model")]
    assert texts[0] == texts[1] != texts[2]


def test_gamma_is_one_over_the_features_by_default(folder, capsys):
    assert run("train", "--json", "two.txt") == 0
    facts = result(capsys)
    assert facts["kernel"] == "RBF(gamma=0.5)"
    assert facts["converged"] is True
    assert facts["kkt_gap"] <= 1e-3
    assert facts["classes"] == [-1, 1]
    assert facts["model"] == "two.txt.model"


@pytest.mark.parametrize(("number", "name"), list(enumerate(fitting.PARAMETERS)))
def test_every_machine_trains_and_predicts(number, name, folder, capsys):
    data = "curve.txt" if name.endswith("svr") else "two.txt"
    assert run("train", "-s", str(number), "-e", "1e-4", data, "a.model", "--json") == 0
    assert result(capsys)["type"] == name
    assert run("predict", data, "a.model", "--json") == 0
    facts = result(capsys)
    assert facts["total"] == N
    if name.endswith("svr"):
        assert facts["squared_correlation"] > 0.8
        y = curve()[1]
        error = np.mean((np.array(facts["predictions"]) - y) ** 2)
        assert facts["mean_squared_error"] == pytest.approx(error)
        assert facts["squared_correlation"] == pytest.approx(
            np.corrcoef(facts["predictions"], y)[0, 1] ** 2
        )
        assert run("predict", data, "a.model") == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].startswith("Mean squared error = ")
        assert lines[1].startswith("Squared correlation coefficient = ")
    elif name.endswith("svc"):
        assert facts["accuracy"] > 0.8


def test_probabilities_are_written_as_svm_predict_does(folder, capsys):
    assert run("train", "-b", "1", "-q", "two.txt", "a.model") == 0
    assert run("predict", "-b", "two.txt", "a.model", "chances.txt", "-q") == 0
    lines = Path("chances.txt").read_text().splitlines()
    assert lines[0] == "labels -1 1"
    rows = np.array([line.split() for line in lines[1:]], float)
    np.testing.assert_allclose(rows[:, 1:].sum(axis=1), 1.0)
    assert run("predict", "-b", "1", "two.txt", "a.model", "--json") == 0
    assert np.array(result(capsys)["probabilities"]).shape == (N, 2)
    assert run("info", "--json", "a.model") == 0
    assert result(capsys)["probabilities"] == "yes"


def test_precomputed_kernels(folder, capsys):
    assert run("train", "-t", "4", "kernel.txt", "a.model", "--json") == 0
    assert result(capsys)["kernel"] == "precomputed"
    assert run("predict", "kernel.txt", "a.model", "--json") == 0
    assert result(capsys)["accuracy"] > 0.8
    assert run("train", "-t", "precomputed", "-v", "4", "kernel.txt", "--json") == 0
    assert result(capsys)["accuracy"] > 0.8


def test_csv_files(folder, capsys):
    assert run("train", "--label", "class", "two.csv", "a.model", "-q") == 0
    assert run("train", "--label", "last", "two.csv", "b.model", "-q") == 0
    assert Path("a.model").read_text() == Path("b.model").read_text()
    assert run("predict", "--label", "class", "two.csv", "a.model", "--json") == 0
    expected = result(capsys)
    assert expected["accuracy"] > 0.8
    np.savetxt("new.csv", blobs(2)[0], delimiter=",")
    assert run("predict", "--label", "none", "new.csv", "a.model") == 0
    labels = [int(line) for line in capsys.readouterr().out.splitlines()]
    assert labels == expected["predictions"]
    assert run("predict", "new.csv", "a.model") == 1
    assert "new.csv has 1 features, but a.model has 2" in capsys.readouterr().err
    Path("two.table").write_text(Path("two.csv").read_text())
    assert run("train", "--format", "csv", "--label", "class", "two.table", "c.model", "-q") == 0


def test_data_and_models_of_unequal_width(folder, capsys):
    assert run("train", "-q", "-t", "linear", "two.txt", "a.model") == 0
    machine = load_model("a.model")
    Path("narrow.txt").write_text("1 1:0.5\n-1\n")
    Path("wide.txt").write_text("1 1:0.5 7:3\n-1\n")
    for name in ("narrow.txt", "wide.txt"):
        assert run("predict", name, "a.model", "--json") == 0
        assert result(capsys)["predictions"] == machine.predict([[0.5, 0], [0, 0]]).tolist()


def test_cross_validation_prints_what_svm_train_does(folder, capsys):
    assert run("train", "-v", "3", "two.txt") == 0
    out = capsys.readouterr().out
    assert out.startswith("Cross Validation Accuracy = ")
    assert float(out.split("=")[1].strip().removesuffix("%")) > 80
    assert not Path("two.txt.model").exists()
    assert run("train", "-v", "3", "-s", "3", "-q", "curve.txt") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Cross Validation Mean squared error = ")
    assert lines[1].startswith("Cross Validation Squared correlation coefficient = ")


def test_select_prints_a_table_and_the_best_cell(folder, capsys):
    words = ("select", "--C", "0.1,10", "--gamma", "0.01:1:10", "--folds", "3", "two.txt")
    assert run(*words, "--json") == 0
    facts = result(capsys)
    scores = np.array(facts["scores"])
    assert scores.shape == (2, 3, 3)
    assert facts["gamma"] == pytest.approx([0.01, 0.1, 1.0])
    best = np.unravel_index(np.argmax(facts["mean_scores"]), (2, 3))
    assert (facts["best_C"], facts["best_gamma"]) == (
        facts["C"][best[0]],
        facts["gamma"][best[1]],
    )
    assert facts["best_score"] == pytest.approx(scores[best].mean())
    assert run(*words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["C", "gamma=0.01", "gamma=0.1", "gamma=1"]
    assert sum(line.count("*") for line in lines[2:]) == 1
    assert lines[-1].startswith(f"best: -c {facts['best_C']:g} -g {facts['best_gamma']:g} with")
    # the best cell is what train finds in the same folds
    chosen = ("-c", f"{facts['best_C']}", "-g", f"{facts['best_gamma']}")
    assert run("train", "-v", "3", *chosen, "two.txt", "--json") == 0
    assert result(capsys)["accuracy"] == pytest.approx(facts["best_score"], abs=0.05)


def test_select_without_gamma(folder, capsys):
    assert run("select", "-t", "linear", "-s", "3", "--C", "1", "curve.txt", "--json") == 0
    facts = result(capsys)
    assert "gamma" not in facts
    assert facts["score"] == "R2"


def test_info_tells_what_a_model_holds(folder, capsys):
    assert run("train", "-q", "-t", "poly", "-d", "2", "-r", "-1e-3", "two.txt", "a.model") == 0
    machine = load_model("a.model")
    assert run("info", "--json", "a.model") == 0
    facts = result(capsys)
    assert facts == {
        "type": "c_svc",
        "kernel": "polynomial",
        "kernel_parameters": {"degree": 2.0, "gamma": 0.5, "coef0": -0.001},
        "support_vectors": len(machine.support_),
        "classes": 2,
        "support_vectors_of_class": {
            "-1": int(machine.n_support_[0]),
            "1": int(machine.n_support_[1]),
        },
        "features": 2,
        "probabilities": "no",
        "bytes": Path("a.model").stat().st_size,
    }
    assert run("info", "a.model") == 0
    out = capsys.readouterr().out
    assert "degree: 2, gamma: 0.5, coef0: -0.001" in out
    assert "support vectors of class" in out


def test_demo_in_json(folder, capsys, monkeypatch):
    def short(figure, sizes):
        print("a table")
        return [{"n": np.int64(size), "seconds": np.nan} for size in sizes]

    monkeypatch.setattr("jsvm.command.demo.compare", short)
    assert run("demo", "--sizes", "60", "90", "--figure", "a.png", "--json") == 0
    rows = [{"n": 60, "seconds": None}, {"n": 90, "seconds": None}]
    assert result(capsys) == {"figure": "a.png", "rows": rows}


# what is wrong -> files to write, arguments, a part of the message
FAILURES: dict[str, tuple[dict[str, str], tuple[str, ...], str]] = {
    "no data": ({}, ("train", "nothing.txt"), "No such file"),
    "no model": ({}, ("predict", "two.txt", "nothing.model"), "No such file"),
    "wrong data": ({"a.txt": "1 1:1\n1 x:2\n"}, ("train", "a.txt"), "a.txt, line 2: index 'x'"),
    "wrong model": ({}, ("info", "two.txt"), "two.txt, line 1: .* is no keyword"),
    "one class": ({"a.txt": "1 1:1\n1 1:2\n"}, ("train", "a.txt"), "one class"),
    "fractional labels": ({}, ("train", "curve.txt"), "not a whole number.*epsilon_svr"),
    "folds": ({"a.txt": "1 1:1\n2 1:2\n"}, ("train", "-v", "5", "a.txt"), "--folds 5"),
    "no probabilities": ({}, ("predict", "-b", "1", "two.txt", "MODEL"), "train it with -b 1"),
    "output": ({}, ("predict", "two.txt", "MODEL", "no/where"), "No such file"),
    "label": ({}, ("train", "--label", "z", "two.csv"), "no such column, but x, y, class"),
    "no label": ({}, ("train", "--label", "none", "two.csv"), "training needs labels"),
    "csv cell": ({"a.csv": "1,2\n2,x\n"}, ("train", "a.csv"), "line 2: column 2: 'x'"),
    "csv cell with a name": ({"a.csv": "a,b\n2,\n"}, ("train", "a.csv"), "line 2: b: '' is not"),
    "csv width": ({"a.csv": "1,2\n\n2,3,4\n"}, ("train", "a.csv"), "line 3: 3 cells instead of 2"),
    "csv NaN": ({"a.csv": "1,2\n2,nan\n"}, ("train", "a.csv"), "line 2: NaN or infinity"),
    "csv underscores": ({"a.csv": "1,2\n2,1_0\n"}, ("train", "a.csv"), "'1_0' is not a number"),
    "csv quotes": ({"a.csv": '1,2\n2,"3\n'}, ("train", "a.csv"), "a.csv, line 2: "),
    "empty csv": ({"a.csv": "a,b\n"}, ("train", "a.csv"), "holds no examples"),
    "nu": ({}, ("train", "-s", "1", "-n", "1.5", "two.txt"), "nu=1.5"),
    "square": (
        {"a.txt": "1 0:1 1:1\n2 0:2 1:1\n"},
        ("train", "-t", "4", "a.txt"),
        "must be square",
    ),
}


@pytest.mark.parametrize("name", FAILURES)
def test_failures_end_with_one_and_a_message(name, folder, capsys, tmp_path_factory):
    files, words, message = FAILURES[name]
    for path, content in files.items():
        Path(path).write_text(content)
    if "MODEL" in words:
        assert run("train", "-q", "two.txt", "MODEL") == 0
    assert run(*words) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"jsvm {words[0]}: error: ")
    assert captured.err.count("\n") == 1

    assert re.search(message, captured.err)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "command"),
        (("fly",), "invalid choice: 'fly'"),
        (("train",), "data"),
        (("train", "-s", "9", "two.txt"), "9 is none of c_svc"),
        (("train", "-t", "laplacian", "two.txt"), "laplacian is none of linear"),
        (("train", "-c", "-1", "two.txt"), "-1 must be a positive number"),
        (("train", "-c", "x", "two.txt"), "--cost"),
        (("train", "-g", "-2", "two.txt"), "-2 must be auto, scale or a number >= 0"),
        (("train", "-d", "1.5", "two.txt"), "1.5 must be a whole number >= 0"),
        (("train", "-v", "1", "two.txt"), "1 must be a whole number >= 2"),
        (("train", "-s", "3", "-b", "1", "two.txt"), "--probability is for c_svc and nu_svc"),
        (("train", "-s", "1", "-w1", "2", "two.txt"), "--weight is for c_svc"),
        (("train", "--weight", "5", "two.txt"), "5 must be LABEL=W"),
        (("train", "--unknown", "two.txt"), "--unknown"),
        (("select", "-s", "2", "two.txt"), "select varies C"),
        (("select", "--C", "1:2", "two.txt"), "1:2 must be begin:end:factor"),
        (("select", "--C", "1:100:1", "two.txt"), "a factor above 1"),
        (("select", "--C", "1:1e300:1.0001", "two.txt"), "more than 1000 values"),
        (("select", "--C", "1,inf", "two.txt"), "inf must be a finite number"),
        (("train", "-r", "nan", "two.txt"), "nan must be a finite number"),
    ],
)
def test_wrong_usage_ends_with_two(words, message, folder, capsys):
    with pytest.raises(SystemExit) as ended:
        run(*words)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("command", ["train", "predict", "select", "info", "warm-up", "demo"])
def test_help_has_examples(command, capsys):
    with pytest.raises(SystemExit) as ended:
        run(command, "--help")
    assert ended.value.code == 0
    assert f"examples:\n  jsvm {command}" in capsys.readouterr().out


@pytest.mark.parametrize("words", [("train",), ("train", "-v", "2"), ("select", "-v", "2")])
def test_errors_of_the_estimator_name_the_file(words, folder, capsys):
    Path("few.txt").write_text("1 0:1 1:4\n-1 0:2 1:6\n1 0:3 1:6\n")
    assert run(*words, "-t", "precomputed", "few.txt") == 1
    assert f"jsvm {words[0]}: error: few.txt: " in capsys.readouterr().err
    Path("one.txt").write_text("1 1:2\n")
    assert run(*words, "one.txt") == 1
    assert f"jsvm {words[0]}: error: one.txt: " in capsys.readouterr().err


def test_interruption_ends_with_130(folder, capsys, monkeypatch):
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(fitting, "training_data", interrupt)
    assert run("train", "two.txt") == 130
    assert capsys.readouterr().err == "jsvm train: interrupted\n"


def test_a_fit_that_is_interrupted_leaves_its_best_point(folder, monkeypatch):
    ended = [SimpleNamespace(status=int(Status.CONVERGED)), SimpleNamespace(status=0)]
    assert not fitting.interrupted(SimpleNamespace(solutions_=ended[:1]))
    ended[1].status = int(Status.INTERRUPTED)
    assert fitting.interrupted(SimpleNamespace(solutions_=ended))
    monkeypatch.setattr(fitting, "interrupted", lambda _: True)
    assert run("train", "-q", "two.txt") == 130
    assert load_model("two.txt.model").n_support_.sum() > 0
    assert run("train", "-v", "3", "two.txt") == 130


def test_warnings_are_one_line(folder, capsys, monkeypatch):
    build = fitting.build
    monkeypatch.setattr(fitting, "build", lambda *a, **k: build(*a, **k).set_params(max_iter=1))
    assert run("train", "-q", "two.txt") == 0
    err = capsys.readouterr().err
    assert err.startswith("jsvm: warning: SVC stopped at a KKT gap")
    assert err.count("\n") == 1


def test_the_program_runs_on_its_own(folder):
    program = [sys.executable, "-m", "jsvm", "info", "--json", "nothing.model"]
    ended = subprocess.run(program, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    assert "No such file" in ended.stderr


def test_arguments_are_spelled_out():
    given = ["-w-1", "2.5", "-b", "data", "-r", "-1e-3", "--coef0", "-2", "-b", "0", "-w7"]
    assert spelled_out(given) == [
        "--weight=-1=2.5",
        "--probability=1",
        "data",
        "-r-1e-3",
        "--coef0=-2",
        "--probability=0",
        "-w7",
    ]


def test_grids():
    assert grid("0.5") == [0.5]
    assert grid("1e-2:1e4:10") == pytest.approx([10.0**k for k in range(-2, 5)])
    assert grid("1:9:2") == [1.0, 2.0, 4.0, 8.0]


def test_folds_share_classes_and_cover_everything():
    y = np.repeat([1, 2, 3], [30, 20, 10])
    folds = fitting.folds(y, argparse.Namespace(folds=5, seed=3, type="c_svc"))
    np.testing.assert_array_equal(np.sort(np.concatenate([test for _, test in folds])), range(60))
    for train_part, test in folds:
        np.testing.assert_array_equal(np.bincount(y[test])[1:], [6, 4, 2])
        assert not set(train_part) & set(test)


def test_csv_with_a_mark_quotes_and_windows_line_ends(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b'\xef\xbb\xbf"label","a, b"\r\n1,"2.5"\r\n\r\n2,-3e1\r\n')
    X, y = read_csv(path, "label")
    np.testing.assert_array_equal(X, [[2.5], [-30.0]])
    np.testing.assert_array_equal(y, [1.0, 2.0])
