"""``jsvm train``: fit a machine to a file."""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from jsvm.command import INTERRUPTED, OK, fitting, options
from jsvm.io.data import Matrix
from jsvm.io.model import CLASSIFIERS

EXAMPLES = """  jsvm train heart.txt                        # C-SVC, RBF kernel; heart.txt.model
  jsvm train -c 10 -g 0.5 -w1 5 heart.txt heart.model
  jsvm train -s epsilon_svr -t linear -p 0.01 --label price houses.csv
  jsvm train -v 5 -q heart.txt                # accuracy of cross-validation, no model
  jsvm train -t precomputed kernel.txt        # lines: label 0:i 1:k(x_i,x_1) 2:k(x_i,x_2) ...
"""
SUMMARY = """{type} with {kernel}: {examples} examples of {features} features
{support_vectors} support vectors after {pair_steps} pair and {block_steps} block steps, \
KKT gap {kkt_gap:.1e}, {seconds:.2f} seconds
model: {model}"""


def run(arguments: list[str]) -> int:
    """Fit, and write the model or print the result of cross-validation."""
    parser = _parser()
    given = parser.parse_intermixed_args(options.spelled_out(arguments))
    fitting.check(given, parser)
    X, y = fitting.training_data(given)
    machine = fitting.build(
        given,
        C=given.cost,
        gamma=given.gamma,
        probability=bool(given.probability),
        progress=options.shows_progress(given) and given.folds is None,
    )
    with fitting.errors_name(given.data):
        return (_train if given.folds is None else _cross_validate)(given, machine, X, y)


def _parser() -> argparse.ArgumentParser:
    purpose = "Fit a machine to a data file and write a LIBSVM model file."
    parser = options.command_parser("train", purpose, EXAMPLES)
    options.add_data_options(parser)
    add, model = parser.add_argument, "model file (default: the data's name and .model, here)"
    add("model", type=Path, nargs="?", help=model)
    options.add_machine_options(parser)
    costs = "C, the cost of errors, or inf (default: 1)"
    add("-c", "--cost", type=options.cost, default=1.0, help=costs)
    gammas = "of the kernel: a number, auto = 1/features or scale = auto/variance (default: auto)"
    add("-g", "--gamma", type=options.gamma, default="auto", help=gammas)
    options.add_probability(parser, "also fits probabilities of the classes")
    options.add_folds(parser, None, "cross-validate in N folds, write no model")
    return parser


def _train(given: argparse.Namespace, machine: Any, X: Matrix, y: np.ndarray) -> int:
    from jsvm.io import save_model

    path = Path(f"{given.data.name}.model") if given.model is None else given.model
    begun = time.perf_counter()
    solutions = machine.fit(X, y).solutions_
    seconds = time.perf_counter() - begun
    save_model(machine, path)
    facts = {
        "model": path,
        "type": given.type,
        "kernel": str(machine.kernel_),
        "examples": X.shape[0],
        "features": X.shape[1],
        "classes": machine.classes_ if given.type in CLASSIFIERS else None,
        "support_vectors": len(machine.support_),
        "pair_steps": sum(s.steps for s in solutions),
        "block_steps": sum(s.newton_steps for s in solutions),
        "kkt_gap": max(s.violation for s in solutions),
        "converged": machine.fit_status_ == 0,
        "seconds": seconds,
    }
    if given.json:
        options.print_json(facts)
    elif not given.quiet:
        print(SUMMARY.format(**facts))
    return INTERRUPTED if fitting.interrupted(machine) else OK


def _cross_validate(given: argparse.Namespace, machine: Any, X: Matrix, y: np.ndarray) -> int:
    predicted = np.empty(len(y))
    for train, test in fitting.folds(y, given):
        columns = train if given.kernel == "precomputed" else slice(None)
        machine.fit(X[train][:, columns], y[train])
        if fitting.interrupted(machine):
            raise KeyboardInterrupt
        predicted[test] = machine.predict(X[test][:, columns])
    results = fitting.measures(given.type, predicted, y)
    if given.json:
        options.print_json({"folds": given.folds, **results})
    else:
        fitting.print_measures(results, cross_validation=True)
    return OK
