"""Faults on purpose: whatever happens to a run, what was promised holds.

A trial injects one fault into a warm run, at a place that is drawn from its number: SIGINT, a full
disk, a folder that vanishes, an exception in the callback, kill −9, and use by several threads,
processes and forks. Then the promise is checked: a solution that `jsvm.problems.check` finds
nothing wrong with, files that are whole, and the same bits from the next run of the same process.
Trials run in a process of their own, with a time-out.
"""

import os
import resource
import select
import shutil
import signal
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
from tqdm import tqdm

from bench.trust_common import SPAWN, NoAnswerError, Rows, Worker, table
from jsvm import SVC, kernels, problems, solve
from jsvm.problems import QuadraticProgram
from jsvm.solvers import PSMO, SMO, Solution, Status, Tuning
from jsvm.solvers.checkpoint import Checkpoint

ROWS = Rows("trust_faults.jsonl")
SECONDS = 300.0  # a trial; more is a hang
FORK_SECONDS = 20.0
TOO_LATE = "the run had ended"  # before the fault; such trials do not count
TILES = Tuning(largest_whole=0, tiles=(64,), tile_slots=(64,))

Draw = np.random.Generator
Outcome = tuple[str, list[str]]  # what happened, and what is wrong about it


class Run(NamedTuple):
    """A problem and its solver."""

    problem: QuadraticProgram
    solver: SMO | PSMO

    def solve(self, **options: Any) -> Solution:
        """Solve with further arguments of :func:`jsvm.solve`."""
        return solve(self.problem, self.solver, **options)


@cache
def run(name: str) -> Run:
    """Return a small problem whose solution takes some milliseconds."""
    draw = np.random.default_rng(0)
    X = draw.uniform(0, 4, (400, 2))
    y = np.where(np.floor(X).sum(1) % 2 == 0, 1.0, -1.0)
    few, K = X[:150], kernels.RBF(0.5)
    if name == "one tile":
        return Run(problems.c_svc((K, few), y[:150], 10.0), SMO())
    if name == "tiles":
        return Run(problems.c_svc((K, X), y, 1e3), SMO(tol=1e-6, tuning=TILES))
    if name == "regression":
        return Run(problems.epsilon_svr((K, few), np.sin(few[:, 0]), 10.0, 0.01), SMO())
    return Run(problems.psvm((K, few), y[:150], 1e3, 0.1), PSMO())


NAMES = ("one tile", "tiles", "regression", "P-SVM")


@cache
def reference(name: str) -> tuple[Solution, float]:
    """Return the undisturbed solution, and how many seconds it takes when everything is warm."""
    solution, seconds = run(name).solve(), []
    for _ in range(5):
        begun = time.perf_counter()
        run(name).solve()
        seconds.append(time.perf_counter() - begun)
    return solution, min(seconds)


def bits(solution: Solution) -> bytes:
    """Return all numbers of an answer as they are."""
    numbers = (solution.alpha, solution.bias, solution.objective, solution.violation)
    return b"".join(np.asarray(number).tobytes() for number in numbers)


def unlike_before(name: str) -> list[str]:
    """Solve once more; complain unless the bits are those of the undisturbed solution."""
    same = bits(run(name).solve()) == bits(reference(name)[0])
    return [] if same else ["the next run has other bits"]


def false_claims(name: str, solution: Solution) -> list[str]:
    return list(problems.check(run(name).problem, solution, run(name).solver.tol).complaints)


def interrupt(draw: Draw) -> Outcome:
    """SIGINT at a random time of the run."""
    name = str(draw.choice(NAMES))
    seconds = reference(name)[1]
    sent = []

    def ring(_: int, frame: Any) -> None:
        while frame is not None and frame.f_code is not Run.solve.__code__:
            frame = frame.f_back
        if frame is not None:  # else the run has already ended
            sent.append(True)
            signal.raise_signal(signal.SIGINT)

    previous = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, max(1e-6, draw.uniform(0, seconds)))
        solution = run(name).solve()
    except KeyboardInterrupt as error:
        frames = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
        late = [n for n in frames if n in ("begin", "finish", "release")]
        return "KeyboardInterrupt before the run", unlike_before(name) + late
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    wrong = false_claims(name, solution)
    if solution.status not in (Status.INTERRUPTED, Status.CONVERGED):
        wrong.append(f"status {Status(solution.status).name}")
    outcome = f"{Status(solution.status).name} solution" if sent else TOO_LATE
    return outcome, wrong + unlike_before(name)


@contextmanager
def checkpoints_every_round() -> Any:
    interval, Checkpoint.interval = Checkpoint.interval, 0.0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        try:
            yield Path(folder)
        finally:
            Checkpoint.interval = interval


