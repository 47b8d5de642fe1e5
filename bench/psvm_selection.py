"""``python -m bench.psvm_selection``: ranked features of the Weston data.

As in Hochreiter & Obermayer 2004, Table 9: 100 of 600 examples are for the selection and the choice
of C, 500 for the test. Rankings: Fisher's statistic, recursive feature elimination with a linear
SVM (a tenth of the features at a time), and the P-SVM with the ε that selects the largest number of
features asked for. The top features go into a linear C-SVM, C of {0.01, …, 100} by 5 folds, on
standardised features.
"""

import argparse
from typing import Any

import numpy as np
import sklearn.svm
from sklearn.feature_selection import RFE
from sklearn.model_selection import GridSearchCV

from bench.results import write_section
from jsvm import PSVMSelector, data

COUNTS = (5, 10, 15, 20, 30)
COSTS = (0.01, 0.1, 1.0, 10.0, 100.0)
TRAIN = 100
TITLE = "P-SVM: features of the Weston data (Hochreiter & Obermayer 2004, Table 9)"
PAPER = {
    "Fisher": (31, 28, 26, 25, 26),
    "RFE": (33, 32, 32, 31, 32),
    "P-SVM": (28, 23, 24, 24, 26),
}


def fisher(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return (m₊ − m₋)²/(v₊ + v₋) of every feature."""
    up, down = X[y > 0], X[y < 0]
    spread = up.var(axis=0) + down.var(axis=0)
    return (up.mean(axis=0) - down.mean(axis=0)) ** 2 / spread


def orders(X: np.ndarray, y: np.ndarray) -> dict[str, np.ndarray]:
    """Return the features by each method, the best first."""
    linear: Any = sklearn.svm.SVC(kernel="linear", C=1.0)
    tenth: Any = 0.1  # of the features in every step
    elimination = RFE(linear, n_features_to_select=1, step=tenth).fit(X, y)
    selector = PSVMSelector(n_features_to_select=max(COUNTS)).fit(X, y)
    return {
        "Fisher": np.argsort(-fisher(X, y), kind="stable"),
        "RFE": np.argsort(elimination.ranking_, kind="stable"),
        "P-SVM": np.argsort(selector.ranking_, kind="stable"),
    }


def error(X: np.ndarray, y: np.ndarray, test: tuple[np.ndarray, np.ndarray]) -> float:
    """Return the test error in % of a linear SVM with C by cross-validation."""
    grid: Any = GridSearchCV(sklearn.svm.SVC(kernel="linear"), {"C": COSTS}, cv=5)
    return 100 * (1 - float(grid.fit(X, y).score(*test)))


def run(seed: int) -> dict[str, list[float]]:
    """Return the errors of one draw for all methods and numbers of features."""
    X, y = (np.asarray(v, np.float64) for v in data.weston(key=seed))
    mean, deviation = X[:TRAIN].mean(axis=0), X[:TRAIN].std(axis=0)
    X = (X - mean) / deviation
    train, test = slice(TRAIN), slice(TRAIN, None)
    errors: dict[str, list[float]] = {}
    for name, order in orders(X[train], y[train]).items():
        tops = (order[:count] for count in COUNTS)
        errors[name] = [
            error(X[train][:, top], y[train], (X[test][:, top], y[test])) for top in tops
        ]
        errors[name].append(int((order[: max(COUNTS)] < 20).sum()))
    return errors


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.psvm_selection", description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--no-write", action="store_true")
    options = parser.parse_args(arguments)
    results = [run(seed) for seed in range(options.runs)]
    lines = [
        f"`python -m bench.psvm_selection`: test error in %, mean (standard deviation) of "
        f"{options.runs} draws, with the top features of each ranking; in square brackets what "
        "Hochreiter & Obermayer 2004 prints. Last column: relevant features (of 20) among the top "
        "30.",
        "",
        "| ranking | " + " | ".join(map(str, COUNTS)) + " | relevant |",
        "|" + " --- |" * (len(COUNTS) + 2),
    ]
    for name, paper in PAPER.items():
        table = np.array([result[name] for result in results])
        cells = [
            f"{m:.1f} ({s:.1f}) [{p}]"
            for m, s, p in zip(table[:, :-1].mean(0), table[:, :-1].std(0), paper, strict=True)
        ]
        lines.append(f"| {name} | {' | '.join(cells)} | {table[:, -1].mean():.1f} |")
    print("\n".join(lines), flush=True)
    if not options.no_write:
        write_section(TITLE, "\n".join(lines))


if __name__ == "__main__":
    main()
