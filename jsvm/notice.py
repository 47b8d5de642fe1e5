"""A word on a terminal while a first call compiles."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE = 2.0  # seconds of compiling after which it is told why a call takes so long
WORDS = (
    "jsvm: compiling, which takes some seconds for the first data of a size and kernel. Programs "
    "are kept in {folder}; 'jsvm warm-up' compiles ahead."
)


class Notice:
    """Tells once, on a terminal, why a first call takes its time."""

    def __init__(self) -> None:
        self._spent, self.given = 0.0, False

    @contextmanager
    def while_compiling(self, folder: Path) -> Iterator[None]:
        """Give notice if this takes long, together with the times before."""
        begun, timer = time.perf_counter(), None
        if not self.given and sys.stderr is not None and sys.stderr.isatty():
            timer = threading.Timer(max(PATIENCE - self._spent, 0.0), self._give, [folder])
            timer.daemon = True
            timer.start()
        try:
            yield
        finally:
            self._spent += time.perf_counter() - begun
            if timer is not None:
                timer.cancel()

    def _give(self, folder: Path) -> None:
        if not self.given:
            self.given = True
            print(WORDS.format(folder=folder), file=sys.stderr)
