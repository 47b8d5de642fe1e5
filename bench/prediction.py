"""Times of decision values at 100,000 points, jsvm beside LIBSVM."""

from functools import partial
from typing import Any

import numpy as np

from bench import peers
from bench.cases import MNIST_GAMMA, Case, adult, mnist
from bench.timing import Contestant, race

POINTS = 100_000
CASES = {
    "adult": (Case("adult", 1, 0.005, adult), 10_000),
    "mnist": (Case("mnist", 50, MNIST_GAMMA, mnist), 5_000),
}


def measure(case: Case, n: int, points: int = POINTS, wanted: int = 3) -> dict[str, Any] | None:
    """Fit both on the first `n` rows, decide on all rows, repeated up to `points`."""
    loaded = case.load()
    if loaded is None:
        return None
    X, y = loaded
    Z = np.resize(X, (points, X.shape[1]))
    ours = peers.fit_jsvm(case, X[:n], y[:n], 1e-3)
    theirs = peers.fit_libsvm(case, X[:n], y[:n], 1e-3)
    jsvm = Contestant("jsvm", partial(ours.decision_function, Z), compiles=True)
    libsvm = Contestant("libsvm", partial(theirs.decision_function, Z))
    race([jsvm, libsvm], wanted)
    failure = jsvm.error or libsvm.error
    return {
        "n": n,
        "points": points,
        "support": len(ours.support_),
        "jsvm": jsvm.median,
        "libsvm": libsvm.median,
        "difference": None if failure else float(np.abs(jsvm.result - libsvm.result).max()),
        "error": failure,
    }
