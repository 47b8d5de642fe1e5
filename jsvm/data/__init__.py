"""Distributions of the papers, with their Bayes errors, and their toy problems.

Every generator takes a `key`, a JAX random key or an int, which is a seed.
"""

from jsvm.data.distributions import (
    chess_board,
    chess_board_bayes_error,
    sparse_coordinates,
    sparse_coordinates_bayes_error,
)
from jsvm.data.psvm_toys import (
    curve,
    four_clusters,
    horseshoe,
    noisy_curve,
    oscillating_regions,
    sine_rings,
    weston,
)

__all__ = ["chess_board", "chess_board_bayes_error", "curve", "four_clusters", "horseshoe"]
__all__ += ["noisy_curve", "oscillating_regions", "sine_rings", "sparse_coordinates"]
__all__ += ["sparse_coordinates_bayes_error", "weston"]
