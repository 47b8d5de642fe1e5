"""Fuzzing of all readers: damaged files are read consistently, or refused with a reason.

An input is drawn from its number alone: a reader, a valid file of those that it reads, and some
damages (`trust_mutations`). What a reader may do is return an object whose shapes fit and whose
numbers are finite, or raise a ValueError that names the file; a command may end with 0, or with 1
and such a message. Anything else is a finding: another exception, no answer within seconds, memory
beyond a limit, a NaN. Findings are stored as they are, and their names say how to read them.
"""

import contextlib
import io
import resource
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from tqdm import tqdm

from bench import trust_mutations as mutations
from bench.trust_common import FOLDER, NoAnswerError, Rows, Worker, table
from jsvm import SVC, SVR, NuSVC, NuSVR, OneClassSVM, kernels, problems, solve
from jsvm.command import main
from jsvm.command.fitting import read_csv
from jsvm.io import load_data, load_model, save_data, save_model
from jsvm.solvers import Status

ROWS = Rows("trust_fuzz.jsonl")
FINDINGS = FOLDER / "findings"
BATCH = 100  # inputs between two rows
MEMORY = 2**31  # bytes beside those of the imports and of the compiled programs
N = 12


class WrongError(Exception):
    """An object that is not consistent, or a message that does not name the file."""


def _points() -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(0)
    X = np.round(draw.normal(size=(N, 3)), 3)
    X[np.abs(X) < 0.5] = 0.0
    return X, np.where(X.sum(1) > 0, 1, -1)


