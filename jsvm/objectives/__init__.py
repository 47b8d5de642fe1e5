"""Objectives of model selection: functions of a kernel, examples and C (Glasmachers 2008, ch. 9).

Each returns the quantity that it is named after, whether small or large values of it are good. The
differentiable ones go straight into ``jax.value_and_grad``, ``jit`` and ``vmap``.
"""

from jsvm.objectives.alignment import (
    centred_alignment,
    kernel_polarization,
    kernel_target_alignment,
)
from jsvm.objectives.holdout import bootstrap_error, cross_validation_error, holdout_error
from jsvm.objectives.leave_one_out import (
    leave_one_out_error,
    span_bound,
    span_estimate,
    support_vector_count,
)
from jsvm.objectives.likelihood import log_likelihood, log_posterior
from jsvm.objectives.margin import radius_margin
from jsvm.objectives.priors import GaussianPrior, median_heuristic
from jsvm.objectives.training import squared_error, zero_one

__all__ = ["GaussianPrior", "bootstrap_error", "centred_alignment", "cross_validation_error"]
__all__ += ["holdout_error", "kernel_polarization", "kernel_target_alignment"]
__all__ += ["leave_one_out_error", "log_likelihood", "log_posterior", "median_heuristic"]
__all__ += ["radius_margin", "span_bound", "span_estimate", "squared_error"]
__all__ += ["support_vector_count", "zero_one"]
