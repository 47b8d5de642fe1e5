"""A stopwatch that does not count the time that compiling takes."""

import math
import threading
import time
from typing import Any
from weakref import WeakSet

import jax

from jsvm.programs import LOADED

EVENTS = {
    f"/jax/core/compile/{name}_duration"
    for name in ("jaxpr_trace", "jaxpr_to_mlir_module", "backend_compile")
} | {LOADED}


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
