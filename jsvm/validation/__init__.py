"""Which examples train and which are held out; pairs of classes; cross-validation of grids."""

from jsvm.validation.cross_validation import CrossValidation, cross_validate
from jsvm.validation.part_training import GridTask
from jsvm.validation.parts import Part

__all__ = ["CrossValidation", "GridTask", "Part", "cross_validate"]