def warned(name: str, **options: Any) -> tuple[Solution, list[str]]:
    """Solve; return also the texts of RuntimeWarnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        solution = run(name).solve(**options)
    return solution, [str(w.message) for w in caught if w.category is RuntimeWarning]


def not_saved(name: str, path: Path, **options: Any) -> Outcome:
    """Solve with a checkpoint that cannot be written: a warning, and the same solution."""
    solution, texts = warned(name, checkpoint=path, **options)
    wrong = false_claims(name, solution) + unlike_before(name)
    if solution.status != Status.CONVERGED:
        wrong.append(f"status {Status(solution.status).name}")
    if not any(str(path) in text and "not written" in text for text in texts):
        wrong.append(f"no warning about the checkpoint, but {texts}")
    return "solution and warning", wrong


def full_disk(draw: Draw) -> Outcome:
    """No space left: ENOSPC from /dev/full, or a limit within the file; an old file survives."""
    name = str(draw.choice(NAMES))
    with checkpoints_every_round() as folder:
        path = folder / "run.npz"
        run(name).solve(checkpoint=path)
        whole = path.read_bytes()
        if draw.random() < 0.5:
            (folder / "run.npz.new").symlink_to("/dev/full")
            outcome, wrong = not_saved(name, path)
        else:
            soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (int(draw.integers(len(whole))), hard))
            try:
                outcome, wrong = not_saved(name, path)
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        if path.read_bytes() != whole:
            wrong.append("the old checkpoint was changed")
    return outcome, wrong


def lost_folder(draw: Draw) -> Outcome:
    """The folder of the checkpoint vanishes in a random round."""
    name = str(draw.choice(NAMES))
    last = int(draw.integers(len(reference(name)[0].history)))
    with checkpoints_every_round() as folder:
        rounds = iter(range(last + 1))

        def remove(_: Any) -> None:
            if next(rounds, None) == last:
                shutil.rmtree(folder)

        return not_saved(name, folder / "run.npz", callback=remove)


def callback_error(draw: Draw) -> Outcome:
    """An exception in the callback propagates, and leaves nothing behind."""
    name = str(draw.choice(NAMES))
    last = int(draw.integers(len(reference(name)[0].history)))
    rounds, raised = iter(range(last + 1)), ZeroDivisionError("on purpose")

    def fail(_: Any) -> None:
        if next(rounds, None) == last:
            raise raised

    try:
        run(name).solve(callback=fail)
    except ZeroDivisionError as error:
        return "the exception", unlike_before(name) + ([] if error is raised else ["another one"])
    return "no exception", ["the exception got lost"]


def killed(draw: Draw) -> Outcome:
    """Kill −9 at a random time; the file is whole or absent, and the run goes on from it."""
    name = str(draw.choice(NAMES))
    with checkpoints_every_round() as folder:
        path = folder / "run.npz"
        mine, theirs = SPAWN.Pipe()
        victim = SPAWN.Process(target=_victim, args=(name, path, theirs))
        victim.start()
        seconds = mine.recv() if mine.poll(SECONDS / 2) else 0.0
        time.sleep(draw.uniform(0, seconds))
        victim.kill()
        victim.join()
        ended, saved = mine.poll(), path.exists()
        solution = run(name).solve(checkpoint=path)
    wrong = false_claims(name, solution)
    found, expected = float(solution.objective), reference(name)[0]
    precision = max(float(expected.duality_gap), float(solution.duality_gap), 1e-9 * abs(found))
    if abs(found - float(expected.objective)) > precision:
        wrong.append(f"objective {found}, undisturbed {float(expected.objective)}")
    if solution.status != Status.CONVERGED:
        wrong.append(f"status {Status(solution.status).name}")
    if not seconds:
        wrong.append("the victim did not begin")
    return TOO_LATE if ended else f"killed {'after' if saved else 'before'} a save", wrong


def _victim(name: str, path: Path, connection: Any) -> None:
    """Run as a process: warm up, say how long a run with checkpoints takes, and run again."""
    with checkpoints_every_round() as folder:
        run(name).solve(checkpoint=folder / "first")
        begun = time.perf_counter()
        run(name).solve(checkpoint=folder / "second")
        connection.send(time.perf_counter() - begun)
        run(name).solve(checkpoint=path)
        connection.send("ended")


def fitted(gamma: float) -> bytes:
    """Fit three classes; return all numbers of the machine."""
    X = np.random.default_rng(1).normal(size=(120, 2))
    y = (X[:, 0] > 0.5).astype(int) + (X[:, 1] > 0)
    machine = SVC(C=10.0, gamma=gamma).fit(X, y)
    numbers = (machine.dual_coef_, machine.intercept_, machine.decision_function(X))
    return b"".join(np.asarray(number).tobytes() for number in numbers)


def solved(name: str) -> bytes:
    return bits(run(name).solve())


def same_bits(found: Sequence[Any], expected: list[bytes]) -> list[str]:
    differing = sum(a != b for a, b in zip(found, expected, strict=True))
    return [f"{differing} of {len(expected)} differ"] if differing else []


def threads(draw: Draw) -> Outcome:
    """Eight runs and eight fits in four threads at once."""
    widths, names = draw.uniform(0.1, 1.0, 8).tolist(), draw.choice(NAMES, 8).tolist()
    expected = [*map(fitted, widths), *map(solved, names)]
    with ThreadPoolExecutor(4) as pool:
        fits, runs = pool.map(fitted, widths), pool.map(solved, names)
    return "same bits", same_bits([*fits, *runs], expected)


def processes(draw: Draw) -> Outcome:
    """Fits in spawned processes, by concurrent.futures or by joblib."""
    widths = draw.uniform(0.1, 1.0, 4).tolist()
    expected = [fitted(width) for width in widths]
    if draw.random() < 0.5:
        with ProcessPoolExecutor(2, SPAWN) as pool:
            found = list(pool.map(fitted, widths))
    else:
        parallel = joblib.Parallel(n_jobs=2, backend="loky")
        found = list(parallel(joblib.delayed(fitted)(width) for width in widths))
    return "same bits", same_bits(found, expected)


def fork(draw: Draw) -> Outcome:
    """A fit in a forked process, after one in its parent; JAX does not promise that it works."""
    width = float(draw.uniform(0.1, 1.0))
    expected = fitted(width)
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        try:
            os.write(writer, b"worked" if fitted(width) == expected else b"other bits")
        except BaseException as error:
            os.write(writer, type(error).__name__.encode())
        finally:
            os._exit(0)
    os.close(writer)
    answered = select.select([reader], [], [], FORK_SECONDS)[0]
    outcome = os.read(reader, 100).decode() or "died" if answered else "hang"
    os.close(reader)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return outcome, [] if outcome in ("worked", "RuntimeError") else [outcome]


class Fault(NamedTuple):
    """What is injected, how many trials there are for one interrupt, and what is promised."""

    inject: Callable[[Draw], Outcome]
    share: float
    promise: str


FAULTS = {
    "SIGINT": Fault(interrupt, 1, "true claims; before the run KeyboardInterrupt"),
    "full disk": Fault(full_disk, 1 / 3, "a warning, the solution, the old checkpoint"),
    "folder lost": Fault(lost_folder, 1 / 3, "a warning, the solution"),
    "callback fails": Fault(callback_error, 1 / 3, "its exception, then the same bits"),
    "kill −9": Fault(killed, 2 / 15, "a whole checkpoint or none, then the same optimum"),
    "threads": Fault(threads, 1 / 15, "the same bits"),
    "processes": Fault(processes, 1 / 30, "the same bits"),
    "fork after use": Fault(fork, 1 / 60, "the same bits, or a RuntimeError"),
}


def judged(trial: tuple[str, int]) -> dict[str, Any]:
    """Inject the fault of a trial; return what happened."""
    fault, number = trial
    begun = time.perf_counter()
    try:
        outcome, wrong = FAULTS[fault].inject(np.random.default_rng(number))
    except BaseException as error:  # whatever it is, it is a finding
        outcome, wrong = type(error).__name__, [f"{type(error).__name__}: {error}"]
    seconds = time.perf_counter() - begun
    return {"fault": fault, "number": number, "outcome": outcome, "wrong": wrong, "s": seconds}


def inject(trials: int, first: int = 0, only: str | None = None) -> None:
    """Run `trials` interrupts and their share of the other faults."""
    with Worker(judged) as worker:
        for fault in FAULTS if only is None else (only,):
            count = max(1, round(trials * FAULTS[fault].share))
            for number in tqdm(range(first, first + count), unit=" trials", desc=fault):
                try:
                    row = worker.ask((fault, number), SECONDS)
                except NoAnswerError as error:
                    row = {"fault": fault, "number": number, "outcome": "hang"}
                    row |= {"wrong": [str(error)], "s": SECONDS}
                ROWS.append(row)
                if row["wrong"]:
                    tqdm.write(str(row))


def report() -> str:
    """Return the section about faults."""
    rows, cells = [row for row in ROWS.read() if row["outcome"] != TOO_LATE], []
    for fault, (_, _, promise) in FAULTS.items():
        own = [row for row in rows if row["fault"] == fault]
        outcomes = Counter(row["outcome"] for row in own)
        what = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
        cells.append([fault, promise, len(own), sum(not row["wrong"] for row in own), what])
    head = ("fault", "promised", "injected", "survived", "what happened")
    return "\n".join(["## Faults", "", "`python -m bench.trust faults`", "", *table(head, cells)])
