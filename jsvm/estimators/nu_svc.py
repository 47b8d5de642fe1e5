"""Support vector classification with a bound on the fraction of errors."""

import warnings
from typing import Any

import numpy as np

from jsvm import problems
from jsvm.estimators.classifier import Classifier
from jsvm.estimators.parameters import fraction
from jsvm.estimators.two_class import Machine
from jsvm.numerics.arrays import namespace
from jsvm.problems.machines import check_nu
from jsvm.solvers import Solution
from jsvm.validation.class_pairs import TwoClass


class NuSVC(Classifier):
    """Support vector classifier with ν in the place of C.

    ν bounds the fraction of examples inside the margin from above and that of support vectors from
    below. Weights, also those of classes, count as numbers of copies: with unbalanced classes
    ``class_weight="balanced"`` makes every ν up to one feasible. (LIBSVM ignores class weights
    here.) Where ν is infeasible, the largest feasible one takes its place, with a warning. (LIBSVM
    fails.)

    Parameters
    ----------
    kernel : {'linear', 'poly', 'rbf', 'sigmoid', 'laplacian', 'precomputed'}, Kernel or callable
        A callable takes (X, Z) and returns the matrix. With 'precomputed' `fit` takes the square
        kernel matrix; `predict` takes the kernel values with all training examples, or with the
        support vectors only (the columns `support_`).
    nu : float in (0, 1]
        Feasible up to twice the fraction of the smaller class of every pair.
    gamma : {'scale', 'auto'} or float
        Parameter of the named kernels that have it.
    degree, coef0
        Further parameters of the named kernels.
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
    >>> round(NuSVC(nu=0.3).fit(X, y).score(X, y), 2)
    0.99
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        nu: Any = 0.5,
        gamma: Any = "scale",
        degree: Any = 3,
        coef0: Any = 0.0,
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
        self.nu = nu

    def _machine(self) -> Machine:
        return Machine(_feasible_nu_svc, (fraction("nu", self.nu),), _with_margin_one)

    def _check(self, problems: list[TwoClass], weights: np.ndarray) -> None:
        for problem in problems:
            try:
                check_nu(self.nu, problem.signs, weights[problem.examples])
            except ValueError as error:
                warnings.warn(f"{error}; that is used", UserWarning, stacklevel=3)


def _feasible_nu_svc(K: Any, y: Any, weight: Any, nu: Any) -> problems.QuadraticProgram:
    """Return the program with the largest feasible ν if `nu` is larger.

    The problems of a fit are checked; folds of them may miss a fraction of an example.
    """
    xp = namespace(K, y, weight, nu)
    first, second = (xp.sum(xp.where(side, weight, 0.0)) for side in (y > 0, y < 0))
    most = 2.0 * xp.minimum(first, second) / (first + second)
    return problems.nu_svc(K, y, xp.minimum(nu, most), weight)


def _with_margin_one(
    solution: Solution, signs: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, float]:
    """Return coefficients and offset divided by ρ = (λ₁ − λ₀)/2, as LIBSVM does.

    At the largest feasible ν all examples of a class are at their bounds. Then ρ + t with the
    boundary moved by t towards them is as good for any t ≥ 0, and from t = ρ on none of them is on
    its side any more: t = ρ/2 is in the middle.
    """
    first, second = (float(value) for value in solution.multipliers)
    rho, bias = (second - first) / 2, (first + second) / 2
    if not rho > 0:
        raise ValueError(
            f"nu: the margin is {rho:.3g}, so there is no decision function; the classes coincide "
            "for this kernel, or nu is too large: use a smaller nu, another kernel, or SVC"
        )
    full = np.abs(solution.alpha) >= weights * (1.0 - 1e-9)
    all_up, all_down = (bool(full[signs == sign].all()) for sign in (1, -1))
    if all_up != all_down:
        bias, rho = bias + (rho if all_down else -rho) / 2, 1.5 * rho
    return solution.alpha / rho, bias / rho
