"""Memory of the host that a device which is the host itself reads without a copy."""

from typing import Any

import numpy as np

ALIGNMENT = 64  # bytes


def aligned_empty(shape: tuple[int, int], dtype: Any) -> np.ndarray:
    """Return memory at an address from which XLA reads without a copy.

    Examples
    --------
    >>> aligned_empty((2, 3), float).shape
    (2, 3)
    """
    count = shape[0] * shape[1] * np.dtype(dtype).itemsize
    memory = np.empty(count + ALIGNMENT, np.uint8)
    begin = -memory.ctypes.data % ALIGNMENT
    return memory[begin : begin + count].view(dtype).reshape(shape)
