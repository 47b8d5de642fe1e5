"""Compiled programs on disk, for the next process; and the time that compiling takes."""

import math
import threading
import time
from pathlib import Path
from typing import Any
from weakref import WeakSet

import jax

SHORTEST_COMPILATION = 0.1  # seconds; programs that compile faster are not kept
EVENTS = {
    f"/jax/core/compile/{name}_duration"
    for name in ("jaxpr_trace", "jaxpr_to_mlir_module", "backend_compile")
}


def keep_compiled_programs(folder: str | Path | None = None) -> Path:
    """Keep compiled programs on disk, so that the next process does not compile them again.

    This switches on JAX's persistent compilation cache, for the whole process; nothing else in jsvm
    changes a setting of JAX.

    Parameters
    ----------
    folder : path, optional
        Where to keep them; by default ``~/.cache/jsvm``.

    Returns
    -------
    Path
        The folder.

    Examples
    --------
    >>> import jsvm
    >>> jsvm.keep_compiled_programs("programs")  # doctest: +SKIP
    """
    folder = Path.home() / ".cache" / "jsvm" if folder is None else Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", SHORTEST_COMPILATION)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
    return folder


class Stopwatch:
    """The time since it was made, without the time that this thread has spent on compiling."""

    def __init__(self) -> None:
        self._compiling = _Compiling.of_this_thread()
        self.begun = time.perf_counter()
        self._compiling.watches.add(self)

    def seconds(self) -> float:
        """Return the seconds that count."""
        passed = time.perf_counter() - self.begun
        return passed - self._compiling.seconds_since(self.begun)


class _Compiling(threading.local):
    """The times when this thread compiled, as JAX reports them, while it has stopwatches."""

    _only: "_Compiling | None" = None

    def __init__(self) -> None:
        self.intervals: list[tuple[float, float]] = []
        self.watches: WeakSet[Stopwatch] = WeakSet()

    @classmethod
    def of_this_thread(cls) -> "_Compiling":
        if cls._only is None:
            cls._only = cls()
            jax.monitoring.register_event_duration_secs_listener(cls._only.note)
        return cls._only

    def note(self, event: str, duration_secs: float, **_: Any) -> None:
        """Add an interval; it contains those that began after it: programs call programs."""
        if event in EVENTS:
            end = time.perf_counter()
            begin = end - duration_secs
            oldest = min((watch.begun for watch in self.watches), default=math.inf)
            outside = [i for i in self.intervals if i[0] < begin]
            self.intervals = [i for i in [*outside, (begin, end)] if i[0] >= oldest]

    def seconds_since(self, begun: float) -> float:
        return math.fsum(end - begin for begin, end in self.intervals if begin >= begun)
