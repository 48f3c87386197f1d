"""Formulas as MathML, which every current browser sets by itself, and the font to set them in.

No script and no network is needed, a screen reader can read them, and a formula that cannot be translated stops the
build. The font matters: without one that knows how roots and brackets grow, MathML looks broken, and phones have none.
"""

import base64
import html
import io
import re
from functools import cache
from importlib.resources import files

from course_utils.folders import CourseError

FONT = ("ziamath", "fonts/STIXTwoMath-Regular.ttf")
PRINTABLE = frozenset(map(chr, range(0x20, 0x7F)))
TAG = re.compile(r"""(<!--.*?-->|<(?:[^"'>]|"[^"]*"|'[^']*')*>)""", re.S)
NAME = re.compile(r"<(/?)(\w+)")
INLINE = re.compile(r"\$([^$\n]+)\$")
# (first, last, italic form of the first): Latin and Greek letters. The italic h is older than the others.
ITALIC = ((0x61, 0x7A, 0x1D44E), (0x41, 0x5A, 0x1D434), (0x3B1, 0x3C9, 0x1D6FC), (0x391, 0x3A9, 0x1D6E2))
ITALIC += ((0x2202, 0x2202, 0x1D715), (0x3F5, 0x3F5, 0x1D716), (0x3D1, 0x3D1, 0x1D717), (0x3D5, 0x3D5, 0x1D719))
PLANCK = 0x210E
VERBATIM = {"code", "pre", "script", "style", "textarea", "math"}


@cache
def _converter():
    from math_core import LatexToMathML

    return LatexToMathML(fancy_error=False)


def mathml(tex: str, *, block: bool) -> str:
    """The formula `tex` (without dollars) as a <math> element; raises CourseError if it has a command unknown here."""
    from math_core import LatexError

    try:
        return _converter().convert_with_local_state(tex.strip(), displaystyle=block)
    except LatexError as error:
        raise CourseError(f"the formula ${tex.strip()}$ cannot be set without TeX: {error}") from None


def in_html(text: str) -> str:
    """HTML of an output with $…$ in its text translated, as JupyterLab does; code, scripts and tags stay."""
    out, inside = [], []
    for i, part in enumerate(TAG.split(text)):
        if i % 2:
            if (found := NAME.match(part)) and found[2].lower() in VERBATIM and not part.endswith("/>"):
                inside = inside[:-1] if found[1] else [*inside, found[2]]
            out.append(part)
        elif inside:
            out.append(part)
        else:
            out.append(INLINE.sub(lambda m: mathml(html.unescape(m[1]), block=False), part))
    return "".join(out)


def characters(pages: list[str]) -> frozenset[str]:
    """Every character that the formulas of these pages show."""
    shown = set(PRINTABLE)
    for page in pages:
        for formula in re.findall(r"<math\b.*?</math>", page, re.S):
            shown |= set(html.unescape(re.sub(r"<[^>]+>", "", formula)))
    return frozenset(shown | {slanted(c) for c in shown} | {"√"})


def slanted(letter: str) -> str:
    """The italic form that a browser shows for an identifier of one letter (MathML Core, "italic mapping")."""
    code = ord(letter)
    for first, last, italic in ITALIC:
        if first <= code <= last:
            return chr(PLANCK if letter == "h" else italic + code - first)
    return letter


@cache
def font_style(shown: frozenset[str]) -> str:
    """A CSS rule with the font in it, cut down to these characters and the larger forms that they grow into."""
    from fontTools import subset

    font = files(FONT[0]) / FONT[1]
    if not font.is_file():
        raise CourseError(f"{FONT[0]} has no file {FONT[1]}: another version of it is installed than the course needs.")
    options = subset.Options(layout_features=["*"], flavor="woff", hinting=False, notdef_outline=True)
    with font.open("rb") as source:
        face = subset.load_font(source, options)
        cutter = subset.Subsetter(options)
        cutter.populate(unicodes=map(ord, shown))
        cutter.subset(face)
        small = io.BytesIO()
        subset.save_font(face, small, options)
    data = base64.b64encode(small.getvalue()).decode("ascii")
    return f'@font-face {{ font-family: "Course Math"; src: url(data:font/woff;base64,{data}) format("woff"); }}\n'
