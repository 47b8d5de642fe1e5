"""Support vector regression."""

from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin

from jsvm import problems
from jsvm.estimators.checks import at_least, costs, fraction, weighted
from jsvm.estimators.declaration import estimator
from jsvm.estimators.grid_task import TrainedInBatches
from jsvm.estimators.kernel_estimator import KernelMachine
from jsvm.estimators.two_class import Formulation
from jsvm.validation.parts import Part


@estimator
class Regressor(RegressorMixin, TrainedInBatches, KernelMachine):
    """What the regression machines share; the program is left to the concrete ones.

    Parameters
    ----------
    C : float or array of shape (n,)
        Cost of an error, one for all or by example.
    """

    _copies: ClassVar = 2

    C: Any = 1.0

    def _formulation(self) -> Formulation:
        """Return what the problem is; raise ValueError if parameters are bad."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Train on the rows of `X` with targets `y`; the arguments are those of :meth:`SVC.fit`."""
        solver, formulation = self._check_parameters(), self._formulation()
        X, y = self._read(X, y, y_numeric=True)
        weight = self._weights(X, sample_weight)
        C = costs(self.C, len(weight))
        X, weight, present = self._present(X, weight)
        C, y = weighted(C[present], weight, self.dtype), np.asarray(y, np.float64)[present]
        solution = self._solve(formulation.program(self._gram(X, weight), y, C), solver)
        self._keep_single(X, present, *formulation.function(solution, y, C))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted values."""
        return self._values(X)[:, 0]

    def _predicted(self, decisions: np.ndarray) -> np.ndarray:
        return decisions[:, 0]

    def _fold_parts(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any, Any]:
        """Return the data, and the function from training examples to their problem."""
        X, y = self._read(X, y, y_numeric=True)
        y, weight = np.asarray(y, np.float64), self._weights(X, sample_weight)

        def parts(train: np.ndarray) -> list[Part]:
            some = train[weight[train] > 0]
            return [Part(some, y[some], weight[some])]

        return X, y, weight, parts


@estimator
class SVR(Regressor):
    """ε-insensitive support vector regression, ½‖w‖² + C Σ max(0, |f(x) − y| − ε).

    Parameters
    ----------
    epsilon : float
        Errors up to ε cost nothing.

    Examples
    --------
    >>> X = np.linspace(0.0, 6.0, 40)[:, None]
    >>> round(SVR(C=10.0).fit(X, np.sin(X[:, 0])).score(X, np.sin(X[:, 0])), 2)
    0.99
    """

    epsilon: Any = 0.1

    def _formulation(self) -> Formulation:
        return Formulation(problems.epsilon_svr, (at_least("epsilon", self.epsilon, 0.0),))


@estimator
class NuSVR(Regressor):
    """Support vector regression with ν in the place of ε, which is found by the machine.

    Parameters
    ----------
    nu : float in (0, 1]
        Bounds the fraction of errors from above and that of support vectors from below.
    C : float or array of shape (n,)
        Cost of an error, one for all or by example; finite.

    Attributes
    ----------
    epsilon_ : float
        The half width of the tube.

    Examples
    --------
    >>> X = np.linspace(0.0, 6.0, 40)[:, None]
    >>> round(NuSVR(C=10.0).fit(X, np.sin(X[:, 0])).score(X, np.sin(X[:, 0])), 2)
    1.0
    """

    nu: Any = 0.5

    def _formulation(self) -> Formulation:
        if np.isinf(costs(self.C, np.size(self.C))).any():
            raise ValueError(f"C={self.C!r} must be finite; use SVR for a hard tube")
        return Formulation(problems.nu_svr, (fraction("nu", self.nu),))

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "NuSVR":
        """Train; see :meth:`SVR.fit`."""
        super().fit(X, y, sample_weight)
        first, second = (float(value) for value in self.solutions_[0].multipliers)
        self.epsilon_ = (first - second) / 2
        return self
