"""The walks of ARCHITECTURE.md are those that the code takes."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
WALK = re.compile(r"^\*\*`(.+)`\*\* \((\d+) files\)\n\n((?:    .*\n)+)", re.MULTILINE)
WALKS = {
    name: (int(count), re.findall(r"[\w/]+\.py", files))
    for name, count, files in WALK.findall((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))
}


def test_every_file_of_a_walk_is_there():
    assert len(WALKS) == 5
    for count, files in WALKS.values():
        assert count == len(files) == len(set(files))
        assert all((ROOT / "jsvm" / file).exists() for file in files)


@pytest.mark.slow
def test_the_walks_are_those_of_the_code():
    command = [sys.executable, "-m", "bench.walks"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name, (count, files) in WALKS.items():
        listed = rf"^{re.escape(name)}: .* (\d+) in the second\n((?: +\d+ .*\n)+)"
        found = re.search(listed, printed, re.MULTILINE)
        assert found is not None, name
        assert (int(found[1]), re.findall(r"[\w/]+\.py", found[2])) == (count, files)
