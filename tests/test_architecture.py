"""The shape of the house: imports point one way, importing is light and changes nothing."""

import ast
import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import jax
import pytest

import jsvm

PACKAGE = Path(jsvm.__file__).parent

# A module may import from its own layer and from layers before it.
LAYERS = (
    ("_typing", "precision", "notice", "programs", "compilation"),
    ("numerics",),
    ("optim", "data"),
    ("kernels",),
    ("problems",),
    ("implicit",),
    ("solvers",),
    ("machine", "evaluate"),
    ("validation",),
    ("objectives",),
    ("search",),
    ("estimators",),
    ("io", "plots", "ahead"),
    ("command",),
    ("__main__",),
    ("__init__",),
)
MOST_LINES = 19_800
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def modules() -> list[str]:
    found = pkgutil.walk_packages([str(PACKAGE)], prefix="jsvm.")
    return sorted(module.name for module in found)


def imported_parts(path: Path) -> list[tuple[str, int]]:
    """Names of the parts of jsvm that a file imports, with their lines."""
    parts = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            if node.module == "jsvm":
                parts += [(alias.name, node.lineno) for alias in node.names]
            elif node.module.startswith("jsvm."):
                parts.append((node.module.split(".")[1], node.lineno))
        elif isinstance(node, ast.Import):
            parts += [
                (alias.name.split(".")[1], node.lineno)
                for alias in node.names
                if alias.name.startswith("jsvm.")
            ]
    return parts


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def steps_back(path: Path, part: str) -> list[str]:
    return [
        f"{path.name}:{line}: {part} imports {other}"
        for other, line in imported_parts(path)
        if LEVEL[other] > LEVEL[part]
    ]


def test_imports_point_one_way():
    files = sorted(PACKAGE.rglob("*.py"))
    assert len(files) > 20
    wrong = [line for path in files for line in steps_back(path, part_of(path))]
    assert not wrong, "\n".join(wrong)


def test_the_import_test_can_fail(tmp_path: Path):
    path = tmp_path / "base.py"
    path.write_text("from jsvm.solvers import solve\nfrom jsvm import problems\nimport jsvm.data\n")
    assert len(steps_back(path, "kernels")) == 2


