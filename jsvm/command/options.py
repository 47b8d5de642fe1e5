"""Options that commands share: short, as in ``svm-train``, and long."""

import argparse
import json
import math
import re
import sys
from functools import partial
from pathlib import Path
from typing import Any

from jsvm.io.model import KERNEL_PARAMETERS, SVM_TYPES

WEIGHT = re.compile(r"-w([+-]?\d+)")
NUMBER = re.compile(r"-[\d.][\d.eE+-]*")


def command_parser(name: str, description: str, examples: str) -> argparse.ArgumentParser:
    """Return a parser with the options that every command has."""
    parser = argparse.ArgumentParser(
        prog=f"jsvm {name}",
        description=description,
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress bar, no summary")
    return parser


def add_data_options(parser: argparse.ArgumentParser, labels: str = "first, last") -> None:
    """Add the data file, its format and its label column."""
    add, formats = parser.add_argument, ("libsvm", "csv")
    add("data", type=Path, help="data file, LIBSVM or CSV")
    add("--format", choices=formats, help="of the data; by default csv if named .csv")
    column = f"label column of a CSV file: {labels} or a name in its header (default: first)"
    add("--label", metavar="COLUMN", default="first", help=column)


def add_machine_options(parser: argparse.ArgumentParser) -> None:
    """Add machine, kernel and solver, without C and gamma."""
    add = parser.add_argument
    svm_type, kernel_type = (
        partial(_named_or_numbered, names=tuple(names)) for names in (SVM_TYPES, KERNEL_PARAMETERS)
    )
    types = ", ".join(f"{k} {name}" for k, name in enumerate(SVM_TYPES))
    kernels = ", ".join(f"{k} {name}" for k, name in enumerate(KERNEL_PARAMETERS))
    add("-s", "--type", type=svm_type, default="c_svc", help=f"{types} (default: 0)")
    add("-t", "--kernel", type=kernel_type, default="rbf", help=f"{kernels} (default: 2)")
    add("-d", "--degree", type=whole, default=3, help="of the polynomial kernel (default: 3)")
    add("-r", "--coef0", type=finite, default=0.0, help="of polynomial and sigmoid (default: 0)")
    add("-n", "--nu", type=finite, default=0.5, help="of nu_svc, nu_svr, one_class (default: 0.5)")
    add("-p", "--epsilon", type=finite, default=0.1, help="width of epsilon_svr (default: 0.1)")
    add("-m", "--cache-size", type=positive, metavar="MB", help="memory for kernel rows")
    add("-e", "--tolerance", type=positive, default=1e-3, help="KKT gap to reach (default: 0.001)")
    weights = "C of a class times W, for c_svc; also -wLABEL W; may be repeated"
    add("--weight", type=_weight, action="append", default=[], metavar="LABEL=W", help=weights)


def whole(text: str, least: int = 0) -> int:
    """Return a whole number."""
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"{text} must be a whole number >= {least}")
    return int(text)


def finite(text: str) -> float:
    """Return a finite number."""
    if not math.isfinite(float(text)):
        raise argparse.ArgumentTypeError(f"{text} must be a finite number")
    return float(text)


def positive(text: str) -> float:
    """Return a positive, finite number."""
    if not finite(text) > 0:
        raise argparse.ArgumentTypeError(f"{text} must be a positive number")
    return float(text)


def cost(text: str) -> float:
    """Return a positive number; inf is the hard margin."""
    return math.inf if text == "inf" else positive(text)


def gamma(text: str) -> float | str:
    """Return a number >= 0, 'auto' or 'scale'."""
    if text in ("auto", "scale"):
        return text
    if finite(text) < 0:
        raise argparse.ArgumentTypeError(f"{text} must be auto, scale or a number >= 0")
    return float(text)


def spelled_out(arguments: list[str]) -> list[str]:
    """Return the arguments in a form that argparse understands.

    ``-wLABEL W`` becomes ``--weight=LABEL=W``, a bare ``-b`` gets a 1, and a negative number such
    as ``-1e-3`` is joined to its option.
    """
    result: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        weight = WEIGHT.fullmatch(word)
        if weight and rest:
            result.append(f"--weight={weight[1]}={rest.pop(0)}")
        elif word in ("-b", "--probability"):
            given = bool(rest) and rest[0] in ("0", "1")
            result.append(f"--probability={rest.pop(0) if given else 1}")
        elif rest and word.startswith("--") and "=" not in word and NUMBER.match(rest[0]):
            result.append(f"{word}={rest.pop(0)}")
        elif rest and re.fullmatch(r"-[a-z]", word) and NUMBER.match(rest[0]):
            result.append(f"{word}{rest.pop(0)}")
        else:
            result.append(word)
    return result


def add_probability(parser: argparse.ArgumentParser, purpose: str) -> None:
    """Add svm-train's and svm-predict's ``-b``."""
    parser.add_argument(
        "-b", "--probability", type=int, choices=(0, 1), default=0, help=f"1 {purpose} (default: 0)"
    )


def add_folds(parser: argparse.ArgumentParser, default: int | None, purpose: str) -> None:
    """Add svm-train's ``-v``, and the seed of the folds."""
    add, at_least_two = parser.add_argument, partial(whole, least=2)
    add("-v", "--folds", type=at_least_two, metavar="N", default=default, help=purpose)
    add("--seed", type=whole, default=0, help="of the folds, drawn at random (default: 0)")


def shows_progress(options: argparse.Namespace) -> bool:
    """Tell whether stderr is a terminal and --quiet was not given."""
    return sys.stderr.isatty() and not options.quiet


def print_json(content: dict[str, Any]) -> None:
    """Print one object; NaN and infinity become null."""
    print(json.dumps(_plain(content), allow_nan=False))


def _plain(value: Any) -> Any:
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value


def _named_or_numbered(text: str, names: tuple[str, ...]) -> str:
    name = "polynomial" if text == "poly" else text
    if name in names:
        return name
    if text.isdecimal() and int(text) < len(names):
        return names[int(text)]
    raise argparse.ArgumentTypeError(f"{text} is none of {', '.join(names)}, 0-{len(names) - 1}")


def _weight(text: str) -> tuple[int, float]:
    label, equals, value = text.rpartition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text} must be LABEL=W")
    return int(label), positive(value)
