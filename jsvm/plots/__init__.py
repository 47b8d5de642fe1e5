"""Figures; matplotlib is imported on use (``pip install jsvm[plots]``).

Every function draws on the Axes `ax`, by default the current ones, and returns them. No setting of
matplotlib is changed. Colours are those of Okabe and Ito, and viridis, which people tell apart
whatever their colour vision.
"""

from jsvm.plots.fits import convergence, decision_regions, ranked_features
from jsvm.plots.searches import landscape, selection_path

__all__ = ["convergence", "decision_regions", "landscape", "ranked_features", "selection_path"]
