"""Measurements of the solvers between runs, so that a run of one problem updates one row."""

import json
from pathlib import Path
from typing import Any

PATH = Path(__file__).parent / ".solvers.json"


def load() -> dict[str, Any]:
    empty: dict[str, Any] = {"rows": {}, "prediction": {}, "memory": {}}
    return {**empty, **(json.loads(PATH.read_text()) if PATH.exists() else {})}


def save(stored: dict[str, Any]) -> None:
    # Beside the file and then renamed: an interruption leaves the old file or the new one.
    beside = PATH.with_suffix(".new")
    beside.write_text(json.dumps(stored, indent=1))
    beside.replace(PATH)


def merge(old: dict[str, Any] | None, new: dict[str, Any]) -> dict[str, Any]:
    """Return the new row, with times of the old one for solvers that did not run again.

    Old times stay only if the problem is the same; the table marks them.
    """
    problem = ("n", "d", "C", "gamma", "tol")
    if old is None or any(old[key] != new[key] for key in problem):
        return new
    kept = {
        name: entry
        for name, entry in old["solvers"].items()
        if entry["times"] and not new["solvers"].get(name, {}).get("attempted")
    }
    return {**new, "solvers": {**new["solvers"], **kept}}


def forecast(stored: dict[str, Any], family: str, solver: str, n: int) -> float | None:
    """Return seconds expected of a solver: quadratic in n, from the next smaller of its family."""
    smaller = [
        (row["n"], entry["median"])
        for row in stored["rows"].values()
        if family and row["family"] == family and row["n"] < n
        if (entry := row["solvers"].get(solver)) and entry["times"]
    ]
    if not smaller:
        return None
    before, seconds = max(smaller)
    return seconds * (n / before) ** 2
