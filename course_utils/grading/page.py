"""A page of HTML by itself: no script, nothing from the network, readable in light and dark, everything escaped."""

import html
from pathlib import Path

from course_utils.questions import inline_html

LONGEST = 4000  # characters of one text

STYLE = Path(__file__).with_name("page.css").read_text(encoding="utf-8")


def esc(text: object, longest: int = LONGEST) -> str:
    """A text that is safe anywhere in the page, cut where it is too long."""
    return html.escape(_cut(str(text), longest), quote=True)


def inline(text: str) -> str:
    """A sentence with `code` and emphasis, escaped."""
    return inline_html(_cut(text, LONGEST))


def points(value: float | None) -> str:
    """Points as people write them."""
    return "–" if value is None else f"{value:.2f}".rstrip("0").rstrip(".")  # noqa: RUF001  (a dash: no number)


def table(
    header: list[str], rows: list[list[str]], caption: str, numbers: tuple[int, ...] = (), shown: bool = False
) -> str:
    """A table from cells that are HTML already.

    caption: for screen readers, and for everybody if it is `shown`. numbers: columns that are aligned right.
    """
    kind = ["n" if i in numbers else "" for i in range(len(header))]
    heads = "".join(f'<th scope="col" class="{k}">{cell}</th>' for cell, k in zip(header, kind, strict=True))
    body = "".join(
        "<tr>" + "".join(f'<td class="{k}">{cell}</td>' for cell, k in zip(row, kind, strict=True)) + "</tr>"
        for row in rows
    )
    label = f"<caption>{caption}</caption>" if shown else ""
    # Focusable, so that a wide table can be scrolled with the keyboard.
    return (
        f'<div class="scroll" tabindex="0" role="group" aria-label="{caption}"><table>{label}'
        f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def folded(summary: str, body: str) -> str:
    """Something that opens on demand; both are HTML already."""
    return f"<details><summary>{summary}</summary>{body}</details>"


def page(title: str, body: str) -> str:
    """The whole page."""
    # The policy is a second wall: even a mistake in escaping could load and run nothing.
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{esc(title)}</title><style>{STYLE}</style></head><body><main>{body}</main></body></html>\n"
    )


def _cut(text: str, longest: int) -> str:
    text = "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text[: longest + 1])
    return text if len(text) <= longest else f"{text[:longest]} … [cut]"
