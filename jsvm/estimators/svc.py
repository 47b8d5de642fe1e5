"""Support vector classification, with a cost of errors or a bound on their fraction."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from jsvm import problems
from jsvm.estimators.checks import costs, fraction, positive_cost
from jsvm.estimators.classifier import Classifier
from jsvm.estimators.declaration import estimator
from jsvm.estimators.two_class import Formulation
from jsvm.numerics.arrays import namespace
from jsvm.problems.machines import check_nu
from jsvm.solvers import Solution
from jsvm.validation.parts import Part

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


@estimator
class NuSVC(Classifier):
    """Support vector classifier with ν in the place of C.

    ν bounds the fraction of examples inside the margin from above and that of support vectors from
    below. Weights, also those of classes, count as numbers of copies: with unbalanced classes
    ``class_weight="balanced"`` makes every ν up to one feasible. (LIBSVM ignores class weights
    here.) Where ν is infeasible, the largest feasible one takes its place, with a warning. (LIBSVM
    fails.) The gap is compared with tol·min(1, νW max K_ii), W being the sum of the weights.

    Parameters
    ----------
    nu : float in (0, 1]
        Feasible up to twice the fraction of the smaller class of every pair.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> round(NuSVC(nu=0.3).fit(X, y).score(X, y), 2)
    0.99
    """

    nu: Any = 0.5

    def _formulation(self) -> Formulation:
        return Formulation(_feasible_nu_svc, (fraction("nu", self.nu),), _with_margin_one)

    def _check_problems(self, problems: list[Part]) -> None:
        for problem in problems:
            try:
                check_nu(self.nu, problem.targets, problem.weights)
            except ValueError as error:
                warnings.warn(f"{error}; that is used", UserWarning, stacklevel=4)


def _feasible_nu_svc(K: Any, y: Any, weight: Any, nu: Any) -> problems.QuadraticProgram:
    """Return the program with the largest feasible ν if `nu` is larger, as it may be in folds."""
    xp = namespace(K, y, weight, nu)
    first, second = (xp.sum(xp.where(side, weight, 0.0)) for side in (y > 0, y < 0))
    most = 2.0 * xp.minimum(first, second) / (first + second)
    return problems.nu_svc(K, y, xp.minimum(nu, most), weight)


def _with_margin_one(
    solution: Solution, signs: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, float]:
    """Return coefficients and offset divided by ρ = (λ₁ − λ₀)/2, as LIBSVM does.

    At the largest feasible ν all examples of a class are at their bounds. Then ρ + t with the
    boundary moved by t towards them is as good for any t ≥ 0, but from t = ρ on all of them are on
    the wrong side: t = ρ/2 is taken.
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
