"""Checks of matrices before a solver works on them."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

LARGEST_MATRIX = 4 * 2**30  # bytes of a matrix that is held in memory as a whole


def check_finite(matrix: Any) -> None:
    """Raise ValueError if a kernel matrix, or a sum of its rows, holds NaN or infinity."""
    xp = jnp if isinstance(matrix, jax.Array) else np
    if not bool(xp.isfinite(matrix).all()):
        raise ValueError("the kernel matrix holds NaN or infinity; check X and the kernel")


def check_size(size: int, dtype: np.dtype) -> None:
    """Raise ValueError if a square matrix of this size does not fit."""
    need = size * size * dtype.itemsize
    if need > LARGEST_MATRIX:
        raise ValueError(
            f"the matrix of {size} variables needs {need / 2**30:.1f} GiB, the limit is "
            f"{LARGEST_MATRIX / 2**30:.0f}; use block=True, fewer examples or dtype='float32'"
        )
