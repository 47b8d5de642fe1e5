"""Step counts of the papers' algorithms beside Table 7.2 of Glasmachers 2008.

    python -m bench.steps [--permutations 10] [--only image ...]

Mean number of pair steps over random orders of the examples, at a gap of 1e-3 and with the block
step off. The count of standard SMO is comparable to the printed one where the data are the same;
the chess board of the thesis is one sample of its distribution, ours is another. One column is the
solver with its block step.
"""

import argparse
from typing import Any, NamedTuple

import numpy as np

from bench import data, results
from jsvm import problems, solve
from jsvm.data import chess_board
from jsvm.solvers import SMO, Status


class Case(NamedTuple):
    """A row of Tables 7.1 and 7.2."""

    C: float
    gamma: float
    smo: int
    planning_ahead: int
    same_data: bool = True


CASES = {
    "chess-board-1000": Case(1e6, 0.5, 1_883_310, 1_186_963, same_data=False),
    "banana": Case(100, 0.25, 23_295, 19_721),
    "image": Case(100, 0.1, 6_553, 6_359),
    "splice": Case(10, 0.01, 6_643, 5_854),
    "titanic": Case(1000, 0.1, 3_375, 1_653),
}
ALGORITHMS = {
    "SMO": SMO(block=False),
    "PA-SMO": SMO(block=False, step="planning_ahead"),
    "HMG": SMO(block=False, selection="hybrid_maximum_gain"),
    "block": SMO(),
}


def load(name: str) -> tuple[np.ndarray, np.ndarray] | None:
    if name == "chess-board-1000":
        X, y = chess_board(4, 2, size=1000, key=0)
        return np.asarray(X, float), np.asarray(y, float)
    return data.load(f"ida_{name}")


def measure(name: str, case: Case, permutations: int) -> dict[str, Any] | None:
    """Return mean step counts and the largest relative difference of objectives."""
    loaded = load(name)
    if loaded is None:
        return None
    X, y = loaded
    squares = (X**2).sum(1)
    distances = np.maximum(squares[:, None] + squares[None, :] - 2 * X @ X.T, 0)
    K = np.exp(-case.gamma * distances)
    counts: dict[str, list[int]] = {algorithm: [] for algorithm in ALGORITHMS}
    rounds, spread = [], 0.0
    for seed in range(permutations):
        order = np.random.default_rng(seed).permutation(len(y))
        program = problems.c_svc(K[np.ix_(order, order)], y[order], case.C)
        objectives = []
        for algorithm, solver in ALGORITHMS.items():
            solution = solve(program, solver)
            assert solution.status == Status.CONVERGED, (name, algorithm, solution.status)
            assert solution.violation <= 1e-3
            counts[algorithm].append(solution.steps)
            objectives.append(solution.objective)
            if algorithm == "block":
                rounds.append(solution.newton_steps)
        spread = max(spread, float(np.ptp(objectives) / abs(min(objectives))))
    means = {algorithm: float(np.mean(values)) for algorithm, values in counts.items()}
    return {**means, "rounds": float(np.mean(rounds)), "spread": spread, "n": len(y)}


def table(permutations: int, only: list[str] | None = None) -> tuple[str, dict[str, dict]]:
    """Return the table as Markdown, and the measurements."""
    lines = [
        "| problem | n | SMO | printed | ratio | PA-SMO | printed | HMG | with block step: "
        "pair steps + rounds | spread of objectives |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    measured = {}
    for name, case in CASES.items():
        if only and name not in only:
            continue
        row = measure(name, case, permutations)
        if row is None:
            lines.append(f"| {name} | absent |" + " |" * 8)
            continue
        measured[name] = row
        ratio = f"{row['SMO'] / case.smo:.2f}" + ("" if case.same_data else " (other sample)")
        lines.append(
            f"| {name} | {row['n']} | {row['SMO']:,.0f} | {case.smo:,} | {ratio} "
            f"| {row['PA-SMO']:,.0f} | {case.planning_ahead:,} | {row['HMG']:,.0f} "
            f"| {row['block']:,.0f} + {row['rounds']:,.0f} | {row['spread']:.1e} |"
        )
        print(lines[-1], flush=True)
    return "\n".join(lines), measured


def main() -> None:
    parser = argparse.ArgumentParser(description="Step counts beside Table 7.2 of Glasmachers 2008")
    parser.add_argument("--permutations", type=int, default=10)
    parser.add_argument("--only", nargs="+", choices=CASES)
    options = parser.parse_args()
    text, _ = table(options.permutations, options.only)
    print(text)
    if options.only is None:
        results.write_section(
            "Step counts beside Table 7.2 of Glasmachers 2008",
            f"`python -m bench.steps`: mean over {options.permutations} orders of the examples, "
            f"gap 1e-3.\n\n{text}",
        )


if __name__ == "__main__":
    main()
