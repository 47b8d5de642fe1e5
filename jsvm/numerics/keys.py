"""A seed or a key, taken alike by every distribution."""

import numbers
from typing import Any

import jax


def as_key(key: Any) -> Any:
    """Make a random key of a seed, and leave a key as it is."""
    return jax.random.key(int(key)) if isinstance(key, numbers.Integral) else key
