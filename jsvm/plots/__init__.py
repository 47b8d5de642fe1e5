"""Figures; matplotlib is imported on use (``pip install jsvm[plots]``).

Every function draws on the Axes `ax`, by default the current ones, and returns them. No setting of
matplotlib is changed. Colours are those of Okabe and Ito, and viridis, which people tell apart
whatever their colour vision.
"""

from jsvm.plots.convergence import convergence
from jsvm.plots.decision_regions import decision_regions
from jsvm.plots.landscape import landscape
from jsvm.plots.ranked_features import ranked_features
from jsvm.plots.selection_path import selection_path

__all__ = [
    "convergence",
    "decision_regions",
    "landscape",
    "ranked_features",
    "selection_path",
]
