"""Times of jsvm beside LIBSVM, scikit-learn-intelex and the physical limit.

    python -m bench.solvers [--only NAME ...] [--repeat 5] [--budget 1800] [--tol 1e-3]
                            [--peers libsvm intelex] [--no-precise] [--no-write]
    python -m bench.solvers --memory [NAME ...]      peak memory of single fits
    python -m bench.solvers --prediction             times of decision functions

All solvers of a problem run in one process and take turns. Every answer is recomputed in NumPy.
A run without `--only` measures everything, memory and prediction included. Rows are written after
every problem, over those of earlier runs.
"""

import argparse
from datetime import datetime
from typing import Any

import jax
import numpy as np

from bench import memory, peers, prediction, report, store, witness
from bench.cases import CASES, Case
from bench.timing import Contestant, race

PRECISE = 1e-8


def contestants(
    case: Case, X: np.ndarray, y: np.ndarray, tol: float, chosen: list[str], precise: bool
) -> list[Contestant]:
    """Return jsvm, the chosen peers and the limit, in the order of their turns."""
    jsvm = Contestant("jsvm", lambda: peers.fit_jsvm(case, X, y, tol), compiles=True)
    runners = [jsvm]
    if precise:
        run = lambda: peers.fit_jsvm(case, X, y, PRECISE)  # noqa: E731
        runners.append(Contestant("jsvm 1e-8", run, compiles=True))
    for name in chosen:
        runners.append(Contestant(name, lambda fit=peers.PEERS[name]: fit(case, X, y, tol)))

    def rows(exp: bool) -> None:
        if jsvm.result is None:
            raise RuntimeError("no support vectors")
        peers.kernel_rows(X, jsvm.result.support_, case.gamma, exp=exp)

    runners.append(Contestant("limit", lambda: rows(exp=True)))
    runners.append(Contestant("product", lambda: rows(exp=False)))
    return runners


def entry(runner: Contestant, case: Case, X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Return what is stored of a contestant: times, notes and the recomputed answer."""
    answer = None
    if runner.result is not None and not runner.error:
        alpha = witness.signed_alpha(runner.result, len(y))
        answer = witness.judge(X, y, alpha, case.C, case.gamma)._asdict()
    return {
        "attempted": True,
        "times": runner.times,
        "median": runner.median,
        "first": runner.first,
        "answer": answer,
        "warning": runner.warning,
        "error": runner.error,
    }


def excused(
    case: Case, n: int, wanted: list[str], budget: float, stored: dict[str, Any]
) -> dict[str, str]:
    """Return why a peer does not run, for those that do not."""
    reasons = {}
    for name in wanted:
        seconds = store.forecast(stored, case.family, name, n)
        if not getattr(case, name):
            reasons[name] = "skipped (far too long)"
        elif name == "intelex" and not peers.has_intelex():
            reasons[name] = "skipped (scikit-learn-intelex is not installed)"
        elif seconds is not None and seconds > budget:
            reasons[name] = f"skipped (estimated {seconds:,.0f} s)"
    return reasons


def measure(case: Case, options: argparse.Namespace, stored: dict[str, Any]) -> dict[str, Any]:
    """Return the row of a problem; one that says "absent" where the data are."""
    loaded = case.load()
    if loaded is None:
        return {"absent": True}
    X, y = loaded
    reasons = excused(case, len(y), options.peers, options.budget, stored)
    chosen = [name for name in options.peers if name not in reasons]
    # The first fit is then what it is in a fresh process, whatever problem came before.
    jax.clear_caches()
    runners = contestants(case, X, y, options.tol, chosen, not options.no_precise)
    race(runners, options.repeat)
    solvers = {runner.name: entry(runner, case, X, y) for runner in runners}
    for name, reason in reasons.items():
        solvers[name] = {"attempted": False, "times": [], "answer": None, "error": reason}
    when = datetime.now().isoformat(timespec="seconds")
    for value in solvers.values():
        value["when"] = when
    return {
        "n": len(y),
        "d": X.shape[1],
        "C": case.C,
        "gamma": case.gamma,
        "tol": options.tol,
        "family": case.family,
        "when": when,
        "solvers": solvers,
    }


def run_cases(options: argparse.Namespace, stored: dict[str, Any]) -> None:
    for name in options.only or CASES:
        row = measure(CASES[name], options, stored)
        if row.get("absent"):
            print(f"{name}: skipped, the data are absent", flush=True)
            continue
        stored["rows"][name] = store.merge(stored["rows"].get(name), row)
        print(report.line(name, stored["rows"][name]), flush=True)
        keep(options, stored)


def run_memory(names: list[str], options: argparse.Namespace, stored: dict[str, Any]) -> None:
    for name in names:
        stored["memory"][name] = memory.measured_apart(name, options.tol)
        print(f"{name}: {stored['memory'][name]}", flush=True)
        keep(options, stored)


def run_prediction(options: argparse.Namespace, stored: dict[str, Any]) -> None:
    for name, (case, n) in prediction.CASES.items():
        try:
            measured = prediction.measure(case, n)
        except Exception as error:  # of a fit; the run goes on
            print(f"prediction {name}: {type(error).__name__}: {error}", flush=True)
            continue
        if measured is None:
            print(f"prediction {name}: skipped, the data are absent", flush=True)
            continue
        stored["prediction"][name] = measured
        print(f"prediction {name}: {measured}", flush=True)
        keep(options, stored)


def keep(options: argparse.Namespace, stored: dict[str, Any]) -> None:
    if not options.no_write:
        store.save(stored)
        report.write(stored)


def main() -> None:
    parser = argparse.ArgumentParser(description="Times beside LIBSVM and scikit-learn-intelex")
    parser.add_argument("--only", nargs="+", choices=CASES, metavar="NAME")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--budget", type=float, default=1800, help="seconds for a run of a peer")
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--peers", nargs="*", choices=peers.PEERS, default=list(peers.PEERS))
    parser.add_argument("--no-precise", action="store_true", help="no fit at a gap of 1e-8")
    parser.add_argument("--no-write", action="store_true")
    parser.add_argument("--memory", nargs="*", choices=CASES, metavar="NAME")
    parser.add_argument("--prediction", action="store_true")
    options = parser.parse_args()
    stored = store.load()
    large = [name for name, case in CASES.items() if case.large]
    everything = options.only is None and options.memory is None and not options.prediction
    if everything or options.only:
        run_cases(options, stored)
    if everything or options.prediction:
        run_prediction(options, stored)
    if everything or options.memory is not None:
        run_memory(options.memory or large, options, stored)
    print("\n" + report.text(stored, options.only))


if __name__ == "__main__":
    main()
