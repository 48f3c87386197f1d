"""A widget as text: its module, its style, and a page in which it lives without Jupyter."""

import html
import json
import re
from functools import cache
from importlib.resources import files
from typing import Any

from .packing import jsonable

FOLDER = files(__package__)
EXPORT = re.compile(r"^export (?=default |async |function |const )", re.M)


def read(file: str) -> str:
    return (FOLDER / file).read_text(encoding="utf-8")


def compact(text: str) -> str:
    """Without whole-line comments, empty lines and indentation: every output carries this text."""
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//"))


@cache
def module_text(name: str, uses: tuple[str, ...] = ()) -> str:
    """The one module of a widget: what all share, the parts that it uses, and its own text ("" for none)."""
    parts = ["shared", *uses] + [name] * bool(name)
    return compact("\n".join(read(f"{part}.js") for part in parts))


@cache
def style_text(name: str) -> str:
    """The style of a widget: what all share, then its own, if it has one."""
    own = f"{name}.css"
    return compact(read("shared.css") + (read(own) if (FOLDER / own).is_file() else ""))


def live_page(title: str, module: str, style: str, state: dict[str, Any]) -> str:
    """A whole page that needs no network and no kernel: the same module, with a small host in the place of Jupyter."""
    script = EXPORT.sub("", module).replace("default widget(", "const courseModule = widget(", 1)
    data = json.dumps(jsonable(state), ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<style>body{{margin:0}}{style}</style></head>"
        f'<body><main id="widget"></main><script type="module">{script}\n{compact(read("host.js"))}\n'
        f"host(courseModule, JSON.parse({json.dumps(data, ensure_ascii=False)}, revive));</script></body></html>"
    )


def in_frame(title: str, page: str) -> str:
    """The page as a frame. It has no height until its script runs: where scripts are off, nothing but the picture
    before it is seen."""
    source = page.replace("&", "&amp;").replace("'", "&#39;")
    return (
        f'<iframe title="{html.escape(title)}" style="width:100%;height:0;border:0;display:block" '
        f"srcdoc='{source}'></iframe>"
    )
