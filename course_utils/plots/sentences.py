"""Two sentences and which word says which."""

from collections.abc import Sequence

import numpy as np

from .descriptions import describe_pair
from .figure import Figure, canvas, finish
from .style import COLOURS, MUTED, course_style
from .values import check_links


def sentence_pair(
    source: Sequence[str],
    target: Sequence[str],
    alignment: Sequence[int | None],
    title: str,
    *,
    source_label: str = "source",
    target_label: str = "target",
    description: str | None = None,
    caption: str | None = None,
) -> Figure:
    """Two sentences and the gold alignment.

    alignment: for each target word the index of the source word it says, or None.
    Short sentences stand in two rows, long ones in two columns, so that no word has to be turned.
    """
    if not source or not target:
        raise ValueError("sentence_pair: source and target must have at least one word")
    links = check_links("sentence_pair", "alignment", alignment, len(target), len(source)) or []
    if description is None:
        description = describe_pair((source, target), links, (source_label, target_label, title))

    rows = _word_rows(source, target)
    if rows is not None:
        (top, bottom), span = rows
        fig, ax = canvas(span + 1.6, 2.4)
        places = [[(x, 1.0) for x in top], [(x, 0.0) for x in bottom]]
        labels, sides, inset = [(-0.3, 1.0), (-0.3, 0.0)], ("center", "center"), (0.0, 0.13)
        limits = {"xlim": (-1.1, span + 0.1), "ylim": (-0.2, 1.2)}
    else:
        tallest, longest = max(len(source), len(target)), max(map(len, source)) + max(map(len, target))
        fig, ax = canvas(3.0 + 0.1 * longest, 0.27 * tallest + 1.2)
        lower = [(tallest - len(words)) / 2 for words in (source, target)]
        places = [[(x, lower[x] + i) for i in range(len(words))] for x, words in enumerate((source, target))]
        labels, sides, inset = [(0, -1.5), (1, -1.5)], ("right", "left"), (0.06, 0.0)
        limits = {"xlim": (-0.75, 1.75), "ylim": (tallest - 0.5, -2)}
    with course_style():
        ax.axis("off")
        ax.set(**limits)
        for words, at, label, label_at, side in zip(
            (source, target), places, (source_label, target_label), labels, sides, strict=True
        ):
            for word, spot in zip(words, at, strict=True):
                ax.text(*spot, word, ha=side, va="center", fontsize=12 if rows else 10.5)
            label_side = "right" if rows else side
            ax.text(*label_at, label, ha=label_side, va="center", color=MUTED, fontsize=10, style="italic")
        pairs = [(s, t) for t, s in enumerate(links) if s is not None]
        for i, (s, t) in enumerate(pairs):
            (x0, y0), (x1, y1) = places[0][s], places[1][t]
            dx, dy = inset
            ends = [x0 + dx, x1 - dx], [y0 - dy, y1 + dy]
            ax.plot(*ends, color=COLOURS[i % 4], linewidth=1.8, solid_capstyle="round")
    return finish(fig, title, description, caption)


def _word_rows(source: Sequence[str], target: Sequence[str]) -> tuple[list[list[float]], float] | None:
    """The middle of each word and the width of the longer sentence, in inches; None if too long."""
    gap, rows = 0.28, []
    for words in (source, target):
        widths = np.array([max(len(word), 1) * 0.11 + 0.06 for word in words])
        starts = np.concatenate([[0.0], np.cumsum(widths + gap)])
        rows.append((starts[:-1] + widths / 2, starts[-1] - gap))
    span = max(width for _, width in rows)
    if span > 7.6:
        return None
    return [[float(x + (span - width) / 2) for x in middles] for middles, width in rows], float(span)
