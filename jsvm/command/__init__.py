"""The command line: ``jsvm train``, ``predict``, ``select``, ``info``, ``warm-up``, ``demo``.

A command is a module with a function ``run(arguments)`` that returns the exit code. Modules are
imported on use, and so is whatever they need.
"""

import argparse
import importlib
import os
import sys
import warnings
from typing import Any

COMMANDS = {
    "train": "fit a machine to a file, write a LIBSVM model file",
    "predict": "predict the examples of a file with a model file",
    "select": "choose C and gamma by cross-validation on a grid",
    "info": "tell what a model file holds",
    "warm-up": "compile ahead, so that first fits do not have to",
    "demo": "train on the chess board beside LIBSVM, draw a figure",
}
OK, FAILED, INTERRUPTED = 0, 1, 130

EXAMPLES = """examples:
  jsvm train -c 10 -g 0.5 train.txt           # writes train.txt.model
  jsvm predict test.txt train.txt.model       # prints the accuracy
  jsvm select --C 0.1:1000:10 --gamma 0.01,0.1,1 train.txt
  jsvm train --help                           # options of a command

exit codes: 0 done, 1 wrong data or model, 2 wrong usage, 130 interrupted
"""


def main(arguments: list[str] | None = None) -> int:
    """Run a command and return its exit code; wrong usage raises SystemExit(2)."""
    arguments = sys.argv[1:] if arguments is None else arguments
    command = _parser().parse_args(arguments[:1]).command
    try:
        module = importlib.import_module(f"jsvm.command.{command.replace('-', '_')}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", UserWarning)  # a fit that did not converge, say
            warnings.showwarning = _show_warning
            return module.run(arguments[1:])
    except KeyboardInterrupt:
        print(f"jsvm {command}: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output is gone; without this, Python complains once more at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except (ValueError, OSError, MemoryError) as error:
        print(f"jsvm {command}: error: {error or type(error).__name__}", file=sys.stderr)
        return FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="jsvm",
        description="Support vector machines on JAX, with the conventions of LIBSVM's programs.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    lines = "; ".join(f"{name}: {text}" for name, text in COMMANDS.items())
    parser.add_argument("command", choices=tuple(COMMANDS), help=lines)
    return parser


class _Version(argparse.Action):
    """Print the version; looked up on use, for that takes time."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from importlib.metadata import version

        print(version("jsvm"))
        parser.exit()


def _show_warning(message: Any, *_: Any, **__: Any) -> None:
    print(f"jsvm: warning: {message}", file=sys.stderr)
