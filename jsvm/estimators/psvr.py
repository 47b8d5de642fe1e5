"""Regression with the Potential SVM."""

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from jsvm.estimators.declaration import estimator
from jsvm.estimators.potential_machine import PotentialMachine


@estimator
class PSVR(RegressorMixin, PotentialMachine):
    """Potential support vector regression (Hochreiter & Obermayer 2004, section 2.4.5).

    ½αᵀKᵀKα − yᵀKα + ε‖α‖₁ is minimised over −C ≤ α ≤ C for a matrix K of the relations between
    examples and row objects, of any shape, with normalised columns; the predictor is Kα plus the
    mean of y. K need not be symmetric or definite. With C = ∞ this is the lasso on its columns.

    Examples
    --------
    >>> X = np.linspace(0.0, 6.0, 40)[:, None]
    >>> machine = PSVR().fit(X, np.sin(X[:, 0]))
    >>> round(machine.score(X, np.sin(X[:, 0])), 2)
    0.99
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "PSVR":
        """Train on the rows of `X` with targets `y`; see :meth:`PSVC.fit`."""
        solver = self._check_parameters()
        X, y = self._read(X, y, y_numeric=True)
        X, weight, present = self._present(X, self._weights(X, sample_weight))
        targets = np.asarray(y, np.float64)[None, present]
        self._train(X, present, targets, weight, np.ones(len(weight)), solver)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted values."""
        return self._values(X)[:, 0]
