"""Errors on examples that were held out (004, sections 9.1.1 and 9.1.7).

With I the examples that train and f_I the machine of them, all are means of L(y_i, f_I(x_i)) over
the held-out examples: of one split, of the k splits of a cross-validation, where every example is
held out once, or of splits drawn from a key anew for every evaluation, which 004 calls the
bootstrapping error. L counts errors unless another loss is given; with a smooth one the error has a
derivative.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jaxtyping import Float, Real

from jsvm import problems
from jsvm._typing import Array, Scalar
from jsvm.kernels import Kernel
from jsvm.objectives.losses import zero_one
from jsvm.objectives.splits import Splits, fold_splits, given_split, random_splits
from jsvm.objectives.training import SOLVER, Builder, checked, held_out_values, in_one_program
from jsvm.solvers import SMO

Loss = Callable[[Any, Any], Any]
Cost = Scalar | Real[Array, " n"]


def holdout_error(
    kernel: Kernel,
    X: Real[Array, "n d"],
    y: Real[Array, " n"],
    *,
    C: Cost,
    test: Any = None,
    key: Any = 0,
    fraction: float = 0.2,
    loss: Loss = zero_one,
    machine: Builder = problems.c_svc,
    solver: SMO = SOLVER,
) -> Float[Array, ""]:
    """Return the mean loss on a hold-out set, by default the rate of errors (004, section 9.1.1).

    Parameters
    ----------
    kernel : Kernel
    X : array of shape (n, d)
    y : array of shape (n,), labels −1 and +1
    C : positive number or array of shape (n,)
    test : array of int, optional
        The examples to hold out.
    key : int or key
        Where no `test` is given the hold-out set is drawn from it.
    fraction : float
        Of the examples that are held out then.
    loss : function
        ``loss(y, value)`` of labels and decision values.
    machine : function
        `problems.c_svc` or `problems.squared_svc`.
    solver : SMO

    Examples
    --------
    >>> import numpy as np
    >>> from jsvm import kernels
    >>> X = np.arange(-5.0, 6.0)[:, None]
    >>> float(holdout_error(kernels.Linear(), X, np.sign(X[:, 0] + 0.5), C=10.0, test=[0, 9]))
    0.0
    """
    X, y, C = checked(kernel, X, y, C)
    splits = random_splits(key, y, fraction, 1) if test is None else given_split(test, y)
    return mean_loss(kernel, X, C, splits, loss=loss, machine=machine, solver=solver)


def cross_validation_error(
    kernel: Kernel,
    X: Real[Array, "n d"],
    y: Real[Array, " n"],
    *,
    C: Cost,
    folds: Any = 5,
    key: Any = None,
    loss: Loss = zero_one,
    machine: Builder = problems.c_svc,
    solver: SMO = SOLVER,
) -> Float[Array, ""]:
    """Return the mean loss over all examples, each held out once (004, section 9.1.1).

    Parameters
    ----------
    kernel, X, y, C, loss, machine, solver
        As for :func:`holdout_error`.
    folds : int or array of shape (n,)
        The number of folds, or the fold of every example.
    key : int or key, optional
        Shuffles the examples before; without it they go to the folds in turn.

    Examples
    --------
    >>> import numpy as np
    >>> from jsvm import kernels
    >>> X = np.arange(-5.0, 6.0)[:, None]
    >>> error = cross_validation_error(kernels.Linear(), X, np.sign(X[:, 0] + 0.5), C=10.0)
    >>> round(float(error), 4)  # 0 is in the middle of −1 and 1
    0.0909
    """
    X, y, C = checked(kernel, X, y, C)
    splits = fold_splits(y, folds, key)
    return mean_loss(kernel, X, C, splits, loss=loss, machine=machine, solver=solver)


def bootstrap_error(
    kernel: Kernel,
    X: Real[Array, "n d"],
    y: Real[Array, " n"],
    *,
    C: Cost,
    key: Any,
    fraction: float = 0.2,
    splits: int = 1,
    loss: Loss = zero_one,
    machine: Builder = problems.c_svc,
    solver: SMO = SOLVER,
) -> Float[Array, ""]:
    """Return the mean loss on random hold-out sets, a new one for every key (004, section 9.1.7).

    Parameters
    ----------
    kernel, X, y, C, fraction, loss, machine, solver
        As for :func:`holdout_error`.
    key : int or key
    splits : int
        The mean of so many sets is returned.

    Examples
    --------
    >>> import numpy as np
    >>> from jsvm import kernels
    >>> X = np.arange(-5.0, 6.0)[:, None]
    >>> float(bootstrap_error(kernels.Linear(), X, np.sign(X[:, 0] + 0.5), C=10.0, key=1))
    0.0
    """
    X, y, C = checked(kernel, X, y, C)
    drawn = random_splits(key, y, fraction, splits)
    return mean_loss(kernel, X, C, drawn, loss=loss, machine=machine, solver=solver)


@in_one_program
def mean_loss(
    kernel: Kernel, X: Any, C: Any, splits: Splits, *, loss: Loss, machine: Builder, solver: SMO
) -> Any:
    """Return the mean loss of all that is held out."""
    values = held_out_values(kernel, X, C, splits, machine, solver)
    counted = jnp.abs(splits.test_labels)
    return jnp.sum(loss(splits.test_labels, values) * counted) / jnp.maximum(jnp.sum(counted), 1.0)
