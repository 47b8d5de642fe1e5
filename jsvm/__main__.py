"""The command line: ``python -m jsvm demo``."""

import argparse
import sys
from pathlib import Path


def main(arguments: list[str] | None = None) -> int:
    """Run a command and return its exit code."""
    parser = argparse.ArgumentParser(prog="jsvm", description="Support vector machines on JAX")
    commands = parser.add_subparsers(dest="command", required=True)
    demo = commands.add_parser("demo", help="train on the chess board beside LIBSVM, draw a figure")
    demo.add_argument("--figure", type=Path, default=Path("chess_board.png"), help="output file")
    demo.add_argument("--sizes", type=int, nargs="+", metavar="N", help="training sizes")
    options = parser.parse_args(arguments)

    from jsvm import demo as demonstration

    if options.sizes is not None and min(options.sizes) < 20:
        parser.error("--sizes must be at least 20")
    sizes = tuple(options.sizes) if options.sizes else demonstration.SIZES
    demonstration.run(options.figure, sizes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
