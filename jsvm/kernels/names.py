"""From a user's argument (a name, a kernel, a function) to a kernel."""

import numbers
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from jsvm.kernels.base import Kernel
from jsvm.kernels.dot import Linear, Polynomial, Sigmoid, whole_degree
from jsvm.kernels.gaussian import RBF
from jsvm.kernels.given import Function
from jsvm.kernels.sparse import squared_lengths
from jsvm.kernels.stationary import Laplacian
from jsvm.numerics.arrays import is_sparse

# Below them squared distances have lost digits to underflow.
SMALLEST_VARIANCE, SMALLEST_SPREAD = 1e-292, 1e-140
NAMES = ("linear", "poly", "rbf", "sigmoid", "laplacian")


def resolve(
    kernel: Any,
    X: Any,
    *,
    gamma: Any = "scale",
    degree: Any = 3,
    coef0: Any = 0.0,
    weight: np.ndarray | None = None,
) -> Kernel:
    """Return the kernel that `kernel` means for the data `X`.

    Parameters
    ----------
    kernel : {'linear', 'poly', 'rbf', 'sigmoid', 'laplacian'}, Kernel or callable
        A callable takes (X, Z) and returns the matrix; one that JAX cannot trace is called on
        NumPy blocks.
    X : array or sparse matrix of shape (n, d)
        The training data: ``gamma="scale"`` depends on them.
    gamma : {'scale', 'auto'} or float
        'scale' is 1 / (d · variance of X), 'auto' is 1 / d.
    degree, coef0
        The other parameters of the kernels that have them.
    weight : array of shape (n,), optional
        An example of weight w counts as w copies in the variance of X.

    Examples
    --------
    >>> resolve("rbf", np.zeros((4, 2)), gamma="auto")
    RBF(gamma=0.5)
    """
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str):
        if kernel == "precomputed":
            raise ValueError("kernel='precomputed' is no function of points; see Precomputed")
        return _named(kernel, _gamma(gamma, X, weight), degree, coef0)
    if callable(kernel):
        return Function(kernel, on_host=not _can_trace(kernel, X))
    raise ValueError(f"kernel={kernel!r} is none of {NAMES}, a Kernel or a callable")


def _named(name: str, gamma: float, degree: Any, coef0: Any) -> Kernel:
    if name not in NAMES:
        raise ValueError(f"kernel={name!r} is unknown; the names are {NAMES}")
    if name == "linear":
        return Linear()
    if name == "poly":
        return Polynomial(degree=whole_degree(degree), gamma=gamma, coef0=coef0)
    if name == "sigmoid":
        return Sigmoid(gamma=gamma, coef0=coef0)
    return (RBF if name == "rbf" else Laplacian)(gamma=gamma)


def _gamma(gamma: Any, X: Any, weight: np.ndarray | None) -> float:
    if isinstance(gamma, str):
        if gamma == "auto":
            return 1.0 / X.shape[1]
        if gamma == "scale":
            with np.errstate(over="ignore", invalid="ignore"):
                variance = _variance(X, weight)
            if not np.isfinite(variance) or (variance < SMALLEST_VARIANCE and _is_tiny(X)):
                raise ValueError(
                    f"gamma='scale': the variance of X is {variance:.3g}, so squared distances "
                    "overflow or underflow; scale the features, for instance by StandardScaler"
                )
            return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
        raise ValueError(f"gamma={gamma!r} is unknown; use 'scale', 'auto' or a number")
    if not isinstance(gamma, numbers.Real) or not 0 <= float(gamma) < np.inf:
        raise ValueError(f"gamma={gamma!r} must be 'scale', 'auto' or a finite number >= 0")
    return float(gamma)


def _variance(X: Any, weight: np.ndarray | None) -> float:
    """Return the variance of all entries of X."""
    if weight is None and not is_sparse(X):
        return float(np.var(X, dtype=np.float64))
    weight = np.ones(X.shape[0]) if weight is None else weight
    entries = weight.sum() * X.shape[1]
    if is_sparse(X):
        mean = float((X.T @ weight).sum()) / entries
        return float(weight @ squared_lengths(X)) / entries - mean**2
    mean = np.average(X, axis=0, weights=weight).mean()
    return float(np.average((X - mean) ** 2, axis=0, weights=weight).mean())


def _is_tiny(X: Any) -> bool:
    """Tell whether X is not constant, but its differences are tiny."""
    return 0 < float(X.max()) - float(X.min()) < SMALLEST_SPREAD


def _can_trace(function: Callable[..., Any], X: Any) -> bool:
    point = jax.ShapeDtypeStruct((2, X.shape[1]), jax.numpy.result_type(float))
    try:
        value = jax.eval_shape(function, point, point)
    except Exception:  # whatever the reason: called on NumPy blocks it raises its own error
        return False
    return getattr(value, "shape", None) == (2, 2)
