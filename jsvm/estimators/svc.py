"""Support vector classification with a cost of errors."""

from collections.abc import Callable
from typing import Any

import numpy as np

from jsvm import problems
from jsvm.estimators.classifier import Classifier
from jsvm.estimators.parameters import costs, positive_cost
from jsvm.estimators.two_class import Machine

LOSSES: dict[str, Callable[..., problems.QuadraticProgram]] = {
    "hinge": problems.c_svc,
    "squared_hinge": problems.squared_svc,
}


class SVC(Classifier):
    """Support vector classifier: 1-norm or 2-norm soft margin, or hard margin.

    Parameters
    ----------
    kernel : {'linear', 'poly', 'rbf', 'sigmoid', 'laplacian', 'precomputed'}, Kernel or callable
        A callable takes (X, Z) and returns the matrix. With 'precomputed' `fit` takes the square
        kernel matrix; `predict` takes the kernel values with all training examples, or with the
        support vectors only (the columns `support_`).
    C : float, dict or array of shape (n,)
        Cost of an error, one for all, by class or by example; ``np.inf`` is the hard margin.
    gamma : {'scale', 'auto'} or float
        Parameter of the named kernels that have it.
    degree, coef0
        Further parameters of the named kernels.
    loss : {'hinge', 'squared_hinge'}
        ½‖w‖² + C Σξ or ½‖w‖² + (C/2) Σξ².
    class_weight : dict, 'balanced' or None
        Factors of the weights of all examples of a class.
    calibration : {'platt', 'sigmoid'} or None
        Adds `predict_proba`, from decision values of examples left out of training. 'platt' has
        two parameters and may contradict `predict`; 'sigmoid' has one, and `predict` is then the
        class of largest probability, which for two classes is the sign of the decision value.
    tol : float
        Largest violation of the KKT conditions.
    cache_size : float
        Megabytes for kernel rows that are kept.
    max_iter : int
        Budget of pair steps for each two-class problem; −1 is an automatic, finite one.
    time_limit : float or None
        Seconds for each batch of problems.
    solver : SMO or None
        Full configuration of the solver; replaces `tol`, `cache_size`, `max_iter` and `time_limit`.
    dtype : {'float64', 'float32'} or None
        What to compute in; None is float64 on a CPU, float32 on a GPU.
    progress : bool
        Show a bar with gap, objective, support vectors and kernel rows.
    multiclass : {'ovo', 'ovr'}
        One machine for every pair of classes, or for every class against the rest.
    decision_function_shape : {'ovr', 'ovo'}
        One column a class, or one column a pair of classes.
    break_ties : bool
        Break ties of votes by the decision values; needs 'ovr'.
    warm_start : bool
        Start from the solution of the last `fit` if it had as many examples with these labels; its
        coefficients are cut to the new bounds.
    callback : function or None
        Called after every round with a dict of numbers, see :func:`jsvm.solve`; a true return value
        stops the fit.
    checkpoint : path or None
        A file from which an interrupted fit goes on, see :func:`jsvm.solve`.
    random_state : int, RandomState or None
        Of the folds of the calibration; nothing else is random.

    Attributes
    ----------
    classes_, support_, support_vectors_, n_support_, dual_coef_, intercept_, n_iter_, fit_status_
        As in scikit-learn; `dual_coef_` has one row a class with ``multiclass="ovr"``.
    probA_, probB_ : arrays, one entry a two-class problem
        The sigmoids, as in LIBSVM.
    kernel_ : Kernel or 'precomputed'
        The kernel that was used, with its parameters.
    solutions_ : list of Solution
        One for each two-class problem, with its certificate.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> round(SVC(C=1.0).fit(X, y).score(X, y), 2)
    0.97
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        C: Any = 1.0,
        gamma: Any = "scale",
        degree: Any = 3,
        coef0: Any = 0.0,
        loss: Any = "hinge",
        class_weight: Any = None,
        calibration: Any = None,
        tol: Any = 1e-3,
        cache_size: Any = 2000,
        max_iter: Any = -1,
        time_limit: Any = None,
        solver: Any = None,
        dtype: Any = None,
        progress: Any = False,
        multiclass: Any = "ovo",
        decision_function_shape: Any = "ovr",
        break_ties: Any = False,
        warm_start: Any = False,
        callback: Any = None,
        checkpoint: Any = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            kernel=kernel,
            gamma=gamma,
            degree=degree,
            coef0=coef0,
            class_weight=class_weight,
            calibration=calibration,
            tol=tol,
            cache_size=cache_size,
            max_iter=max_iter,
            time_limit=time_limit,
            solver=solver,
            dtype=dtype,
            progress=progress,
            multiclass=multiclass,
            decision_function_shape=decision_function_shape,
            break_ties=break_ties,
            warm_start=warm_start,
            callback=callback,
            checkpoint=checkpoint,
            random_state=random_state,
        )
        self.C = C
        self.loss = loss

    def _machine(self) -> Machine:
        if not isinstance(self.loss, str) or self.loss not in LOSSES:
            raise ValueError(f"loss={self.loss!r} is unknown; use one of {sorted(LOSSES)}")
        if not isinstance(self.C, dict | list | tuple | np.ndarray):
            positive_cost(self.C)
        return Machine(LOSSES[self.loss])

    def _cost(self, n: int, present: np.ndarray, codes: np.ndarray) -> Any:
        if isinstance(self.C, dict):
            missing = [name for name in self.classes_ if name not in self.C]
            if missing:
                raise ValueError(f"C={self.C!r} names no cost of class {missing[0]!r}")
            return np.array([positive_cost(self.C[name]) for name in self.classes_])[codes]
        return costs(self.C, n)[present]
