"""Decision values in blocks of few shapes, so that few programs are compiled."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jsvm.kernels import Kernel
from jsvm.kernels.sparse import between_sparse, is_sparse
from jsvm.kernels.whole_numbers import exact_matrix, exact_widths
from jsvm.machine import Machine
from jsvm.numerics.equal_rows import equal_rows
from jsvm.numerics.padding import bucket, repeat_first, widened
from jsvm.precision import scope

BLOCK_BYTES = 2**24  # of one block of the kernel matrix
MANY_ENTRIES = 1_000_000  # of the kernel matrix, for which it pays to look for equal points
SMALLEST_SHARE = 0.01  # of the points, that have to be copies


def decision_values(
    kernel: Kernel,
    points: Any,
    coefficients: np.ndarray,
    bias: np.ndarray,
    X: Any,
    dtype: np.dtype,
) -> np.ndarray:
    """Return Σ_i β_i k(x, x_i) + b for all rows of `X` and all columns of `coefficients`."""
    outputs = np.empty((X.shape[0], coefficients.shape[1]), dtype)
    if points.shape[0] == 0:
        outputs[:] = bias[None, :]
    elif is_sparse(points) or is_sparse(X):
        _fill_sparse(outputs, kernel, points, coefficients, bias, X)
    else:
        _fill_dense(outputs, kernel, points, coefficients, bias, X)
    return outputs


def _fill_dense(
    outputs: np.ndarray,
    kernel: Kernel,
    points: np.ndarray,
    coefficients: np.ndarray,
    bias: np.ndarray,
    X: np.ndarray,
) -> None:
    dtype = outputs.dtype
    if len(X) * len(points) > MANY_ENTRIES:
        points, coefficients = _merged(points, coefficients)
    points = widened(kernel, points)
    padded = bucket(len(points))
    rows = max(16, min(bucket(len(X)), 2 ** int(np.log2(BLOCK_BYTES / (8 * padded)))))
    # Widths of the parts by which products are tried to be exact, as long as some are.
    exact = exact_widths(kernel, points.shape[1], dtype)
    with scope(dtype):
        machine = Machine(
            kernel,
            jnp.asarray(repeat_first(points, padded), dtype),
            np.pad(coefficients, ((0, padded - len(points)), (0, 0))).astype(dtype),
            bias.astype(dtype),
        )
        for begin in range(0, len(X), rows):
            block = widened(kernel, X[begin : begin + rows].astype(dtype, copy=False))
            block, count = repeat_first(block, rows), len(block)
            if kernel.runs_on_host():
                values = machine(block)
            else:
                values = None
                while exact and values is None:
                    values, good = _evaluate_exactly(machine, block, exact[0])
                    if not good:
                        exact, values = exact[1:], None
                values = _evaluate(machine, block) if values is None else values
            outputs[begin : begin + rows] = np.asarray(values)[:count]


def _merged(points: np.ndarray, coefficients: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the points without copies; the first of them has the sum of the coefficients."""
    found = equal_rows(points, fewest=SMALLEST_SHARE * len(points))
    if found is None:
        return points, coefficients
    first, kind = found
    sums = [np.bincount(kind, column) for column in coefficients.T]
    return points[first], np.stack(sums, axis=1)


def _fill_sparse(
    outputs: np.ndarray,
    kernel: Kernel,
    points: Any,
    coefficients: np.ndarray,
    bias: np.ndarray,
    X: Any,
) -> None:
    dtype = outputs.dtype
    rows = max(16, BLOCK_BYTES // (8 * points.shape[0]))
    with scope(dtype):
        for begin in range(0, X.shape[0], rows):
            K = between_sparse(kernel, X[begin : begin + rows], points, dtype)
            outputs[begin : begin + rows] = K @ coefficients.astype(dtype) + bias[None, :]


@jax.jit
def _evaluate(machine: Machine, X: Any) -> Any:
    return machine(X)


@partial(jax.jit, static_argnames="width")
def _evaluate_exactly(machine: Machine, X: Any, width: int) -> tuple[Any, Any]:
    """Do the same with products in float32; tell whether they were exact."""
    K, exact = exact_matrix(machine.kernel, X, machine.points, width)
    return machine.value(K), exact
