"""Objectives of model selection: functions of a kernel, examples and C (004, chapter 9).

A differentiable one goes straight into ``jax.value_and_grad``, ``jit`` and ``vmap``; the random
ones take a key. All take labels ±1 and return the quantity that they are named after, whether small
or large values of it are good.
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
