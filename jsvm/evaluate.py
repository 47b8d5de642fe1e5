"""Decision values in blocks of few shapes, so that few programs are compiled."""

from functools import cached_property
from typing import Any

import jax.numpy as jnp
import numpy as np

from jsvm.kernels import Kernel
from jsvm.kernels.sparse import between_sparse
from jsvm.kernels.whole_numbers import exact_matrix, exact_widths
from jsvm.machine import Machine
from jsvm.numerics.arrays import bucket, equal_rows, is_sparse, repeat_first, widened
from jsvm.precision import scope
from jsvm.programs import program

BLOCK_BYTES = 2**24  # of one block of the kernel matrix
MANY_ENTRIES = 1_000_000  # of the kernel matrix: from here on it pays to look for equal points
SMALLEST_SHARE = 0.01  # of the points that have to be copies, or they are not merged


def decision_values(
    kernel: Kernel,
    points: Any,
    coefficients: np.ndarray,
    bias: np.ndarray,
    X: Any,
    dtype: np.dtype,
) -> np.ndarray:
    """Return Σ_i β_i k(x, x_i) + b for all rows of `X` and all columns of `coefficients`."""
    return Predictor(Machine(kernel, points, coefficients, bias), dtype)(X)


class Predictor:
    """A machine that predicts on the host's data, in one precision and on one device.

    Its points are padded and uploaded at the first call, not at every one.

    Parameters
    ----------
    machine : Machine
        Of NumPy arrays, the points dense or sparse; one column of coefficients an output.
    dtype : dtype
    """

    def __init__(self, machine: Machine, dtype: np.dtype) -> None:
        self.machine, self._dtype = machine, dtype

    def __call__(self, X: Any) -> np.ndarray:
        """Return the decision values of the rows of `X`, dense or sparse, one column an output."""
        machine = self.machine
        values = np.empty((X.shape[0], machine.coefficients.shape[1]), self._dtype)
        if machine.points.shape[0] == 0:
            values[:] = machine.bias[None, :]
        elif is_sparse(machine.points) or is_sparse(X):
            _fill_sparse(values, machine, X)
        else:
            many = len(X) * len(machine.points) > MANY_ENTRIES
            _fill_dense(values, self._without_copies if many else self._uploaded, X)
        return values

    @cached_property
    def _uploaded(self) -> Machine:
        return _upload(self.machine, self._dtype)

    @cached_property
    def _without_copies(self) -> Machine:
        machine = self.machine
        points, coefficients = _merged(machine.points, machine.coefficients)
        if points is machine.points:
            return self._uploaded
        return _upload(Machine(machine.kernel, points, coefficients, machine.bias), self._dtype)


def _upload(machine: Machine, dtype: np.dtype) -> Machine:
    """Return the machine on the device, padded to one of few sizes."""
    points = widened(machine.kernel, machine.points)
    size = bucket(len(points))
    more = (0, size - len(points))
    with scope(dtype):
        return Machine(
            machine.kernel,
            jnp.asarray(repeat_first(points, size), dtype),
            jnp.asarray(np.pad(machine.coefficients, (more, (0, 0))), dtype),
            jnp.asarray(machine.bias, dtype),
        )


def _merged(points: np.ndarray, coefficients: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the points without copies; the first of them has the sum of the coefficients."""
    found = equal_rows(points, fewest=SMALLEST_SHARE * len(points))
    if found is None:
        return points, coefficients
    first, kind = found
    sums = [np.bincount(kind, column) for column in coefficients.T]
    return points[first], np.stack(sums, axis=1)


def _fill_dense(values: np.ndarray, machine: Machine, X: np.ndarray) -> None:
    kernel, (size, features), dtype = machine.kernel, machine.points.shape, values.dtype
    rows = max(16, min(bucket(len(X)), 2 ** int(np.log2(BLOCK_BYTES / (8 * size)))))
    # Widths of the parts in which exact products are tried; the rest of X skips what failed once.
    exact = exact_widths(kernel, features, dtype)
    evaluate = Machine.__call__ if kernel.runs_on_host() else _evaluate
    with scope(dtype):
        for begin in range(0, len(X), rows):
            block = widened(kernel, X[begin : begin + rows].astype(dtype, copy=False))
            block, count = repeat_first(block, rows), len(block)
            found, good = None, False
            while exact and not good:
                found, good = _evaluate_exactly(machine, block, exact[0])
                if not good:
                    exact = exact[1:]
            found = found if good else evaluate(machine, block)
            values[begin : begin + rows] = np.asarray(found)[:count]


def _fill_sparse(values: np.ndarray, machine: Machine, X: Any) -> None:
    dtype = values.dtype
    rows = max(16, BLOCK_BYTES // (8 * machine.points.shape[0]))
    with scope(dtype):
        for begin in range(0, X.shape[0], rows):
            K = between_sparse(machine.kernel, X[begin : begin + rows], machine.points, dtype)
            values[begin : begin + rows] = K @ machine.coefficients.astype(dtype) + machine.bias


@program
def _evaluate(machine: Machine, X: Any) -> Any:
    return machine(X)


@program(static_argnames="width")
def _evaluate_exactly(machine: Machine, X: Any, width: int) -> tuple[Any, Any]:
    """Do the same with products in float32; tell whether they were exact."""
    K, exact = exact_matrix(machine.kernel, X, machine.points, width)
    return machine.value(K), exact
