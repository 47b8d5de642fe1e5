"""A P-SVM as its solvers take it: K in memory where it fits, vectors padded to its shape."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jsvm.numerics.arrays import bucket, product
from jsvm.precision import default_platform
from jsvm.problems import DenseMatrix, QuadraticProgram
from jsvm.problems.matrix_data import MatrixData, SparseMatrix
from jsvm.problems.potential import certify_potential
from jsvm.programs import program
from jsvm.solvers.potential.psvm_tuning import PotentialTuning
from jsvm.solvers.status import Solution, Status


class PreparedPsvm(NamedTuple):
    """The matrix, and the rest padded to its shape; the first `size` variables are the user's."""

    matrix: MatrixData
    size: int
    target: np.ndarray
    linear: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    epsilon: float
    bias: float  # the mean of the targets

    @classmethod
    def of(cls, problem: QuadraticProgram, matrix: MatrixData) -> "PreparedPsvm":
        """Return a program with its matrix as `prepared_matrix` returns it."""
        length, count = matrix.shape
        return cls(
            matrix=matrix,
            size=problem.size,
            target=padded(problem.hessian.target, length),
            linear=padded(problem.linear, count),
            lower=padded(problem.lower, count),
            upper=padded(problem.upper, count),
            epsilon=0.0 if problem.l1 is None else float(problem.l1),
            bias=float(np.mean(np.asarray(problem.hessian.target, float))),
        )

    @property
    def largest(self) -> float:
        """‖Kᵀy‖∞, the ε from which on α is zero."""
        return float(np.abs(self.linear).max(initial=0.0))

    def gradient(self, output: np.ndarray) -> np.ndarray:
        """Return G = Kᵀ(y − Kα) from the output Kα."""
        return np.asarray(self.matrix.correlations(self.target - output))


def certified(work: Any) -> Solution:
    """Return the point of a work with its certificate, from a fresh gradient."""
    program, alpha = work.program, work.alpha
    output = output_of(program.matrix, alpha, work.solver.tuning)
    gradient = program.gradient(output)
    box = program.lower, program.upper, program.epsilon
    certificate = certify_potential(program.target, output, alpha, gradient, box)
    status = work.status
    if status == Status.CONVERGED and certificate.violation > work.solver.tol:
        status = Status.STALLED
    point, rows = work.point(), work.kernel_rows
    return Solution.of(point, certificate, work, rows, int(status), program.bias)


def padded(values: Any, size: int) -> np.ndarray:
    """Return the values in float64, with zeros up to a size."""
    values = np.asarray(values, float)
    return np.pad(values, (0, size - len(values)))


def prepared_matrix(
    data: MatrixData, budget: float, multiple: int, tuning: PotentialTuning
) -> MatrixData:
    """Return K in memory if it fits `budget` bytes; on a CPU with a `multiple` of variables."""
    length, count = data.shape
    if isinstance(data, SparseMatrix) or 8 * bucket(count) * bucket(length) > budget:
        return data
    if default_platform() == "cpu":  # in NumPy, whose products need no compilation
        more = -count % multiple
        rows = _on_host(data, tuning)
        return DenseMatrix(np.pad(rows, ((0, more), (0, 0))) if more else rows)
    rows = jnp.asarray(data.all_objects(), jnp.float64)
    return DenseMatrix(jnp.pad(rows, ((0, bucket(count) - count), (0, bucket(length) - length))))


def _on_host(data: MatrixData, tuning: PotentialTuning) -> np.ndarray:
    """Return Kᵀ in float64, each row object in one piece."""
    rows: Any = data.all_objects()
    turned = isinstance(rows, np.ndarray) and not rows.flags.c_contiguous
    if turned and rows.size > tuning.transposed_by_xla:
        rows = _transposed(rows.T)
    return np.ascontiguousarray(rows, np.float64)


_transposed = program(jnp.transpose)


def combine(coefficients: Any, values: Any) -> Any:
    """Return Σ_j c_j k_j, for one or several rows of coefficients; on the host if k_j is there."""
    if isinstance(values, np.ndarray):
        return coefficients @ values
    return _combine(coefficients, values)


_combine = program(product)


def output_of(matrix: MatrixData, alpha: np.ndarray, tuning: PotentialTuning) -> np.ndarray:
    """Return Kα, from the row objects that are used."""
    length, count = matrix.shape
    used = np.flatnonzero(alpha)
    if len(used) == 0:
        return np.zeros(length)
    if isinstance(matrix, DenseMatrix) and len(used) > tuning.gathered_share * count:
        return np.asarray(combine(alpha, matrix.rows))
    more = min(tuning.tile_size(len(used)), count) - len(used)
    values = matrix.objects(np.pad(used, (0, more)))
    return np.asarray(combine(np.pad(alpha[used], (0, more)), values))


def lengths_of(matrix: MatrixData, tuning: PotentialTuning) -> np.ndarray:
    """Return ‖k_j‖ of all row objects, some of them at a time."""
    count, some = matrix.shape[1], tuning.fetch_sizes[-1]
    parts = []
    for begin in range(0, count, some):
        indices = np.minimum(np.arange(begin, begin + some), count - 1)
        parts.append(np.asarray(_lengths(jnp.asarray(matrix.objects(indices)))))
    return np.concatenate(parts)[:count]


@program
def _lengths(values: Any) -> Any:
    return jnp.sqrt(jnp.sum(values**2, axis=1))
