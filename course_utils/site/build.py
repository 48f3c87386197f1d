"""All pages of the site, as texts, and then as files."""

import importlib.util
from pathlib import Path

from course_utils.folders import CourseError

from .folder import require_own, write_folder

TOOLS = ("nbconvert", "nbformat", "jinja2", "math_core", "ziamath", "fontTools")


def require_tools() -> None:
    """Raise CourseError that says what to install when a tool is missing."""
    missing = [tool for tool in TOOLS if importlib.util.find_spec(tool) is None]
    if missing:
        raise CourseError(
            f"The pages need {', '.join(missing)}. In the folder that holds pyproject.toml, run:\n"
            'pip install -e ".[author]"'
        )


def write_site(root: Path, out: Path) -> list[Path]:
    """See `course_utils.site.build_site`."""
    require_own(out)
    require_tools()
    notebooks = sorted((root / "solutions").glob("*.ipynb"))
    if not notebooks:
        raise CourseError(f"{root / 'solutions'} holds no notebook: run `course build` first.")
    return write_folder(out, make_site(notebooks))


def make_site(notebooks: list[Path]) -> dict[str, str]:
    """The text of every file (name: text) of the site of these solved notebooks, in their order."""
    import jinja2

    from .mathematics import characters, font_style
    from .pages import TEMPLATES, read_page

    pages = [read_page(path) for path in notebooks]
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES, encoding="utf-8"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    files = {"index.html": templates.get_template("index.html.j2").render(pages=pages)}
    lesson = templates.get_template("page.html.j2")
    for i, page in enumerate(pages):
        before, after = pages[i - 1] if i else None, pages[i + 1] if i + 1 < len(pages) else None
        files[page.file] = lesson.render(page=page, before=before, after=after)
    shown = characters([*files.values()])
    files["site.css"] = font_style(shown) + (TEMPLATES / "site.css").read_text(encoding="utf-8")
    files["site.js"] = (TEMPLATES / "site.js").read_text(encoding="utf-8")
    return files
