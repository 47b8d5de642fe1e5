"""Fair times: solvers take turns in one process, and long runs are repeated less."""

import gc
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Any

# Seconds; a longer first run counts: warming up is a small share of it.
LONG = 20.0
# Seconds that a turn lasts at least: a single run of two milliseconds after a run of another solver
# would measure cold caches.
SHORTEST_TURN = 0.05


def repeats(seconds: float, wanted: int) -> int:
    """Return how often a solver runs whose longest run took `seconds`."""
    if seconds > 60:
        return 1
    return min(wanted, 2) if seconds > 10 else wanted


@dataclass
class Contestant:
    """A solver on a problem, with its times; `first` is the time of the run before all others."""

    name: str
    run: Callable[[], Any]
    compiles: bool = False
    first: float = 0.0
    times: list[float] = field(default_factory=list)
    result: Any = None
    warning: str = ""
    error: str = ""

    @property
    def median(self) -> float | None:
        """The middle of the counted times."""
        return median(self.times) if self.times else None

    def attempt(self, fresh: bool = True) -> float:
        """Run once and return the seconds; an error is kept as text, and ends the attempts."""
        if fresh:
            gc.collect()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            start = time.perf_counter()
            try:
                self.result = self.run()
            except Exception as error:
                self.error = f"{type(error).__name__}: {error}".splitlines()[0][:200]
            seconds = time.perf_counter() - start
        notable = [w for w in caught if w.category.__name__ == "ConvergenceWarning"]
        self.warning = str(notable[0].message) if notable else ""
        return seconds

    def warm_up(self) -> None:
        """Make the first run; it counts if it is long and no compilation is in it."""
        self.first = self.attempt()
        if self.first > LONG and not (self.compiles or self.error):
            self.times.append(self.first)

    def wants(self, turn: int, wanted: int) -> bool:
        """Say whether another run is due in this turn."""
        due = repeats(max(self.times, default=0.0), wanted)
        return not self.error and len(self.times) <= turn and len(self.times) < due

    def take_turn(self) -> None:
        """Make a run that counts; of short runs several, of which the middle one counts."""
        seconds: list[float] = []
        while not self.error and sum(seconds) < SHORTEST_TURN:
            seconds.append(self.attempt(fresh=not seconds))
        if not self.error:
            self.times.append(median(seconds))


def race(contestants: list[Contestant], wanted: int) -> None:
    """Let the contestants take turns: all warm up, then all run once, then all run again ..."""
    for contestant in contestants:
        contestant.warm_up()
    for turn in range(wanted):
        for contestant in contestants:
            if contestant.wants(turn, wanted):
                contestant.take_turn()
