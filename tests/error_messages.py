"""The messages of a package's ValueErrors, read from its source.

``python tests/error_messages.py`` adds those of jsvm/ that are new to error_messages.txt, where
there is one a line, with {} for what is filled in. A message leaves that file by hand only.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

FILE = Path(__file__).parent / "error_messages.txt"

# Citations of the documents by number and by author and year are the same citation.
CITATION = re.compile(r"\((?:00\d|[A-Z][\w& .]*\d{4}), ")


def template(node: ast.expr) -> str | None:
    """The text of a string expression, with {} for what is filled in; None if it is none."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(template(part) or "{}" for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = template(node.left), template(node.right)
        return None if left is None and right is None else (left or "{}") + (right or "{}")
    return None


def normalised(text: str) -> str:
    return CITATION.sub("(…, ", text)


def nodes(package: Path) -> Iterator[ast.AST]:
    for path in sorted(package.rglob("*.py")):
        yield from ast.walk(ast.parse(path.read_text(encoding="utf-8")))


def raised(package: Path) -> set[str]:
    """The templates of the messages in ``raise ValueError(message)``."""
    return {
        normalised(text)
        for node in nodes(package)
        if isinstance(node, ast.Raise)
        and isinstance(node.exc, ast.Call)
        and isinstance(node.exc.func, ast.Name)
        and node.exc.func.id == "ValueError"
        and node.exc.args
        and (text := template(node.exc.args[0])) is not None
    }


def strings(package: Path) -> set[str]:
    """The templates of all strings: a message may be made apart from its ``raise``.

    "{}={} must be {}" also stands for what it says with every other string in its last place.
    """
    found = (template(node) for node in nodes(package) if isinstance(node, ast.expr))
    texts = {normalised(text) for text in found if text is not None}
    rules = [text.removesuffix("{}") for text in texts if text.endswith("must be {}")]
    return texts | {rule + text for rule in rules for text in texts}


if __name__ == "__main__":
    known = set(FILE.read_text(encoding="utf-8").splitlines())
    messages = sorted(known | raised(FILE.parent.parent / "jsvm"))
    FILE.write_text("\n".join(messages) + "\n", encoding="utf-8")
