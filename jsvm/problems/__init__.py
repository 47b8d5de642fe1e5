"""Support vector machines as one quadratic program, and certificates of its solutions."""

from jsvm.problems.certificate import Certificate, certify
from jsvm.problems.checker import Check, check
from jsvm.problems.hessian import Dense, FromKernel, Hessian, Repeated, Tile
from jsvm.problems.machines import (
    c_svc,
    epsilon_svr,
    hard_margin,
    nu_svc,
    nu_svr,
    one_class,
    smallest_ball,
    squared_svc,
)
from jsvm.problems.matrix_data import (
    DenseMatrix,
    KernelMatrix,
    MatrixData,
    Normalised,
    SparseMatrix,
    normalised,
)
from jsvm.problems.potential import Normal, psvm
from jsvm.problems.program import QuadraticProgram, split_l1, validate

__all__ = [
    "Certificate", "Check", "Dense", "DenseMatrix", "FromKernel", "Hessian", "KernelMatrix",
    "MatrixData", "Normal", "Normalised", "QuadraticProgram", "Repeated", "SparseMatrix",
    "Tile", "c_svc", "certify", "check", "epsilon_svr", "hard_margin", "normalised", "nu_svc",
    "nu_svr", "one_class", "psvm", "smallest_ball", "split_l1", "squared_svc", "validate",
]  # fmt: skip
