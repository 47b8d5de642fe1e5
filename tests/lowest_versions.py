"""Print the lowest versions that pyproject.toml allows, as constraints for pip.

Only what a user installs is held down; the tools of developers are the newest.
"""

import re
import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
EXTRAS = ("plots", "search")


def lowest(requirement: str) -> str:
    """Return name==version of a requirement name>=version,<limit."""
    found = re.match(r"([\w.-]+)>=([\w.]+)", requirement)
    if not found:
        raise ValueError(f"{requirement!r} has no lowest version; give one, as in 'numpy>=2.1'")
    return f"{found[1]}=={found[2]}"


if __name__ == "__main__":
    extras = [line for extra in EXTRAS for line in PROJECT["optional-dependencies"][extra]]
    print(*map(lowest, [*PROJECT["dependencies"], *extras]), sep="\n")
