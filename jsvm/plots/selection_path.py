"""How a search for hyperparameters went."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from jsvm.plots.style import COLOURS, Axes, axes_or_current


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
