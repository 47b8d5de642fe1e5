"""Types shared by every signature, and what makes a class a pytree."""

from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, dataclass_transform

import jax
import numpy as np
from jax.tree_util import GetAttrKey, register_pytree_with_keys
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
    """Make a class a frozen dataclass and a pytree: fields are leaves, but for static ones.

    Not by `jax.tree_util.register_dataclass`: the structures of two classes that it registers are
    equal if they have as many fields (JAX 0.10.2), so that ``jit``, now and then, takes the program
    of one class for that of another.
    """
    declared = dataclass(frozen=True, eq=False)(cls)
    static = [f.name for f in fields(declared) if f.metadata.get("static", False)]
    names = [f.name for f in fields(declared) if f.name not in static]

    def flatten(tree: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        own = tree.__dict__
        return tuple([own[n] for n in names]), tuple([own[n] for n in static])

    def flatten_with_keys(tree: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        leaves, rest = flatten(tree)
        return tuple(zip(map(GetAttrKey, names), leaves, strict=True)), rest

    def unflatten(rest: tuple[Any, ...], leaves: Any) -> Any:
        tree = object.__new__(declared)
        tree.__dict__.update(zip(names + static, (*leaves, *rest), strict=True))
        return tree

    register_pytree_with_keys(declared, flatten_with_keys, unflatten, flatten)
    return declared
