"""Decision regions in the plane."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from jsvm.plots.style import BLUE, VERMILLION, Axes, axes_or_current

FARTHEST = 1.5  # decision values beyond have the colour of this one


def decision_regions(
    machine: Any,
    X: ArrayLike,
    y: ArrayLike,
    *,
    support: ArrayLike | None = None,
    ax: Axes | None = None,
    resolution: int = 200,
) -> Axes:
    """Draw the decision regions of a two-class machine in the plane, the data and the margins.

    Parameters
    ----------
    machine : estimator or function
        Anything with ``decision_function``, or a function from points to decision values.
    X : array of shape (n, 2)
    y : array of shape (n,)
        Labels; the larger one is the positive class.
    support : index array, optional
        Support vectors to circle; by default those of the estimator.
    ax : matplotlib Axes, by default the current ones
    resolution : int
        Points along each side of the grid.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> ax = Figure().subplots()
    >>> X, y = np.eye(2), np.array([1.0, -1.0])
    >>> ax = decision_regions(lambda Z: Z[:, 0] - 0.5, X, y, resolution=8, ax=ax)
    >>> ax.get_legend_handles_labels()[1]
    ['positive', 'negative']
    """
    X, y = np.asarray(X), np.asarray(y)
    if X.ndim != 2 or X.shape[1] != 2:
        raise ValueError(f"X must have two columns to be drawn, not shape {X.shape}")
    if y.shape != X.shape[:1]:
        raise ValueError(f"y must have one label for each of the {len(X)} rows, not {y.shape}")
    decide = getattr(machine, "decision_function", machine)
    circled = np.asarray(getattr(machine, "support_", []) if support is None else support)

    sides = [_side(column, resolution) for column in X.T]
    grid = np.stack(np.meshgrid(*sides), axis=-1)
    values = np.asarray(decide(grid.reshape(-1, 2)))
    if values.shape != (resolution**2,):
        raise ValueError("decision_regions draws two classes; the machine has more outputs")

    ax = axes_or_current(ax)
    _draw_values(ax, sides, values.reshape(resolution, resolution))
    top = y == np.unique(y)[-1]
    common = {"s": 14, "edgecolors": "white", "linewidths": 0.3}
    ax.scatter(*X[top].T, c=BLUE, marker="o", label="positive", **common)
    ax.scatter(*X[~top].T, c=VERMILLION, marker="s", label="negative", **common)
    if circled.size:
        ring = {"s": 46, "facecolors": "none", "edgecolors": "k", "linewidths": 0.9}
        ax.scatter(*X[circled].T, label="support", **ring)
    ax.set_xlim(sides[0][0], sides[0][-1])
    ax.set_ylim(sides[1][0], sides[1][-1])
    ax.set_aspect("equal")
    return ax


def _side(column: np.ndarray, resolution: int) -> np.ndarray:
    low, high = float(column.min()), float(column.max())
    pad = 0.02 * (high - low) or 0.5  # all points alike: draw their surroundings
    return np.linspace(low - pad, high + pad, resolution)


def _draw_values(ax: Axes, sides: list[np.ndarray], values: np.ndarray) -> None:
    """Draw decision values: the sign as colour, zero and the margins as lines."""
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list("sides", [VERMILLION, "white", BLUE])
    levels = np.linspace(-FARTHEST, FARTHEST, 22)
    clipped = np.clip(values, -FARTHEST, FARTHEST)
    ax.contourf(*sides, clipped, levels=levels, cmap=colours, alpha=0.5)
    if values.min() < 0 < values.max():
        ax.contour(*sides, values, levels=[0.0], colors="k", linewidths=1.5)
    margins = [level for level in (-1.0, 1.0) if values.min() < level < values.max()]
    if margins:
        ax.contour(*sides, values, levels=margins, colors="k", linewidths=0.6, linestyles="dashed")
