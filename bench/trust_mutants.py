"""Do the tests notice a mistake? Mutants of the solvers' core against targeted tests.

A mutant has one change in one file: another comparison, operation, constant, branch or reduction.
It is drawn from its number alone. The tests run in a copy of the repository, without optimisation
by XLA, and stop at the first failure. A mutant that fails, or does not end, is killed.
"""

import ast
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from bench.trust_common import FOLDER, Rows, table

MUTANTS = Rows("trust_mutants.jsonl")
ROOT = FOLDER.parent
CORE, SOLVERS = "jsvm/solvers/tile", "tests/solvers"
TARGETS = {  # the tests of a file
    f"{CORE}/selection.py": (f"{SOLVERS}/test_papers_algorithms.py", f"{SOLVERS}/test_solve.py"),
    f"{CORE}/steps.py": (f"{SOLVERS}/test_papers_algorithms.py", f"{SOLVERS}/test_solve.py"),
    f"{CORE}/block_step.py": (
        f"{SOLVERS}/test_block_step.py",
        f"{SOLVERS}/test_low_rank.py",
        f"{SOLVERS}/test_step_counts.py",
        f"{SOLVERS}/test_solve.py",
    ),
    "jsvm/implicit.py": ("tests/test_implicit.py", "tests/objectives/test_objective_gradients.py"),
    "jsvm/problems/certificate.py": ("tests/problems", f"{SOLVERS}/test_solve.py"),
}
COPIED = ("jsvm", "tests", "bench", "pyproject.toml")
LIMIT = 300.0  # seconds; the targeted tests take less than half of it

COMPARISONS = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
COMPARISONS |= {ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}
OPERATIONS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
OPERATIONS |= {ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd}
NAMES = {"minimum": "maximum", "min": "max", "any": "all", "isinf": "isfinite"}
NAMES |= {after: before for before, after in NAMES.items()}

Change = tuple[ast.AST, str]


def changes(tree: ast.Module) -> Iterator[Change]:
    """Yield every change that can be made, as a node and what to do with it."""
    skipped = {id(node) for node in _annotations_and_docstrings(tree)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
            yield node, "compare"
        elif isinstance(node, ast.BinOp) and type(node.op) in OPERATIONS:
            yield node, "operate"
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert | ast.USub):
            yield node, "drop the sign"
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float, bool):
            yield node, "another constant"
        elif isinstance(node, ast.Attribute) and node.attr in NAMES:
            yield node, "another reduction"
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "where":
            yield node, "swap the branches"


def _annotations_and_docstrings(tree: ast.Module) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        for part in ("annotation", "returns"):
            inside = getattr(node, part, None)
            if inside is not None:
                yield from ast.walk(inside)
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from ast.walk(node)


def mutated(source: str, number: int) -> tuple[str, str]:
    """Return the source with one change, and the line before and after it."""
    tree = ast.parse(source)
    possible = list(changes(tree))
    node, kind = possible[np.random.default_rng(number).integers(len(possible))]
    before = ast.unparse(node)
    _apply(node, kind)
    line = getattr(node, "lineno", 0)
    return ast.unparse(tree), f"line {line}: {before} → {ast.unparse(node)}"


def _apply(node: Any, kind: str) -> None:
    if kind == "compare":
        node.ops[0] = COMPARISONS[type(node.ops[0])]()
    elif kind == "operate":
        node.op = OPERATIONS[type(node.op)]()
    elif kind == "drop the sign":
        node.op = ast.UAdd() if isinstance(node.op, ast.USub) else ast.Invert()
        if isinstance(node.op, ast.Invert):  # twice
            node.operand = ast.UnaryOp(ast.Invert(), node.operand)
    elif kind == "another constant":
        value = node.value
        node.value = (not value) if isinstance(value, bool) else value + 1 if value >= 0 else value
    elif kind == "another reduction":
        node.attr = NAMES[node.attr]
    else:
        node.args[1], node.args[2] = node.args[2], node.args[1]


def tried(number: int) -> dict[str, Any]:
    """Run the tests on a mutant; return what was changed and what became of it."""
    path = list(TARGETS)[number % len(TARGETS)]
    source, change = mutated((ROOT / path).read_text(encoding="utf-8"), number)
    with tempfile.TemporaryDirectory() as folder:
        for name in COPIED:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, Path(folder) / name)
        (Path(folder) / path).write_text(source, encoding="utf-8")
        flags = "--xla_cpu_multi_thread_eigen=false --xla_backend_optimization_level=0"
        environment = {**os.environ, "PYTHONPATH": folder, "XLA_FLAGS": flags}
        environment["OPENBLAS_NUM_THREADS"] = "1"
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not slow", *TARGETS[path]]
        begun = time.perf_counter()
        try:
            done = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, timeout=LIMIT
            )
        except subprocess.TimeoutExpired:
            return {"number": number, "file": path, "change": change, "killed": "did not end"}
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    killed = failed[0] if failed else "" if done.returncode == 0 else "the process died"
    seconds = time.perf_counter() - begun
    row = {"number": number, "file": path, "change": change, "killed": killed}
    return row | {"seconds": round(seconds)}


def hunt(count: int, first: int) -> None:
    """Try mutants."""
    for number in tqdm(range(first, first + count), unit=" mutants"):
        row = tried(number)
        MUTANTS.append(row)
        if not row["killed"]:
            tqdm.write(f"survived: {row['number']} {row['file']} {row['change']}")


def report() -> str:
    """Return the section about mutants."""
    rows = list(MUTANTS.read())
    cells = []
    for path in TARGETS:
        own = [row for row in rows if row["file"] == path]
        killed = sum(bool(row["killed"]) for row in own)
        cells.append([path, len(own), killed, f"{killed / max(len(own), 1):.0%}"])
    survivors = [
        f"- {row['number']}: {row['file']}, {row['change']}" for row in rows if not row["killed"]
    ]
    lines = [
        "## Mutants",
        "",
        f"`python -m bench.trust mutants`: {len(rows)} changes of one place, drawn at random.",
        "",
        *table(("file", "mutants", "killed", "share"), cells),
        "",
        "Survivors:",
        "",
        *(survivors or ["- none"]),
    ]
    return "\n".join(lines) + "\n"
