"""What the figures share: the Axes to draw on, and colours."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
else:
    Axes = Any  # matplotlib is not imported before it is needed

# Okabe and Ito's colours without yellow, which is too light for lines on white.
BLUE, VERMILLION = "#0072B2", "#D55E00"
COLOURS = (BLUE, VERMILLION, "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
GREY = "#9A9A9A"


def axes_or_current(ax: Axes | None) -> Axes:
    """Return the Axes given, or the current ones of pyplot."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("figures need matplotlib: pip install 'jsvm[plots]'") from error
    return plt.gca()
