"""Static figures and tables, always with a description in words.

A figure is shown as a picture on a light card, so that it reads the same on a dark page; its description is
the alt text of the picture and its plain-text form.
"""

from .curves import bars, lines
from .figure import Figure
from .heatmaps import heatmap
from .images import image_rows
from .sentences import sentence_pair
from .style import STYLE
from .tables import Table, format_value, table

__all__ = [
    "STYLE",
    "Figure",
    "Table",
    "bars",
    "format_value",
    "heatmap",
    "image_rows",
    "lines",
    "sentence_pair",
    "table",
]
