"""Estimators to and from LIBSVM's model files.

Three conventions differ. LIBSVM subtracts ρ where scikit-learn adds the intercept. LIBSVM has its
classes in any order, scikit-learn sorts them; where two classes change places, the decision
function of the pair changes its sign, and with it A f + B, so that A stays and B changes its sign.
And with two classes scikit-learn's decision is positive for the second one.
"""

from collections.abc import Sequence
from dataclasses import fields, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from jsvm.io.data import dense_if_small
from jsvm.io.model import CLASSIFIERS, Model, read_model, write_model
from jsvm.io.rows import LARGEST_INDEX
from jsvm.kernels import RBF, Linear, Polynomial, Sigmoid

ESTIMATORS = {
    "c_svc": "SVC",
    "nu_svc": "NuSVC",
    "one_class": "OneClassSVM",
    "epsilon_svr": "SVR",
    "nu_svr": "NuSVR",
}
KERNELS = {"linear": Linear, "polynomial": Polynomial, "rbf": RBF, "sigmoid": Sigmoid}
NAMES = {"polynomial": "poly"}  # of scikit-learn, where they differ


def save_model(estimator: Any, path: str | Path) -> None:
    """Write a fitted estimator as a LIBSVM model file.

    Every number reads back as the same number. The file holds the decision function, and the
    parameters of the probabilities with ``calibration="platt"``; not C, the tolerance and the like.
    The 2-norm machine (``loss="squared_hinge"``) is written as c_svc, whose decision function has
    the same form.

    Parameters
    ----------
    estimator : SVC, NuSVC, SVR, NuSVR or OneClassSVM
        With a kernel that LIBSVM has: linear, polynomial, RBF, sigmoid or precomputed. The classes
        of a classifier must be whole numbers.
    path : path

    Examples
    --------
    >>> import tempfile
    >>> from jsvm.estimators import SVC
    >>> machine = SVC("linear").fit(np.array([[0.0], [1.0]]), np.array([-1, 1]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "two.model"
    ...     save_model(machine, path)
    ...     path.read_text().splitlines()[:2]
    ['svm_type c_svc', 'kernel_type linear']
    """
    write_model(to_model(estimator), path)


def load_model(path: str | Path, *, n_features: int | None = None) -> Any:
    """Read a LIBSVM model file as a fitted estimator, ready to predict.

    What the file does not hold stays unknown: C and the like have their default values, and
    `support_` counts the support vectors unless the kernel is precomputed.

    Parameters
    ----------
    path : path
    n_features : int, optional
        Number of features. The file only tells the largest one that occurs in a support vector,
        unless jsvm wrote it: more may be needed for data with features that are zero in all of
        them.

    Returns
    -------
    SVC, NuSVC, SVR, NuSVR or OneClassSVM
        Classes are sorted, as in scikit-learn.

    Examples
    --------
    >>> import tempfile
    >>> from jsvm.estimators import SVC
    >>> X, y = np.array([[0.0], [1.0]]), np.array([-1, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "two.model"
    ...     save_model(SVC("linear").fit(X, y), path)
    ...     load_model(path).predict(X).tolist()
    [-1, 1]
    """
    return to_estimator(read_model(path), n_features)


def to_model(estimator: Any) -> Model:
    """Return what a model file holds of a fitted estimator; raise ValueError if it cannot."""
    svm_type = _svm_type(estimator)
    name = type(estimator).__name__
    if not hasattr(estimator, "dual_coef_"):
        raise ValueError(f"this {name} is not fitted; call fit before save_model")
    kernel_type, parameters = _kernel_parameters(estimator.kernel_)
    coefficients, rho = _array(estimator.dual_coef_), -_array(estimator.intercept_)
    support = np.asarray(estimator.support_)
    precomputed = kernel_type == "precomputed"
    vectors = (
        sparse.csr_matrix((len(support), estimator.n_features_in_))
        if precomputed
        else sparse.csr_matrix(estimator.support_vectors_, dtype=np.float64, copy=True)
    )
    vectors.sort_indices()
    model = Model(
        svm_type=svm_type,
        kernel_type=kernel_type,
        parameters=parameters,
        rho=rho,
        coefficients=coefficients,
        vectors=vectors,
        serials=support + 1 if precomputed else None,
    )
    return _with_classes(model, estimator) if svm_type in CLASSIFIERS else model


def to_estimator(model: Model, n_features: int | None = None) -> Any:
    """Return a fitted estimator."""
    from jsvm import estimators

    model = _sorted_by_class(model)
    platt = model.labels is not None and model.slopes is not None and model.offsets is not None
    parameters: dict[str, Any] = dict(model.parameters)
    if "degree" in parameters:
        parameters["degree"] = int(parameters["degree"])
    kernel = KERNELS.get(model.kernel_type)
    calibration = {"calibration": "platt"} if platt else {}
    machine = getattr(estimators, ESTIMATORS[model.svm_type])(
        kernel=NAMES.get(model.kernel_type, model.kernel_type), **parameters, **calibration
    )
    machine.kernel_ = "precomputed" if kernel is None else kernel(**parameters)
    machine.n_features_in_ = _features(model, n_features)
    n = model.coefficients.shape[1]
    if model.serials is None:
        machine.support_ = np.arange(n, dtype=np.int32)
        vectors = model.vectors.copy()
        vectors.resize(n, machine.n_features_in_)
        machine.support_vectors_ = dense_if_small(vectors)
    else:
        machine.support_ = model.serials.astype(np.int32) - 1
        machine.support_vectors_ = np.zeros((0, 0))
    two_classes = model.labels is not None and len(model.labels) == 2
    sign = -1.0 if two_classes else 1.0
    machine.dual_coef_, machine.intercept_ = sign * model.coefficients, -sign * model.rho
    machine.n_support_ = np.array([n] if model.counts is None else model.counts, np.int32)
    if model.labels is not None:
        machine.classes_ = model.labels
    if platt:
        machine.probA_, machine.probB_ = model.slopes, model.offsets
    if model.svm_type == "one_class":
        machine.offset_ = float(model.rho[0])
    return machine


