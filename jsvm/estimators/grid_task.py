"""What the estimators tell :func:`jsvm.search.cross_validate` of themselves."""

from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone, is_classifier

from jsvm.precision import working_dtype
from jsvm.validation.part_training import GridTask


class TrainedInBatches:
    """An estimator with `_fold_parts`, for the problems of a fold, and `_predicted`."""

    _copies: ClassVar[int] = 1  # variables per example

    def _grid_task(self, X: Any, y: Any, sample_weight: Any, cv: Any, scoring: Any) -> GridTask:
        """Return the task; the folds are those of GridSearchCV. This is left unfitted."""
        from sklearn.metrics import r2_score  # here: a fit does not wait for these imports
        from sklearn.model_selection import check_cv

        own: Any = clone(self)  # pyright: ignore[reportArgumentType]
        solver, formulation = own._check_parameters(), own._formulation()
        X, y, weight, parts = own._fold_parts(X, y, sample_weight)
        splitter: Any = check_cv(cv, y, classifier=is_classifier(own))
        if scoring is None:
            scoring = _accuracy if is_classifier(own) else r2_score

        def kernel(gamma: Any) -> Any:
            if own._precomputed:
                return "precomputed"
            return own._kernel_with(own.gamma if gamma is None else float(gamma), X, weight)

        def score(examples: np.ndarray, decisions: np.ndarray) -> float:
            return float(scoring(y[examples], own._predicted(decisions)))

        return GridTask(
            X=X,
            kernel=kernel,
            folds=[(np.asarray(train), np.asarray(test)) for train, test in splitter.split(X, y)],
            parts=parts,
            build=formulation.build,
            parameters=formulation.parameters,
            copies=self._copies,
            score=score,
            solver=solver,
            dtype=working_dtype(own.dtype),
        )


def _accuracy(truth: np.ndarray, predicted: np.ndarray) -> float:
    """Return the accuracy; scikit-learn's takes longer than to train a small machine."""
    return float(np.mean(truth == predicted))
