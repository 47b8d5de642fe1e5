"""Time of a jsvm fit against the number of examples, LIBSVM beside it.

    python -m bench.scaling [--only adult ...] [--limit 120] [--libsvm-limit 60] [--no-write]

n doubles until a fit takes longer than the limit. The exponent p of seconds ∝ nᵖ is the slope of a
straight line through the points in logarithmic axes, by least squares.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from bench import peers, results
from bench.cases import MNIST_GAMMA, Case, adult, board, mnist
from bench.report import number, table
from bench.timing import Contestant

TOL = 1e-3
SMALLEST = 1000
FIGURE = Path(__file__).parent / "scaling.png"
# A family is a problem and its largest n.
FAMILIES = {
    "adult": (Case("adult", 1, 0.005, adult), 32_561),
    "mnist": (Case("mnist", 50, MNIST_GAMMA, mnist), 60_000),
    "chess-board": (Case("chess-board", 1e6, 0.5, lambda: board(100_000)), 100_000),
}

Row = dict[str, Any]


def sizes(largest: int) -> list[int]:
    """Return 1000, 2000, 4000, ... and the largest, which replaces one just below it."""
    doubled = [SMALLEST * 2**k for k in range(30) if SMALLEST * 2**k * 1.25 < largest]
    return [*doubled, largest]


def exponent(n: list[int], seconds: list[float]) -> float | None:
    """Return p of seconds ∝ nᵖ; None of fewer than two points."""
    if len(n) < 2:
        return None
    return float(np.polyfit(np.log(n), np.log(seconds), 1)[0])


def exponents(rows: list[Row], solver: str) -> tuple[float | None, float | None]:
    """Return the exponent over all sizes, and over the upper half of them."""
    points = [(row["n"], row[solver]) for row in rows if row[solver]]
    n, seconds = [p[0] for p in points], [p[1] for p in points]
    half = min(len(n) // 2, max(len(n) - 2, 0))
    return exponent(n, seconds), exponent(n[half:], seconds[half:])


def second_fit(runner: Contestant, limit: float) -> None:
    """Time a fit after a first one; the first one counts if it took longer than the limit."""
    runner.first = runner.attempt()
    if runner.error:
        return
    if runner.first > limit:
        runner.times.append(runner.first)
    else:
        runner.take_turn()


def measure(case: Case, largest: int, limit: float, libsvm_limit: float) -> list[Row] | None:
    """Return a row for each n up to where jsvm gets too slow; None where the data are absent."""
    loaded = case.load()
    if loaded is None:
        return None
    X, y = loaded
    rows: list[Row] = []
    peer_runs = True
    for n in sizes(min(largest, len(y))):
        part = np.ascontiguousarray(X[:n]), np.ascontiguousarray(y[:n])
        ours = Contestant("jsvm", lambda part=part: peers.fit_jsvm(case, *part, TOL))
        second_fit(ours, limit)
        theirs = Contestant("libsvm", lambda part=part: peers.fit_libsvm(case, *part, TOL))
        if peer_runs:
            theirs.take_turn()
            peer_runs = not theirs.error and theirs.times[0] <= libsvm_limit
        rows.append(
            {
                "n": n,
                "support": 0 if ours.result is None else len(ours.result.support_),
                "first": ours.first,
                "jsvm": ours.median,
                "libsvm": theirs.median,
                "note": "; ".join(
                    f"{runner.name}: {'not converged' if runner.warning else runner.error}"
                    for runner in (ours, theirs)
                    if runner.warning or runner.error
                ),
            }
        )
        print(case.name, rows[-1], flush=True)
        if ours.error or max(ours.first, *ours.times) > limit:
            break
    return rows


def text(measured: dict[str, list[Row]]) -> str:
    """Return tables of the families with their exponents."""
    head = ["problem", "n", "SV", "jsvm", "first fit", "LIBSVM", "LIBSVM / jsvm", "notes"]
    body = []
    for family, rows in measured.items():
        for row in rows:
            both = row["jsvm"] and row["libsvm"]
            cells = [family, f"{row['n']:,}", f"{row['support']:,}", number(row["jsvm"])]
            cells += [number(row["first"]), number(row["libsvm"])]
            cells += [number(row["libsvm"] / row["jsvm"] if both else None), row["note"]]
            body.append(cells)
    slopes = []
    for family, rows in measured.items():
        for solver, label in (("jsvm", "jsvm"), ("libsvm", "LIBSVM")):
            values = [number(p, ".2f") or "–" for p in exponents(rows, solver)]
            slopes.append([family, label, *values])
    of_slopes = table(["problem", "solver", "exponent", "upper half of the sizes"], slopes)
    return f"{table(head, body)}\n\nExponents p of seconds ∝ nᵖ:\n\n{of_slopes}"


def figure(measured: dict[str, list[Row]], path: Path) -> None:
    """Draw seconds against n, both logarithmic; LIBSVM is dashed."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    fig, ax = plt.subplots(figsize=(6, 4))
    for k, (family, rows) in enumerate(measured.items()):
        for solver, style in (("jsvm", "o-"), ("libsvm", "x--")):
            points = [(row["n"], row[solver]) for row in rows if row[solver]]
            label = f"{family}, {'LIBSVM' if solver == 'libsvm' else solver}"
            if points:
                ax.plot(*zip(*points, strict=True), style, color=f"C{k}", label=label)
    ax.set(xscale="log", yscale="log", xlabel="n", ylabel="seconds of a fit")
    ax.grid(alpha=0.3)
    ax.legend(fontsize="small")
    fig.tight_layout()
    fig.savefig(path, dpi=80)
    plt.close(fig)


def main() -> None:
    parser = argparse.ArgumentParser(description="Time against the number of examples")
    parser.add_argument("--only", nargs="+", choices=FAMILIES)
    parser.add_argument("--limit", type=float, default=120, help="seconds of a jsvm fit")
    parser.add_argument("--libsvm-limit", type=float, default=60)
    parser.add_argument("--largest", type=int, default=10**9, help="largest n")
    parser.add_argument("--no-write", action="store_true")
    options = parser.parse_args()
    measured = {}
    for name in options.only or FAMILIES:
        case, largest = FAMILIES[name]
        rows = measure(case, min(largest, options.largest), options.limit, options.libsvm_limit)
        if rows is None:
            print(f"{name}: skipped, the data are absent", flush=True)
        else:
            measured[name] = rows
    print("\n" + text(measured))
    # A part of the sizes must not replace all of them.
    complete = options.only is None and options.largest >= max(n for _, n in FAMILIES.values())
    if complete and not options.no_write:
        figure(measured, FIGURE)
        introduction = (
            "`python -m bench.scaling`: seconds of a second fit at a gap of 1e-3; n doubles until "
            f"a fit takes more than {options.limit:g} s (LIBSVM: {options.libsvm_limit:g} s)."
        )
        body = f"{introduction}\n\n{text(measured)}\n\n![Seconds against n]({FIGURE.name})"
        results.write_section("Scaling with the number of examples", body)


if __name__ == "__main__":
    main()
