"""``jsvm demo``: the 4 × 4 chess board (Glasmachers 2008, section 3.4), LIBSVM beside it."""

import contextlib
import io
import time
from pathlib import Path
from typing import Any

import numpy as np

from jsvm import data, plots
from jsvm.command import OK, options
from jsvm.estimators import SVC

GAMMA, COST, TOL = 0.5, 1e6, 1e-3  # Glasmachers 2008, Table 7.1
TEST_SIZE = 20_000

COLUMNS = {
    "n": "{:>6d}",
    "test error": "{:>10.4f}",
    "Bayes error": "{:>11.4f}",
    "SVs": "{:>5d}",
    "pair steps": "{:>10d}",
    "block steps": "{:>11d}",
    "KKT gap": "{:>9.1e}",
    "duality gap": "{:>11.1e}",
    "seconds": "{:>8.3f}",
    "LIBSVM steps": "{:>12d}",
    "LIBSVM seconds": "{:>14.3f}",
}
EXAMPLES = """  jsvm demo
  jsvm demo --sizes 500 1000 --figure board.png
"""

Examples = tuple[np.ndarray, np.ndarray]


def run(arguments: list[str]) -> int:
    """Train on every size, print a table and draw a figure."""
    purpose = "Train on the 4 x 4 chess board beside LIBSVM and draw a figure."
    parser = options.command_parser("demo", purpose, EXAMPLES)
    add = parser.add_argument
    add("--figure", type=Path, default=Path("chess_board.png"), help="output file")
    sizes = (250, 500, 1000, 2000)
    add("--sizes", type=int, nargs="+", metavar="N", default=sizes, help="training sizes")
    given = parser.parse_args(arguments)
    if min(given.sizes) < 20:
        parser.error("--sizes must be at least 20")
    silent = contextlib.redirect_stdout(io.StringIO()) if given.json or given.quiet else None
    with silent or contextlib.nullcontext():
        table = compare(given.figure, tuple(given.sizes))
    if given.json:
        options.print_json({"figure": given.figure, "rows": table})
    return OK


def compare(figure: Path, sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    """Train on each size, print a table, and write the figure of the third size."""
    test = _sample(TEST_SIZE, seed=999)
    print(f"4 x 4 chess board, RBF kernel, gamma={GAMMA}, C={COST:.0e}, tolerance {TOL}")
    print("The first fit of a size compiles; seconds are those of the second fit.\n")
    print("  ".join(name.rjust(len(form.format(0))) for name, form in COLUMNS.items()))
    table, drawn = [], sizes[min(2, len(sizes) - 1)]
    for size in sizes:
        train = _sample(size, seed=0)
        machine, row = _train(train, test)
        print("  ".join(form.format(row[name]) for name, form in COLUMNS.items()), flush=True)
        table.append(row)
        if size == drawn:
            _draw(machine, train, row, figure)
    print(f"\nfigure: {figure}")
    return table


def _sample(size: int, seed: int) -> Examples:
    X, y = data.chess_board(4, 2, size=size, key=seed)
    return np.asarray(X, np.float64), np.asarray(y, np.float64)


def _train(train: Examples, test: Examples) -> tuple[SVC, dict[str, Any]]:
    import sklearn.svm

    parameters: dict[str, Any] = {"C": COST, "gamma": GAMMA, "tol": TOL}
    machine, libsvm = SVC("rbf", **parameters).fit(*train), sklearn.svm.SVC(**parameters)
    seconds, libsvm_seconds = _seconds(machine, train), _seconds(libsvm, train)
    (solution,) = machine.solutions_
    return machine, {
        "n": len(train[1]),
        "test error": 1.0 - float(machine.score(*test)),
        "Bayes error": data.chess_board_bayes_error(),
        "SVs": len(machine.support_),
        "pair steps": solution.steps,
        "block steps": solution.newton_steps,
        "KKT gap": solution.violation,
        "duality gap": solution.duality_gap,
        "seconds": seconds,
        "LIBSVM steps": int(libsvm.n_iter_[0]),
        "LIBSVM seconds": libsvm_seconds,
    }


def _seconds(machine: Any, train: Examples) -> float:
    begun = time.perf_counter()
    machine.fit(*train)
    return time.perf_counter() - begun


def _draw(machine: SVC, train: Examples, row: dict[str, Any], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 6.4), layout="constrained")
    ax = figure.subplots()
    plots.decision_regions(machine, *train, ax=ax)
    found = f"{row['SVs']} support vectors, test error {row['test error']:.3f}"
    ax.set_title(f"chess board, n = {row['n']}: {found}")
    ax.legend(loc="upper right", framealpha=0.9)
    figure.savefig(path, dpi=130)