@cache
def valid(kind: str) -> tuple[bytes, ...]:
    """Return valid files of a kind."""
    X, y = _points()
    three, curve = np.arange(N) % 3, np.sin(X[:, 0])
    K = X @ X.T + np.eye(N)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"

        def written(write: Callable[..., Any], *content: Any, **options: Any) -> bytes:
            write(*content, **options)
            return path.read_bytes()

        if kind == "data":
            save = partial(save_data, path)
            sparser = np.pad(X, ((0, 0), (20, 27)))
            files = [written(save, X, y), written(save, X, curve), written(save, sparser, three)]
            return (*files, b"# a title\n\n+1  1:.5\t3:-2e0 \r\n -1\n2 2:1 # the end\n0.5 1:1")
        if kind == "kernel matrix":
            return (written(partial(save_data, path), K, y, precomputed=True),)
        if kind == "csv":
            rows = np.column_stack([y, X]).tolist()
            plain = b"\n".join(b",".join(b"%.3f" % number for number in row) for row in rows)
            quoted = b'"class","x y","z"\n1,"2.5",3\n-1,0,"1e3"\n1,1,1\n-1,2,2\n'
            return plain + b"\n", b"class,a,b,c\n" + plain, quoted, quoted.replace(b"\n", b"\r\n")
        if kind == "checkpoint":
            path = path.with_suffix(".npz")
            return (written(solve, _problem(), checkpoint=path),)
        machines = [
            (SVC("linear"), X, y),
            (SVC(gamma=0.5, calibration="platt"), X, y),
            (SVC("poly", degree=2, coef0=1.0, calibration="platt"), X, three),
            (SVC("sigmoid", gamma=0.1, coef0=-0.1), X, three),
            (NuSVC("precomputed", nu=0.5), K, y),
            (OneClassSVM(gamma=0.5), X, None),
            (SVR("precomputed"), K, curve),
            (NuSVR(gamma=0.5), X, curve),
        ]
        save = partial(save_model, path=path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return tuple(written(save, machine.fit(X, y)) for machine, X, y in machines)


@cache
def _problem() -> Any:
    X, y = _points()
    return problems.c_svc((kernels.RBF(0.5), X), y.astype(float), 10.0)


def require(condition: Any, what: str) -> None:
    if not condition:
        raise WrongError(what)


def _consistent_data(X: Any, y: np.ndarray | None) -> None:
    require(X.ndim == 2 and (y is None or y.shape == X.shape[:1]), "shapes do not fit")
    numbers = X.data if sparse.issparse(X) else X
    require(np.isfinite(numbers).all(), "X is not finite")
    require(y is None or np.isfinite(y).all(), "y is not finite")
    if sparse.issparse(X):
        X.check_format(full_check=True)
        require(X.has_sorted_indices, "indices are not sorted")


def read_data(path: Path, **options: Any) -> None:
    X, y = load_data(path, **options)
    _consistent_data(X, y)
    require(X.dtype == options.get("dtype", float), "another dtype")


def read_table(path: Path, label: str) -> None:
    X, y = read_csv(path, label)
    _consistent_data(X, y)
    require((y is None) == (label == "none"), "labels")


def read_model(path: Path) -> None:
    machine = load_model(path)
    n = machine.dual_coef_.shape[1]
    classes = len(getattr(machine, "classes_", [0, 1]))
    require(machine.dual_coef_.shape[0] == classes - 1, "coefficients do not fit")
    require(len(machine.intercept_) == classes * (classes - 1) // 2, "intercepts do not fit")
    require(machine.n_support_.sum() == n == len(machine.support_), "counts do not fit")
    require((np.diff(getattr(machine, "classes_", [0, 1])) > 0).all(), "classes are not sorted")
    wide = machine.n_features_in_ > 10_000
    if wide and machine.kernel_ == "precomputed":
        return  # which takes a dense row for each point
    zeros = (sparse.csr_matrix if wide else np.zeros)((1, machine.n_features_in_))
    methods = ("predict", "decision_function", "predict_proba")
    for method in (method for method in methods if hasattr(machine, method)):
        values = getattr(machine, method)(zeros)
        require(len(values) == 1 and np.isfinite(values).all(), f"{method} gives {values}")


def read_checkpoint(path: Path) -> None:
    solution = solve(_problem(), checkpoint=path)
    require(solution.status == Status.CONVERGED, f"status {Status(solution.status).name}")
    complaints = problems.check(_problem(), solution, 1e-3).complaints
    require(not complaints, str(complaints))


def command(path: Path, *arguments: str) -> None:
    """Run a command on the file, in the place of {}, beside valid ones; it writes into the void."""
    folder = path.parent
    for name, kind in (("beside.txt", "data"), ("beside.model", "model")):
        (folder / name).write_bytes(valid(kind)[0])
    places = {"{}": str(path), "{data}": str(folder / "beside.txt"), "{void}": str(folder / "void")}
    places["{model}"] = str(folder / "beside.model")
    said, complained = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complained):
        code = main([places.get(argument, argument) for argument in arguments])
    if code == 1:
        text = complained.getvalue()
        require(any(place in text for place in places.values()), f"names no file: {text}")
        raise ValueError(f"{path}: {text}")
    require(code == 0, f"exit code {code}")
    require("nan" not in said.getvalue().lower(), said.getvalue()[:500])


class Reader(NamedTuple):
    """How a file is read, which files are damaged and how, and seconds that are not a hang."""

    read: Callable[[Path], None]
    kind: str
    ending: str = ".txt"
    damages: tuple[mutations.Mutation, ...] = mutations.TEXT
    seconds: float = 5.0


def _command(*arguments: str, kind: str, ending: str = ".txt") -> Reader:
    return Reader(lambda path: command(path, *arguments), kind, ending, seconds=60.0)


READERS = {
    "data": Reader(read_data, "data"),
    "data-dense": Reader(partial(read_data, dense=True, dtype=np.float32), "data"),
    "data-width": Reader(partial(read_data, n_features=60), "data"),
    "kernel-matrix": Reader(partial(read_data, precomputed=True, dense=True), "kernel matrix"),
    "csv-first": Reader(partial(read_table, label="first"), "csv", ".csv"),
    "csv-last": Reader(partial(read_table, label="last"), "csv", ".csv"),
    "csv-none": Reader(partial(read_table, label="none"), "csv", ".csv"),
    "model": Reader(read_model, "model", ".model", seconds=60.0),
    "checkpoint": Reader(read_checkpoint, "checkpoint", ".npz", mutations.ARCHIVE, 60.0),
    "jsvm-info": _command("info", "--json", "{}", kind="model", ending=".model"),
    "jsvm-predict": _command("predict", "{data}", "{}", kind="model", ending=".model"),
    "jsvm-predict-data": _command("predict", "{}", "{model}", "{void}", kind="data"),
    "jsvm-train": _command("train", "{}", "{void}", kind="data"),
    "jsvm-train-csv": _command("train", "{}", "{void}", kind="csv", ending=".csv"),
    "jsvm-folds": _command("train", "-v", "2", "-t", "4", "{}", kind="kernel matrix"),
    "jsvm-select": _command("select", "-t", "0", "--C", "1", "-v", "2", "{}", kind="data"),
    "jsvm-train-kernel": _command("train", "-t", "4", "{}", "{void}", kind="kernel matrix"),
}


def drawn(reader: str, number: int) -> bytes:
    """Return the damaged file of this number."""
    draw = np.random.default_rng([number, *reader.encode()])
    how = READERS[reader]
    files = valid(how.kind)
    content = files[draw.integers(len(files))]
    for _ in range(draw.integers(1, 4)):
        content = how.damages[draw.integers(len(how.damages))](content, draw)
    return content


def judged(reader: str, path: Path) -> str:
    """Read a file: 'accepted', 'refused', or what is wrong."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            READERS[reader].read(path)
    except WrongError as error:
        return f"wrong: {error}"
    except ValueError as error:
        return "refused" if str(path) in str(error) else f"does not name the file: {error}"[:500]
    except (Exception, SystemExit) as error:
        return f"{type(error).__name__}: {error}"[:500]
    return "accepted"


def prepare() -> None:
    """Compile what the readers need, then limit the memory of this process."""
    for reader, (_, kind, ending, _, _) in READERS.items():
        for content in valid(kind):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / f"valid{ending}"
                path.write_bytes(content)
                require(judged(reader, path) in ("accepted", "refused"), f"{reader}: {content}")
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))


def answer(request: tuple[str, str]) -> str:
    """Judge a file, as a worker."""
    return judged(request[0], Path(request[1]))


def fuzz(minutes: float, first: int = 0, only: str | None = None) -> None:
    """Read damaged files until time is over, in turns of all readers."""
    begun = time.perf_counter()
    with (
        Worker(answer, prepare) as worker,
        tempfile.TemporaryDirectory() as folder,
        tqdm(mininterval=5) as bar,
    ):
        for turn in count(first // BATCH):
            for reader, (_, _, ending, _, seconds) in READERS.items():
                if only is not None and only != reader:
                    continue
                row = {"reader": reader, "first": turn * BATCH, "accepted": 0, "refused": 0}
                findings = []
                for number in range(turn * BATCH, (turn + 1) * BATCH):
                    path = Path(folder) / f"{reader}.{number}{ending}"
                    path.write_bytes(drawn(reader, number))
                    try:
                        found = worker.ask((reader, str(path)), seconds)
                    except NoAnswerError as error:
                        found = str(error)
                    if found in row:
                        row[found] += 1
                        path.unlink()
                    else:
                        FINDINGS.mkdir(exist_ok=True)
                        kept = FINDINGS / path.name
                        kept.write_bytes(path.read_bytes())
                        findings.append([path.name, found])
                        tqdm.write(f"python -m bench.trust replay-file {kept}: {found}")
                    bar.update()
                ROWS.append(row | {"inputs": BATCH, "findings": findings})
                if time.perf_counter() - begun > 60 * minutes:
                    return


def replay(path: Path) -> str:
    """Read a stored finding again; its name begins with the reader."""
    return judged(path.name.split(".")[0], path)


def report() -> str:
    """Return the section about fuzzing."""
    rows, cells = list(ROWS.read()), []
    for reader in READERS:
        own = [row for row in rows if row["reader"] == reader]
        inputs, accepted, refused = (
            sum(row[key] for row in own) for key in ("inputs", "accepted", "refused")
        )
        cells.append([reader, inputs, accepted, refused, inputs - accepted - refused])
    head = ("reader", "inputs", "accepted", "refused", "findings")
    return "\n".join(["## Fuzzing", "", "`python -m bench.trust fuzz`", "", *table(head, cells)])
