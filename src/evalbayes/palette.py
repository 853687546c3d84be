"""Colours of the pictures, those of Okabe and Ito (2008, Color Universal Design), and axes to draw on."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLUE, VERMILLION, GREY = "#0072B2", "#D55E00", "#7F7F7F"
GREEN, ORANGE, SKY, PURPLE = "#009E73", "#E69F00", "#56B4E9", "#CC79A7"


def new_axes(width: float, height: float) -> "Axes":
    """Return the axes of a new figure of so many inches."""
    from matplotlib import pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]
