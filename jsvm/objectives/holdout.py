"""Errors on examples that were held out (Glasmachers 2008, sections 9.1.1 and 9.1.7).

With I the examples that train and f_I the machine of them, all are means of L(y_i, f_I(x_i)) over
the held-out examples: of one split, of the k splits of a cross-validation, where every example is
held out once, or of random splits, which Glasmachers calls the bootstrapping error.
"""

from typing import Any

import jax.numpy as jnp

from jsvm.kernels import Kernel
from jsvm.objectives.inputs import SOLVER, Builder, Cost, Labels, Points, Value, objective
from jsvm.objectives.training import Loss, held_out_values, in_one_program, zero_one
from jsvm.problems import c_svc
from jsvm.solvers import SMO
from jsvm.validation.splits import Splits, fold_splits, given_split, random_splits


@objective
def holdout_error(
    kernel: Kernel,
    X: Points,
    y: Labels,
    *,
    C: Cost,
    test: Any = None,
    key: Any = 0,
    fraction: float = 0.2,
    loss: Loss = zero_one,
    machine: Builder = c_svc,
    solver: SMO = SOLVER,
) -> Value:
    """Return the mean loss on a hold-out set, by default the rate of errors (section 9.1.1).

    Parameters
    ----------
    test : array of int, optional
        The examples to hold out; by default they are drawn with `key`.

    Examples
    --------
    >>> import numpy as np
    >>> from jsvm import kernels
    >>> X = np.arange(-5.0, 6.0)[:, None]
    >>> float(holdout_error(kernels.Linear(), X, np.sign(X[:, 0] + 0.5), C=10.0, test=[0, 9]))
    0.0
    """
    splits = random_splits(key, y, fraction, 1) if test is None else given_split(test, y)
    return mean_loss(kernel, X, C, splits, loss=loss, machine=machine, solver=solver)


@objective
def cross_validation_error(
    kernel: Kernel,
    X: Points,
    y: Labels,
    *,
    C: Cost,
    folds: Any = 5,
    key: Any = None,
    loss: Loss = zero_one,
    machine: Builder = c_svc,
    solver: SMO = SOLVER,
) -> Value:
    """Return the mean loss over all examples, each held out once (section 9.1.1).

    Parameters
    ----------
    folds : int or array of shape (n,)
        The number of folds, or the fold of every example.
    key : int or key, optional
        Shuffles the examples first; without it they go to the folds in turn.

    Examples
    --------
    >>> import numpy as np
    >>> from jsvm import kernels
    >>> X = np.arange(-5.0, 6.0)[:, None]
    >>> error = cross_validation_error(kernels.Linear(), X, np.sign(X[:, 0] + 0.5), C=10.0)
    >>> round(float(error), 4)  # 0 is in the middle of −1 and 1
    0.0909
    """
    splits = fold_splits(y, folds, key)
    return mean_loss(kernel, X, C, splits, loss=loss, machine=machine, solver=solver)


@objective
def bootstrap_error(
    kernel: Kernel,
    X: Points,
    y: Labels,
    *,
    C: Cost,
    key: Any,
    fraction: float = 0.2,
    splits: int = 1,
    loss: Loss = zero_one,
    machine: Builder = c_svc,
    solver: SMO = SOLVER,
) -> Value:
    """Return the mean loss on random hold-out sets, new ones for every key (section 9.1.7).

    Examples
    --------
    >>> import numpy as np
    >>> from jsvm import kernels
    >>> X = np.arange(-5.0, 6.0)[:, None]
    >>> float(bootstrap_error(kernels.Linear(), X, np.sign(X[:, 0] + 0.5), C=10.0, key=1))
    0.0
    """
    drawn = random_splits(key, y, fraction, splits)
    return mean_loss(kernel, X, C, drawn, loss=loss, machine=machine, solver=solver)


@in_one_program
def mean_loss(
    kernel: Kernel, X: Any, C: Any, splits: Splits, *, loss: Loss, machine: Builder, solver: SMO
) -> Any:
    """Return the mean loss over all held-out examples."""
    values = held_out_values(kernel, X, C, splits, machine, solver)
    counted = jnp.abs(splits.test_labels)
    return jnp.sum(loss(splits.test_labels, values) * counted) / jnp.maximum(jnp.sum(counted), 1.0)
