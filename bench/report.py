"""The section of RESULTS.md on the solvers, and its figure, from stored measurements."""

from pathlib import Path
from typing import Any

import numpy as np

from bench import results
from bench.cases import CASES

TITLE = "Solvers: jsvm, LIBSVM, scikit-learn-intelex and the physical limit"
FIGURE = Path(__file__).parent / "solvers.png"
PEERS = {"libsvm": "LIBSVM", "intelex": "intelex"}
ANSWERS = {"jsvm": "jsvm", "jsvm 1e-8": "jsvm at 1e-8", **PEERS}
OLD = "†"

Row = dict[str, Any]


def ratio(row: Row, above: str, below: str) -> float | None:
    """Return the quotient of two median times, None if one is missing."""
    times = [row["solvers"].get(name, {}).get("median") for name in (above, below)]
    return times[0] / times[1] if all(times) else None


def geometric_mean(values: list[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))


# Cells


def number(value: float | None, form: str = ".3g") -> str:
    return "" if value is None else f"{value:{form}}"


def seconds(row: Row, name: str) -> str:
    """Return "median (best)", marked if it was taken in an earlier run, or why there is none."""
    entry = row["solvers"].get(name)
    if entry is None:
        return ""
    if not entry["times"]:
        return entry["error"] or "failed"
    old = OLD if entry["when"] != row["when"] else ""
    return f"{entry['median']:.3g} ({min(entry['times']):.3g}){old}"


def gap(row: Row, name: str) -> str:
    answer = row["solvers"].get(name, {}).get("answer")
    if answer is None:
        return ""
    return f"**{answer['gap']:.1e}** ✗" if is_loose(row, name) else f"{answer['gap']:.1e}"


def is_loose(row: Row, name: str) -> bool:
    """Say whether the recomputed gap is more than twice the tolerance."""
    tol = 1e-8 if name == "jsvm 1e-8" else row["tol"]
    return row["solvers"][name]["answer"]["gap"] > 2 * tol


def excess(row: Row, name: str) -> str:
    """Return (f − f_best) / |f_best| over all answers to the problem."""
    answers = {s: e["answer"] for s, e in row["solvers"].items() if e["answer"]}
    if name not in answers:
        return ""
    best = min(answer["objective"] for answer in answers.values())
    return f"{(answers[name]['objective'] - best) / abs(best):.1e}"


def support(row: Row, name: str) -> str:
    answer = row["solvers"].get(name, {}).get("answer")
    return f"{answer['support']:,} ({answer['bounded']:,})" if answer else ""


def marks(name: str, row: Row) -> str:
    """Return the notes of a row: failures, solvers that did not converge, infeasible answers."""
    said = [CASES[name].note] if name in CASES and CASES[name].note else []
    for solver, label in ANSWERS.items():
        entry = row["solvers"].get(solver)
        if entry is None:
            continue
        if entry["error"]:
            said.append(f"{label}: {entry['error']}")
        if entry.get("warning"):
            said.append(f"{label}: not converged")
        if entry["answer"] and entry["answer"]["infeasible"] > 1e-6:
            said.append(f"{label}: infeasible by {entry['answer']['infeasible']:.0e} C")
    return "; ".join(said).replace("|", "/")


# Tables


