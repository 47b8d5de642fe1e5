"""A soak of the solvers: random problems of all machines, each checked independently.

A trial is drawn from its number alone: machine, kernel, size, cost over 16 decades, weights, copies
of examples, precision, start and tolerance. `jsvm.problems.check` judges it; every tenth C-SVC and
ε-SVR is also solved by LIBSVM on the same kernel matrix, and every tenth small convex problem by
Clarabel, an interior-point method. Those that fail are printed with the command that replays them.
"""

import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from sklearn import svm
from tqdm import tqdm

import jsvm
from bench.trust_common import PROGRAMS, Rows, table
from jsvm import kernels, problems, solve
from jsvm.kernels import Kernel
from jsvm.problems import QuadraticProgram
from jsvm.solvers import PSMO, SMO, Solution, Status
from tests.references import solve_qp

TRIALS = Rows("trust.jsonl")
SIZES = (1, 2, 3, 5, 8, 13, 30, 60, 120, 240, 500, 1000, 2000, 5000, 20_000)
WEIGHTS = (1, 2, 2, 3, 4, 6, 12, 14, 14, 12, 8, 4, 2, 0.5, 0.05)  # how often each size is drawn
FEATURES = (1, 2, 5, 10, 40)
LIMIT = 60.0  # seconds a trial
HEAD = ("machine", "problems", "false claims", "not converged", "of these at rounding")
HEAD += ("unbounded", "slowest, s")

COMPARED = ("c_svc", "epsilon_svr")  # every tenth of these is solved by LIBSVM, too
LARGEST_FOR_CLARABEL = 240  # variables; it works on dense matrices here
MAPS, MOST_MAPS = Path("/proc/self/maps"), 40_000  # Linux allows a process 65 530 of them

Draw = np.random.Generator


class Trial(NamedTuple):
    """A problem, how to solve it, and what was drawn."""

    machine: str
    problem: QuadraticProgram
    solver: SMO | PSMO
    start: Any
    dtype: str
    facts: dict[str, Any]


KERNELS: dict[str, Callable[[Draw], Kernel]] = {
    "linear": lambda draw: kernels.Linear(),
    "rbf": lambda draw: kernels.RBF(float(10 ** draw.uniform(-3, 2))),
    "polynomial": lambda draw: kernels.Polynomial(int(draw.integers(1, 4)), 0.5, 1.0),
    "laplacian": lambda draw: kernels.Laplacian(float(10 ** draw.uniform(-2, 1))),
    "plummer": lambda draw: kernels.Plummer(),
    "sum": lambda draw: kernels.Linear() + kernels.RBF(1.0),
    "product": lambda draw: kernels.RBF(0.1) * kernels.Polynomial(2, 1.0, 1.0),
    "normalised": lambda draw: kernels.Normalized(kernels.Polynomial(2, 1.0, 1.0)),
    "scaled": lambda draw: float(10 ** draw.uniform(-6, 6)) * kernels.RBF(0.5),
    "sigmoid": lambda draw: kernels.Sigmoid(1.0, -1.0),
    "sine": lambda draw: kernels.Sine(3.0),
}
INDEFINITE = ("sigmoid", "sine")


def _c_svc(K: Any, y: Any, target: Any, C: Any, share: float) -> QuadraticProgram:
    return problems.c_svc(K, y, C)


def _squared(K: Any, y: Any, target: Any, C: Any, share: float) -> QuadraticProgram:
    return problems.squared_svc(K, y, C)


def _svr(K: Any, y: Any, target: Any, C: Any, share: float) -> QuadraticProgram:
    return problems.epsilon_svr(K, target, C, share)


def _nu_svc(K: Any, y: Any, target: Any, C: Any, share: float) -> QuadraticProgram:
    rarer = min((y > 0).mean(), (y < 0).mean())
    return problems.nu_svc(K, y, 2 * rarer * share)


