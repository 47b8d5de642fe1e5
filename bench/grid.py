"""``python -m bench.grid``: a 10 × 10 grid with 5 folds, jsvm beside GridSearchCV of LIBSVM."""

import argparse
from functools import partial
from typing import Any

import numpy as np
import sklearn.svm
from sklearn.model_selection import GridSearchCV

from bench.data import folder
from bench.results import write_section
from bench.timing import Contestant, race
from jsvm import SVC, search

COSTS = np.logspace(-2, 3, 10)
GAMMAS = np.logspace(-3, 1, 10)
FOLDS, JOBS = 5, 2
DATA = ("ida_banana", "ida_german")
TITLE = "Grids: jsvm.search.cross_validate and GridSearchCV"


def first_split(name: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the first training set of a data set, or None if the file is absent."""
    path = folder() / f"{name}.npz"
    if not path.exists():
        return None
    with np.load(path, allow_pickle=False) as content:
        rows = content["splits_train"][0]
        return content["X"].astype(np.float64)[rows], content["y"][rows]


def ours(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    result = search.cross_validate(SVC(), X, y, cv=FOLDS, C=COSTS, gamma=GAMMAS)
    if not result.converged.all():
        raise RuntimeError(f"{(~result.converged).sum()} fits did not converge")
    return result.mean_scores


def theirs(X: np.ndarray, y: np.ndarray, jobs: int = JOBS) -> np.ndarray:
    grid = {"C": COSTS, "gamma": GAMMAS}
    fitted = GridSearchCV(sklearn.svm.SVC(), grid, cv=FOLDS, n_jobs=jobs, refit=False).fit(X, y)
    scores = fitted.cv_results_["mean_test_score"]
    return np.asarray(scores).reshape(len(COSTS), len(GAMMAS))


def measure(name: str, repeat: int) -> dict[str, Any] | None:
    loaded = first_split(name)
    if loaded is None:
        return None
    runners = [
        Contestant("jsvm", partial(ours, *loaded), compiles=True),
        Contestant("GridSearchCV", partial(theirs, *loaded)),
    ]
    race(runners, repeat)
    errors = [runner.error for runner in runners if runner.error]
    if errors:
        raise RuntimeError(errors[0])
    scores, reference = (runner.result for runner in runners)
    best, their_best = (np.unravel_index(np.argmax(s), s.shape) for s in (scores, reference))
    return {
        "problem": name,
        "n": len(loaded[1]),
        "jsvm": runners[0].median,
        "first": runners[0].first,
        "GridSearchCV": runners[1].median,
        "cell": f"C={COSTS[best[0]]:.3g}, γ={GAMMAS[best[1]]:.3g}",
        "score": float(scores[best]),
        "their cell": f"C={COSTS[their_best[0]]:.3g}, γ={GAMMAS[their_best[1]]:.3g}",
        "their score": float(reference[their_best]),
        "cells that differ": int((np.abs(scores - reference) > 1e-12).sum()),
        "largest difference": float(np.abs(scores - reference).max()),
    }


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.grid", description=__doc__)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--no-write", action="store_true")
    options = parser.parse_args(arguments)
    lines = [
        f"`python -m bench.grid`: {len(COSTS)} × {len(GAMMAS)} grid, {FOLDS} folds, gap 1e-3; "
        f"seconds, median of {options.repeat}, taking turns; GridSearchCV(SVC, n_jobs={JOBS}) "
        "with its workers started before. Scores are mean accuracies over the folds.",
        "",
        "| problem | n | jsvm | GridSearchCV | ratio | first run | best cell | score | "
        "their best cell | their score | cells that differ | largest difference |",
        "|" + " --- |" * 12,
    ]
    for name in DATA:
        row = measure(name, options.repeat)
        if row is None:
            print(f"{name}: skipped, the data are absent", flush=True)
            continue
        lines.append(
            f"| {row['problem']} | {row['n']} | {row['jsvm']:.3f} | {row['GridSearchCV']:.3f} | "
            f"{row['GridSearchCV'] / row['jsvm']:.2f} | {row['first']:.1f} | {row['cell']} | "
            f"{row['score']:.4f} | {row['their cell']} | {row['their score']:.4f} | "
            f"{row['cells that differ']} | {row['largest difference']:.4f} |"
        )
        print(lines[-1], flush=True)
    if not options.no_write:
        write_section(TITLE, "\n".join(lines))


if __name__ == "__main__":
    main()
