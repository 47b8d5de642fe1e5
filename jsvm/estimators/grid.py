"""What the estimators tell :func:`jsvm.search.cross_validate` of themselves."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import r2_score
from sklearn.model_selection import check_cv


def folds_of(estimator: Any, cv: Any, X: Any, y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the training and test examples of every fold, those that GridSearchCV would use."""
    splitter: Any = check_cv(cv, y, classifier=is_classifier(estimator))
    return [(np.asarray(train), np.asarray(test)) for train, test in splitter.split(X, y)]


def kernel_of(estimator: Any, X: Any, weight: np.ndarray) -> Callable[[Any], Any]:
    """Return the function from γ to the kernel of an estimator."""

    def kernel(gamma: Any) -> Any:
        if estimator._precomputed:
            return "precomputed"
        gamma = estimator.gamma if gamma is None else float(gamma)
        return estimator._kernel_with(gamma, X, weight)

    return kernel


def scorer(estimator: Any, y: np.ndarray, scoring: Any, predict: Any) -> Any:
    """Return the score of decision values of some examples."""
    if scoring is None:
        scoring = _accuracy if is_classifier(estimator) else r2_score

    def score(examples: np.ndarray, decisions: np.ndarray) -> float:
        return float(scoring(y[examples], predict(decisions)))

    return score


def _accuracy(truth: np.ndarray, predicted: np.ndarray) -> float:
    # scikit-learn's takes longer to check its arguments than a small machine to train
    return float(np.mean(truth == predicted))
