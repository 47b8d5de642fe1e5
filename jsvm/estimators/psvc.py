"""Classification with the Potential SVM."""

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin

from jsvm.estimators.declaration import estimator
from jsvm.estimators.potential_machine import PotentialMachine
from jsvm.estimators.training_data import (
    against_rest,
    check_presence,
    class_factors,
    encoded,
    present_rows,
)


@estimator
class PSVC(ClassifierMixin, PotentialMachine):
    """Potential support vector classifier (Hochreiter & Obermayer 2004, section 2.4.4).

    ½αᵀKᵀKα − yᵀKα + ε‖α‖₁ is minimised over −C ≤ α ≤ C for a matrix K of the relations between
    examples and row objects, of any shape, with normalised columns, and y = ±1; the decision
    function is Kα plus the mean of y. K need not be symmetric or definite. Of more than two classes
    each has a machine that tells it from the rest, all on the same K.

    Parameters
    ----------
    epsilon : float
        Threshold of correlation: a row object enters if its column has a larger product with the
        residual, which is at most √n with scaling='length'.
    class_weight : dict, 'balanced' or None
        Factors of the weights of all examples of a class. They count as copies, too, with one
        exception: `gamma`, the centres and the axes depend on `sample_weight` only.

    Attributes
    ----------
    classes_ : array
        The labels, in the order of the machines.
    dual_coef_ : array of shape (machines, n_support)
        Their α; there is one machine for two classes, otherwise one a class.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> round(PSVC().fit(X, y).score(X, y), 2)
    0.98
    """

    epsilon: Any = 0.03
    class_weight: Any = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "PSVC":
        """Train on the rows of `X` (a measured matrix for 'precomputed') with labels `y`.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
        y : array of shape (n,)
        sample_weight : array of shape (n,), optional
            An example of weight w counts as w copies of it, one of weight zero is absent; with
            rows='samples' so does the row object. The columns of a measured matrix and the features
            are not examples and have no weight.
        """
        solver = self._check_parameters()
        X, y = self._read(X, y, ensure_min_samples=2)
        self.classes_, codes = encoded(y)
        weight = self._weights(X, sample_weight)
        factors = class_factors(self.class_weight, self.classes_, y, codes, weight)
        present = np.flatnonzero(weight * factors > 0)
        codes, weight, factors = codes[present], weight[present], factors[present]
        check_presence(self.classes_, codes)
        targets = against_rest(codes, len(self.classes_))
        self._train(present_rows(X, present, False), present, targets, weight, factors, solver)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return decision values: (n,) for two classes, else one column a class."""
        values = self._values(X)
        return values[:, 0] if len(self.classes_) == 2 else values

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted labels."""
        values = self.decision_function(X)
        winners = (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
        return self.classes_[winners]
