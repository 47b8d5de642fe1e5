"""Run all conformity checks in one process; print checks, compilations and seconds."""

import os
import time
import warnings
from typing import Any

os.environ["SCIPY_ARRAY_API"] = "1"  # or scikit-learn skips its checks of array-API input

import jax
from sklearn.utils.estimator_checks import estimator_checks_generator
from test_conformity import ESTIMATORS

COMPILED = "/jax/core/compile/backend_compile_duration"


def main() -> None:
    """Print a line an estimator, and the sums."""
    seconds: list[float] = []

    def count(event: str, duration_secs: float, **kwargs: str | int) -> None:
        if event == COMPILED:
            seconds.append(duration_secs)

    jax.monitoring.register_event_duration_secs_listener(count)
    begun_all = time.perf_counter()
    for estimator in ESTIMATORS:
        before, begun, checks = len(seconds), time.perf_counter(), 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            checks_of: Any = estimator_checks_generator(estimator)
            for instance, check in checks_of:
                check(instance)
                checks += 1
        print(
            f"{estimator}: {checks} checks, {len(seconds) - before} programs compiled in "
            f"{sum(seconds[before:]):.1f} s, {time.perf_counter() - begun:.1f} s in all"
        )
    print(f"programs in all: {len(seconds)} in {time.perf_counter() - begun_all:.0f} s")


if __name__ == "__main__":
    main()
