"""Distributions of the papers, with their Bayes errors."""

from jsvm.data.chess_board import chess_board, chess_board_bayes_error

__all__ = ["chess_board", "chess_board_bayes_error"]
