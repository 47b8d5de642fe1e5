"""What the estimators tell :func:`jsvm.search.cross_validate` of themselves."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import r2_score
from sklearn.model_selection import check_cv

from jsvm.estimators.formulation import Formulation
from jsvm.precision import working_dtype
from jsvm.search import GridTask, Part


def folds_of(estimator: Any, cv: Any, X: Any, y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the training and test examples of every fold, those that GridSearchCV would use."""
    splitter: Any = check_cv(cv, y, classifier=is_classifier(estimator))
    return [(np.asarray(train), np.asarray(test)) for train, test in splitter.split(X, y)]


def grid_task(
    estimator: Any,
    data: tuple[Any, np.ndarray, np.ndarray],
    formulation: Formulation,
    parts: Callable[[np.ndarray], list[Part]],
    predict: Callable[[np.ndarray], np.ndarray],
    *,
    cv: Any,
    scoring: Any,
    solver: Any,
    copies: int,
) -> GridTask:
    """Return the task of an estimator; `data` are the validated X, y and weights."""
    X, y, weight = data
    if scoring is None:
        scoring = _accuracy if is_classifier(estimator) else r2_score

    def kernel(gamma: Any) -> Any:
        if estimator._precomputed:
            return "precomputed"
        gamma = estimator.gamma if gamma is None else float(gamma)
        return estimator._kernel_with(gamma, X, weight)

    def score(examples: np.ndarray, decisions: np.ndarray) -> float:
        return float(scoring(y[examples], predict(decisions)))

    return GridTask(
        X=X,
        kernel=kernel,
        folds=folds_of(estimator, cv, X, y),
        parts=parts,
        build=formulation.build,
        parameters=formulation.parameters,
        copies=copies,
        score=score,
        solver=solver,
        dtype=working_dtype(estimator.dtype),
    )


def _accuracy(truth: np.ndarray, predicted: np.ndarray) -> float:
    """Return the accuracy; scikit-learn's takes longer than to train a small machine."""
    return float(np.mean(truth == predicted))
