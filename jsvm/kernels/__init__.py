"""Kernels: pytrees of parameters that turn points into matrices."""

from jsvm.kernels import symmetric
from jsvm.kernels.base import Kernel, Normalized, Product, Scaled, Sum, pairwise
from jsvm.kernels.dot import Linear, Polynomial, Sigmoid
from jsvm.kernels.gaussian import ARD, RBF, GeneralGaussian
from jsvm.kernels.given import Function, Precomputed
from jsvm.kernels.names import resolve
from jsvm.kernels.stationary import Laplacian, Plummer, Sine

__all__ = [
    "ARD", "RBF", "Function", "GeneralGaussian", "Kernel", "Laplacian", "Linear",
    "Normalized", "Plummer", "Polynomial", "Precomputed", "Product", "Scaled", "Sigmoid", "Sine",
    "Sum", "pairwise", "resolve", "symmetric",
]  # fmt: skip
