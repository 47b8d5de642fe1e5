"""Distributions of the papers, with their Bayes errors, and their toy problems.

Every generator takes a `key`, a JAX random key or an int, which is a seed.
"""

from jsvm.data.chess_board import chess_board, chess_board_bayes_error
from jsvm.data.psvm_toys import (
    curve,
    four_clusters,
    horseshoe,
    noisy_curve,
    oscillating_regions,
    sine_rings,
)
from jsvm.data.sparse_coordinates import sparse_coordinates, sparse_coordinates_bayes_error
from jsvm.data.weston import weston

__all__ = [
    "chess_board",
    "chess_board_bayes_error",
    "curve",
    "four_clusters",
    "horseshoe",
    "noisy_curve",
    "oscillating_regions",
    "sine_rings",
    "sparse_coordinates",
    "sparse_coordinates_bayes_error",
    "weston",
]
