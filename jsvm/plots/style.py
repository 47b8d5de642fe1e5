"""What the figures share: the Axes to draw on, and colours."""

from typing import Any

# Okabe and Ito's colours without yellow, which is too light for lines on white.
BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
)
COLOURS = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY)
GREY = "#9A9A9A"


def axes_or_current(ax: Any) -> Any:
    """Return the Axes, the current ones of pyplot if there are none."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("figures need matplotlib: pip install 'jsvm[plots]'") from error
    return plt.gca()
