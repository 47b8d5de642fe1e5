"""What a newcomer waits for: imports and first fits, each in a process of its own.

    python -m bench.first_call [--repeats 5]

Chess boards at C = 1e6, γ = 0.5, and iris with defaults: with an empty folder of compiled programs,
in the next process, and sizes that the process has not seen. Beside it LIBSVM (scikit-learn's SVC).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from bench import results
from bench.trust_common import table

FIRST = ("problem", "import + first fit", "first fit", "next process", "LIBSVM")
NEXT = ("problem", "nothing on disk", "programs on disk", "LIBSVM")
SIZES = (200, 1000, 3000)
NEW_SIZES = ((210, 2), (333, 2), (777, 2), (1111, 2), (777, 5))  # examples, features

COMMON = """
import json, sys, time
import numpy as np

def board(n, d=2):
    X = np.random.default_rng(n).uniform(0, 4, (n, d))
    return X, np.where(np.floor(X[:, :2]).sum(1) % 2 == 0, 1, -1)

def iris():
    from sklearn.datasets import load_iris
    return load_iris(return_X_y=True)

def fitted(X, y, **given):
    begun = time.perf_counter()
    SVC(**given).fit(X, y)
    return time.perf_counter() - begun

hard = {"C": 1e6, "gamma": 0.5}
begun = time.perf_counter()
"""
IMPORTS = {"jsvm": "from jsvm import SVC\n", "LIBSVM": "from sklearn.svm import SVC\n"}
BOTH = "import jax\nfrom sklearn.svm import SVC\n"
IMPORTED = "imported = time.perf_counter() - begun\n"
TASKS = {
    **{f"n={n}": f"times = [fitted(*board({n}), **hard)]\n" for n in SIZES},
    "iris, defaults": "times = [fitted(*iris())]\n",
}
NEW = "fitted(*board(200), **hard)\n"
NEW += f"times = [fitted(*board(n, d), **hard) for n, d in {NEW_SIZES}]\n"
TELL = "print(json.dumps([imported, times]))\n"


def measured(imports: str, task: str, programs: Any) -> tuple[float, list[float]]:
    """Run in a new process; return the seconds of the import and of the fits."""
    environment = {**os.environ, "JSVM_CACHE": str(programs)}
    command = [sys.executable, "-W", "ignore", "-c", COMMON + imports + IMPORTED + task + TELL]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def first_fits(repeats: int) -> list[list[str]]:
    """Return the rows of the first fits: with an empty folder, and in the next process."""
    rows = []
    for name, task in TASKS.items():
        cold, warm, peer = [], [], []
        for _ in range(repeats):
            with tempfile.TemporaryDirectory() as folder:
                cold.append(measured(IMPORTS["jsvm"], task, folder))
                warm.append(measured(IMPORTS["jsvm"], task, folder))
            peer.append(measured(IMPORTS["LIBSVM"], task, "off"))
        together = median(imported + times[0] for imported, times in cold)
        fits = [median(times[0] for _, times in runs) for runs in (cold, warm, peer)]
        rows.append([name, f"{together:.2f}", *(f"{seconds:.3g}" for seconds in fits)])
        print(*rows[-1], flush=True)
    return rows


def new_sizes(repeats: int) -> list[list[str]]:
    """Return the rows of sizes that were not seen, in a process that has fitted n=200."""
    with tempfile.TemporaryDirectory() as folder:
        runs = []
        for _ in range(repeats):
            for path in Path(folder).iterdir():
                path.unlink()
            runs.append(measured(IMPORTS["jsvm"], NEW, folder)[1])
        again = [measured(IMPORTS["jsvm"], NEW, folder)[1] for _ in range(repeats)]
    peer = [measured(IMPORTS["LIBSVM"], NEW, "off")[1] for _ in range(repeats)]
    rows = []
    for k, (n, d) in enumerate(NEW_SIZES):
        cells = [f"{median(run[k] for run in some):.3g}" for some in (runs, again, peer)]
        rows.append([f"n={n}, {d} features", *cells])
        print(*rows[-1], flush=True)
    return rows


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Imports and first fits.")
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args(arguments).repeats
    imports = {
        name: median(measured(text, "times = []\n", "off")[0] for _ in range(repeats))
        for name, text in {**IMPORTS, "JAX and scikit-learn": BOTH}.items()
    }
    print(imports, flush=True)
    told = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in imports.items())
    lines = [
        f"`python -m bench.first_call`: every figure is a process of its own, median of {repeats}; "
        f"seconds. Imports: {told}. Chess boards, C=1e6, γ=0.5.",
        "",
        *table(FIRST, first_fits(repeats)),
        "",
        "A size that was not seen, in a process that has fitted 200 points:",
        "",
        *table(NEXT, new_sizes(repeats)),
    ]
    results.write_section("The first call", "\n".join(lines))


if __name__ == "__main__":
    main()
