"""What commands share: examples of LIBSVM or CSV files, the estimator, folds, and results."""

import argparse
import csv
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from jsvm.io.conversion import ESTIMATORS, NAMES
from jsvm.io.data import Matrix, dense_if_small, load_data
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
    if options.kernel == "precomputed" and X.shape[0] != X.shape[1]:
        raise ValueError(
            f"{options.data}: the kernel matrix of the training examples must be square, not "
            f"{X.shape[0]} × {X.shape[1]}; give every line a value for every example"
        )
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


def read_examples(
    options: argparse.Namespace, *, precomputed: bool
) -> tuple[Matrix, np.ndarray | None]:
    """Return X and y of the file; X is an array unless it is large and sparse."""
    if is_csv(options):
        return read_csv(options.data, options.label)
    X, y = load_data(options.data, precomputed=precomputed, dense=precomputed)
    return (X if precomputed else dense_if_small(X)), y


def is_csv(options: argparse.Namespace) -> bool:
    """Tell whether the data file is read as CSV."""
    named = options.data.suffix.lower() == ".csv"
    return options.format == "csv" or (options.format is None and named)


def read_csv(path: Path, label: str = "first") -> tuple[np.ndarray, np.ndarray | None]:
    """Read a CSV file; the column of y is 'first', 'last', 'none' or a name in its header."""
    names: list[str] = []
    cells, lines = array("d"), array("q")
    with path.open(newline="", encoding="utf-8-sig") as file:  # a byte order mark is skipped
        reader = csv.reader(file, strict=True)
        try:
            for row in reader:
                if not row:
                    continue
                if not names:
                    names, is_header = _names(row)
                    if is_header:
                        continue
                cells.extend(_numbers(row, names))
                lines.append(reader.line_num)
        except (ValueError, csv.Error) as error:
            raise ValueError(f"{path}, line {reader.line_num}: {error}") from None
    if not lines:
        raise ValueError(f"{path} holds no examples")
    table = np.array(cells).reshape(len(lines), len(names))
    finite = np.isfinite(table).all(axis=1)
    if not finite.all():
        raise ValueError(f"{path}, line {lines[int(np.argmin(finite))]}: NaN or infinity")
    if label == "none":
        return table, None
    column = _column(label, names, path)
    return np.delete(table, column, axis=1), table[:, column]


def _names(row: list[str]) -> tuple[list[str], bool]:
    """Return names of the columns, and whether the row is a header that holds them."""
    try:
        _numbers(row, row)
    except ValueError:
        if not any(_is_number(cell) for cell in row):
            return [cell.strip() for cell in row], True
    return [f"column {k}" for k in range(1, len(row) + 1)], False


def _numbers(row: list[str], names: list[str]) -> list[float]:
    if len(row) != len(names):
        raise ValueError(f"{len(row)} cells instead of {len(names)}")
    try:
        if "_" not in "".join(row):  # Python reads 1_0 as a number
            return [float(cell) for cell in row]
    except ValueError:
        pass
    wrong = next(k for k, cell in enumerate(row) if not _is_number(cell))
    raise ValueError(f"{names[wrong]}: {row[wrong][:40]!r} is not a number")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def _column(label: str, names: list[str], path: Path) -> int:
    if label in names:
        return names.index(label)
    if label in ("first", "last"):
        return 0 if label == "first" else len(names) - 1
    raise ValueError(
        f"--label {label}: {path} has no such column, but {', '.join(names[:10])}; 'first' and "
        "'last' do without names"
    )


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
    """Return training and test examples of random folds, with the same share of every class."""
    n, count = len(y), options.folds
    if count > n:
        raise ValueError(f"--folds {count}, but there are {n} examples only")
    order = np.random.default_rng(options.seed).permutation(n)
    if options.type in CLASSIFIERS:
        order = order[np.argsort(y[order], kind="stable")]
    return train_and_test(deal(order, count))


@contextmanager
def errors_name(path: Path) -> Iterator[None]:
    """Put the file before errors of estimators, which do not know where their data are from."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


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
        lines = [f"Mean squared error = {results['mean_squared_error']:g}"]
        lines += [f"Squared correlation coefficient = {results['squared_correlation']:g}"]
        kind = "(regression)"
    for line in lines:
        print(f"Cross Validation {line}" if cross_validation else f"{line} {kind}")
