"""Checks of matrices before a solver works on them."""

import numpy as np

from jsvm._typing import Array
from jsvm.numerics.arrays import namespace

LARGEST_MATRIX = 4 * 2**30  # bytes of a matrix that is in memory as a whole


def check_finite(matrix: Array) -> None:
    """Raise ValueError if a kernel matrix, or a sum of its rows, holds NaN or infinity."""
    if not bool(namespace(matrix).isfinite(matrix).all()):
        raise ValueError("the kernel matrix holds NaN or infinity; check X and the kernel")


def check_size(size: int, dtype: np.dtype) -> None:
    """Raise ValueError if a square matrix of this size is above `LARGEST_MATRIX`."""
    need = size * size * dtype.itemsize
    if need > LARGEST_MATRIX:
        raise ValueError(
            f"the matrix of {size} variables needs {need / 2**30:.1f} GiB, the limit is "
            f"{LARGEST_MATRIX / 2**30:.0f}; use block=True, fewer examples or dtype='float32'"
        )
