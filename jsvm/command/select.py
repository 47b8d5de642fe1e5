"""``jsvm select``: C and gamma by cross-validation on a grid."""

import argparse
import math
from typing import Any

import numpy as np

from jsvm import search
from jsvm.command import OK, fitting, options
from jsvm.io.model import CLASSIFIERS, KERNEL_PARAMETERS

LARGEST_GRID = 1000  # values in one direction

EXAMPLES = """  jsvm select heart.txt                       # the default grid
  jsvm select --C 0.1,1,10 --gamma 0.01,0.1 --folds 10 heart.txt
  jsvm select --C 1e-2:1e4:10 --gamma 1e-3:1:2 heart.txt   # begin:end:factor
  jsvm select -t linear --C 0.01:100:10 --json heart.txt
"""


def run(arguments: list[str]) -> int:
    """Score every cell, print the table and the best cell."""
    parser = _parser()
    given = parser.parse_intermixed_args(options.spelled_out(arguments))
    fitting.check(given, parser)
    if "C" not in fitting.PARAMETERS[given.type]:
        parser.error(f"select varies C, which {given.type} does not have")
    X, y = fitting.training_data(given)
    has_gamma = "gamma" in KERNEL_PARAMETERS[given.kernel]
    with fitting.errors_name(given.data):
        result = search.cross_validate(
            fitting.build(given, C=1.0, gamma="auto", probability=False, progress=False),
            X,
            y,
            cv=fitting.folds(y, given),
            C=given.cost,
            gamma=given.gamma if has_gamma else None,
            progress=options.shows_progress(given),
        )
    score = "accuracy" if given.type in CLASSIFIERS else "R2"
    if given.json:
        options.print_json({"score": score, "folds": given.folds, **_facts(result, has_gamma)})
        return OK
    if not given.quiet:
        print(f"mean {score} in {given.folds} folds, * the best\n{_table(result, has_gamma)}")
    chosen = f"-c {result.best_C:g}" + (f" -g {result.best_gamma:g}" if has_gamma else "")
    print(f"best: {chosen} with {score} {result.best_score:.4f}")
    return OK


def _parser() -> argparse.ArgumentParser:
    purpose = "Choose C and gamma by cross-validation on a grid."
    parser = options.command_parser("select", purpose, EXAMPLES)
    options.add_data_options(parser)
    options.add_machine_options(parser)
    add, form = parser.add_argument, "a list 0.1,1,10 or begin:end:factor (default: %(default)s)"
    costs, gammas = f"values of C: {form}", f"values of gamma: {form}"
    add("-c", "--C", "--cost", dest="cost", type=grid, default="0.1:1000:10", help=costs)
    add("-g", "--gamma", type=grid, default="0.001:10:10", help=gammas)
    options.add_folds(parser, 5, "number of folds (default: 5)")
    return parser


def grid(text: str) -> list[float]:
    """Return the values that a list or ``begin:end:factor`` means.

    Examples
    --------
    >>> grid("0.5,1"), grid("1:100:10")
    ([0.5, 1.0], [1.0, 10.0, 100.0])
    """
    numbers = [options.positive(part) for part in text.replace(":", ",").split(",")]
    if ":" not in text:
        return numbers
    if text.count(":") != 2 or "," in text:
        raise argparse.ArgumentTypeError(f"{text} must be begin:end:factor")
    begin, end, factor = numbers
    if factor <= 1 or end < begin:
        raise argparse.ArgumentTypeError(f"{text} must have begin <= end and a factor above 1")
    steps = math.log(end / begin) / math.log(factor)
    if steps >= LARGEST_GRID:
        raise argparse.ArgumentTypeError(f"{text} has more than {LARGEST_GRID} values")
    return [begin * factor**k for k in range(math.floor(steps + 1e-9) + 1)]


def _facts(result: search.CrossValidation, has_gamma: bool) -> dict[str, Any]:
    names = ["C", "mean_scores", "scores", "best_C", "best_score"]
    names += ["gamma", "best_gamma"] if has_gamma else []
    facts = {name: getattr(result, name) for name in names}
    return facts | {"converged": bool(np.all(result.converged))}


def _table(result: search.CrossValidation, has_gamma: bool) -> str:
    """Return mean scores, a row for each C and a column for each gamma, a star at the best."""
    heads = [f"gamma={value:g}" if has_gamma else "score" for value in result.gamma]
    lines = ["C".rjust(10) + "".join(f"{head:>14} " for head in heads)]
    for c, (C, row) in enumerate(zip(result.C, result.mean_scores, strict=True)):
        stars = ["*" if (c, g) == result.best_index else " " for g in range(len(row))]
        cells = [f"{score:14.4f}{star}" for score, star in zip(row, stars, strict=True)]
        lines.append(f"{C:10g}" + "".join(cells))
    return "\n".join(line.rstrip() for line in lines)
