"""How a search for hyperparameters went, and the objective that it saw."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from jsvm.plots.style import COLOURS, VERMILLION, Axes, axes_or_current


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


def selection_path(
    values: ArrayLike,
    parameters: Mapping[str, ArrayLike],
    *,
    iterations: ArrayLike | None = None,
    label: str = "objective",
    ax: Axes | None = None,
) -> Axes:
    """Draw hyperparameters, and the objective below them, against the iterations of a search.

    Parameters
    ----------
    values : array of shape (n,)
        The objective after each iteration.
    parameters : dict of arrays of shape (n, ...)
        Positive hyperparameters by name, on a logarithmic axis. Those with more than one entry an
        iteration, such as one γ a feature, have as many lines of one colour.
    iterations : array of shape (n,), optional
        Their numbers, where not all are drawn; by default 0, 1, …
    label : str
        Of the axis of the objective.
    ax : matplotlib Axes, by default the current ones
        Its place is divided: two thirds for the hyperparameters, one third for the objective.

    Returns
    -------
    matplotlib Axes
        Those of the hyperparameters; those of the objective are the last of the figure,
        ``ax.figure.axes[-1]``.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> path = {"C": [1.0, 10.0, 30.0], "γ": [[1.0, 1.0], [0.5, 2.0], [0.4, 3.0]]}
    >>> ax = selection_path([0.5, 0.3, 0.2], path, ax=Figure().subplots())
    >>> len(ax.lines), ax.get_yscale(), ax.get_legend_handles_labels()[1]
    (3, 'log', ['C', 'γ'])
    >>> ax.figure.axes[-1].lines[0].get_ydata().tolist()
    [0.5, 0.3, 0.2]
    """
    values = np.asarray(values, float)
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(f"values must be one number an iteration, not shape {values.shape}")
    lines = {name: _lines(name, entries, len(values)) for name, entries in parameters.items()}
    if not lines:
        raise ValueError("parameters names no hyperparameter to draw")

    iterations = np.arange(len(values)) if iterations is None else np.asarray(iterations)
    if iterations.shape != values.shape:
        raise ValueError(f"iterations must be {len(values)} numbers, not {iterations.shape}")
    upper = axes_or_current(ax)
    lower = _below(upper)
    for k, (name, entries) in enumerate(lines.items()):
        colour, style = COLOURS[k % len(COLOURS)], "-" if k < len(COLOURS) else "--"
        width, alpha = (0.9, 0.7) if entries.shape[1] > 1 else (1.8, 1.0)
        drawn = upper.plot(iterations, entries, style, color=colour, linewidth=width, alpha=alpha)
        drawn[0].set_label(name)
    upper.set_yscale("log")
    upper.set_ylabel("hyperparameters" if len(lines) > 1 else next(iter(lines)))
    upper.tick_params(labelbottom=False)
    upper.legend(fontsize="small")
    lower.plot(iterations, values, color="black", linewidth=1.5, marker=".", markersize=5)
    lower.set_ylabel(label)
    lower.set_xlabel("iteration")
    lower.locator_params(axis="x", integer=True)
    return upper


def _lines(name: str, entries: ArrayLike, count: int) -> np.ndarray:
    """Return one row an iteration."""
    entries = np.asarray(entries, float)
    if entries.ndim == 0 or len(entries) != count:
        raise ValueError(f"{name}: {count} iterations need as many entries, not {entries.shape}")
    if not (entries > 0).all():
        raise ValueError(f"{name} must be positive to be drawn on a logarithmic axis")
    return entries.reshape(count, -1)


def _below(ax: Axes) -> Axes:
    """Return new Axes in the lower third of the place of `ax`, which shrinks."""
    spec = ax.get_subplotspec()
    if spec is not None:
        above, below = spec.subgridspec(2, 1, height_ratios=[2, 1], hspace=0.08)
        ax.set_subplotspec(above)
        return ax.figure.add_subplot(below, sharex=ax)
    left, bottom, width, height = ax.get_position().bounds
    ax.set_position((left, bottom + 0.36 * height, width, 0.64 * height))
    return ax.figure.add_axes((left, bottom, width, 0.32 * height), sharex=ax)
