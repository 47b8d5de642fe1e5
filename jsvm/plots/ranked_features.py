"""Which features a machine relies on."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from jsvm.plots.style import GREY, VERMILLION, Axes, axes_or_current

MOST_NAMES = 40  # more are not readable


def ranked_features(
    weights: ArrayLike,
    *,
    names: Sequence[str] | None = None,
    highlight: ArrayLike | None = None,
    largest: int | None = None,
    label: str = "|weight|",
    ax: Axes | None = None,
) -> Axes:
    """Draw the weights of features as bars, the largest first.

    Parameters
    ----------
    weights : array of shape (P,) or (outputs, P)
        Their absolute values are drawn; of several outputs the largest of a feature counts.
    names : sequence of str, optional
        Of the features; by default their indices. They are written if there are at most 40 bars.
    highlight : index array or array of bool of shape (P,), optional
        Features to draw in another colour: those selected, or those known to matter.
    largest : int, optional
        Draw only so many; by default all.
    label : str
        Of the axis of the weights.
    ax : matplotlib Axes, by default the current ones

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> ax = ranked_features([0.1, -2.0, 1.0], highlight=[1], ax=Figure().subplots())
    >>> [float(bar.get_height()) for bar in ax.patches]
    [2.0, 1.0, 0.1]
    >>> [tick.get_text() for tick in ax.get_xticklabels()]
    ['1', '2', '0']
    """
    sizes = np.abs(np.asarray(weights, float))
    sizes = sizes.max(axis=0) if sizes.ndim == 2 else sizes
    if sizes.ndim != 1 or len(sizes) == 0:
        raise ValueError(f"weights must be one number a feature, not shape {np.shape(weights)}")
    if names is not None and len(names) != len(sizes):
        raise ValueError(f"names has {len(names)} entries for {len(sizes)} features")
    marked = np.zeros(len(sizes), bool)
    if highlight is not None:
        highlight = np.asarray(highlight)
        if highlight.dtype == bool and highlight.shape != sizes.shape:
            raise ValueError(f"highlight has {highlight.shape} entries for {len(sizes)} features")
        marked[highlight if highlight.size else []] = True

    order = np.argsort(-sizes, kind="stable")[:largest]
    ax = axes_or_current(ax)
    places = np.arange(len(order))
    colours = [VERMILLION if marked[j] else GREY for j in order]
    ax.bar(places, sizes[order], width=0.85, color=colours, label=_labels(marked[order]))
    if len(order) <= MOST_NAMES:
        texts = [str(j if names is None else names[j]) for j in order]
        upright = max(map(len, texts)) > 3 or len(order) > 20
        ax.set_xticks(places, texts, rotation=90 if upright else 0, fontsize="small")
        ax.set_xlabel("feature")
    else:
        ax.set_xlabel("rank of the feature")
    ax.set_xlim(-0.7, len(order) - 0.3)
    ax.set_ylabel(label)
    return ax


def _labels(marked: np.ndarray) -> list[str]:
    """Return a label for the first bar of either colour; matplotlib leaves out the others."""
    labels = ["_"] * len(marked)
    for text, some in (("highlighted", marked), ("other", ~marked)):
        if marked.any() and some.any():
            labels[int(np.argmax(some))] = text
    return labels
