"""K as the Potential SVM takes it: columns normalised, in memory where they fit.

    √w_i (K_ij − m_j) / s_j        (Hochreiter & Obermayer 2004, eq. 20)

With weights w an example counts as w copies. The same matrix serves all machines of a fit, only
their targets differ. In memory it has one of few sizes, so that few programs are compiled: it is
padded with examples of weight zero.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from jsvm.numerics.arrays import bucket, check_finite, repeat_first, widened
from jsvm.precision import scope
from jsvm.problems import (
    DenseMatrix,
    KernelMatrix,
    MatrixData,
    Normalised,
    SparseMatrix,
    normalised,
)

DOUBLE = np.dtype("float64")


class Columns(NamedTuple):
    """The normalised columns of K.

    `mean` and `scale` are m and s, s = 0 for a column that is constant; `weight` are the weights of
    the examples.
    """

    data: MatrixData
    mean: np.ndarray
    scale: np.ndarray
    weight: np.ndarray

    def target(self, y: np.ndarray) -> tuple[np.ndarray, float]:
        """Return √w (y − b), and b, the mean of y (eq. 23)."""
        mean = float(np.average(y, weights=self.weight))
        values = np.sqrt(self.weight) * (y - mean)
        return np.pad(values, (0, self.data.shape[0] - len(values))), mean

    def correlations(self, alpha: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Return G = Kᵀ(y − Kα)."""
        if isinstance(self.data, DenseMatrix):
            rows = self.data.rows
            return rows @ (target - alpha @ rows)
        used = np.flatnonzero(alpha)
        with scope(DOUBLE):
            output = alpha[used] @ np.asarray(self.data.objects(used))
            return np.asarray(self.data.correlations(target - output))


def normalised_columns(K: MatrixData, scaling: str, weight: np.ndarray, budget: float) -> Columns:
    """Return the normalised columns of K; in memory if they take at most `budget` bytes."""
    length, count = K.shape
    long, wide = bucket(length), bucket(count)
    with scope(DOUBLE):
        if 8 * long * wide > budget or isinstance(K, SparseMatrix):
            normal = normalised(K, scaling, weight)
            mean, scale = np.asarray(normal.mean), np.asarray(normal.scale)
            return Columns(Normalised(K, mean, scale, np.sqrt(weight)), mean, scale, weight)
        padded = np.pad(weight, (0, long - length))
        found = _normalise(_values(K, (wide, long)), padded, scaling)
        rows, mean, scale = (np.asarray(values)[:count] for values in found)
    check_finite(mean)  # one value that is not finite makes the mean so
    return Columns(DenseMatrix(rows), mean, scale, weight)


@partial(jax.jit, static_argnames="scaling")
def _normalise(values: Any, weight: Any, scaling: str) -> tuple[Any, Any, Any]:
    normal = normalised(DenseMatrix(values), scaling, weight)
    return normal.all_objects(), normal.mean, normal.scale


def _values(K: Any, shape: tuple[int, int]) -> np.ndarray:
    """Return Kᵀ with copies of its first row and column up to a shape, as a new array."""
    (wide, long), (length, count) = shape, K.shape
    if isinstance(K, KernelMatrix) and isinstance(K.X, np.ndarray) and isinstance(K.Z, np.ndarray):
        X = repeat_first(widened(K.kernel, K.X), long)
        Z = repeat_first(widened(K.kernel, K.Z), wide)
        return np.array(KernelMatrix(K.kernel, X, Z).all_objects())
    values = np.empty(shape)
    values[:count, :length] = K.all_objects()
    values[:count, length:] = values[:count, :1]
    values[count:] = values[:1]
    return values
