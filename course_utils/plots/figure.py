"""A picture with its description in words, and how every figure of the course is begun and finished.

Nothing here touches pyplot: no figure stays open, no setting changes.
"""

import base64
import html
import io
import textwrap
from pathlib import Path
from typing import Any

from .style import DPI, HTML_STYLE, INK, course_style

LABEL_WIDTH = 34  # letters in a line of a label beside the axes


class Figure:
    """A finished picture with its description in words (`str(figure)`).

    The title is part of the picture; a caption below it is shown only if one is given.
    """

    def __init__(self, png: bytes, width: int, title: str, description: str, caption: str | None = None):
        self.png, self.width, self.title = png, width, title
        self.description, self.caption = description, caption

    def __repr__(self) -> str:
        return self.description

    def _repr_html_(self) -> str:
        data = base64.b64encode(self.png).decode("ascii")
        caption = ""
        if self.caption:
            caption = f'<figcaption style="{HTML_STYLE["caption"]}">{html.escape(self.caption)}</figcaption>'
        return (
            f'<figure aria-label="{html.escape(self.title)}" style="{HTML_STYLE["card"]}">'
            f'<img alt="{html.escape(self.description)}" width="{self.width}" '
            f'style="max-width:100%;height:auto;display:block" src="data:image/png;base64,{data}">{caption}</figure>'
        )

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": self._repr_html_(), "text/plain": self.description}

    def save(self, path: str | Path) -> None:
        """Write the picture as a PNG file."""
        Path(path).write_bytes(self.png)


def canvas(width: float, height: float, layout: str = "constrained") -> tuple[Any, Any]:
    """A figure of this size in inches with one axes; pyplot knows nothing about it."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    with course_style():
        fig = Canvas(figsize=(width, height), layout=layout)
        FigureCanvasAgg(fig)
        fig.get_layout_engine().set(w_pad=0.1, h_pad=0.1)
        return fig, fig.add_subplot()


def finish(
    fig: Any, title: str, description: str, caption: str | None, *, fit_ylabel: bool = False, photo: bool = False
) -> Figure:
    """Write the title above the axes and draw everything.

    fit_ylabel: break the label of the y-axis where it is longer than the axis. photo: the picture has thousands of
    colours, and shades of one another matter more than each by itself.
    """
    from PIL import Image

    drawn, small = io.BytesIO(), io.BytesIO()
    with course_style():
        wrapped = textwrap.wrap(title, max(int(fig.get_figwidth() * 9), 20))
        fig.suptitle("\n".join(wrapped), x=0.02, ha="left", fontsize=12.5, fontweight="bold", color=INK)
        if fit_ylabel:
            _fit_ylabel(fig)
        fig.savefig(drawn, format="png", dpi=DPI)
    picture = Image.open(drawn).convert("RGB")
    # 256 colours make the file three times smaller; this way of choosing them keeps every colour of a map.
    method = Image.Quantize.MEDIANCUT if photo else Image.Quantize.MAXCOVERAGE
    picture.quantize(256, method, dither=Image.Dither.NONE).save(small, "PNG", optimize=True)
    return Figure(small.getvalue(), round(picture.width * 96 / DPI), title, description, caption)


def _fit_ylabel(fig: Any) -> None:
    """Break the y-label until it is no longer than the axis; the layout would let it run into the title."""
    (ax,) = fig.axes
    text = ax.get_ylabel()
    for width in range(LABEL_WIDTH, 0, -6):
        fig.draw_without_rendering()  # before, the length of the axis is not known
        if ax.yaxis.label.get_window_extent().height <= ax.bbox.height:
            return
        ax.set_ylabel(wrap_label(text, width))


def wrap_label(text: str, width: int = LABEL_WIDTH) -> str:
    return "\n".join(textwrap.wrap(text, width, break_on_hyphens=False))
