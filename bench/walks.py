"""Which files of jsvm/ a call visits: ``python -m bench.walks``.

A file is visited if the body of one of its functions runs. The first call compiles; the second one
finds everything compiled, and is what a reader has to know to follow an ordinary call.
"""

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import jax
import numpy as np

import jsvm
from jsvm import PSVC, SVC, AutoSVC, kernels, objectives

PACKAGE = Path(jsvm.__file__).parent
Walk = Callable[[], Any]


def visited(walk: Walk) -> list[str]:
    """Return the files in the order of their first visit."""
    files: dict[str, None] = {}

    def note(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_name != "<module>":
            files.setdefault(code.co_filename)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        walk()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    paths = [Path(name) for name in files]
    return [str(p.relative_to(PACKAGE)) for p in paths if p.is_relative_to(PACKAGE)]


def walks() -> dict[str, Walk]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)
    fitted = SVC().fit(X, y)
    kernel, key = kernels.RBF(gamma=0.5), jax.random.key(0)
    slope = jax.grad(lambda k: objectives.log_likelihood(k, X, y, C=1.0, key=key))
    return {
        "SVC.fit": lambda: SVC().fit(X, y),
        "SVC.predict": lambda: fitted.predict(X),
        "AutoSVC.fit": lambda: AutoSVC("kta").fit(X, y),
        "PSVC.fit": lambda: PSVC().fit(X, y),
        "jax.grad(log_likelihood)": lambda: slope(kernel),
    }


def main() -> None:
    for name, walk in walks().items():
        jax.clear_caches()
        first, second = visited(walk), visited(walk)
        print(f"{name}: {len(first)} files in the first call, {len(second)} in the second")
        for number, file in enumerate(second, 1):
            print(f"    {number:2d} {file}")
        more = [file for file in first if file not in second]
        if more:
            print(f"    in the first call only: {', '.join(more)}")


if __name__ == "__main__":
    main()
