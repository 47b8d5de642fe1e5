"""Estimators to and from LIBSVM's model files.

Three conventions differ. LIBSVM subtracts ρ, scikit-learn adds the intercept. LIBSVM has its
classes in any order, scikit-learn sorts them: where two classes change places, the decision
function f of the pair changes its sign, so that in A f + B the A stays and B changes its sign. And
with two classes scikit-learn's decision is positive for the second one.
"""

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from jsvm.io.data import dense_if_small
from jsvm.io.lines import LARGEST_INDEX
from jsvm.io.model import CLASSIFIERS, Model, read_model, write_model
from jsvm.kernels import RBF, Linear, Polynomial, Sigmoid

ESTIMATORS = {
    "c_svc": "SVC",
    "nu_svc": "NuSVC",
    "one_class": "OneClassSVM",
    "epsilon_svr": "SVR",
    "nu_svr": "NuSVR",
}
KERNELS = {"linear": Linear, "polynomial": Polynomial, "rbf": RBF, "sigmoid": Sigmoid}
NAMES = {"polynomial": "poly"}  # scikit-learn's names of kernels, where they differ


def save_model(estimator: Any, path: str | Path) -> None:
    """Write a fitted estimator as a LIBSVM model file.

    Every number reads back as the same number. The file holds the decision function, and the
    parameters of the probabilities with ``calibration="platt"``; not C or the tolerance. The 2-norm
    machine (``loss="squared_hinge"``) is written as c_svc: its decision function has the same form.

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

    The file does not hold everything: C and the like have their default values, and `support_`
    counts the support vectors unless the kernel is precomputed.

    Parameters
    ----------
    path : path
    n_features : int, optional
        Number of features. A file of LIBSVM only tells the largest one that occurs in a support
        vector; the data may have more.

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
    if not hasattr(estimator, "dual_coef_"):
        name = type(estimator).__name__
        raise ValueError(f"this {name} is not fitted; call fit before save_model")
    kernel_type, parameters = _kernel_parameters(estimator.kernel_)
    support = np.asarray(estimator.support_)
    if kernel_type == "precomputed":
        serials, vectors = support + 1, sparse.csr_matrix((len(support), estimator.n_features_in_))
    else:
        serials = None
        vectors = sparse.csr_matrix(estimator.support_vectors_, dtype=np.float64, copy=True)
        vectors.sort_indices()
    rho, coefficients = -_array(estimator.intercept_), _array(estimator.dual_coef_)
    model = Model(svm_type, kernel_type, parameters, rho, coefficients, vectors, serials)
    return _with_classes(model, estimator) if svm_type in CLASSIFIERS else model


def to_estimator(model: Model, n_features: int | None = None) -> Any:
    """Return a fitted estimator."""
    from jsvm import estimators

    model = _sorted_by_class(model)
    parameters: dict[str, Any] = dict(model.parameters)
    if "degree" in parameters:
        parameters["degree"] = int(parameters["degree"])
    calibration = {"calibration": "platt"} if model.has_probabilities else {}
    name = NAMES.get(model.kernel_type, model.kernel_type)
    machine = getattr(estimators, ESTIMATORS[model.svm_type])(name, **parameters, **calibration)
    kernel = KERNELS.get(model.kernel_type)
    machine.kernel_ = "precomputed" if kernel is None else kernel(**parameters)
    told = model.vectors.shape[1]
    if n_features is not None and n_features < told:
        raise ValueError(f"n_features={n_features}, but the support vectors have {told}")
    machine.n_features_in_ = max(1, told) if n_features is None else n_features
    n = model.coefficients.shape[1]
    if model.serials is None:
        machine.support_ = np.arange(n, dtype=np.int32)
        vectors = model.vectors.copy()
        vectors.resize(n, machine.n_features_in_)
        machine.support_vectors_ = dense_if_small(vectors)
    else:
        machine.support_ = model.serials.astype(np.int32) - 1
        machine.support_vectors_ = np.zeros((0, 0))
    sign = _sign(model.labels)
    machine.dual_coef_, machine.intercept_ = sign * model.coefficients, -sign * model.rho
    machine.n_support_ = np.array([n] if model.counts is None else model.counts, np.int32)
    if model.labels is not None:
        machine.classes_ = model.labels
    if model.has_probabilities:
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
    sign = _sign(classes)
    return replace(
        model,
        coefficients=sign * model.coefficients,
        rho=sign * model.rho,
        labels=_whole_labels(classes),
        counts=np.asarray(classifier.n_support_),
        slopes=None if calibration is None else _array(classifier.probA_),
        offsets=None if calibration is None else _array(classifier.probB_),
    )


def _sign(classes: np.ndarray | None) -> float:
    """Return −1 if scikit-learn's decision function has the opposite sign of LIBSVM's."""
    return -1.0 if classes is not None and len(classes) == 2 else 1.0


def _whole_labels(classes: np.ndarray) -> np.ndarray:
    if classes.dtype.kind in "biuf":
        numbers = classes.astype(float)
        if ((numbers == np.rint(numbers)) & (np.abs(numbers) <= LARGEST_INDEX)).all():
            return classes.astype(np.int64)
    raise ValueError(
        f"classes_={classes[:5]} are not whole numbers, and LIBSVM's models hold no others; "
        "fit to codes, names, codes = np.unique(y, return_inverse=True), or pickle it"
    )


def _sorted_by_class(model: Model) -> Model:
    """Return the same decision functions with classes in ascending order."""
    if model.labels is None or model.counts is None:
        return model
    order = np.argsort(model.labels)
    rank = np.argsort(order)  # the new place of every class
    own = np.split(np.arange(model.counts.sum()), np.cumsum(model.counts)[:-1])
    coefficients = np.empty_like(model.coefficients)
    for i, vectors in enumerate(own):
        others = np.delete(np.arange(len(order)), i)  # whom the coefficients of class i are against
        rows = rank[others] - (rank[others] > rank[i])
        signs = np.where((i < others) == (rank[i] < rank[others]), 1.0, -1.0)
        coefficients[np.ix_(rows, vectors)] = signs[:, None] * model.coefficients[:, vectors]

    first, second = np.triu_indices(len(order), 1)  # all pairs, in the order of the file
    number = np.zeros((len(order), len(order)), int)
    number[first, second] = number[second, first] = np.arange(len(first))
    pairs = number[order[first], order[second]]  # the old number of every new pair
    signs = np.where(order[first] < order[second], 1.0, -1.0)
    vectors = np.concatenate([own[i] for i in order])
    return replace(
        model,
        labels=model.labels[order],
        counts=model.counts[order],
        rho=signs * model.rho[pairs],
        slopes=None if model.slopes is None else model.slopes[pairs],
        offsets=None if model.offsets is None else signs * model.offsets[pairs],
        coefficients=coefficients[:, vectors],
        vectors=model.vectors[vectors],
        serials=None if model.serials is None else model.serials[vectors],
    )


def _array(values: Any) -> np.ndarray:
    return np.asarray(values.toarray() if sparse.issparse(values) else values, np.float64)
