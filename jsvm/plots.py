"""Figures; matplotlib is imported on use (``pip install jsvm[plots]``)."""

from typing import Any

import numpy as np


def decision_regions(
    machine: Any,
    X: Any,
    y: Any,
    *,
    support: Any = None,
    ax: Any = None,
    resolution: int = 200,
) -> Any:
    """Draw the decision regions of a two-class machine in the plane, the data and the margins.

    Parameters
    ----------
    machine : estimator or function
        Anything with ``decision_function``, or a function from points to decision values.
    X : array of shape (n, 2)
    y : array of shape (n,)
    support : index array, optional
        Support vectors to circle; by default those of the estimator.
    ax : matplotlib Axes, optional
    resolution : int
        Points along each side of the grid.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> ax = decision_regions(lambda Z: Z[:, 0], np.eye(2), np.array([1.0, -1.0]), resolution=8)
    >>> len(ax.collections) > 0
    True
    """
    plt = _pyplot()
    X, y = np.asarray(X), np.asarray(y)
    if X.ndim != 2 or X.shape[1] != 2:
        raise ValueError(f"X must have two columns to be drawn, not shape {X.shape}")
    ax = plt.gca() if ax is None else ax
    decide = getattr(machine, "decision_function", machine)
    support = getattr(machine, "support_", None) if support is None else support

    low, high = X.min(axis=0), X.max(axis=0)
    pad = 0.02 * (high - low)
    sides = [np.linspace(a, b, resolution) for a, b in zip(low - pad, high + pad, strict=True)]
    grid = np.stack(np.meshgrid(*sides), axis=-1)
    values = np.asarray(decide(grid.reshape(-1, 2)))
    if values.shape != (resolution**2,):
        raise ValueError("decision_regions draws two classes; the machine has more outputs")
    values = values.reshape(resolution, resolution)

    ax.contourf(*sides, np.clip(values, -1.5, 1.5), levels=21, cmap="RdBu", alpha=0.55)
    if values.min() < 0 < values.max():
        ax.contour(*sides, values, levels=[0.0], colors="k", linewidths=1.5)
    if values.min() < -1 and values.max() > 1:
        ax.contour(
            *sides, values, levels=[-1.0, 1.0], colors="k", linewidths=0.6, linestyles="dashed"
        )
    top = y == y.max()
    ax.scatter(*X[top].T, s=7, c="#1b4f8a", label="positive", linewidths=0)
    ax.scatter(*X[~top].T, s=7, c="#a3172a", label="negative", linewidths=0)
    if support is not None and len(support):
        ax.scatter(
            *X[support].T, s=42, facecolors="none", edgecolors="k", linewidths=0.9, label="support"
        )
    ax.set_xlim(sides[0][0], sides[0][-1])
    ax.set_ylim(sides[1][0], sides[1][-1])
    ax.set_aspect("equal")
    return ax


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("figures need matplotlib: pip install 'jsvm[plots]'") from error
    return plt