def test_only_estimators_and_demo_import_scikit_learn():
    importing = {
        "demo" if path.name == "demo.py" else part_of(path)
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if (isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sklearn"))
        or (isinstance(node, ast.Import) and any("sklearn" in alias.name for alias in node.names))
    }
    assert importing == {"estimators", "demo"}


def test_modules_are_short():
    too_long = {
        path.name: lines
        for path in PACKAGE.rglob("*.py")
        if (lines := len(path.read_text().splitlines())) > 400
    }
    assert not too_long


def repeated(named: list[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the names that are there more than once, with the places where they are."""
    places: dict[str, list[str]] = {}
    for name, place in named:
        places.setdefault(name, []).append(place)
    return {name: found for name, found in places.items() if len(found) > 1}


def test_no_file_name_is_there_twice():
    files = [path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py")]
    assert not repeated([(f.name, str(f)) for f in files if f.name != "__init__.py"])


def test_no_class_name_is_there_twice():
    classes = [
        (node.name, f"{path.relative_to(PACKAGE)}:{node.lineno}")
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
    ]
    assert len(classes) > 50
    assert not repeated(classes)


def test_citations_are_by_author_and_year():
    number = re.compile(r"(?<![\d.,_])(?<!\d )00[0-4](?!\d)")  # not 0.001, 252,000 or 10 000
    found = [
        f"{path.relative_to(PACKAGE)}:{number_of_line}: {line.strip()}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for number_of_line, line in enumerate(path.read_text().splitlines(), 1)
        if number.search(line)
    ]
    assert not found, "\n".join(found)


def test_the_number_of_lines_is_printed(capsys: pytest.CaptureFixture[str]):
    lines = {path: len(path.read_text().splitlines()) for path in PACKAGE.rglob("*.py")}
    longest = max(lines, key=lambda path: lines[path])
    with capsys.disabled():
        print(
            f"\njsvm/: {sum(lines.values())} lines in {len(lines)} files, "
            f"{lines[longest]} in {longest.name}"
        )
    assert sum(lines.values()) < MOST_LINES


def test_pre_commit_runs_what_lint_runs():
    root = PACKAGE.parent
    lint = re.search(r"^lint:.*\n((?:\t.*\n)+)", (root / "Makefile").read_text(), re.MULTILINE)
    assert lint
    commands = [line.strip().replace("$(BIN)", ".venv/bin") for line in lint[1].splitlines()]
    hooks = re.findall(r"entry: (.*)", (root / ".pre-commit-config.yaml").read_text())
    assert hooks == commands


def test_importing_sets_no_flag_and_stays_light():
    program = (
        "import jax, sys\n"
        "before = dict(jax.config.values)\n"
        "import jsvm\n"
        "assert dict(jax.config.values) == before, 'a JAX flag changed'\n"
        "heavy = {'sklearn', 'matplotlib', 'optax', 'scipy.optimize'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "from jsvm import SVC\n"
        "heavy = {'sklearn.metrics', 'sklearn.cluster', 'optax'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "assert dict(jax.config.values) == before, 'a JAX flag changed'\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_public_names_are_there():
    for name in jsvm.__all__:
        assert getattr(jsvm, name) is not None
    assert set(jsvm.__all__) <= set(dir(jsvm))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = jsvm.nothing  # pyright: ignore[reportAttributeAccessIssue]


# Examples for which large programs are compiled.
SLOW_EXAMPLES = {
    "jsvm.estimators.auto_svc",
    "jsvm.objectives.holdout",
    "jsvm.objectives.leave_one_out",
    "jsvm.objectives.likelihood",
    "jsvm.search.cma_es",
    "jsvm.search.strategies",
}
EXAMPLES = [
    pytest.param(name, marks=pytest.mark.slow if name in SLOW_EXAMPLES else ())
    for name in modules()
]


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_run(name: str):
    module = importlib.import_module(name)
    with jax.enable_x64(True):
        result = doctest.testmod(module)
    assert result.failed == 0


PARTS = (
    jsvm.kernels,
    jsvm.problems,
    jsvm.data,
    jsvm.io,
    jsvm.objectives,
    jsvm.optim,
    jsvm.search,
    jsvm.search.strategies,
)


def test_every_public_object_has_an_example():
    missing = [
        f"{part.__name__}.{name}"
        for part in PARTS
        for name in part.__all__
        if name not in WITHOUT_EXAMPLE | {"strategies"}
        and ">>>" not in (getattr(part, name).__doc__ or "")
    ]
    assert not missing


# Protocols, results and helpers that the examples of others show at work.
WITHOUT_EXAMPLE = {
    "Certificate", "CrossValidation", "GridTask", "Hessian", "Kernel", "MatrixData",
    "Normalised", "Part", "Repeated", "Tile", "certify", "pairwise", "split_l1",
    "strategies", "validate",
}  # fmt: skip


def test_the_contract_tests_cover_every_public_kernel_problem_and_selection():
    import test_kernels
    import test_problems

    from jsvm.kernels import Kernel
    from jsvm.solvers.tile.selection import SELECTIONS

    def classes(kernel):
        parts = vars(kernel).values()
        return {type(kernel)} | {c for p in parts if isinstance(p, Kernel) for c in classes(p)}

    public = {getattr(jsvm.kernels, name) for name in jsvm.kernels.__all__}
    public = {c for c in public if isinstance(c, type) and issubclass(c, Kernel)} - {Kernel}
    tested = {c for kernel in test_kernels.KERNELS.values() for c in classes(kernel)}
    assert public == tested

    makers = {name for name in jsvm.problems.__all__ if name.islower()}
    other = {"certify", "check", "split_l1", "validate", "normalised", "psvm"}  # psvm: test_psvm.py
    assert makers - other == set(test_problems.MACHINES)

    other = {"epsilon_path", "held_out", "runs_in_kernel", "solve", "solve_batch"}
    exported = {name for name in jsvm.solvers.__all__ if name.islower()}
    assert exported - other == set(SELECTIONS)
