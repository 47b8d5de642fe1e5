"""Memory of arrays that are no longer needed, for the next ones of the same shape.

On a CPU the memory of an array comes from the operating system, and goes back there. To touch it
for the first time takes longer than to compute a kernel value for it: 0.3 to 0.7 seconds a gigabyte
were measured. So what a fit is done with is kept, up to `LIMIT` bytes in all, and handed to the
next block of rows of the same shape, in this fit or in another one. Other devices have allocators
that do this.
"""

import threading
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jsvm.precision import default_device

LIMIT = 2**28  # bytes
ALIGNMENT = 64  # bytes: what XLA reads without a copy


class MemoryPool:
    """Arrays that may be overwritten.

    Parameters
    ----------
    limit : int
        Bytes; what was given first goes first.

    Examples
    --------
    >>> memory = MemoryPool(limit=1000)
    >>> memory.give(jnp.ones(3, jnp.float32))
    >>> memory.take((3,), np.dtype("float32")).shape, memory.bytes
    ((3,), 0)
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._arrays: list[jax.Array] = []  # the oldest first
        self._lock = threading.Lock()

    @property
    def bytes(self) -> int:
        """How much is kept."""
        return sum(array.nbytes for array in self._arrays)

    def take(self, shape: tuple[int, ...], dtype: np.dtype) -> jax.Array:
        """Return an array of any content, to be donated to whoever writes to it."""
        device = default_device()
        with self._lock:
            for k, array in enumerate(self._arrays):
                if array.shape == shape and array.dtype == dtype and array.devices() == {device}:
                    return self._arrays.pop(k)
        return jnp.zeros(shape, dtype)

    def give(self, array: Any) -> None:
        """Keep the memory of an array that nobody will look at any more."""
        # What an interruption found on its way into a program is gone.
        if array.is_deleted() or any(device.platform != "cpu" for device in array.devices()):
            return
        with self._lock:
            self._arrays.append(array)
            while self.bytes > self.limit:
                self._arrays.pop(0)


SPARE = MemoryPool(LIMIT)


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
