"""Fields of a frozen dataclass of tuning constants: value, unit, range and origin in one place."""

import dataclasses
from collections.abc import Iterable
from typing import Any


def tuned(
    default: Any, unit: str, origin: str, least: float = 0.0, most: float = float("inf")
) -> Any:
    """Return a dataclass field with its unit, its origin and its range.

    The origin says what the value trades off, and which benchmark to run before changing it. The
    range is that of the number, or of every number of a tuple.
    """
    metadata = {"unit": unit, "origin": origin, "least": least, "most": most}
    return dataclasses.field(default=default, metadata=metadata)


def check_ranges(tuning: Any) -> None:
    """Raise ValueError if a field of a tuning is outside of its range."""
    for field in dataclasses.fields(tuning):
        value, (least, most) = getattr(tuning, field.name), _range(field)
        numbers = value if isinstance(value, Iterable) else (value,)
        if not all(least <= number <= most for number in numbers):
            raise ValueError(
                f"{field.name}={value!r} must be within [{least}, {most}] {field.metadata['unit']}"
            )


def _range(field: Any) -> tuple[float, float]:
    return field.metadata["least"], field.metadata["most"]
