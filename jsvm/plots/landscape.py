"""An objective over two hyperparameters."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from jsvm.plots.style import VERMILLION, Axes, axes_or_current


def landscape(
    values: ArrayLike,
    x: ArrayLike,
    y: ArrayLike,
    *,
    path: ArrayLike | None = None,
    names: tuple[str, str] = ("C", "γ"),
    label: str | None = "objective",
    levels: ArrayLike = 20,
    ax: Axes | None = None,
) -> Axes:
    """Draw an objective over two positive hyperparameters, and the path of a search.

    Parameters
    ----------
    values : array of shape (len(y), len(x))
        The objective; where it is not finite nothing is drawn.
    x, y : arrays
        The values of the hyperparameters themselves, positive and increasing; the axes are
        logarithmic.
    path : array of shape (n, 2), optional
        The points (x, y) of a search, in their order. The first is marked by a circle, the last by
        a star.
    names : pair of str
        Of the two hyperparameters.
    label : str or None
        Of the colour bar; None draws none.
    levels : int or array
        Number of contours, or the levels themselves.
    ax : matplotlib Axes, by default the current ones

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> C, gamma = np.logspace(-1, 3, 9), np.logspace(-2, 1, 7)
    >>> values = np.log10(gamma)[:, None] ** 2 + (np.log10(C)[None, :] - 1) ** 2
    >>> path = [(0.1, 0.01), (1.0, 0.5), (10.0, 1.0)]
    >>> ax = landscape(values, C, gamma, path=path, ax=Figure().subplots())
    >>> ax.get_xscale(), ax.get_yscale(), ax.get_legend_handles_labels()[1]
    ('log', 'log', ['start', 'end'])
    """
    values, x, y = (np.asarray(array, float) for array in (values, x, y))
    for name, side in (("x", x), ("y", y)):
        if side.ndim != 1 or len(side) < 2 or not (side[0] > 0 and (np.diff(side) > 0).all()):
            raise ValueError(f"{name} must be two or more positive, increasing numbers, not {side}")
    if values.shape != (len(y), len(x)):
        raise ValueError(
            f"values must have one row for each y and one column for each x, "
            f"({len(y)}, {len(x)}), not {values.shape}"
        )
    if path is not None:
        path = np.asarray(path, float)
        if path.ndim != 2 or path.shape[1] != 2 or len(path) == 0 or not (path > 0).all():
            raise ValueError("path must be points (x, y) with positive coordinates")

    ax = axes_or_current(ax)
    ax.set_xscale("log")
    ax.set_yscale("log")
    filled = ax.contourf(x, y, np.ma.masked_invalid(values), levels=levels, cmap="viridis")
    if label is not None:
        ax.figure.colorbar(filled, ax=ax, label=label)
    if path is not None:
        _draw_path(ax, path)
    ax.set_xlabel(names[0])
    ax.set_ylabel(names[1])
    return ax


def _draw_path(ax: Axes, path: np.ndarray) -> None:
    ax.plot(*path.T, color="white", linewidth=1.6, marker=".", markersize=6, zorder=3)
    marks: dict[str, Any] = {"color": "white", "edgecolors": "black", "zorder": 4}
    ax.scatter(*path[:1].T, s=70, marker="o", label="start", **marks)
    ax.scatter(*path[-1:].T, s=190, marker="*", label="end", **marks | {"color": VERMILLION})
