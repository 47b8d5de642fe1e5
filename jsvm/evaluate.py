"""Decision values in blocks of few shapes, so that few programs are compiled."""

from typing import Any

import jax
import numpy as np

from jsvm.kernels import Kernel
from jsvm.kernels.distances import LARGEST_WHOLE, gains_from_splitting, whole_points
from jsvm.kernels.sparse import between_sparse, is_sparse
from jsvm.machine import Machine
from jsvm.precision import scope
from jsvm.solvers.prepare import bucket, repeat_first, widened

BLOCK_BYTES = 2**24  # of one block of the kernel matrix


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
    points = widened(kernel, points)
    padded = bucket(len(points))
    rows = max(16, min(bucket(len(X)), 2 ** int(np.log2(BLOCK_BYTES / (8 * padded)))))
    exact = gains_from_splitting(kernel, points.shape[1], dtype) and _whole(points)
    with scope(dtype):
        machine = Machine(
            kernel,
            repeat_first(points, padded).astype(dtype),
            np.pad(coefficients, ((0, padded - len(points)), (0, 0))).astype(dtype),
            bias.astype(dtype),
        )
        for begin in range(0, len(X), rows):
            block = widened(kernel, X[begin : begin + rows].astype(dtype))
            if kernel.runs_on_host():
                evaluate = Machine.__call__
            else:
                evaluate = _evaluate_whole if exact and _whole(block) else _evaluate
            values = evaluate(machine, repeat_first(block, rows))
            outputs[begin : begin + rows] = np.asarray(values)[: len(block)]


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


@jax.jit
def _evaluate_whole(machine: Machine, X: Any) -> Any:
    """Do the same with products in float32 that are exact."""
    return machine.value(machine.kernel.between(whole_points(X), whole_points(machine.points)))


def _whole(X: np.ndarray) -> bool:
    return bool((np.abs(X) <= LARGEST_WHOLE).all() and (np.rint(X) == X).all())
