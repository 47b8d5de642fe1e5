"""Sums of kernel rows in float64, where the solver works in float32."""

from typing import Any

import numpy as np

from jsvm.precision import scope
from jsvm.solvers.canonical import Layout
from jsvm.solvers.tiles.rows import Rows
from jsvm.solvers.tiles.sources import Source, source_of
from jsvm.solvers.tuning import Tuning

DOUBLE = np.dtype("float64")


class ExactSum:
    """Computes the rows anew from the user's data; they are not kept, as they would fill memory.

    Parameters
    ----------
    hessian : Dense or FromKernel
        Of the examples.
    layout : Layout
    tuning : Tuning
    """

    def __init__(self, hessian: Any, layout: Layout, tuning: Tuning) -> None:
        self._hessian, self._layout, self._tuning = hessian, layout, tuning
        self._source: Source | None = None

    def sum(self, some: np.ndarray, coefficients: np.ndarray, passing: np.ndarray) -> np.ndarray:
        """Return Σ_k coefficients[k] · K[some[k], :]."""
        with scope(DOUBLE):
            if self._source is None:
                self._source = source_of(self._hessian, self._layout, DOUBLE)
            budget = self._tuning.exact_bytes
            rows = Rows(self._source, self._layout.examples, DOUBLE, budget, self._tuning)
            total = rows.sum(some, coefficients, passing)
            rows.release()
            return total
