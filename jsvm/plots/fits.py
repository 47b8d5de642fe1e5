"""What a fit found: how its solver went, decision regions in the plane, weights of features."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from jsvm.plots.style import BLUE, COLOURS, GREY, VERMILLION, Axes, axes_or_current
from jsvm.solvers import Solution

# What a history can show, and against what, with the names on the axes.
HEIGHTS = {
    "violation": "KKT violation",
    "objective": "objective",
    "support_vectors": "support vectors",
    "kernel_rows": "kernel rows computed",
}
PLACES = {"seconds": "seconds", "rounds": "rounds", "steps": "pair steps"}
FARTHEST = 1.5  # decision values beyond have the colour of this one
MOST_NAMES = 40  # of features below bars; more are not readable


def convergence(
    history: Solution | Sequence[Mapping[str, Any]],
    *,
    show: str = "violation",
    against: str = "seconds",
    tol: float | None = None,
    optimum: float | None = None,
    label: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw how the KKT violation, or the objective, fell during a run.

    Parameters
    ----------
    history : Solution or sequence of dict
        What :func:`jsvm.solve` returns, or its `history`: one dict a round.
    show : {'violation', 'objective', 'support_vectors', 'kernel_rows'}
        What to draw. The violation is on a logarithmic axis.
    against : {'seconds', 'rounds', 'steps'}
        What to draw it against. Seconds count from the call of the solver, the compilation of its
        programs included.
    tol : float, optional
        A tolerance to mark by a dashed line.
    optimum : float, optional
        With ``show="objective"``: draw the distance to this value, on a logarithmic axis. Minus the
        primal objective of a solution is a bound that no point is below.
    label : str, optional
        Of the line, for a legend.
    ax : matplotlib Axes, by default the current ones

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> rounds = [{"violation": 0.1, "seconds": 0.2}, {"violation": 1e-9, "seconds": 0.3}]
    >>> ax = convergence(rounds, tol=1e-3, ax=Figure().subplots())
    >>> ax.get_yscale(), ax.lines[0].get_xdata().tolist()
    ('log', [0.2, 0.3])
    """
    rounds = history.history if isinstance(history, Solution) else history
    if not len(rounds):
        raise ValueError("the history is empty: inside jit, vmap and grad none is written")
    if against not in PLACES:
        raise ValueError(f"against={against!r} is unknown; use 'seconds', 'rounds' or 'steps'")
    if show not in HEIGHTS:
        raise ValueError(
            f"show={show!r} is unknown; use 'violation', 'objective', 'support_vectors' or "
            "'kernel_rows'"
        )
    if optimum is not None and show != "objective":
        raise ValueError(f"optimum={optimum!r} has a meaning with show='objective' only")
    heights, name = np.array([float(line[show]) for line in rounds]), HEIGHTS[show]
    if optimum is not None:
        heights, name = heights - optimum, "objective − optimum"
    numbered = against == "rounds"
    places = np.array([k if numbered else line[against] for k, line in enumerate(rounds, 1)])

    ax = axes_or_current(ax)
    colour = COLOURS[len(ax.lines) % len(COLOURS)]  # another one for every run
    ax.plot(places, heights, "o-", color=colour, markersize=3.5, linewidth=1.3, label=label)
    if tol is not None:
        ax.axhline(tol, color=GREY, linestyle="dashed", linewidth=1.0, label=f"tolerance {tol:g}")
    if show == "violation" or optimum is not None:
        ax.set_yscale("log", nonpositive="mask")  # zeros are left out
    ax.set_xlabel(PLACES[against])
    ax.set_ylabel(name)
    return ax


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
