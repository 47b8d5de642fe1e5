"""Padding of arrays to few shapes, so that few programs are compiled.

Padding must not change a result: a variable gets a box of zero width, a feature is zero in all
points, a further point or index is a copy of the first one and gets no weight.
"""

from typing import Any

import jax
import numpy as np


def bucket(n: int) -> int:
    """Return the size to which n is padded.

    Sizes are powers of two from 16 on, with steps of a quarter of the power below above 256, and
    of a sixteenth above 2048.

    Examples
    --------
    >>> [bucket(n) for n in (3, 100, 600, 5000)]
    [16, 128, 640, 5120]
    """
    if n <= 16:
        return 16
    power = 1 << (n - 1).bit_length() - 1  # power < n <= 2·power
    parts = 1 if n <= 256 else 4 if n <= 2048 else 16
    return next(
        power + power * q // parts for q in range(1, parts + 1) if n <= power + power * q // parts
    )


def widened(kernel: Any, X: np.ndarray) -> np.ndarray:
    """Return `X` with columns of zeros up to one of few widths, if the kernel ignores them."""
    features = X.shape[1]
    if features == 0 or not kernel.ignores_zeros():
        return X
    steps = (2, 4, 8, *range(16, 32, 8), *range(32, 256, 32))
    wide = next((w for w in steps if features <= w), -(-features // 16) * 16)
    if wide == features:
        return X
    wider = np.zeros((len(X), wide), X.dtype)
    wider[:, :features] = X
    return wider


def repeat_first(values: np.ndarray, size: int) -> np.ndarray:
    """Return points or indices padded to `size` by copies of the first: valid, and never used."""
    missing = size - len(values)
    return np.concatenate([values, values[[0] * missing]]) if missing else values


def cast(leaf: Any, dtype: np.dtype) -> Any:
    """Return the leaf as an array; floating-point numbers in `dtype`."""
    array = leaf if isinstance(leaf, jax.Array) else np.asarray(leaf)
    floating = np.issubdtype(array.dtype, np.floating)
    return array.astype(dtype) if floating else array
