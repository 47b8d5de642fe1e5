"""The host's side of a search: progress bar, time limit, callback, Ctrl-C."""

import time
from collections.abc import Callable
from typing import Any

from jsvm.search.result import CONVERGED, FINISHED, INTERRUPTED, STOPPED, TIME_LIMIT

Callback = Callable[[dict[str, Any]], Any]


class Watch:
    """Counts steps and says when to stop; a context that closes the bar and catches Ctrl-C.

    Searches only: a solver, whose rounds have other facts and a Status, is followed by
    :class:`jsvm.solvers.monitor.Monitor`.

    Parameters
    ----------
    total : int
        Steps to be taken.
    time_limit : float or None
        Seconds.
    progress : bool
        Show a bar.
    callback : function or None
        Called with a dict of 'steps', 'value' and 'seconds'; a true result stops the search.
    """

    def __init__(
        self, total: int, time_limit: float | None, progress: bool, callback: Callback | None
    ) -> None:
        if time_limit is not None and not time_limit > 0:
            raise ValueError(f"time_limit={time_limit!r} must be a positive number of seconds")
        self.status = FINISHED
        self.done, self.total = 0, total
        self._limit, self._callback, self._progress = time_limit, callback, progress
        self._begin = time.monotonic()
        self._bar: Any = None

    def __enter__(self) -> "Watch":
        if self._progress:
            from tqdm.auto import tqdm

            self._bar = tqdm(total=self.total, unit=" steps", desc="jsvm")
        return self

    def __exit__(self, kind: Any, *_: object) -> bool:
        if self._bar is not None:
            self._bar.close()
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            self.status = INTERRUPTED  # the search returns what it has
            return True
        return False

    @property
    def left(self) -> int:
        """Steps still to be taken."""
        return self.total - self.done

    @property
    def running(self) -> bool:
        """Whether to go on."""
        return self.left > 0 and self.status == FINISHED

    def converged(self) -> None:
        """Stop the search as converged, unless something else has stopped it."""
        if self.status == FINISHED:
            self.status = CONVERGED

    def took(self, steps: int, value: float) -> None:
        """Count steps, show and report the value, and check the time limit."""
        self.done += steps
        seconds = time.monotonic() - self._begin
        if self._bar is not None:
            self._bar.update(steps)
            self._bar.set_postfix_str(f"value {value:.6g}")
        facts = {"steps": self.done, "value": value, "seconds": seconds}
        if self._callback is not None and self._callback(facts):
            self.status = STOPPED
        elif self._limit is not None and seconds >= self._limit:
            self.status = TIME_LIMIT
