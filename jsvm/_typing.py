"""Types shared by every signature, and what makes a class a pytree."""

from dataclasses import dataclass, field
from typing import Any, TypeVar, dataclass_transform

import jax
import numpy as np
from jax.tree_util import register_dataclass
from jaxtyping import Bool, Float

Array = jax.Array | np.ndarray

# A number, a NumPy scalar or a zero-dimensional array, possibly traced.
Scalar = Any

# A pytree field: JAX rebuilds dataclasses with tracers, None or bare objects in their fields.
Leaf = Any

Number = Float[Array, ""]
Vector = Float[Array, " n"]  # one entry a variable
Mask = Bool[Array, " n"]
Matrix = Float[Array, "n n"]

Class = TypeVar("Class", bound=type)


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
def pytree(cls: Class) -> Class:
    """Make a class a frozen dataclass, and its fields the leaves of a pytree."""
    return register_dataclass(dataclass(frozen=True, eq=False)(cls))
