"""A solved notebook as the parts of a page."""

import html
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import nbformat
from jinja2 import pass_context
from nbconvert import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

from course_utils.folders import CourseError

from .mathematics import in_html, mathml

TEMPLATES = Path(__file__).parent / "templates"
TITLE = re.compile(r"# +(\d+) +(.+)")
GOALS = re.compile(r"\*\*You will be able to\*\*\s*\n((?:[-*] .*\n?(?: +\S.*\n?)*)+)")
TIME = re.compile(r"\*\*Time\*\* +([^*]+?)(?:\.?\s*(?:\n\s*\n|\n\*\*|$))", re.S)
QUESTION = re.compile(r"\*\*The question\.\*\* +\*(.+?)\*")


@dataclass
class Page:
    """A lesson: what the index says of it, the headings (id, HTML), and its cells as HTML."""

    file: str
    number: str
    title: str
    question: str
    goals: list[str]
    time: str
    headings: list[tuple[str, str]]
    body: str


class Text(IPythonRenderer):
    """Markdown as HTML: formulas as MathML, headings with ids, wide things in boxes of their own."""

    def __init__(self, **options):
        super().__init__(escape=False, exclude_anchor_links=True, **options)
        self.used: Counter[str] = Counter()
        self.headings: list[tuple[str, str]] = []

    def inline_math(self, body: str) -> str:
        return mathml(body, block=False)

    def block_math(self, body: str) -> str:
        return f'<div class="formula wide">{mathml(body, block=True)}</div>\n'

    def latex_environment(self, name: str, body: str) -> str:
        return self.block_math(f"\\begin{{{name}}}{body}\\end{{{name}}}")

    def paragraph(self, text: str) -> str:
        # A formula between double dollars is a paragraph of its own; a <div> cannot stand in a <p>.
        pieces = re.split(r'(<div class="formula wide">.*?</div>\n?)', text, flags=re.S)
        return "".join(p if p.startswith("<div") else super(Text, self).paragraph(p) for p in pieces if p.strip())

    def heading(self, text: str, level: int, **attrs) -> str:
        words = re.sub(r"<math.*?</math>|<[^>]+>", "", text, flags=re.S)
        slug = "-".join(re.findall(r"\w+", html.unescape(words).lower())) or "section"
        self.used[slug] += 1
        name = slug if self.used[slug] == 1 else f"{slug}-{self.used[slug]}"
        if level == 2:
            self.headings.append((name, text))
        return f'<h{level} id="{name}">{text}</h{level}>\n'

    def table(self, text: str) -> str:
        text = text.replace("<th></th>", "<td></td>")  # a corner without words is no header to a screen reader
        return f'<div class="wide"><table>{text}</table></div>\n'

    def block_code(self, code: str, info: str | None = None) -> str:
        return super().block_code(code, info).replace("<pre>", '<pre class="wide">', 1)

    def link(self, text: str, url: str, title: str | None = None) -> str:
        if "://" not in url:  # from one lesson to another
            url = re.sub(r"^(?:\./)?(\w+)\.ipynb(?=$|#)", r"\1.html", url)
        return super().link(text, url, title)

    def render_text(self, source: str) -> str:
        return MarkdownWithMath(renderer=self).render(source)


class LessonExporter(HTMLExporter):
    """nbconvert with the course's template for cells, and one renderer a lesson."""

    def __init__(self, **options):
        super().__init__(extra_template_basedirs=[str(TEMPLATES)], template_name="lesson", **options)
        self.text = Text()

    @pass_context
    def markdown2html(self, context, source):
        return self.text.render_text(source)

    def default_filters(self):
        yield from super().default_filters()
        yield "formulas_in", in_html


def read_page(path: Path) -> Page:
    """The page of one solved notebook; raises CourseError if it does not begin as a lesson does."""
    try:
        notebook = nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)
    except (OSError, ValueError, AttributeError, KeyError, nbformat.ValidationError) as error:
        raise CourseError(f"{path} is not a notebook that can be read: {error}") from None
    # The state of a run, if somebody saved one: the pages in the outputs live without it.
    notebook.metadata.pop("widgets", None)
    first = next((cell.source for cell in notebook.cells if cell.cell_type == "markdown"), "")
    about = {
        "a title, # 01 Title": TITLE.search(first),
        "**The question.** *…*": QUESTION.search(first),
        "**You will be able to** and a list": GOALS.search(first),
        "**Time** …": TIME.search(first),
    }
    if missing := [what for what, found in about.items() if not found]:
        raise CourseError(f"{path}: the first text of a lesson needs {'; '.join(missing)}.")
    title, question, goals, time = about.values()
    exporter, plain = LessonExporter(), Text()
    try:
        body, _ = exporter.from_notebook_node(notebook)
        return Page(
            file=f"{path.stem}.html",
            number=title[1],
            title=title[2].strip(),
            question=_inline(plain, question[1]),
            goals=[_inline(plain, goal) for goal in re.split(r"^[-*] ", goals[1], flags=re.M) if goal.strip()],
            time=_inline(plain, " ".join(time[1].split()).rstrip(".")),
            headings=exporter.text.headings,
            body=body,
        )
    except CourseError as error:
        raise CourseError(f"{path}: {error}") from None


def _inline(text: Text, source: str) -> str:
    """A phrase of Markdown as HTML, without the paragraph around it and the mark at its end."""
    return re.sub(r"^<p>|</p>\s*$", "", text.render_text(" ".join(source.split()).rstrip(";.")).strip())
