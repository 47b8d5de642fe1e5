"""What the trust harness shares: rows in files, tables, and processes that may hang or die.

A worker is a spawned process that answers requests one by one. One that does not answer in time, or
dies, is replaced, and the request raises; so nothing that is tried there can stop the harness.
"""

import json
import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from jsvm.programs import VARIABLE

FOLDER = Path(__file__).parent
PROGRAMS = FOLDER / ".programs"  # compiled ones: every worker is a new process
START_SECONDS = 300.0  # to import and to prepare everything, on a busy machine

SPAWN = multiprocessing.get_context("spawn")


class Rows:
    """Results of runs, one JSON object a line; the file is not committed."""

    def __init__(self, name: str) -> None:
        self.path = FOLDER / name

    def append(self, row: dict[str, Any]) -> None:
        """Add a row at the end."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    def read(self) -> Iterator[dict[str, Any]]:
        """Yield all rows; none if there is no file."""
        if self.path.exists():
            with self.path.open(encoding="utf-8") as file:
                yield from map(json.loads, file)


def table(head: Sequence[Any], rows: Iterable[Sequence[Any]]) -> list[str]:
    """Return the lines of a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(map(str, cells)) + " |" for cells in lines]


class NoAnswerError(Exception):
    """The process did not answer in time, or died."""


class Worker:
    """A process that calls `prepare()`, and then `answer(request)` for every request."""

    def __init__(self, answer: Callable[[Any], Any], prepare: Callable[[], Any] = bool) -> None:
        self._answer, self._prepare, self._process = answer, prepare, None

    def ask(self, request: Any, seconds: float) -> Any:
        """Return the answer; raise NoAnswerError and end the process if there is none."""
        if self._process is None:
            self._start()
        try:
            self._mine.send(request)
            if self._mine.poll(seconds):
                return self._mine.recv()
            reason = f"no answer within {seconds:g} s"
        except (EOFError, OSError):
            reason = "the process died"
        self.close()
        raise NoAnswerError(reason)

    def close(self) -> None:
        """End the process, if there is one; the next request starts another."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._mine.close()
        self._process = None

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _start(self) -> None:
        self._mine, theirs = SPAWN.Pipe()
        folder = os.environ.get(VARIABLE, str(PROGRAMS))
        arguments = theirs, self._answer, self._prepare, folder
        self._process = SPAWN.Process(target=_serve, args=arguments)
        self._process.start()
        theirs.close()
        if not self._mine.poll(START_SECONDS):
            self.close()
            raise TimeoutError(f"no worker within {START_SECONDS:g} s")
        self._mine.recv()


def _serve(
    connection: Any, answer: Callable[[Any], Any], prepare: Callable[[], Any], programs: str
) -> None:
    """Answer until the connection is closed."""
    os.environ[VARIABLE] = programs  # before the first program, and for processes of its own
    prepare()
    connection.send("ready")
    while True:
        try:
            request = connection.recv()
        except EOFError:
            return
        connection.send(answer(request))
