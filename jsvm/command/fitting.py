"""What ``train`` and ``select`` share: training data, the estimator, folds, and its results."""

import argparse
from typing import Any

import numpy as np

from jsvm.command.examples import read_examples
from jsvm.io.conversion import ESTIMATORS, NAMES
from jsvm.io.data import Matrix
from jsvm.io.model import CLASSIFIERS
from jsvm.validation.splits import deal, train_and_test

# What each machine takes beside its kernel and the tolerance.
PARAMETERS = {
    "c_svc": ("C",),
    "nu_svc": ("nu",),
    "one_class": ("nu",),
    "epsilon_svr": ("C", "epsilon"),
    "nu_svr": ("C", "nu"),
}


def check(options: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Exit with a message if options contradict each other."""
    if options.weight and options.type != "c_svc":
        parser.error(f"--weight is for c_svc, not for {options.type}")
    if getattr(options, "probability", 0) and options.type not in CLASSIFIERS:
        parser.error(f"--probability is for c_svc and nu_svc, not for {options.type}")


def training_data(options: argparse.Namespace) -> tuple[Matrix, np.ndarray]:
    """Read X and y; labels become whole numbers, as a model file can hold no others."""
    X, y = read_examples(options, precomputed=options.kernel == "precomputed")
    if y is None:
        raise ValueError(f"--label {options.label}: training needs labels")
    if options.type not in CLASSIFIERS:
        return X, y
    whole = (y == np.rint(y)) & (np.abs(y) < 2**31)
    if not whole.all():
        wrong = int(np.argmin(whole))
        raise ValueError(
            f"{options.data}: label {y[wrong]:g} of example {wrong + 1} is not a whole number; for "
            "regression give -s epsilon_svr or -s nu_svr"
        )
    return X, y.astype(np.int64)


def build(
    options: argparse.Namespace, *, C: float, gamma: float | str, probability: bool, progress: bool
) -> Any:
    """Return the estimator; like svm-train, ignore parameters that it does not have."""
    from jsvm import estimators

    given = {"C": C, "nu": options.nu, "epsilon": options.epsilon}
    parameters: dict[str, Any] = {name: given[name] for name in PARAMETERS[options.type]}
    if options.cache_size is not None:
        parameters["cache_size"] = options.cache_size
    if options.weight:
        parameters["class_weight"] = dict(options.weight)
    if probability:
        parameters["calibration"] = "platt"
    return getattr(estimators, ESTIMATORS[options.type])(
        kernel=NAMES.get(options.kernel, options.kernel),
        gamma=gamma,
        degree=options.degree,
        coef0=options.coef0,
        tol=options.tolerance,
        progress=progress,
        **parameters,
    )


def folds(y: np.ndarray, options: argparse.Namespace) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return training and test examples of every fold, drawn at random.

    Every fold has the same share of every class.

    Examples
    --------
    >>> given = argparse.Namespace(folds=2, seed=0, type="c_svc")
    >>> [test.tolist() for _, test in folds(np.array([7, 7, 8, 8]), given)]
    [[0, 2], [1, 3]]
    """
    n, count = len(y), options.folds
    if count > n:
        raise ValueError(f"--folds {count}, but there are {n} examples only")
    order = np.random.default_rng(options.seed).permutation(n)
    if options.type in CLASSIFIERS:
        order = order[np.argsort(y[order], kind="stable")]
    return train_and_test(deal(order, count))


def interrupted(machine: Any) -> bool:
    """Tell whether Ctrl-C ended the fit; the machine is then the best point so far."""
    from jsvm.solvers import Status

    return any(Status(s.status) == Status.INTERRUPTED for s in machine.solutions_)


def measures(svm_type: str, predicted: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Return the results that svm-predict prints, accuracy as a fraction."""
    if svm_type not in ("epsilon_svr", "nu_svr"):
        correct = int((predicted == y).sum())
        return {"accuracy": correct / len(y), "correct": correct, "total": len(y)}
    deviations = np.stack([predicted - predicted.mean(), y - y.mean()])
    (a, c), (_, b) = deviations @ deviations.T
    return {
        "mean_squared_error": float(((predicted - y) ** 2).mean()),
        "squared_correlation": float(c * c / (a * b)) if a * b > 0 else float("nan"),
    }


def print_measures(results: dict[str, float], *, cross_validation: bool = False) -> None:
    """Print the lines of svm-predict, or of svm-train after cross-validation."""
    if "accuracy" in results:
        lines = [f"Accuracy = {100 * results['accuracy']:g}%"]
        kind = f"({results['correct']}/{results['total']}) (classification)"
    else:
        lines = [
            f"Mean squared error = {results['mean_squared_error']:g}",
            f"Squared correlation coefficient = {results['squared_correlation']:g}",
        ]
        kind = "(regression)"
    for line in lines:
        print(f"Cross Validation {line}" if cross_validation else f"{line} {kind}")
