"""Model selection: grids in batches."""

from jsvm.search.cross_validation import CrossValidation, GridTask, Part, cross_validate

__all__ = ["CrossValidation", "GridTask", "Part", "cross_validate"]
