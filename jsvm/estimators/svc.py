"""Support vector classification with a cost of errors."""

from collections.abc import Callable
from typing import Any

import numpy as np

from jsvm import problems
from jsvm.estimators.classifier import Classifier
from jsvm.estimators.declaration import estimator
from jsvm.estimators.formulation import Formulation
from jsvm.estimators.parameters import costs, positive_cost

LOSSES: dict[str, Callable[..., problems.QuadraticProgram]] = {
    "hinge": problems.c_svc,
    "squared_hinge": problems.squared_svc,
}


@estimator
class SVC(Classifier):
    """Support vector classifier: 1-norm or 2-norm soft margin, or hard margin.

    Parameters
    ----------
    C : float, dict or array of shape (n,)
        Cost of an error, one for all, by class or by example; ``np.inf`` is the hard margin.
    loss : {'hinge', 'squared_hinge'}
        ½‖w‖² + C Σξ or ½‖w‖² + (C/2) Σξ².

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> round(SVC(C=1.0).fit(X, y).score(X, y), 2)
    0.97
    """

    C: Any = 1.0
    loss: Any = "hinge"

    def _formulation(self) -> Formulation:
        if not isinstance(self.loss, str) or self.loss not in LOSSES:
            raise ValueError(f"loss={self.loss!r} is unknown; use one of {sorted(LOSSES)}")
        if not isinstance(self.C, dict | list | tuple | np.ndarray):
            positive_cost(self.C)
        return Formulation(LOSSES[self.loss])

    def _cost(self, n: int, present: np.ndarray, codes: np.ndarray) -> Any:
        if isinstance(self.C, dict):
            missing = [name for name in self.classes_ if name not in self.C]
            if missing:
                raise ValueError(f"C={self.C!r} names no cost of class {missing[0]!r}")
            return np.array([positive_cost(self.C[name]) for name in self.classes_])[codes]
        return costs(self.C, n)[present]
