"""How an estimator is declared: a dataclass whose parameters are documented once.

    @estimator
    class SVC(Classifier):
        '''Support vector classifier.'''

        C: Any = 1.0

The parameters are the annotated attributes of a class and of its bases. An inherited parameter that
a class assigns without an annotation is fixed there: the constructor does not take it. The sections
"Parameters" and "Attributes" of a docstring are completed from those of the bases.
"""

import inspect
import re
from dataclasses import dataclass, field, is_dataclass
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(field,))
def estimator(cls: type[T]) -> type[T]:
    """Return the class with a constructor that stores what it is given, and a full docstring."""
    own = inspect.get_annotations(cls)
    inherited = getattr(cls, "__dataclass_fields__", {})
    for name in inherited.keys() & (vars(cls).keys() - own.keys()):
        cls.__annotations__[name] = Any
        setattr(cls, name, field(default=vars(cls)[name], init=False))
    declared = dataclass(eq=False, repr=False, kw_only=True, match_args=False)(cls)
    _own_parameters_first(declared)
    if declared.__doc__:
        declared.__doc__ = _completed(declared)
    return declared


def _own_parameters_first(cls: Any) -> None:
    """Let help show the keywords of a class before those of its bases."""
    order = [name for base in cls.__mro__ for name in inspect.get_annotations(base)]
    signature = inspect.signature(cls.__init__)

    def place(p: inspect.Parameter) -> tuple[int, int]:
        return p.kind, order.index(p.name) if p.kind is p.KEYWORD_ONLY else 0

    parameters = sorted(signature.parameters.values(), key=place)
    cls.__init__.__signature__ = signature.replace(parameters=parameters)


def _completed(cls: type) -> str:
    """Return the docstring of a class with the parameters and attributes of its bases."""
    taken = inspect.signature(cls).parameters
    first = [name for name, p in taken.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
    entries = {n: text for n, text in _entries(cls, "Parameters").items() if n[0] in taken}
    order = sorted(entries, key=lambda n: first.index(n[0]) if n[0] in first else len(first))
    texts = dict.fromkeys(("", "Parameters", "Attributes"), "") | _sections(cls)
    texts["Parameters"] = "".join(entries[names] for names in order)
    texts["Attributes"] = "".join(_entries(cls, "Attributes").values())
    return "\n".join(_with_title(title, text) for title, text in texts.items() if text)


def _entries(cls: type, title: str) -> dict[tuple[str, ...], str]:
    """Return the entries of a section by the names they are about, those of the class first."""
    found: dict[tuple[str, ...], str] = {}
    for base in cls.__mro__:
        text = _sections(base).get(title, "") if is_dataclass(base) else ""
        for entry in re.split(r"^(?=\S)", text, flags=re.MULTILINE):
            names = tuple(entry.partition("\n")[0].partition(" : ")[0].split(", "))
            if entry and not any(set(names) & set(known) for known in found):
                found[names] = entry.rstrip() + "\n"
    return found


def _sections(cls: type) -> dict[str, str]:
    """Return the sections of a docstring by their titles; the text before them has none."""
    parts = re.split(r"^(\w+)\n-+\n", inspect.cleandoc(cls.__doc__ or ""), flags=re.MULTILINE)
    return dict(zip(["", *parts[1::2]], parts[::2], strict=True))


def _with_title(title: str, text: str) -> str:
    return (f"{title}\n{'-' * len(title)}\n" if title else "") + text.rstrip() + "\n"
