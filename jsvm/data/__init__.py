"""Distributions of the papers, with their Bayes errors, and their toy problems."""

from jsvm.data.chess_board import chess_board, chess_board_bayes_error
from jsvm.data.four_clusters import four_clusters
from jsvm.data.horseshoe import horseshoe
from jsvm.data.noisy_curve import curve, noisy_curve
from jsvm.data.oscillating_regions import oscillating_regions
from jsvm.data.sine_rings import sine_rings
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
