"""Support vector regression."""

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin, clone

from jsvm import problems
from jsvm.estimators.base import KernelMachine
from jsvm.estimators.grid import folds_of, kernel_of, scorer
from jsvm.estimators.parameters import at_least, costs, fraction
from jsvm.precision import working_dtype
from jsvm.search import GridTask, Part


class Regressor(RegressorMixin, KernelMachine):
    """What the regression machines share; the program is left to the concrete ones."""

    C: Any

    def _machine(self) -> tuple[Any, tuple[float, ...]]:
        """Return ``build(K, y, costs, *parameters)`` and the parameters, which are checked."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Train on the rows of `X` (a kernel matrix for 'precomputed') with targets `y`.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
        y : array of shape (n,)
        sample_weight : array of shape (n,), optional
            An example of weight w counts as w copies of it, one of weight zero is absent.
        """
        solver, (build, parameters) = self._solver_of_parameters(), self._machine()
        X, y = self._read(X, y, y_numeric=True)
        weight = self._weights(X, sample_weight)
        C = costs(self.C, len(weight))
        X, weight, present = self._present(X, weight)
        C, y = C[present] * weight, np.asarray(y, np.float64)[present]
        program = build(self._gram(X, weight), y, C, *parameters)
        solution = self._solve(program, solver)
        beta = solution.alpha.reshape(2, -1).sum(axis=0)  # of the two variables of an example
        self._keep(X, present, beta, float(solution.bias))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted values."""
        return self._output(X)

    def _grid_task(self, X: Any, y: Any, sample_weight: Any, cv: Any, scoring: Any) -> GridTask:
        """Return what :func:`jsvm.search.cross_validate` needs to know; this is left unfitted."""
        own: Any = clone(self)
        solver, (build, parameters) = own._solver_of_parameters(), own._machine()
        X, y = own._read(X, y, y_numeric=True)
        y = np.asarray(y, np.float64)
        weight = own._weights(X, sample_weight)

        def parts(train: np.ndarray) -> list[Part]:
            some = train[weight[train] > 0]
            return [Part(some, y[some], weight[some])]

        return GridTask(
            X=X,
            kernel=kernel_of(own, X, weight),
            folds=folds_of(own, cv, X, y),
            parts=parts,
            build=build,
            parameters=parameters,
            copies=2,
            score=scorer(own, y, scoring, lambda decisions: decisions[:, 0]),
            solver=solver,
            dtype=working_dtype(own.dtype),
        )


class SVR(Regressor):
    """ε-insensitive support vector regression, ½‖w‖² + C Σ max(0, |f(x) − y| − ε).

    Parameters
    ----------
    kernel : {'linear', 'poly', 'rbf', 'sigmoid', 'laplacian', 'precomputed'}, Kernel or callable
        A callable takes (X, Z) and returns the matrix. With 'precomputed' `fit` takes the square
        kernel matrix; `predict` takes the kernel values with all training examples, or with the
        support vectors only (the columns `support_`).
    C : float or array of shape (n,)
        Cost of an error, one for all or by example.
    epsilon : float
        Errors up to ε cost nothing.
    gamma : {'scale', 'auto'} or float
        Parameter of the named kernels that have it.
    degree, coef0
        Further parameters of the named kernels.
    tol : float
        Largest violation of the KKT conditions.
    cache_size : float
        Megabytes for kernel rows that are kept.
    max_iter : int
        Budget of pair steps; −1 is an automatic, finite one.
    time_limit : float or None
        Seconds.
    solver : SMO or None
        Full configuration of the solver; replaces `tol`, `cache_size`, `max_iter` and `time_limit`.
    dtype : {'float64', 'float32'} or None
        What to compute in; None is float64 on a CPU, float32 on a GPU.
    progress : bool
        Show a bar with gap, objective, support vectors and kernel rows.
    warm_start : bool
        Start from the solution of the last `fit` if it had as many examples; its
        coefficients are cut to the new bounds.
    callback : function or None
        Called after every round with a dict of numbers, see :func:`jsvm.solve`; a true return value
        stops the fit.
    checkpoint : path or None
        A file from which an interrupted fit goes on, see :func:`jsvm.solve`.

    Attributes
    ----------
    support_, support_vectors_, n_support_, dual_coef_, intercept_, n_iter_, fit_status_
        As in scikit-learn.
    kernel_ : Kernel or 'precomputed'
        The kernel that was used, with its parameters.
    solutions_ : list of Solution
        One, with its certificate.

    Examples
    --------
    >>> X = np.linspace(0.0, 6.0, 40)[:, None]
    >>> round(SVR(C=10.0).fit(X, np.sin(X[:, 0])).score(X, np.sin(X[:, 0])), 2)
    0.99
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        C: Any = 1.0,
        epsilon: Any = 0.1,
        gamma: Any = "scale",
        degree: Any = 3,
        coef0: Any = 0.0,
        tol: Any = 1e-3,
        cache_size: Any = 2000,
        max_iter: Any = -1,
        time_limit: Any = None,
        solver: Any = None,
        dtype: Any = None,
        progress: Any = False,
        warm_start: Any = False,
        callback: Any = None,
        checkpoint: Any = None,
    ) -> None:
        super().__init__(
            kernel=kernel,
            gamma=gamma,
            degree=degree,
            coef0=coef0,
            tol=tol,
            cache_size=cache_size,
            max_iter=max_iter,
            time_limit=time_limit,
            solver=solver,
            dtype=dtype,
            progress=progress,
            warm_start=warm_start,
            callback=callback,
            checkpoint=checkpoint,
        )
        self.C = C
        self.epsilon = epsilon

    def _machine(self) -> tuple[Any, tuple[float, ...]]:
        return problems.epsilon_svr, (at_least("epsilon", self.epsilon, 0.0),)


