"""Peak memory of one jsvm fit, in a process of its own.

    python -m bench.memory --case mnist-60000 [--tol 1e-3]

The peak of a process only grows, so a fit that is measured cannot share one.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from bench import peers
from bench.cases import CASES

STATUS = Path("/proc/self/status")


def resident(field: str) -> float:
    """Return MB of VmRSS (now) or VmHWM (peak).

    Where there is no such file: the peak by getrusage, which on Linux starts at that of the parent.
    """
    if not STATUS.exists():
        unit = 2**20 if sys.platform == "darwin" else 2**10
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    lines = dict(line.split(":", 1) for line in STATUS.read_text().splitlines())
    return int(lines[field].split()[0]) / 2**10


def measure(name: str, tol: float) -> dict[str, Any]:
    """Return MB of the data, before the fit and at its peak, or what went wrong."""
    case = CASES[name]
    loaded = case.load()
    if loaded is None:
        return {"error": "the data are absent"}
    X, y = loaded
    with suppress(OSError):  # forget the peak of loading, where the system can
        Path("/proc/self/clear_refs").write_text("5")
    before, start = resident("VmRSS"), time.perf_counter()
    machine = peers.fit_jsvm(case, X, y, tol)
    return {
        "data": X.nbytes / 2**20,
        "before": before,
        "peak": resident("VmHWM"),
        "seconds": time.perf_counter() - start,
        "support": len(machine.support_),
    }


def measured_apart(name: str, tol: float) -> dict[str, Any]:
    """Return the same, from another process; its failure as text."""
    command = [sys.executable, "-m", "bench.memory", "--case", name, "--tol", str(tol)]
    here = Path(__file__).resolve().parents[1]
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return {"error": f"ended with {done.returncode}: {last}"[:200]}
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description="Peak memory of one fit")
    parser.add_argument("--case", choices=CASES, required=True, metavar="NAME")
    parser.add_argument("--tol", type=float, default=1e-3)
    options = parser.parse_args()
    print(json.dumps(measure(options.case, options.tol)))


if __name__ == "__main__":
    main()
