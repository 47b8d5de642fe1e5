"""Arrays of few shapes, so that few programs are compiled: buckets, and what fills them."""

from typing import Any

import jax
import numpy as np


def bucket(n: int) -> int:
    """Return the size to which n is padded: powers of two, with steps between large ones."""
    if n <= 16:
        return 16
    power = 1 << (n - 1).bit_length() - 1  # power < n <= 2·power
    parts = 1 if n <= 256 else 4 if n <= 2048 else 16
    return next(
        power + power * q // parts for q in range(1, parts + 1) if n <= power + power * q // parts
    )


def widened(kernel: Any, X: np.ndarray) -> np.ndarray:
    """Return `X` with columns of zeros up to one of few widths, if the kernel does not see them."""
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


def repeat_first(points: np.ndarray, size: int) -> np.ndarray:
    """Pad with copies of the first row: valid for every kernel, and never looked at."""
    missing = size - len(points)
    if missing == 0:
        return points
    return np.concatenate([points, np.broadcast_to(points[:1], (missing, points.shape[1]))])


def cast(leaf: Any, dtype: np.dtype) -> Any:
    """Return the leaf as an array; floating-point numbers in `dtype`."""
    array = leaf if isinstance(leaf, jax.Array) else np.asarray(leaf)
    floating = np.issubdtype(array.dtype, np.floating)
    return array.astype(dtype) if floating else array
