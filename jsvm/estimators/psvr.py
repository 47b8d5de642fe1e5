"""Regression with the Potential SVM."""

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from jsvm.estimators.potential import PotentialMachine


class PSVR(RegressorMixin, PotentialMachine):
    """Potential support vector regression (003, section 2.4.5).

    ½αᵀKᵀKα − yᵀKα + ε‖α‖₁ is minimised over −C ≤ α ≤ C for a matrix K of the relations between
    examples and row objects, of any shape, with normalised columns; the predictor is Kα plus the
    mean of y. K need not be symmetric or definite. With C = ∞ this is the lasso on its columns.

    Parameters
    ----------
    kernel : {'linear', 'poly', 'rbf', 'sigmoid', 'laplacian', 'precomputed'}, Kernel or callable
        A callable takes (X, Z) and returns the matrix. With 'precomputed' `fit` takes a measured
        matrix of any shape, one column a row object, of which cross-validation splits the rows
        only; `predict` takes all of its columns, or only those of the support features
        (`support_`).
    rows : {'samples', 'features', 'centers', 'axes'} or array of shape (P, d)
        The row objects: the examples; the features, where K is X itself, no kernel is used, and
        `predict` takes all columns or only those of `support_`; centres that k-means finds; the
        principal axes of X, unit vectors meant for a linear kernel; or the rows of an array.
    n_rows : int or None
        Number of centres (None: 50, if there are so many different examples) or axes (None: all).
    C : float
        Bound of |α_j|: a small one smooths the influence of single row objects; ``np.inf`` is none.
    epsilon : float
        Threshold of correlation: a row object enters if its column has a larger product with the
        residual. It is in units of y; with scaling='length' it grows with √n.
    gamma : {'scale', 'auto'} or float
        Parameter of the named kernels that have it.
    degree, coef0
        Further parameters of the named kernels.
    scaling : {'length', 'variance'}
        Columns have mean zero and length one, or variance one as in 003: the same machines, with
        ε √n times as large and C √n times as small.
    tol : float
        Largest violation of the KKT conditions.
    cache_size : float
        Megabytes for K; a larger one is computed block by block.
    max_iter : int
        Budget of steps; −1 is an automatic, finite one.
    time_limit : float or None
        Seconds.
    solver : PSMO or None
        Full configuration of the solver; replaces `tol`, `cache_size`, `max_iter` and `time_limit`.
    dtype : {'float64', 'float32'} or None
        What to compute in; None is float64 on a CPU, float32 on a GPU.
    progress : bool
        Show a bar with gap, objective, support features and columns of K.
    warm_start : bool
        Start from the solution of the last `fit` if it had as many row objects; its coefficients
        are cut to the new bounds.
    callback : function or None
        Called after every round with a dict of numbers, see :func:`jsvm.solve`; a true return value
        stops the fit.
    checkpoint : path or None
        A file from which an interrupted fit goes on, see :func:`jsvm.solve`.
    random_state : int, RandomState or None
        Of k-means; nothing else is random.

    Attributes
    ----------
    support_ : array of int
        The support features, those row objects with α_j ≠ 0.
    support_vectors_ : array or sparse matrix
        Their coordinates, if they have any.
    dual_coef_ : array of shape (1, n_support)
        Their α.
    column_mean_, column_scale_ : arrays of shape (n_support,)
        m and s of their columns.
    intercept_ : array of shape (1,)
        b, the mean of y: f(x) = Σ_j α_j (K_xj − m_j)/s_j + b.
    n_support_ : array of shape (1,)
    dropped_ : array of int
        Row objects whose column is constant; they take no part.
    row_objects_ : array of shape (P, d)
        The centres or axes, if these are the row objects.
    kernel_ : Kernel, 'precomputed' or 'features'
        The kernel that was used, with its parameters.
    n_iter_, fit_status_
        Steps of the solver, and whether it failed to converge (0 or 1).
    solutions_ : list of Solution
        One, with its certificate.

    Examples
    --------
    >>> X = np.linspace(0.0, 6.0, 40)[:, None]
    >>> machine = PSVR().fit(X, np.sin(X[:, 0]))
    >>> round(machine.score(X, np.sin(X[:, 0])), 2)
    0.99
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        rows: Any = "samples",
        n_rows: Any = None,
        C: Any = 100.0,
        epsilon: Any = 0.1,
        gamma: Any = "scale",
        degree: Any = 3,
        coef0: Any = 0.0,
        scaling: Any = "length",
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
        random_state: Any = None,
    ) -> None:
        super().__init__(
            kernel=kernel,
            rows=rows,
            n_rows=n_rows,
            C=C,
            epsilon=epsilon,
            gamma=gamma,
            degree=degree,
            coef0=coef0,
            scaling=scaling,
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
            random_state=random_state,
        )

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "PSVR":
        """Train on the rows of `X` (a measured matrix for 'precomputed') with targets `y`.

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
        X, y = self._read(X, y, y_numeric=True)
        X, weight, present = self._present(X, self._weights(X, sample_weight))
        targets = np.asarray(y, np.float64)[None, present]
        self._train(X, present, targets, weight, np.ones(len(weight)), solver)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted values."""
        return self._machine_values(X)[:, 0]