class NuSVR(Regressor):
    """Support vector regression with ν in the place of ε, which is found by the machine.

    ν bounds the fraction of errors from above and that of support vectors from below.

    Parameters
    ----------
    kernel : {'linear', 'poly', 'rbf', 'sigmoid', 'laplacian', 'precomputed'}, Kernel or callable
        A callable takes (X, Z) and returns the matrix. With 'precomputed' `fit` takes the square
        kernel matrix; `predict` takes the kernel values with all training examples, or with the
        support vectors only (the columns `support_`).
    nu : float in (0, 1]
    C : float or array of shape (n,)
        Cost of an error, one for all or by example; finite.
    gamma : {'scale', 'auto'} or float
        Parameter of the named kernels that have it.
    degree, coef0
        Further parameters of the named kernels.
    tol : float
        Largest violation of the KKT conditions.
    cache_size : float
        Megabytes for kernel rows that are kept.
    max_iter : int
        Budget of pair steps; −1 is an automatic, finite one.
    time_limit : float or None
        Seconds.
    solver : SMO or None
        Full configuration of the solver; replaces `tol`, `cache_size`, `max_iter` and `time_limit`.
    dtype : {'float64', 'float32'} or None
        What to compute in; None is float64 on a CPU, float32 on a GPU.
    progress : bool
        Show a bar with gap, objective, support vectors and kernel rows.
    warm_start : bool
        Start from the solution of the last `fit` if it had as many examples; its
        coefficients are cut to the new bounds.
    callback : function or None
        Called after every round with a dict of numbers, see :func:`jsvm.solve`; a true return value
        stops the fit.
    checkpoint : path or None
        A file from which an interrupted fit goes on, see :func:`jsvm.solve`.

    Attributes
    ----------
    support_, support_vectors_, n_support_, dual_coef_, intercept_, n_iter_, fit_status_
        As in scikit-learn.
    kernel_ : Kernel or 'precomputed'
        The kernel that was used, with its parameters.
    solutions_ : list of Solution
        One, with its certificate.
    epsilon_ : float
        The half width of the tube.

    Examples
    --------
    >>> X = np.linspace(0.0, 6.0, 40)[:, None]
    >>> round(NuSVR(C=10.0).fit(X, np.sin(X[:, 0])).score(X, np.sin(X[:, 0])), 2)
    1.0
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        nu: Any = 0.5,
        C: Any = 1.0,
        gamma: Any = "scale",
        degree: Any = 3,
        coef0: Any = 0.0,
        tol: Any = 1e-3,
        cache_size: Any = 2000,
        max_iter: Any = -1,
        time_limit: Any = None,
        solver: Any = None,
        dtype: Any = None,
        progress: Any = False,
        warm_start: Any = False,
        callback: Any = None,
        checkpoint: Any = None,
    ) -> None:
        super().__init__(
            kernel=kernel,
            gamma=gamma,
            degree=degree,
            coef0=coef0,
            tol=tol,
            cache_size=cache_size,
            max_iter=max_iter,
            time_limit=time_limit,
            solver=solver,
            dtype=dtype,
            progress=progress,
            warm_start=warm_start,
            callback=callback,
            checkpoint=checkpoint,
        )
        self.nu = nu
        self.C = C

    def _machine(self) -> tuple[Any, tuple[float, ...]]:
        if np.isinf(costs(self.C, np.size(self.C))).any():
            raise ValueError(f"C={self.C!r} must be finite; use SVR for a hard tube")
        return problems.nu_svr, (fraction("nu", self.nu),)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "NuSVR":
        """Train; see :meth:`SVR.fit`."""
        super().fit(X, y, sample_weight)
        first, second = (float(value) for value in self.solutions_[0].multipliers)
        self.epsilon_ = (first - second) / 2
        return self