def table(head: list[str], body: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def times_table(rows: dict[str, Row]) -> str:
    head = ["problem", "n", "d", "C", "γ", "SV (bounded)", "jsvm", "LIBSVM", "intelex", "limit"]
    head += ["product", "first fit", "LIBSVM / jsvm", "intelex / jsvm", "limit / jsvm"]
    head += ["1e-8 / 1e-3"]
    body = []
    for name, row in rows.items():
        cells = [name, f"{row['n']:,}", str(row["d"]), f"{row['C']:g}", f"{row['gamma']:.3g}"]
        cells += [support(row, "jsvm")]
        cells += [seconds(row, s) for s in ("jsvm", "libsvm", "intelex", "limit", "product")]
        cells += [number(row["solvers"]["jsvm"].get("first"))]
        cells += [number(ratio(row, peer, "jsvm")) for peer in PEERS]
        cells += [number(ratio(row, "limit", "jsvm"), ".0%")]
        cells += [number(ratio(row, "jsvm 1e-8", "jsvm"))]
        body.append(cells)
    return table(head, body)


def answers_table(rows: dict[str, Row]) -> str:
    head = ["problem", *(f"gap {label}" for label in ANSWERS.values())]
    head += [f"objective {label}" for label in ANSWERS.values()]
    head += [f"SV {label}" for label in PEERS.values()] + ["notes"]
    body = [
        [name]
        + [gap(row, solver) for solver in ANSWERS]
        + [excess(row, solver) for solver in ANSWERS]
        + [support(row, solver) for solver in PEERS]
        + [marks(name, row)]
        for name, row in rows.items()
    ]
    return table(head, body)


def prediction_table(measured: dict[str, Row]) -> str:
    head = ["fitted on", "n", "SV", "points", "jsvm", "LIBSVM", "LIBSVM / jsvm"]
    head += ["largest difference"]
    body = []
    for name, row in measured.items():
        both = row["jsvm"] and row["libsvm"]
        cells = [name, f"{row['n']:,}", f"{row['support']:,}", f"{row['points']:,}"]
        cells += [number(row["jsvm"]), number(row["libsvm"])]
        cells += [number(row["libsvm"] / row["jsvm"] if both else None)]
        cells += [row["error"] or number(row["difference"], ".1e")]
        body.append(cells)
    return table(head, body)


def memory_table(measured: dict[str, Row]) -> str:
    head = ["problem", "data, MB", "before the fit, MB", "peak, MB"]
    body = []
    for name, row in measured.items():
        cells = [row.get("error", "")] * 3
        if "peak" in row:
            cells = [f"{row[key]:,.0f}" for key in ("data", "before", "peak")]
        body.append([name, *cells])
    return table(head, body)


def summary(rows: dict[str, Row], missing: list[str]) -> str:
    """Return lines of means and minima, and of the problems that were not measured."""
    thesis = {name: row for name, row in rows.items() if name in CASES and CASES[name].thesis}
    plain = {name: row for name, row in thesis.items() if CASES[name].family != "chess-board"}
    lines = []
    for label, chosen in (("without the chess boards", plain), ("with them", thesis)):
        ratios = {n: r for n, row in chosen.items() if (r := ratio(row, "libsvm", "jsvm"))}
        if ratios:
            least = min(ratios, key=lambda name: ratios[name])
            lines.append(
                f"* LIBSVM / jsvm on the problems of Table 7.1 of Glasmachers 2008, {label}: "
                f"geometric mean {geometric_mean(list(ratios.values())):.3g}, "
                f"minimum {ratios[least]:.3g} ({least}), over {len(ratios)} problems."
            )
    slower = [r for row in rows.values() if (r := ratio(row, "jsvm 1e-8", "jsvm"))]
    if slower:
        lines.append(
            f"* Time for a gap of 1e-8 over that for 1e-3: geometric mean "
            f"{geometric_mean(slower):.3g}, over {len(slower)} problems."
        )
    loose = [
        f"{label} on {name}"
        for name, row in rows.items()
        for solver, label in ANSWERS.items()
        if row["solvers"].get(solver, {}).get("answer") and is_loose(row, solver)
    ]
    if loose:
        lines.append("* Gap of more than twice the tolerance: " + ", ".join(loose) + ".")
    if missing:
        lines.append("* Not measured here: " + ", ".join(missing) + ".")
    return "\n".join(lines)


INTRODUCTION = f"""\
`python -m bench.solvers`: seconds of a fit, median (best), all solvers taking turns in one process;
a turn is one run, or as many as fit into 50 ms, of which the middle one counts. A run of more than
10 s is repeated once at most. "First fit" has the compilation in it. "Limit" is the computation of
the kernel rows of jsvm's support vectors by NumPy on all cores, "product" the part of it that is a
matrix product; the rest is mostly NumPy's exp, which a faster exp can beat.
{OLD}: time of an earlier run than jsvm's."""

ANSWERS_INTRODUCTION = """\
The answers, recomputed in NumPy: gap of the KKT conditions (✗: more than twice the tolerance) and
objective above the best of the row, relative to it."""


def ordered(measured: dict[str, Row]) -> dict[str, Row]:
    return {name: measured[name] for name in CASES if name in measured}


def text(stored: dict[str, Any], only: list[str] | None = None) -> str:
    """Return the section without its title, or the rows of some problems."""
    names = only or list(CASES)
    rows = {name: row for name, row in ordered(stored["rows"]).items() if name in names}
    missing = [name for name in names if name not in rows]
    parts = []
    if rows:
        parts += [INTRODUCTION, times_table(rows), summary(rows, missing)]
        parts += [ANSWERS_INTRODUCTION, answers_table(rows)]
    if stored["prediction"]:
        parts += ["Seconds for decision values:", prediction_table(stored["prediction"])]
    if stored["memory"]:
        parts += ["Peak resident memory of one jsvm fit:", memory_table(ordered(stored["memory"]))]
    return "\n\n".join(part for part in parts if part)


def line(name: str, row: Row) -> str:
    """Return a row in short, for the terminal."""
    times = (f"{label} {seconds(row, s)}" for s, label in ANSWERS.items() if seconds(row, s))
    said = marks(name, row)
    return f"{name}, n={row['n']}: " + ", ".join(times) + (f" [{said}]" if said else "")


def figure(rows: dict[str, Row], path: Path) -> None:
    """Draw bars of the ratios to the peers, on a logarithmic axis."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    names = [n for n, row in rows.items() if any(ratio(row, p, "jsvm") for p in PEERS)]
    if not names:
        return
    places = np.arange(len(names))[::-1]  # the first on top
    fig, ax = plt.subplots(figsize=(7, 1 + 0.3 * len(names)))
    for shift, (peer, label) in zip((0.2, -0.2), PEERS.items(), strict=True):
        pairs = [(p, ratio(rows[n], peer, "jsvm")) for p, n in zip(places, names, strict=True)]
        known = [(p + shift, r) for p, r in pairs if r]
        # from 1 on: a bar to the left says that the peer is faster
        ax.barh([p for p, _ in known], [r - 1 for _, r in known], 0.4, left=1, label=label)
    ax.set(xscale="log", xlabel="time of the peer / time of jsvm", yticks=places, yticklabels=names)
    ax.axvline(1, color="black", linewidth=0.8)
    ax.legend()
    fig.tight_layout()
    fig.savefig(path, dpi=80)
    plt.close(fig)


def write(stored: dict[str, Any]) -> None:
    figure(ordered(stored["rows"]), FIGURE)
    body = text(stored)
    if FIGURE.exists():
        body += f"\n\n![Times of the peers over that of jsvm]({FIGURE.name})"
    results.write_section(TITLE, body)
