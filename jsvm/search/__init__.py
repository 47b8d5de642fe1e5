"""Model selection: grids in batches, CMA-ES, gradients, and the strategies made of them."""

from jsvm.search import strategies
from jsvm.search.cma_es import cma_es
from jsvm.search.cross_validation import CrossValidation, GridTask, Part, cross_validate
from jsvm.search.gradient import gradient
from jsvm.search.grid import grid
from jsvm.search.result import SearchResult

__all__ = [
    "CrossValidation",
    "GridTask",
    "Part",
    "SearchResult",
    "cma_es",
    "cross_validate",
    "gradient",
    "grid",
    "strategies",
]
