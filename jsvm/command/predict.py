"""``jsvm predict``: the examples of a file with a model file."""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from jsvm.command import OK, fitting, options
from jsvm.io.conversion import to_estimator
from jsvm.io.data import Matrix
from jsvm.io.lines import number_text
from jsvm.io.model import Model, read_model

EXAMPLES = """  jsvm predict test.txt train.txt.model       # accuracy, or mean squared error
  jsvm predict test.txt train.txt.model labels.txt
  jsvm predict -b 1 test.txt train.txt.model probabilities.txt
  jsvm predict --label none new.csv train.csv.model labels.txt
"""


def run(arguments: list[str]) -> int:
    """Predict, compare with the labels of the file, write the predictions if a name is given."""
    given = _parser().parse_intermixed_args(options.spelled_out(arguments))
    model = read_model(given.model)
    if given.probability and not model.has_probabilities:
        raise ValueError(f"{given.model} holds no probabilities of classes; train it with -b 1")
    X, y = fitting.read_examples(given, precomputed=model.kernel_type == "precomputed")
    X, machine = _matched(X, model, given)
    predicted = machine.predict(X)
    chances = machine.predict_proba(X) if given.probability else None
    lines = _lines(predicted, chances, getattr(machine, "classes_", None))
    if given.output is not None:
        with given.output.open("w", encoding="ascii", newline="\n") as file:
            file.writelines(lines)
    results = {} if y is None else fitting.measures(model.svm_type, predicted, y)
    if given.json:
        options.print_json(_facts(given, predicted, chances, machine) | results)
    elif results and not given.quiet:
        fitting.print_measures(results)
    elif given.output is None and not results:
        sys.stdout.writelines(lines)
    return OK


def _parser() -> argparse.ArgumentParser:
    purpose = "Predict the examples of a data file with a LIBSVM model file."
    parser = options.command_parser("predict", purpose, EXAMPLES)
    options.add_data_options(parser, labels="first, last, none")
    parser.add_argument("model", type=Path, help="model file of jsvm or LIBSVM")
    parser.add_argument("output", type=Path, nargs="?", help="file for the predictions")
    options.add_probability(parser, "also predicts probabilities of the classes")
    return parser


def _matched(X: Matrix, model: Model, given: argparse.Namespace) -> tuple[Matrix, Any]:
    """Return data and estimator with the same number of features.

    A LIBSVM file, of data or of a model, only tells the largest feature that is not zero.
    """
    known, found = model.vectors.shape[1], X.shape[1]
    if model.kernel_type == "precomputed":
        fits = found >= known
    else:
        fits = found == known or not fitting.is_csv(given)
    if not fits:
        raise ValueError(
            f"{given.data} has {found} features, but {given.model} has {known}; which column of a "
            "CSV file is the label, if any, is said by --label"
        )
    width = max(known, found, 1)
    if found < width and sparse.issparse(X):
        X.resize(X.shape[0], width)
    elif found < width:
        X = np.pad(X, ((0, 0), (0, width - found)))
    return X, to_estimator(model, width)


def _lines(predicted: np.ndarray, chances: np.ndarray | None, labels: Any) -> Iterator[str]:
    """Yield the lines of svm-predict's output file."""
    if chances is not None:
        yield " ".join(["labels", *(number_text(float(label)) for label in labels)]) + "\n"
    for i, value in enumerate(predicted.tolist()):
        numbers = [value] if chances is None else [value, *chances[i].tolist()]
        yield " ".join(number_text(float(number)) for number in numbers) + "\n"


def _facts(
    given: argparse.Namespace, predicted: np.ndarray, chances: np.ndarray | None, machine: Any
) -> dict[str, Any]:
    facts: dict[str, Any] = {"total": len(predicted)}
    if given.output is not None:
        return facts | {"output": given.output}
    facts["predictions"] = predicted
    if chances is not None:
        facts |= {"classes": machine.classes_, "probabilities": chances}
    return facts
