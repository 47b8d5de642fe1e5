"""``jsvm demo``: the chess board beside LIBSVM."""

import contextlib
import io
from pathlib import Path

from jsvm.command import OK, options

EXAMPLES = """  jsvm demo
  jsvm demo --sizes 500 1000 --figure board.png
"""


def run(arguments: list[str]) -> int:
    """Train on every size, print a table and draw a figure."""
    parser = options.command_parser(
        "demo", "Train on the 4 x 4 chess board beside LIBSVM and draw a figure.", EXAMPLES
    )
    parser.add_argument("--figure", type=Path, default=Path("chess_board.png"), help="output file")
    parser.add_argument("--sizes", type=int, nargs="+", metavar="N", help="training sizes")
    given = parser.parse_args(arguments)
    if given.sizes is not None and min(given.sizes) < 20:
        parser.error("--sizes must be at least 20")

    from jsvm import demo

    sizes = tuple(given.sizes) if given.sizes else demo.SIZES
    silent = contextlib.redirect_stdout(io.StringIO()) if given.json or given.quiet else None
    with silent or contextlib.nullcontext():
        table = demo.run(given.figure, sizes)
    if given.json:
        options.print_json({"figure": given.figure, "rows": table})
    return OK
