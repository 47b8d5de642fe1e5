"""Fields of a frozen dataclass of tuning constants: value, unit, range and origin in one place."""

import dataclasses
from typing import Any


def tuned(
    default: Any, unit: str, origin: str, least: float | int = 0, most: float | int = float("inf")
) -> Any:
    """Return a dataclass field with its unit, its origin and its range.

    The origin says what the value trades off, and which benchmark to run before changing it. The
    range is that of the number, or of every number of a tuple.
    """
    metadata = {"unit": unit, "origin": origin, "range": (least, most)}
    return dataclasses.field(default=default, metadata=metadata)


def check_ranges(tuning: Any) -> None:
    """Raise ValueError if a field of a tuning is outside of its range."""
    for field in dataclasses.fields(tuning):
        value, (least, most) = getattr(tuning, field.name), field.metadata["range"]
        numbers = value if isinstance(value, tuple) else (value,)
        if not numbers or not all(least <= number <= most for number in numbers):
            raise ValueError(f"{field.name}={value!r} must be from {least} to {most}")
