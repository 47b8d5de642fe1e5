"""``jsvm warm-up``: compile ahead."""

from jsvm.ahead import warm_up
from jsvm.command import OK, options

EXAMPLES = """  jsvm warm-up
  jsvm warm-up --n 200,1000 --d 20 --kernels rbf --estimators SVC,SVR
"""


def run(arguments: list[str]) -> int:
    """Compile, and tell what was kept."""
    text = "Compile ahead what fits of some sizes need; later processes load it."
    parser = options.command_parser("warm-up", text, EXAMPLES)
    add = parser.add_argument
    for name, kind, default, text in (
        ("n", _numbers, "100,200,500,1000,3000", "numbers of examples"),
        ("d", _numbers, "2,10", "numbers of features"),
        ("kernels", _names, "rbf,linear", "names of kernels"),
        ("estimators", _names, "SVC", "names of estimators"),
    ):
        add(f"--{name}", type=kind, default=default, help=f"{text} (default: {default})")
    given = parser.parse_args(arguments)
    done = warm_up(
        given.n, given.d, given.kernels, estimators=given.estimators, progress=not given.quiet
    )
    if given.json:
        options.print_json({**done._asdict(), "folder": str(done.folder) if done.folder else None})
    elif not given.quiet:
        print(done)
    return OK


def _names(text: str) -> list[str]:
    return text.split(",")


def _numbers(text: str) -> list[int]:
    return [options.whole(word, 1) for word in text.split(",")]
