"""Which examples train and which are held out; pairs of classes; cross-validation of grids.

Everything that holds examples out makes its folds with :mod:`jsvm.validation.splits`, and
everything that trains pairs of classes takes them from :mod:`jsvm.validation.class_pairs`.
"""

from jsvm.validation.cross_validation import CrossValidation, cross_validate
from jsvm.validation.parts import GridTask, Part

__all__ = ["CrossValidation", "GridTask", "Part", "cross_validate"]