def _nu_svr(K: Any, y: Any, target: Any, C: Any, share: float) -> QuadraticProgram:
    return problems.nu_svr(K, target, float(np.mean(C)), share)


def _one_class(K: Any, y: Any, target: Any, C: Any, share: float) -> QuadraticProgram:
    return problems.one_class(K, share)


def _ball(K: Any, y: Any, target: Any, C: Any, share: float) -> QuadraticProgram:
    return problems.smallest_ball(K)


def _psvm(K: Any, y: Any, target: Any, C: Any, share: float) -> QuadraticProgram:
    return problems.psvm(K, target, float(np.mean(C)), share)


# hard_margin is not drawn: whether a random problem is separable is a question of its own.
MACHINES = {
    "c_svc": _c_svc,
    "squared_svc": _squared,
    "epsilon_svr": _svr,
    "nu_svc": _nu_svc,
    "nu_svr": _nu_svr,
    "one_class": _one_class,
    "smallest_ball": _ball,
    "psvm": _psvm,
}


def drawn(number: int) -> Trial:
    """Return the trial of this number."""
    draw = np.random.default_rng(number)
    machine = list(MACHINES)[number % len(MACHINES)]
    share = np.array(WEIGHTS) / np.sum(WEIGHTS)
    n, d = int(draw.choice(SIZES, p=share)), int(draw.choice(FEATURES))
    names = [k for k in KERNELS if k not in INDEFINITE or machine in ("c_svc", "psvm")]
    if machine == "psvm":
        n = min(n, 500)
    name = str(draw.choice(names))
    X = draw.normal(size=(n, d))
    if draw.random() < 0.15:
        X = X[draw.integers(max(1, n // 3), size=n)]  # copies
    if draw.random() < 0.1:
        X[:, 0] = 1.0
    noise = draw.normal(size=n)
    target = X @ draw.normal(size=d) + draw.choice([0.1, 1.0]) * noise
    y = np.where(target > np.quantile(target, draw.uniform(0.1, 0.9)), 1.0, -1.0)
    if n > 1 and (y == y[0]).all():
        y[0] = -y[0]
    C: Any = float(10 ** draw.uniform(-8, 8))
    if draw.random() < 0.2:
        C = C * draw.choice([0.1, 1.0, 3.0], size=n)
    kernel = KERNELS[name](draw)
    if n <= 500 and draw.random() < 0.2:
        K: Any = np.asarray(kernel(X), float)
        K = 0.5 * (K + K.T)
    else:
        K = (kernel, X)
    problem = MACHINES[machine](K, y, target, C, float(draw.uniform(0.01, 0.9)))
    tol = float(10 ** draw.uniform(-10, -1))
    dtype = str(draw.choice(["float64", "float32"], p=[0.8, 0.2]))
    solver = (PSMO if machine == "psvm" else SMO)(tol=tol, time_limit=LIMIT)
    start = problem.feasible_point() if machine != "psvm" and draw.random() < 0.2 else None
    cost = float(np.max(C))
    facts = {"kernel": name, "n": n, "d": d, "C": cost, "tol": tol, "dtype": dtype}
    return Trial(machine, problem, solver, start, dtype, facts)


def judged(number: int) -> dict[str, Any]:
    """Run a trial; return what was drawn, what was found, and what is wrong about it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            trial = drawn(number)
        except ValueError as error:  # an infeasible ν and the like: refused with a reason
            return {"number": number, "refused": str(error)}
        begun = time.perf_counter()
        solution = solve(trial.problem, trial.solver, trial.start, dtype=trial.dtype)
    seconds = time.perf_counter() - begun
    report = problems.check(trial.problem, solution, trial.solver.tol)
    wrong = list(report.complaints)
    status = Status(solution.status)
    row = {
        "number": number,
        "machine": trial.machine,
        **trial.facts,
        "status": status.name,
        "violation": report.violation,
        "violation_error": report.violation_error,
        "disagreement": abs(report.objective - float(solution.objective))
        / max(report.objective_error, 1e-300),
        "seconds": seconds,
        "wrong": wrong,
    }
    if number // 8 % 10 == 0 and trial.machine in COMPARED and trial.facts["n"] <= 1000:
        row |= _beside_libsvm(trial, solution)
    convex = trial.facts["kernel"] not in INDEFINITE and trial.machine != "psvm"
    if number // 8 % 10 == 5 and convex and trial.problem.size <= LARGEST_FOR_CLARABEL:
        row |= _beside_clarabel(trial.problem, report.objective)
    return row


def _beside_libsvm(trial: Trial, solution: Solution) -> dict[str, Any]:
    """Solve by LIBSVM on the same matrix; the objective of its point in our program."""
    problem, hessian = trial.problem, trial.problem.hessian.dense()
    Q, linear = np.asarray(hessian.matrix, float), np.asarray(problem.linear, float)
    n = problem.size // 2 if trial.machine == "epsilon_svr" else problem.size
    cost = (np.asarray(problem.upper) - np.asarray(problem.lower))[:n]
    common = {"kernel": "precomputed", "C": float(cost.max()), "max_iter": 1_000_000}
    common["tol"] = max(trial.solver.tol, 1e-8)
    if trial.machine == "epsilon_svr":  # l = (y − ε, y + ε), and two variables an example
        targets = 0.5 * (linear[:n] + linear[n:])
        peer = svm.SVR(epsilon=0.5 * float(linear[n] - linear[0]), **common)
    else:
        targets, peer = linear, svm.SVC(**common)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begun = time.perf_counter()
        peer.fit(Q[:n, :n], targets, sample_weight=cost / cost.max())
        theirs = time.perf_counter()
        solve(trial.problem, trial.solver, trial.start, dtype=trial.dtype)  # all is compiled
    ratio = (time.perf_counter() - theirs) / (theirs - begun)
    alpha = np.zeros(n)
    alpha[peer.support_] = np.asarray(peer.dual_coef_).reshape(-1)
    if trial.machine == "epsilon_svr":
        alpha = np.concatenate([np.maximum(alpha, 0.0), np.minimum(alpha, 0.0)])
    value = 0.5 * alpha @ Q @ alpha - linear @ alpha
    excess = (float(solution.objective) - value) / max(abs(value), 1e-300)
    converged = bool(peer.fit_status_ == 0)
    return {
        "libsvm_converged": converged,
        "excess_over_libsvm": float(excess),
        "time_over_libsvm": ratio,
    }


def _beside_clarabel(problem: QuadraticProgram, objective: float) -> dict[str, Any]:
    """Solve by Clarabel; our objective above its own, as a part of it."""
    hessian = problem.hessian.dense()
    Q = np.asarray(hessian.matrix, float) + np.diag(np.broadcast_to(hessian.ridge, problem.size))
    linear, lower, upper = (
        np.asarray(v, float) for v in (problem.linear, problem.lower, problem.upper)
    )
    groups = np.zeros(problem.size, int) if problem.groups is None else np.asarray(problem.groups)
    totals = np.atleast_1d(np.asarray(problem.totals, float))
    try:
        _, value = solve_qp(Q, linear, lower, upper, groups, totals)
    except AssertionError as error:
        return {"clarabel": str(error)}
    return {"excess_over_clarabel": (objective - value) / max(abs(value), 1e-300)}


def is_at_rounding(row: dict[str, Any]) -> bool:
    """Tell whether the violation is what rounding leaves."""
    return row["violation"] <= row["tol"] + row["violation_error"]


def failed(row: dict[str, Any]) -> bool:
    """Tell whether a trial ended with an exception, a complaint, or far from its tolerance."""
    unsolved = row.get("status", "CONVERGED") not in ("CONVERGED", "UNBOUNDED")
    return bool(row.get("wrong")) or (unsolved and not is_at_rounding(row))


def last_rows() -> list[dict[str, Any]]:
    """Return the last row of every trial."""
    return list({row["number"]: row for row in TRIALS.read()}.values())


def soak_again(minutes: float) -> None:
    """Run those trials again that have failed, after a change of the code."""
    soak(minutes, [row["number"] for row in last_rows() if failed(row)], {"again": True})


def soak(minutes: float, numbers: Sequence[int], note: dict[str, Any]) -> None:
    """Run trials until time or number is over; the note goes into their rows."""
    jsvm.keep_compiled_programs(PROGRAMS)
    begun = time.perf_counter()
    for number in tqdm(numbers, unit=" trials"):
        if time.perf_counter() - begun > 60 * minutes:
            break
        if number % 20 == 0 and MAPS.exists() and MAPS.read_bytes().count(b"\n") > MOST_MAPS:
            jsvm.programs.forget_programs()
            jax.clear_caches()  # every compiled program takes some maps
        try:
            row = judged(number)
        except Exception as error:  # whatever it is, it is a finding
            row = {"number": number, "wrong": [f"{type(error).__name__}: {error}"]}
        TRIALS.append(row | note)
        if failed(row):
            tqdm.write(f"python -m bench.trust replay {number}: {row}")


def report() -> str:
    """Return the section about the soak."""
    rows = [row for row in last_rows() if "refused" not in row]
    solved = [row for row in rows if "status" in row]
    cells = []
    for machine in MACHINES:
        own = [row for row in solved if row["machine"] == machine]
        left = [row for row in own if row["status"] not in ("CONVERGED", "UNBOUNDED")]
        cells.append(
            [
                machine,
                len(own),
                sum(bool(row["wrong"]) for row in own),
                len(left),
                sum(map(is_at_rounding, left)),
                sum(row["status"] == "UNBOUNDED" for row in own),
                f"{max((row['seconds'] for row in own), default=0.0):.1f}",
            ]
        )
    lines = [
        "## Soak",
        "",
        f"`python -m bench.trust soak`: {len(rows)} random problems, each checked by "
        f"`jsvm.problems.check`; {sum('again' in row for row in rows)} of them once more after a "
        "change of the code.",
        "",
        *table(HEAD, cells),
    ]
    crashed = [row for row in rows if "status" not in row]
    compared = [row for row in solved if row.get("libsvm_converged")]
    excess = max((row["excess_over_libsvm"] for row in compared), default=0.0)
    slowest = max((row["time_over_libsvm"] for row in compared), default=0.0)
    convex = [row["excess_over_clarabel"] for row in solved if "excess_over_clarabel" in row]
    lost = [row["number"] for row in compared if row["status"] != "CONVERGED"]
    lines += [
        "",
        f"- Exceptions: {len(crashed)}.",
        f"- Largest difference of claimed and recomputed objective: "
        f"{max((row['disagreement'] for row in solved), default=0.0):.2g} of its error bound.",
        f"- Beside LIBSVM, where it converged: {len(compared)} problems; our objective is above "
        f"its own by at most {excess:.2g} of it; not converged here: {lost or 'none'}; longest "
        f"time (second call, the kernel included) {slowest:.2g} times its own on a given matrix.",
        f"- Beside Clarabel, where it succeeds: {len(convex)} problems; our objective is above its "
        f"own by at most {max(convex, default=0.0):.2g} of it.",
        f"- Reasons: {dict(Counter(row['status'] for row in solved))}.",
        "",
        "Not converged, and not at rounding:",
        "",
    ]
    for row in solved:
        if row["status"] not in ("CONVERGED", "UNBOUNDED") and not is_at_rounding(row):
            lines.append(
                f"- {row['number']}: {row['machine']}, {row['kernel']}, n={row['n']}, "
                f"d={row['d']}, C={row['C']:.1e}, {row['dtype']}, tol={row['tol']:.0e}: "
                f"{row['status']} at {row['violation']:.1e} ± {row['violation_error']:.0e}"
            )
    return "\n".join(lines) + "\n"
