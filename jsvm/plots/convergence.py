"""How a run of a solver went."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jsvm.plots.style import COLOURS, GREY, Axes, axes_or_current
from jsvm.solvers import Solution

# What can be drawn, and against what, with the names on the axes.
HEIGHTS = {
    "violation": "KKT violation",
    "objective": "objective",
    "support_vectors": "support vectors",
    "kernel_rows": "kernel rows computed",
}
PLACES = {"seconds": "seconds", "rounds": "rounds", "steps": "pair steps"}


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
    if against == "rounds":
        places = np.arange(1, len(rounds) + 1)
    else:
        places = np.array([float(line[against]) for line in rounds])

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
