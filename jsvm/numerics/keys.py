"""Seeds and keys: every function that draws numbers takes either."""

import numbers
from typing import Any

import jax


def as_key(key: Any) -> Any:
    """Return the random key of a seed; a key is returned as it is."""
    return jax.random.key(int(key)) if isinstance(key, numbers.Integral) else key
