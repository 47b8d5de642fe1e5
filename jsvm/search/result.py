"""What a search found."""

from dataclasses import dataclass
from typing import Any

import numpy as np

FINISHED, CONVERGED = "finished", "converged"
TIME_LIMIT, INTERRUPTED, STOPPED = "time limit", "interrupted", "stopped by the callback"


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The hyperparameters that a search found, and its evaluations.

    Attributes
    ----------
    kernel : Kernel
    C : float or None
        None if it was not searched for.
    value : float
        Value of the objective; of a random one the mean over the last part of the search.
    history : dict of arrays
        'value' of every evaluation, and its hyperparameters by name.
    status : str
        How it ended: 'finished', 'converged', 'time limit', 'interrupted' or 'stopped by the
        callback'.

    Examples
    --------
    >>> from jsvm import data, kernels, objectives, search
    >>> X, y = data.chess_board(2, 2, size=60, key=0)
    >>> widths = [kernels.RBF(0.01), kernels.RBF(1.0)]
    >>> result = search.grid(
    ...     objectives.kernel_target_alignment, widths, X, y, C=None, maximise=True)
    >>> result.status, result.evaluations, result.C
    ('finished', 2, None)
    """

    kernel: Any
    C: Any
    value: float
    history: dict[str, np.ndarray]
    status: str = FINISHED

    @property
    def evaluations(self) -> int:
        """How often the objective was evaluated."""
        return int(self.history["value"].size)
