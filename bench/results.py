"""RESULTS.md: one section for each benchmark, replaced when that benchmark runs again."""

import platform
from datetime import date
from pathlib import Path

import jax

PATH = Path(__file__).parent / "RESULTS.md"


def write_section(title: str, body: str) -> None:
    """Replace or append the section with this title."""
    text = PATH.read_text() if PATH.exists() else "# Measured results\n"
    head, *sections = text.split("\n## ")
    kept = [s for s in sections if s.splitlines()[0] != title]
    machine = f"{platform.machine()}, {jax.default_backend()}, jax {jax.__version__}"
    new = f"{title}\n\n_{date.today().isoformat()}, {machine}_\n\n{body.strip()}\n"
    PATH.write_text("\n## ".join([head.rstrip() + "\n", *(s.rstrip() + "\n" for s in kept), new]))
