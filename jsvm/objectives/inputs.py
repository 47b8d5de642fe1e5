"""The arguments that all objectives take: their types, descriptions, the solver, and a check."""

import inspect
import re
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Real

from jsvm._typing import Array, Scalar
from jsvm.kernels import Kernel
from jsvm.precision import is_traced
from jsvm.problems import QuadraticProgram
from jsvm.problems.machines import cost
from jsvm.solvers import SMO

Points = Real[Array, "n d"]
Labels = Real[Array, " n"]
Cost = Scalar | Real[Array, " n"]
Value = Float[Array, ""]
Builder = Callable[..., QuadraticProgram]  # problems.c_svc or squared_svc

T = TypeVar("T", bound=Callable[..., Any])

SOLVER = SMO()  # its solutions are polished to rounding level
PARAMETERS = """kernel : Kernel
X : array of shape (n, d)
y : array of shape (n,), labels −1 and +1
C : positive number or array of shape (n,)
key : int or key
    Of the random splits; every key draws new ones.
fraction : float
    Fraction of the examples that are held out in a random split.
splits : int
    Number of random splits; the mean over them is returned.
loss : function
    ``loss(y, value)`` of labels and decision values; by default errors are counted. With a smooth
    one, such as :func:`squared_error`, the objective has a derivative.
machine : function
    `problems.c_svc` or `problems.squared_svc`.
solver : SMO
"""


def objective(function: T) -> T:
    """Check kernel, X, y and C before a call; complete the docstring by the shared parameters."""
    taken = inspect.signature(function).parameters
    text, title = inspect.cleandoc(function.__doc__ or ""), "Parameters\n----------\n"
    if title not in text:
        text = text.replace("Examples\n", f"{title}\nExamples\n", 1)
    shared = [(e.partition(" : ")[0], e) for e in re.split(r"^(?=\w)", PARAMETERS, flags=re.M)]
    missing = [e for name, e in shared if name in taken and f"\n{name} : " not in text]

    @wraps(function)
    def call(kernel: Any, X: Any, y: Any, **options: Any) -> Any:
        X, y, C = checked(kernel, X, y, options.get("C", 1.0))
        return function(kernel, X, y, **options | ({"C": C} if "C" in options else {}))

    call.__doc__ = text.replace(title, title + "".join(missing), 1)
    return cast(T, call)


def checked(kernel: Any, X: Any, y: Any, C: Any = 1.0) -> tuple[Any, Any, Any]:
    """Return X, y and C as arrays; raise ValueError, naming the argument, if they make no sense."""
    if not isinstance(kernel, Kernel):
        raise ValueError(f"kernel={kernel!r} must be one of jsvm.kernels, such as RBF(gamma=0.5)")
    X = jnp.asarray(X)
    if X.ndim != 2 or X.shape[0] < 2:
        raise ValueError(f"X must have at least two rows, one an example; its shape is {X.shape}")
    if not jnp.issubdtype(X.dtype, jnp.floating):
        X = X.astype(float)
    n = X.shape[0]
    y = jnp.asarray(y, X.dtype)
    if y.shape != (n,):
        raise ValueError(f"y must hold {n} labels, one a row of X, not shape {y.shape}")
    if not is_traced(C) and not (np.asarray(C) > 0).all():
        raise ValueError(f"C={C} must be positive")
    C = jnp.asarray(cost(C, n), X.dtype)
    if not is_traced(X) and not np.isfinite(np.asarray(X)).all():
        raise ValueError("X must be finite")
    if not is_traced(y) and not np.isin(np.asarray(y), (-1.0, 1.0)).all():
        raise ValueError("y must hold the labels -1 and +1 only; encode other labels first")
    return X, y, C
