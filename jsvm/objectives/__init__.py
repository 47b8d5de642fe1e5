"""Objectives of model selection: functions of a kernel, examples and C (Glasmachers 2008, ch. 9).

Each returns the quantity that it is named after, whether small or large values of it are good. The
differentiable ones go straight into ``jax.value_and_grad``, ``jit`` and ``vmap``.

Parameters common to all objectives
-----------------------------------
kernel : Kernel
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

from jsvm.objectives.alignment import (
    centred_alignment,
    kernel_polarization,
    kernel_target_alignment,
)
from jsvm.objectives.holdout import bootstrap_error, cross_validation_error, holdout_error
from jsvm.objectives.leave_one_out import leave_one_out_error, support_vector_count
from jsvm.objectives.likelihood import log_likelihood, log_posterior
from jsvm.objectives.losses import squared_error, zero_one
from jsvm.objectives.margin import radius_margin
from jsvm.objectives.priors import GaussianPrior, median_heuristic
from jsvm.objectives.span import span_bound, span_estimate

__all__ = [
    "GaussianPrior",
    "bootstrap_error",
    "centred_alignment",
    "cross_validation_error",
    "holdout_error",
    "kernel_polarization",
    "kernel_target_alignment",
    "leave_one_out_error",
    "log_likelihood",
    "log_posterior",
    "median_heuristic",
    "radius_margin",
    "span_bound",
    "span_estimate",
    "squared_error",
    "support_vector_count",
    "zero_one",
]
