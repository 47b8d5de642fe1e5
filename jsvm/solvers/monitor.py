"""What a person sees of a long run and can do about it.

Between two rounds the host writes history, moves the progress bar, looks at the clock, calls the
callback, and saves a checkpoint. Whatever stops a run, the best point so far is handed back.
"""

import hashlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import jax
import numpy as np

from jsvm.kernels.sparse import is_sparse
from jsvm.problems import QuadraticProgram, SparseMatrix
from jsvm.solvers.status import Status

CHECKPOINT_SECONDS = 30.0


@runtime_checkable
class Work(Protocol):
    """A solver that goes round by round."""

    status: Status

    def round(self) -> None:
        """Do a bounded amount of work; sets `status` when there is nothing more to do."""
        ...

    def facts(self) -> dict[str, Any]:
        """Return violation, objective, support_vectors, kernel_rows, steps and newton_steps."""
        ...

    def point(self) -> np.ndarray:
        """Return α in the order of the variables."""
        ...


class Monitor:
    """Watches rounds.

    Parameters
    ----------
    time_limit : float or None
        Seconds.
    progress : bool
        Show a bar.
    callback : function or None
        Called with the facts of each round, a dict; a true return value stops the run.
    checkpoint : Checkpoint or None
        Where to save the point.

    Attributes
    ----------
    to_user : function
        Makes the point that is saved of a point of the work.
    """

    def __init__(
        self,
        time_limit: float | None = None,
        progress: bool = False,
        callback: Callable[[dict[str, Any]], Any] | None = None,
        checkpoint: "Checkpoint | None" = None,
    ) -> None:
        self.time_limit, self.callback, self.checkpoint = time_limit, callback, checkpoint
        self.history: list[dict[str, Any]] = []
        self.to_user: Callable[[np.ndarray], np.ndarray] = lambda alpha: alpha
        self._bar = _Bar() if progress else None
        self._begun = time.perf_counter()

    def follow(self, work: Work) -> None:
        """Let the work go on until it ends or is stopped."""
        try:
            while work.status == Status.RUNNING:
                work.round()
                facts = work.facts() | {"seconds": time.perf_counter() - self._begun}
                self.history.append(facts)
                stop = self._tell(facts)
                if work.status == Status.RUNNING and stop is not None:
                    work.status = stop
                elif self.checkpoint is not None and work.status == Status.RUNNING:
                    self.checkpoint.save_now_and_then(lambda: self.to_user(work.point()))
        except KeyboardInterrupt:
            work.status = Status.INTERRUPTED
        finally:
            if self._bar is not None:
                self._bar.close()
        if self.checkpoint is not None:
            self.checkpoint.save(self.to_user(work.point()))

    def _tell(self, facts: dict[str, Any]) -> Status | None:
        if self._bar is not None:
            self._bar.show(facts)
        if self.callback is not None and self.callback(facts):
            return Status.INTERRUPTED
        if self.time_limit is not None and facts["seconds"] > self.time_limit:
            return Status.TIME_LIMIT
        return None


class Checkpoint:
    """A point in a file, with a fingerprint of the problem that it belongs to.

    Parameters
    ----------
    path : str or Path
    problem : QuadraticProgram
        As the user gave it.
    """

    def __init__(self, path: str | Path, problem: QuadraticProgram) -> None:
        path = Path(path)
        self.path = path if path.suffix == ".npz" else path.with_name(path.name + ".npz")
        if not self.path.parent.is_dir():
            raise ValueError(f"checkpoint={str(path)!r}: there is no folder {self.path.parent}")
        self._fingerprint = fingerprint(problem)
        self._last = time.perf_counter()

    def load(self) -> np.ndarray | None:
        """Return the saved point, None if there is none; raise if it is of another problem."""
        if not self.path.exists():
            return None
        try:
            with np.load(self.path, allow_pickle=False) as content:
                saved, alpha = str(content["fingerprint"]), content["alpha"]
        except (OSError, ValueError, KeyError) as error:
            raise ValueError(f"checkpoint {self.path} is no checkpoint of jsvm: {error}") from error
        if saved != self._fingerprint:
            raise ValueError(
                f"checkpoint {self.path} belongs to another problem (data, kernel, C or weights "
                "differ); delete it or give another path"
            )
        return alpha

    def save_now_and_then(self, point: Callable[[], np.ndarray]) -> None:
        """Save if the last time is long ago."""
        if time.perf_counter() - self._last > CHECKPOINT_SECONDS:
            self.save(point())

    def save(self, alpha: np.ndarray) -> None:
        """Write to a new file that then takes the place of the old one: never half a file."""
        unfinished = self.path.with_name(self.path.name + ".new")
        with unfinished.open("wb") as file:
            np.savez(file, alpha=alpha, fingerprint=self._fingerprint)
        unfinished.replace(self.path)
        self._last = time.perf_counter()


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


class _Bar:
    """A tqdm bar of rounds with the numbers people look for."""

    def __init__(self) -> None:
        from tqdm.auto import tqdm

        self._bar = tqdm(unit=" rounds", desc="jsvm", dynamic_ncols=True)

    def show(self, facts: dict[str, Any]) -> None:
        self._bar.set_postfix(
            gap=f"{facts['violation']:.2e}",
            objective=f"{facts['objective']:.6g}",
            sv=facts["support_vectors"],
            rows=facts["kernel_rows"],
            refresh=False,
        )
        self._bar.update()

    def close(self) -> None:
        self._bar.close()
