"""Memory of arrays that are no longer needed, reused for the next ones of the same shape.

On a CPU the memory of an array comes from the operating system and goes back there. The page faults
of touching it for the first time take longer than computing a kernel value for it: 0.3 to 0.7
seconds a gigabyte were measured. So arrays that a fit is done with are kept, up to `LIMIT` bytes in
all, and overwritten by the next block of the same shape, in this fit or in another one:

    memory = borrow(shape, dtype)            # of any content
    array = compiled(memory, ...)            # a program to which `memory` is donated
    give_back(array)                         # do not use it afterwards

Other devices have allocators that do this.
"""

import threading
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jsvm.precision import default_device
from jsvm.programs import program

LIMIT = 2**28  # bytes kept for the next fits
ALIGNMENT = 64  # bytes: XLA reads an array at such an address without a copy


class MemoryPool:
    """Arrays that may be overwritten, up to a limit of bytes; safe to use from several threads.

    Examples
    --------
    >>> pool = MemoryPool(limit=1000)
    >>> pool.give_back(jnp.ones(3, jnp.float32))
    >>> pool.borrow((3,), np.dtype("float32")).shape, pool.bytes
    ((3,), 0)
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._arrays: list[jax.Array] = []  # the oldest first
        self._lock = threading.Lock()

    @property
    def bytes(self) -> int:
        """Bytes kept now."""
        return sum(array.nbytes for array in self._arrays)

    def borrow(self, shape: tuple[int, ...], dtype: np.dtype) -> jax.Array:
        """Return an array of any content, to be donated to the program that writes to it."""
        device = default_device()
        with self._lock:
            for k, array in enumerate(self._arrays):
                if array.shape == shape and array.dtype == dtype and array.devices() == {device}:
                    return self._arrays.pop(k)
        return _zeros(shape, dtype)

    def give_back(self, array: jax.Array) -> None:
        """Keep the memory of an array; do not use it afterwards."""
        # Ctrl-C after donation: the buffer is deleted.
        if array.is_deleted() or any(device.platform != "cpu" for device in array.devices()):
            return
        with self._lock:
            self._arrays.append(array)
            while self.bytes > self.limit:
                self._arrays.pop(0)


@program(static_argnames=("shape", "dtype"))
def _zeros(shape: tuple[int, ...], dtype: np.dtype) -> jax.Array:
    return jnp.zeros(shape, dtype)


POOL = MemoryPool(LIMIT)
borrow, give_back = POOL.borrow, POOL.give_back


def aligned_empty(shape: tuple[int, int], dtype: Any) -> np.ndarray:
    """Return an array of any content at an address from which XLA reads without a copy.

    Examples
    --------
    >>> aligned_empty((2, 3), float).shape
    (2, 3)
    """
    count = shape[0] * shape[1] * np.dtype(dtype).itemsize
    memory = np.empty(count + ALIGNMENT, np.uint8)
    begin = -memory.ctypes.data % ALIGNMENT
    return memory[begin : begin + count].view(dtype).reshape(shape)
