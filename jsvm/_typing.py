"""Array types shared by every signature."""

from typing import Any

import jax
import numpy as np

Array = jax.Array | np.ndarray

# A number, a NumPy scalar or a zero-dimensional array, possibly traced.
Scalar = Any

# A pytree field: JAX rebuilds dataclasses with tracers, None or bare objects in their fields.
Leaf = Any
