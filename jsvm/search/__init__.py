"""Model selection: gradients, CMA-ES and grids over objectives, and the strategies made of them.

Cross-validation of estimators (:mod:`jsvm.validation`) is offered here, too.
"""

from jsvm.search import strategies
from jsvm.search.cma_es import cma_es
from jsvm.search.gradient import gradient
from jsvm.search.objective_grid import grid
from jsvm.search.problem import SearchResult
from jsvm.validation import CrossValidation, GridTask, Part, cross_validate

__all__ = ["CrossValidation", "GridTask", "Part", "SearchResult", "cma_es", "cross_validate"]
__all__ += ["gradient", "grid", "strategies"]
