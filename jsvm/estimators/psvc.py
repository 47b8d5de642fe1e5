"""Classification with the Potential SVM."""

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin

from jsvm.estimators.base import present_rows
from jsvm.estimators.labels import against_rest, check_presence, class_factors, encoded
from jsvm.estimators.potential import PotentialMachine


class PSVC(ClassifierMixin, PotentialMachine):
    """Potential support vector classifier (003, section 2.4.4).

    ½αᵀKᵀKα − yᵀKα + ε‖α‖₁ is minimised over −C ≤ α ≤ C for a matrix K of the relations between
    examples and row objects, of any shape, with normalised columns, and y = ±1; the decision
    function is Kα plus the mean of y. K need not be symmetric or definite. Of more than two classes
    each has a machine that tells it from the rest, all on the same K.

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
        residual, which is at most √n with scaling='length'.
    gamma : {'scale', 'auto'} or float
        Parameter of the named kernels that have it.
    degree, coef0
        Further parameters of the named kernels.
    scaling : {'length', 'variance'}
        Columns have mean zero and length one, or variance one as in 003: the same machines, with
        ε √n times as large and C √n times as small.
    class_weight : dict, 'balanced' or None
        Factors of the weights of all examples of a class. They count as copies, too, with one
        exception: `gamma`, the centres and the axes depend on `sample_weight` only.
    tol : float
        Largest violation of the KKT conditions.
    cache_size : float
        Megabytes for K; a larger one is computed block by block.
    max_iter : int
        Budget of steps of each machine; −1 is an automatic, finite one.
    time_limit : float or None
        Seconds for each machine.
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
    classes_ : array
    support_ : array of int
        The support features, those row objects with α_j ≠ 0 in any machine.
    support_vectors_ : array or sparse matrix
        Their coordinates, if they have any.
    dual_coef_ : array of shape (machines, n_support)
        Their α; there is one machine for two classes, otherwise one a class.
    column_mean_, column_scale_ : arrays of shape (n_support,)
        m and s of their columns.
    intercept_ : array of shape (machines,)
        b, the mean of y: f(x) = Σ_j α_j (K_xj − m_j)/s_j + b.
    n_support_ : array of shape (machines,)
    dropped_ : array of int
        Row objects whose column is constant; they take no part.
    row_objects_ : array of shape (P, d)
        The centres or axes, if these are the row objects.
    kernel_ : Kernel, 'precomputed' or 'features'
        The kernel that was used, with its parameters.
    n_iter_, fit_status_
        Steps of the solver for each machine, and whether it failed to converge (0 or 1).
    solutions_ : list of Solution
        One for each machine, with its certificate.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> round(PSVC().fit(X, y).score(X, y), 2)
    0.98
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        rows: Any = "samples",
        n_rows: Any = None,
        C: Any = 100.0,
        epsilon: Any = 0.03,
        gamma: Any = "scale",
        degree: Any = 3,
        coef0: Any = 0.0,
        scaling: Any = "length",
        class_weight: Any = None,
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
        self.class_weight = class_weight

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
        values = self._machine_values(X)
        return values[:, 0] if len(self.classes_) == 2 else values

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted labels."""
        values = self.decision_function(X)
        winners = (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
        return self.classes_[winners]
