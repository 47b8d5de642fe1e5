"""Compiling ahead, so that the first fit does not have to."""

import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from jsvm import estimators as all_estimators
from jsvm import programs

COSTS = (1.0, 1e4)  # with few and with many free variables: other programs
MOST_STEPS = 20_000


class WarmUp(NamedTuple):
    """What a warm-up has done: printed, it is a sentence."""

    compiled: int
    loaded: int
    seconds: float
    folder: Path | None

    def __str__(self) -> str:
        done = f"{self.compiled} programs compiled, {self.loaded} loaded in {self.seconds:.1f} s"
        if self.folder is None:
            return f"{done}; none are kept, because JSVM_CACHE or keep_compiled_programs says so"
        sizes = [path.stat().st_size for path in self.folder.glob(f"*{programs.SUFFIX}")]
        return f"{done}; {len(sizes)} ({sum(sizes) / 1e6:.0f} MB) are kept in {self.folder}"


def warm_up(
    n: int | Sequence[int] = (100, 200, 500, 1000, 3000),
    d: int | Sequence[int] = (2, 10),
    kernels: Sequence[Any] = ("rbf", "linear"),
    *,
    estimators: Sequence[str] = ("SVC",),
    progress: bool = False,
) -> WarmUp:
    """Compile what fits and predictions of these sizes need, and keep it for later processes.

    It fits data of a chess board, easy and hard, and predicts them. Nearby sizes and numbers of
    features share programs, and so do all values of C, gamma and other parameters.

    Parameters
    ----------
    n : int or sequence of int
        Numbers of examples.
    d : int or sequence of int
        Numbers of features.
    kernels : sequence
        Kernels, as estimators take them.
    estimators : sequence of str
        Names of estimators for classes or for numbers, such as "SVC" and "SVR".
    progress : bool
        Draw a progress bar.

    Returns
    -------
    WarmUp
        How many programs were compiled and loaded, in how many seconds, and where they are kept.

    Examples
    --------
    >>> import jsvm
    >>> jsvm.warm_up(n=50, d=3, kernels=["rbf"]).seconds > 0
    True
    """
    sizes, widths = ([v] if isinstance(v, int) else list(v) for v in (n, d))
    for name, values in (("n", sizes), ("d", widths)):
        if not values or min(values) < 1:
            raise ValueError(f"{name}={values} must hold whole numbers of at least 1")
    if min(sizes) < 2:
        raise ValueError(f"n={sizes} must be at least 2: two classes need two examples")
    for name in estimators:
        if name not in all_estimators.__all__:
            raise ValueError(f"estimators: {name!r} is unknown; use {all_estimators.__all__}")
    programs.notice.given = True  # whoever compiles ahead knows why it takes time
    before, begun = (programs.tally.compiled, programs.tally.loaded), time.perf_counter()
    cases = [
        (size, width, kernel, name)
        for size in sizes
        for width in widths
        for kernel in kernels
        for name in estimators
    ]
    for case in tqdm(cases, disable=not progress, desc="warm-up", unit=" cases"):
        _fit(*case)
    compiled, loaded = programs.tally.compiled - before[0], programs.tally.loaded - before[1]
    return WarmUp(compiled, loaded, time.perf_counter() - begun, programs.folder())


def _fit(size: int, width: int, kernel: Any, name: str) -> None:
    """Fit and predict the chess board."""
    draw = np.random.default_rng(0)
    X = draw.uniform(0, 4, (size, width))
    y = np.where(np.floor(X[:, :2]).sum(axis=1) % 2 == 0, 1, -1)
    y[:2] = 1, -1
    make = getattr(all_estimators, name)
    options: dict[str, Any] = {"kernel": kernel, "max_iter": MOST_STEPS}
    costs = COSTS if "C" in make().get_params() else (None,)
    for C in costs:
        machine = make(**options) if C is None else make(C=C, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some do not converge in so few steps
            machine.fit(X, y).predict(X)
