"""Problems whose fits are timed: Table 7.1 of Glasmachers 2008, USPS, MNIST and Adult.

All are two-class problems with a Gaussian kernel exp(−γ‖x − z‖²), labels ±1 and the cost C.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from bench import data
from jsvm.data import chess_board

Data = tuple[np.ndarray, np.ndarray]
Task = Callable[[np.ndarray], np.ndarray]


class Case(NamedTuple):
    """A problem; `load` returns None where the data are absent.

    Cases of a `family` differ in n only, so that times can be forecast. `thesis`: in Table 7.1 of
    Glasmachers 2008. `libsvm` and `intelex`: that peer is run. `large`: memory is measured.
    """

    name: str
    C: float
    gamma: float
    load: Callable[[], Data | None]
    family: str = ""
    thesis: bool = False
    note: str = ""
    libsvm: bool = True
    intelex: bool = True
    large: bool = False


def draw_or_not(y: np.ndarray) -> np.ndarray:
    return np.where(y == -1, 1.0, -1.0)


def low_or_high_digit(y: np.ndarray) -> np.ndarray:
    return np.where(y <= 4, 1.0, -1.0)


def real(source: str, n: int | None = None, task: Task = np.sign) -> Data | None:
    """Return the first `n` rows of a data set; `task` makes ±1 of labels, or 0 to drop the row."""
    loaded = data.load(source)
    if loaded is None:
        return None
    labels = task(loaded[1])
    rows = np.flatnonzero(labels)[:n]
    return np.ascontiguousarray(loaded[0][rows]), labels[rows]


def board(n: int) -> Data:
    X, y = chess_board(4, 2, size=n, key=0)
    return np.ascontiguousarray(X, np.float64), np.ascontiguousarray(y, np.float64)


def adult(n: int | None = None) -> Data | None:
    return real("adult_a9a", n)


def mnist(n: int | None = None) -> Data | None:
    return real("mnist", n, low_or_high_digit)


WIDTH = 3500.0  # σ on pixels 0-255; γ = 1 / (2σ²)
MNIST_GAMMA = 1 / (2 * WIDTH**2)
USPS_GAMMA = 1 / (2 * (WIDTH * 2 / 255) ** 2)  # the same width on pixels in [−1, 1]
DIGITS = "digits 0-4 against 5-9"


def ida(name: str, C: float, gamma: float) -> Case:
    return Case(name, C, gamma, partial(real, f"ida_{name}"), thesis=True)


def uci(name: str, source: str, C: float, gamma: float, task: Task = np.sign, **more) -> Case:
    return Case(name, C, gamma, partial(real, source, task=task), thesis=True, **more)


def chess(n: int, **more) -> Case:
    note = "another sample of the distribution than that of Glasmachers 2008"
    common = {"family": "chess-board", "thesis": True, "note": note}
    return Case(f"chess-board-{n}", 1e6, 0.5, partial(board, n), **common, **more)


def digits(n: int, **more) -> Case:
    load = partial(mnist, n)
    return Case(f"mnist-{n}", 50, MNIST_GAMMA, load, family="mnist", note=DIGITS, **more)


# Fast ones first: a run shows results early and loses little when it is interrupted.
CASES = {
    case.name: case
    for case in (
        ida("thyroid", 500, 0.05),
        ida("heart", 1, 0.005),
        ida("breast-cancer", 0.6, 0.1),
        uci("ionosphere", "ionosphere", 3, 0.4),
        ida("diabetis", 0.5, 0.05),
        uci("tic-tac-toe", "tic-tac-toe", 200, 0.02),
        ida("german", 1, 0.05),
        ida("flare-solar", 1.5, 0.1),
        ida("titanic", 1000, 0.1),
        ida("image", 100, 0.1),
        ida("splice", 10, 0.01),
        ida("banana", 100, 0.25),
        ida("waveform", 1, 0.05),
        ida("twonorm", 0.5, 0.02),
        ida("ringnorm", 2, 0.1),
        uci("spam-database", "spambase", 10, 0.005),
        uci("internet-ads", "internet-ads_dedup", 10, 0.03, note="other copy: 1,966 of 2,358 rows"),
        chess(1_000),
        Case("usps", 50, USPS_GAMMA, partial(real, "usps", task=low_or_high_digit), note=DIGITS),
        digits(5_000),
        chess(10_000),
        uci(
            "king-rook-vs-king", "krkopt", 10, 0.5, draw_or_not, note="task: draw against the rest"
        ),
        Case("adult-C1", 1, 0.005, adult, large=True),
        digits(20_000, large=True),
        Case("adult-C100", 100, 0.005, adult),
        uci("connect-4", "connect-4", 4.5, 0.2, note="without draws", large=True),
        digits(60_000, large=True),
        chess(100_000, large=True),
    )
}
