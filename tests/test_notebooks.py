"""The notebooks run from top to bottom, and show what they showed to whoever wrote them."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SECONDS = 1200  # for one cell; most of it is compilation
LARGEST = 1_000_000  # bytes
# Folders of a machine; what is mentioned in a sentence, such as ~/.cache, is none.
PATHS = re.compile(r"(?<![\w.])/(?:home|root|work|tmp|Users|private|var|usr|opt)\b|[A-Z]:\\Users")

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def read(path: Path):
    return nbformat.read(path, as_version=4)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def strings(part, name=""):
    """Yield all text in a notebook; images are none."""
    if isinstance(part, dict):
        for key, value in part.items():
            yield from strings(value, key)
    elif isinstance(part, list):
        for value in part:
            yield from strings(value, name)
    elif isinstance(part, str) and name not in ("image/png", "image/jpeg"):
        yield part


def test_there_are_notebooks():
    assert "quick_start" in {path.stem for path in NOTEBOOKS}


@every_notebook
def test_outputs_are_there_and_are_no_errors(path):
    notebook = read(path)
    nbformat.validate(notebook)
    cells = code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell.outputs]
    assert outputs
    assert not [output for output in outputs if output.output_type == "error"]
    assert notebook.metadata.kernelspec.name == "python3"
    assert path.stat().st_size < LARGEST


@every_notebook
def test_no_path_of_a_machine_is_in_them(path):
    text = "\n".join(strings(read(path)))
    assert "import jsvm" in text or "from jsvm" in text
    assert not PATHS.findall(text)


def test_the_path_test_can_fail():
    assert PATHS.search('"File /home/someone/jsvm/svc.py"')
    assert PATHS.search("C:\\Users\\someone")
    assert PATHS.search("in /tmp")
    assert not PATHS.search("and/or https://github.com/jax-ml/jax ~/.cache/jsvm a/tmp/b")


# The kernel is the Python that runs this, and its ports are on loopback. All is in a process of its
# own, so that sockets and event loops end with it.
EXECUTE = """
import sys
import nbformat
from ipykernel.kernelspec import write_kernel_spec
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

notebook, kernels, folder, seconds = sys.argv[1:]
write_kernel_spec(kernels + "/this")
known = KernelSpecManager(kernel_dirs=[kernels], ensure_native_kernel=False)
manager = AsyncKernelManager(kernel_name="this", kernel_spec_manager=known)
manager.transport, manager.ip = "tcp", "127.0.0.1"
resources = {"metadata": {"path": folder}}
content = nbformat.read(notebook, as_version=4)
client = NotebookClient(content, km=manager, timeout=int(seconds), resources=resources)
client.force_raise_errors = True
client.execute()
code = [cell for cell in content.cells if cell.cell_type == "code"]
assert all(cell.execution_count for cell in code)
print("cells:", len(code), "python:", client.km.kernel_spec.argv[0])
"""


def execute(path: Path, folder: Path):
    """Run a notebook in a temporary folder, with nothing of the user's; return the process."""
    for name in ("nbclient", "ipykernel", "jupyter_client"):
        pytest.importorskip(name)
    env = dict(os.environ)
    for name in ("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR", "HOME"):
        (folder / name).mkdir()
        env[name] = str(folder / name)
    for name in ("kernels", "there"):
        (folder / name).mkdir()
    copy = shutil.copy(path, folder / "there")
    arguments = [copy, folder / "kernels", folder / "there", SECONDS]
    command = [sys.executable, "-c", EXECUTE, *map(str, arguments)]
    return subprocess.run(command, env=env, capture_output=True, text=True)


@pytest.mark.slow
@every_notebook
def test_every_cell_runs(path, tmp_path):
    done = execute(path, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[1:] == [str(len(code_cells(read(path)))), "python:", sys.executable]


@pytest.mark.slow
def test_a_cell_that_fails_is_found(tmp_path):
    # One cell whose tag asks to let errors pass, which does not help it.
    cells = [nbformat.v4.new_code_cell("1 / 0", metadata={"tags": ["raises-exception"]})]
    path = tmp_path / "wrong.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    done = execute(path, tmp_path)
    assert done.returncode != 0
    assert "ZeroDivisionError" in done.stderr
