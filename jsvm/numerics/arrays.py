"""NumPy or JAX: a problem made from NumPy data stays NumPy, and keeps its float64.

JAX has float64 only inside of a scope (:mod:`jsvm.precision`), which is opened by the solver.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jsvm._typing import Array
from jsvm.precision import scope


def namespace(*values: Any) -> Any:
    """Return jax.numpy if any leaf of the values is a JAX array, numpy otherwise."""
    leaves = jax.tree.leaves(values)
    return jnp if any(isinstance(leaf, jax.Array) for leaf in leaves) else np


def as_floating(values: Any) -> Array:
    """Return an array, NumPy unless it is JAX; numbers that are not floating become float."""
    values = values if isinstance(values, jax.Array) else np.asarray(values)
    return values if jnp.issubdtype(values.dtype, jnp.floating) else values.astype(float)


def in_full_precision(compute: Callable[[], Any], *data: Any) -> Any:
    """Return compute(), a JAX computation on `data`; for NumPy data NumPy, computed in float64."""
    if namespace(*data) is jnp:
        return compute()
    with scope(np.dtype(np.float64)):
        return jax.tree.map(np.asarray, compute())
