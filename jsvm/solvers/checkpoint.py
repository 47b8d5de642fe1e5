"""A long run in a file: the point so far, and a fingerprint of the problem that it belongs to."""

import hashlib
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jsvm.numerics.arrays import is_sparse
from jsvm.problems import QuadraticProgram, SparseMatrix
from jsvm.solvers.canonical import feasible_start


class Checkpoint:
    """The file of one run; points are in the variables of the problem as the user gave it."""

    interval = 30.0  # seconds between two saves: what is lost at most, beside the time of a round

    def __init__(self, path: str | Path, problem: QuadraticProgram) -> None:
        path = Path(path)
        self.path = path if path.suffix == ".npz" else path.with_name(path.name + ".npz")
        if not self.path.parent.is_dir():
            raise ValueError(f"checkpoint={str(path)!r}: there is no folder {self.path.parent}")
        self._problem, self._fingerprint = problem, fingerprint(problem)
        self._last = time.perf_counter()

    def load(self) -> np.ndarray | None:
        """Return the saved point, or None; raise ValueError if it is of another problem."""
        if not self.path.exists():
            return None
        try:
            with self.path.open("rb") as file, np.load(file, allow_pickle=False) as content:
                saved, alpha = str(content["fingerprint"]), np.asarray(content["alpha"], float)
        except Exception as error:  # a damaged file may raise anything: zipfile, zlib, NumPy
            raise ValueError(self._is_none(f"{type(error).__name__}: {error}")) from error
        if saved != self._fingerprint:
            raise ValueError(
                f"checkpoint {self.path} belongs to another problem (data, kernel, C or weights "
                "differ); delete it or give another path"
            )
        try:
            return feasible_start(alpha, self._problem)
        except ValueError as error:
            raise ValueError(self._is_none(str(error))) from None

    def _is_none(self, reason: str) -> str:
        return (
            f"checkpoint {self.path} is no checkpoint of jsvm, or damaged ({reason}); delete it or "
            "give another path"
        )

    def save_now_and_then(self, point: Callable[[], np.ndarray]) -> None:
        """Save if the last save is longer ago than the interval."""
        if time.perf_counter() - self._last > self.interval:
            self.save(point())

    def save(self, alpha: np.ndarray) -> None:
        """Write to a new file that then replaces the old one: never half a file.

        A file that cannot be written is a warning: the run goes on, and its solution is not lost.
        """
        unfinished = self.path.with_name(self.path.name + ".new")
        self._last = time.perf_counter()
        try:
            with unfinished.open("wb") as file:
                np.savez(file, alpha=alpha, fingerprint=self._fingerprint)
            unfinished.replace(self.path)
        except OSError as error:
            warnings.warn(
                f"checkpoint {self.path} was not written ({error}); the run goes on without it. "
                "Make room, or restore the folder",
                RuntimeWarning,
                stacklevel=2,
            )


def fingerprint(problem: QuadraticProgram) -> str:
    """Return a digest of a program; of a large array a regular sample of its rows."""
    digest = hashlib.blake2b(digest_size=16)
    for array in _arrays(problem):
        stride = max(1, array.size // 2**20)
        some = array[::stride] if array.ndim else array
        digest.update(f"{array.shape}".encode())
        digest.update(np.ascontiguousarray(some, np.float64).tobytes())
    return digest.hexdigest()


def _arrays(problem: Any) -> Iterator[np.ndarray]:
    """Yield all numbers of a problem, those of sparse matrices as they are stored."""
    for leaf in jax.tree.leaves(problem):
        leaf = leaf.matrix if isinstance(leaf, SparseMatrix) else leaf
        if is_sparse(leaf):
            rows = leaf.tocsr()
            yield from (rows.data, rows.indices, rows.indptr)
        else:
            yield np.asarray(leaf)
