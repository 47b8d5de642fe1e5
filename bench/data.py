"""Real data sets for benchmarks, from a folder of .npz files beside the repository.

The folder is named by the environment variable JSVM_DATA, or is ``../shared/data``.
"""

import os
from pathlib import Path

import numpy as np

DEFAULT = Path(__file__).resolve().parents[2] / "shared" / "data"


def folder() -> Path:
    return Path(os.environ.get("JSVM_DATA", DEFAULT))


def load(name: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Return X and y of a data set in float64, or None if the file is absent."""
    path = folder() / f"{name}.npz"
    if not path.exists():
        return None
    with np.load(path, allow_pickle=False) as content:
        return content["X"].astype(np.float64), content["y"].astype(np.float64)
