"""From options to an estimator, and how well it does."""

import argparse
from typing import Any

import numpy as np

from jsvm.io.machines import ESTIMATORS, NAMES
from jsvm.io.model import CLASSIFIERS

# What each machine takes beside its kernel and the tolerance.
PARAMETERS = {
    "c_svc": ("C",),
    "nu_svc": ("nu",),
    "one_class": ("nu",),
    "epsilon_svr": ("C", "epsilon"),
    "nu_svr": ("C", "nu"),
}


def build(
    options: argparse.Namespace, *, C: float, gamma: float | str, probability: bool, progress: bool
) -> Any:
    """Return the estimator; parameters that it does not have are ignored, as svm-train does."""
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


def check(options: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """End with a message if options do not go together."""
    if options.weight and options.type != "c_svc":
        parser.error(f"--weight is for c_svc, not for {options.type}")
    if getattr(options, "probability", 0) and options.type not in CLASSIFIERS:
        parser.error(f"--probability is for c_svc and nu_svc, not for {options.type}")


def targets(svm_type: str, y: np.ndarray, path: Any) -> np.ndarray:
    """Return labels as whole numbers, which is what a model file can hold; other targets as is."""
    if svm_type not in CLASSIFIERS:
        return y
    whole = (y == np.rint(y)) & (np.abs(y) < 2**31)
    if not whole.all():
        wrong = int(np.argmin(whole))
        raise ValueError(
            f"{path}: label {y[wrong]:g} of example {wrong + 1} is not a whole number; for "
            "regression give -s epsilon_svr or -s nu_svr"
        )
    return y.astype(np.int64)


def interrupted(machine: Any) -> bool:
    """Tell whether Ctrl-C ended the fit, which leaves the best point so far."""
    from jsvm.solvers import Status

    return any(Status(s.status) == Status.INTERRUPTED for s in machine.solutions_)


def measures(svm_type: str, predicted: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Return what svm-predict prints, accuracy as a share of one."""
    if svm_type not in ("epsilon_svr", "nu_svr"):
        correct = int((predicted == y).sum())
        return {"accuracy": correct / len(y), "correct": correct, "total": len(y)}
    deviations = np.stack([predicted - predicted.mean(), y - y.mean()])
    (a, c), (_, b) = deviations @ deviations.T
    return {
        "mean_squared_error": float(((predicted - y) ** 2).mean()),
        "squared_correlation": float(c * c / (a * b)) if a * b > 0 else float("nan"),
    }


def measures_lines(results: dict[str, float], *, cross_validation: bool = False) -> list[str]:
    """Return the lines that svm-predict prints, or svm-train after cross-validation."""
    if "accuracy" in results:
        lines = [f"Accuracy = {100 * results['accuracy']:g}%"]
        kind = f"({results['correct']}/{results['total']}) (classification)"
    else:
        lines = [
            f"Mean squared error = {results['mean_squared_error']:g}",
            f"Squared correlation coefficient = {results['squared_correlation']:g}",
        ]
        kind = "(regression)"
    if cross_validation:
        return [f"Cross Validation {line}" for line in lines]
    return [f"{line} {kind}" for line in lines]
