"""Colours and settings of every figure and table, and how well two colours stand out from each other.

Colours are those of Okabe and Ito 2008, "Color universal design"; curves also differ by marker and dash, bars
by hatching, and a heatmap only grows darker, so it survives being printed in grey.
"""

from collections.abc import Sequence

INK, MUTED, GRID, CARD = "#22262b", "#5a6068", "#e3e5e8", "#fcfcfb"
BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
)
COLOURS = (BLUE, VERMILLION, GREEN, INK, PURPLE, ORANGE, SKY)  # those that stand out most come first
MARKERS = "os^Dv*P"
HATCHES = ("", "//", "..", "xx", "\\\\", "++", "oo")
DASHES = ("-", "--", "-.", (0, (5, 1, 1, 1)), (0, (3, 2)), (0, (1, 1)), (0, (8, 2)))
DPI = 150  # drawn finer than shown, for screens with small pixels
STYLE = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same picture everywhere
    "font.size": 11,
    "axes.titlesize": 12.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 12,
    "axes.edgecolor": "#a9adb3",
    "axes.labelcolor": INK,
    "axes.labelpad": 7,
    "axes.facecolor": CARD,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "figure.facecolor": CARD,
    "savefig.facecolor": CARD,
    "hatch.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 2.0,
    "lines.markersize": 6,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
}
HTML_STYLE = {
    "card": f"display:inline-block;box-sizing:border-box;max-width:100%;margin:0.5em 0;padding:12px;"
    f"background:{CARD};color:{INK};border:1px solid #d9dbde;border-radius:8px",
    "caption": f"margin:6px 4px 0;color:{INK};font-size:0.95em;max-width:46em",
    "heading": f"caption-side:top;text-align:left;font-weight:600;padding:2px 10px 8px;color:{INK}",
    "table": f"border-collapse:collapse;background:{CARD};color:{INK};margin:0;font-size:0.93em",
    "cell": f"padding:4px 8px;border-bottom:1px solid {GRID};background:{CARD};color:{INK}",
}


def course_style():
    import matplotlib as mpl

    return mpl.rc_context(STYLE)


def text_colour(background: Sequence[float]) -> str:
    """Black or white, whichever stands out more on this (red, green, blue) in 0..1; always at least 4.5."""
    black, white = "#000000", "#ffffff"
    return max(black, white, key=lambda ink: contrast(rgb(ink), background))


def contrast(a: Sequence[float], b: Sequence[float]) -> float:
    """Contrast ratio of two colours, 1 to 21 (WCAG 2.2, "contrast ratio"); 4.5 is enough for text."""

    def luminance(colour: Sequence[float]) -> float:
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour[:3]]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def rgb(colour: str) -> tuple[float, float, float]:
    return tuple(int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))  # type: ignore[return-value]