def _svm_type(estimator: Any) -> str:
    from jsvm import estimators

    known = {getattr(estimators, name): svm_type for svm_type, name in ESTIMATORS.items()}
    for cls in type(estimator).__mro__:
        if cls in known:
            return known[cls]
    raise ValueError(
        f"LIBSVM's model files cannot hold {type(estimator).__name__}, only "
        f"{', '.join(ESTIMATORS.values())}; of a pipeline or a search give the fitted machine "
        "inside, or pickle it as it is"
    )


def _kernel_parameters(kernel: Any) -> tuple[str, dict[str, float]]:
    if isinstance(kernel, str) and kernel == "precomputed":
        return kernel, {}
    for kernel_type, cls in KERNELS.items():
        if type(kernel) is cls:
            return kernel_type, {f.name: float(getattr(kernel, f.name)) for f in fields(cls)}
    raise ValueError(
        f"LIBSVM has no kernel like {kernel!r}, only {', '.join(KERNELS)} and precomputed; pickle "
        "the estimator, or train it on the matrix with kernel='precomputed'"
    )


def _with_classes(model: Model, classifier: Any) -> Model:
    classes = np.asarray(classifier.classes_)
    if len(classes) > 2 and getattr(classifier, "multiclass", "ovo") != "ovo":
        raise ValueError(
            f"multiclass={classifier.multiclass!r}: LIBSVM's models are one against one; fit with "
            "multiclass='ovo', or pickle the estimator"
        )
    calibration = getattr(classifier, "calibration", None)
    if calibration not in (None, "platt"):
        raise ValueError(
            f"calibration={calibration!r} has no place in LIBSVM's models; fit with 'platt' or "
            "None, or pickle the estimator"
        )
    sign = -1.0 if len(classes) == 2 else 1.0
    return replace(
        model,
        coefficients=sign * model.coefficients,
        rho=sign * model.rho,
        labels=_whole_labels(classes),
        counts=np.asarray(classifier.n_support_),
        slopes=None if calibration is None else _array(classifier.probA_),
        offsets=None if calibration is None else _array(classifier.probB_),
    )


def _whole_labels(classes: np.ndarray) -> np.ndarray:
    numeric = classes.dtype.kind in "biuf"
    if (
        not numeric
        or not (
            (classes == np.rint(classes)) & (np.abs(classes.astype(float)) <= LARGEST_INDEX)
        ).all()
    ):
        raise ValueError(
            f"classes_={classes[:5]} are not whole numbers, and LIBSVM's models hold no others; "
            "fit to codes, names, codes = np.unique(y, return_inverse=True), or pickle it"
        )
    return classes.astype(np.int64)


def _sorted_by_class(model: Model) -> Model:
    """Return the same decision functions with classes in ascending order."""
    if model.labels is None or model.counts is None:
        return model
    order = np.argsort(model.labels)
    pairs, signs = _moved_pairs(order.tolist())
    ends = np.cumsum(model.counts)
    blocks = [np.arange(end - count, end) for end, count in zip(ends, model.counts, strict=True)]
    places = np.concatenate([blocks[i] for i in order])  # of the support vectors, as they were
    return replace(
        model,
        labels=model.labels[order],
        counts=model.counts[order],
        rho=signs * model.rho[pairs],
        slopes=None if model.slopes is None else model.slopes[pairs],
        offsets=None if model.offsets is None else signs * model.offsets[pairs],
        coefficients=_moved_coefficients(model, order.tolist())[:, places],
        vectors=model.vectors[places],
        serials=None if model.serials is None else model.serials[places],
    )


def _moved_pairs(order: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return for every pair of the new order the place of the same pair, and the sign, in the old.

    The class at place a was at place ``order[a]``.
    """
    number = {pair: p for p, pair in enumerate(combinations(range(len(order)), 2))}
    moved = [(order[a], order[b]) for a, b in number]
    places = [number[min(i, j), max(i, j)] for i, j in moved]
    return np.array(places), np.array([1.0 if i < j else -1.0 for i, j in moved])


def _moved_coefficients(model: Model, order: Sequence[int]) -> np.ndarray:
    """Return the coefficients with rows and signs for the new order, support vectors in the old."""
    assert model.counts is not None
    coefficients = np.zeros_like(model.coefficients)
    ends = np.cumsum(model.counts).tolist()
    for a, i in enumerate(order):
        own = slice(ends[i] - int(model.counts[i]), ends[i])
        for b, j in enumerate(order):
            if a != b:  # the row of an opponent: those before come first, the own class is left out
                sign = 1.0 if (i < j) == (a < b) else -1.0
                coefficients[b - (b > a), own] = sign * model.coefficients[j - (j > i), own]
    return coefficients


def _features(model: Model, n_features: int | None) -> int:
    told = model.vectors.shape[1]
    if n_features is None:
        return max(1, told)
    if n_features < told:
        raise ValueError(f"n_features={n_features}, but the support vectors have {told}")
    return n_features


def _array(values: Any) -> np.ndarray:
    return np.asarray(values.toarray() if sparse.issparse(values) else values, np.float64)
