"""Wheel and sdist: built, installed in a new environment, imported from outside of this folder."""

import importlib.metadata
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "jsvm"
FILES = sorted(path.relative_to(ROOT).as_posix() for path in PACKAGE.rglob("*.py"))
EVERYTHING = """
import importlib, importlib.metadata, pathlib, pkgutil, sys
import jsvm

assert pathlib.Path(jsvm.__file__).is_relative_to(sys.prefix), jsvm.__file__
for module in pkgutil.walk_packages(jsvm.__path__, "jsvm."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
assert jsvm.__version__ == importlib.metadata.version("jsvm"), jsvm.__version__
print(jsvm.__version__)
"""


def run(*command: object, **options) -> str:
    """Run a command; what it prints is in the error if it fails."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheel and the sdist, both built from a copy of the files that git knows."""
    source, there = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("archives")
    names = run("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT)
    for name in names.splitlines():
        if (ROOT / name).is_file() and name.startswith(("jsvm/", "pyproject", "README", "LICENSE")):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    run(sys.executable, "-m", "build", "--outdir", there, source)
    (wheel,), (sdist,) = there.glob("*.whl"), there.glob("*.tar.gz")
    return {"wheel": wheel, "sdist": sdist}


@pytest.mark.slow
def test_the_archives_hold_every_module_the_types_and_the_licence(archives: dict[str, Path]):
    with zipfile.ZipFile(archives["wheel"]) as wheel:
        in_wheel = set(wheel.namelist())
    with tarfile.open(archives["sdist"]) as sdist:
        in_sdist = {name.partition("/")[2] for name in sdist.getnames()}
    assert {*FILES, "jsvm/py.typed"} <= in_wheel
    assert {*FILES, "jsvm/py.typed", "LICENSE", "README.md", "pyproject.toml"} <= in_sdist
    assert [name for name in in_wheel if name.endswith("dist-info/licenses/LICENSE")]
    assert {name.partition("/")[0].partition("-")[0] for name in in_wheel} == {"jsvm"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_it_is_installed_and_imported(kind: str, archives: dict[str, Path], tmp_path: Path):
    # The dependencies are those of the Python that runs this, found through a .pth file: a new
    # environment sees the system's packages, not those of another environment.
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "new")
    python = tmp_path / "new" / ("Scripts" if os.name == "nt" else "bin") / "python"
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    theirs, ours = run(python, "-c", where).strip(), run(sys.executable, "-c", where).strip()
    pip = (sys.executable, "-m", "pip", "--python", python)
    run(*pip, "install", "--no-deps", archives[kind], cwd=tmp_path)
    # After the installation, and by path only: the editable jsvm there is not taken along.
    (Path(theirs) / "dependencies.pth").write_text(ours + "\n")

    version = run(python, "-c", EVERYTHING, cwd=tmp_path).strip()
    assert version == importlib.metadata.version("jsvm")
    assert "train" in run(python.with_name("jsvm"), "--help", cwd=tmp_path)
