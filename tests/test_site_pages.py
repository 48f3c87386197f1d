"""The pages of the site in a browser: from a disk, without a network."""

import nbformat
import pytest
from site_lessons import code, html_output, lesson, save, widget_output
from widgets.browser import axe_problems, mark, settle, watched_page

pytest.importorskip("math_core")
pytest.importorskip("ziamath")

from course_utils.folders import course_root
from course_utils.plots import table
from course_utils.site import build_site
from course_utils.site.pictures import LIVE, MOST, take_pictures
from course_utils.widgets import AttentionViewer, MaskEditor

pytestmark = pytest.mark.browser
WIDTHS = (320, 390, 768)
LESSONS = sorted((course_root() / "solutions").glob("*.ipynb"))
OVER = "() => document.documentElement.scrollWidth - innerWidth"
# Text outside of code that a reader would take for TeX.
RAW = r"""() => {
  const found = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const text = walk.currentNode;
    if (!text.parentElement.closest("pre, code, script, style, math") && /\$|\\[a-zA-Z]{2,}|\\[()[\]]/.test(text.data))
      found.push(text.data.trim());
  }
  return found;
}"""
ALIVE = """(n) => [...document.querySelectorAll("iframe[srcdoc]")]
  .filter((f) => f.contentDocument?.querySelector(".course-widget[data-ready]") && f.offsetHeight > 50).length >= n"""
FITS = """(f) => Math.abs(f.offsetHeight - f.contentDocument.querySelector(".course-widget").offsetHeight) < 12"""
THEMES = """() => [...document.querySelectorAll("iframe")]
  .map((f) => f.contentDocument.querySelector(".course-widget").dataset.theme)"""
CUT = """(all) => all.filter((e) => e.scrollWidth > e.clientWidth + 1 && e.tabIndex < 0)
  .map((e) => e.outerHTML.slice(0, 99))"""
WIDE_FORMULA = (
    "$$\n\\begin{aligned}\nQ &= " + " + ".join(f"X_{{{i}}} W_{{{i}}}" for i in range(30)) + "\n\\end{aligned}\n$$"
)
TEXT = (
    f"## Formulas\n\nInline $\\frac{{a}}{{b}}$.\n\n{WIDE_FORMULA}\n\n```python\n{'x = 1; ' * 40}\n```\n\n{'|a' * 30}|\n"
)
TEXT += f"{'|---' * 30}|\n{'| word' * 30}|\n\n<details>\n<summary>Hint</summary>\n\nso $x$\n\n</details>"


def widgets_of(path):
    """How many widgets a notebook shows."""
    notebook = nbformat.read(path, as_version=4)
    outputs = [out for cell in notebook.cells if cell.cell_type == "code" for out in cell.outputs]
    return sum("<iframe" in out.get("data", {}).get("text/html", "") for out in outputs)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A site of two lessons with everything that can be too wide, and two widgets."""
    root = tmp_path_factory.mktemp("course")
    many = table([["word", *range(30)]], ["", *(f"column {i}" for i in range(30))], caption="Wide")
    save(
        root,
        "01_first",
        lesson("01", "First", TEXT),
        code("x = 1  # " + "long " * 60, html_output(many._repr_html_() + "<p>$x^2$</p>", "")),
        code("a", widget_output(MaskEditor("the dog bites a man"))),
        code("b", widget_output(AttentionViewer([[[0.5, 0.5], [0.2, 0.8]]], "a b", predict=False))),
    )
    save(root, "02_second", lesson("02", "Second"))
    build_site(root, root / "site")
    return root / "site"


@pytest.fixture
def opened(browser, small):
    with watched_page(browser, ("file:",), offline=True, color_scheme="light") as page:
        page.goto((small / "01_first.html").as_uri())
        page.wait_for_function(ALIVE, arg=2)
        yield page


def test_widgets_are_used_without_kernel_and_network(opened):
    frame = opened.locator(LIVE).first
    view = frame.content_frame.locator(".course-widget")
    assert opened.locator("img").first.is_hidden()
    mark(opened, view)
    opened.wait_for_function(FITS, arg=frame.element_handle())
    view.get_by_role("button", name="Hide the future").click()
    settle(opened)
    assert "15 of 25 cells may attend" in view.locator(".cw-status").inner_text()


def test_the_switch_turns_page_and_widgets_and_is_remembered(opened, small):
    assert opened.evaluate(THEMES) == ["light", "light"]
    lights = opened.evaluate("() => getComputedStyle(document.body).backgroundColor")
    opened.get_by_role("button", name="Dark theme").click()
    opened.wait_for_function(f"() => ({THEMES})().every((theme) => theme === 'dark')")
    assert opened.evaluate("() => getComputedStyle(document.body).backgroundColor") != lights
    opened.goto((small / "02_second.html").as_uri())
    assert opened.evaluate("() => document.documentElement.dataset.theme") == "dark"
    opened.get_by_role("button", name="Light theme").click()
    opened.emulate_media(color_scheme="dark")  # back to what the system says: from now on it is followed
    opened.wait_for_function("() => document.documentElement.dataset.theme === 'dark'")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_and_nothing_is_wider_than_the_screen(browser, small, scheme):
    with watched_page(browser, ("file:",), offline=True, color_scheme=scheme) as page:
        for name in ("index.html", "01_first.html"):
            page.goto((small / name).as_uri())
            page.wait_for_function(ALIVE, arg=0 if name == "index.html" else 2)
            assert page.evaluate("() => document.documentElement.dataset.theme") == scheme
            for width in WIDTHS:
                page.set_viewport_size({"width": width, "height": 800})
                settle(page)
                settle(page)
                assert page.evaluate(OVER) <= 0, (name, width)
                assert page.locator(".wide").evaluate_all(CUT) == [], "it scrolls, but not by keyboard"
            assert axe_problems(page, "html") == []
            assert page.evaluate(RAW) == []


def test_formulas_are_set_in_the_font_that_the_pages_bring(opened):
    assert opened.evaluate("() => document.fonts.check('16px \"Course Math\"', '√')")
    loaded = "() => [...document.fonts].map((f) => [f.family.replaceAll('\"', ''), f.status])"
    assert ["Course Math", "loaded"] in opened.evaluate(loaded)
    tall, flat = (
        opened.locator(f"main math{kind}").first.evaluate("(m) => m.getBoundingClientRect().height")
        for kind in (":has(mfrac)", ":not(:has(mfrac))")
    )
    assert tall > flat > 5, "a fraction is laid out as one"


def test_everything_can_be_read_without_scripts(browser, small):
    with watched_page(browser, ("file:",), offline=True, java_script_enabled=False) as page:
        page.goto((small / "01_first.html").as_uri())
        assert page.locator("img").first.is_visible()
        assert page.locator("iframe").first.bounding_box()["height"] == 0
        page.get_by_role("link", name="02").first.click()
        assert page.get_by_role("heading", level=1).inner_text() == "02 Second"


def test_pictures_of_widgets_are_small_and_differ_by_theme(browser, small, tmp_path, monkeypatch):
    from contextlib import nullcontext

    monkeypatch.setattr("course_utils.site.pictures.launched", lambda: nullcontext(browser))
    taken = take_pictures([small / "01_first.html"], tmp_path)
    names = [file.name for file, _ in taken]
    assert len(names) == len(set(names)) == 4
    assert all(0 < file.stat().st_size <= MOST and words for file, words in taken)
    light, dark = (next(f for f in tmp_path.glob(f"*whom-{theme}.png")).read_bytes() for theme in ("light", "dark"))
    assert light != dark


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The site of the course."""
    out = tmp_path_factory.mktemp("site")
    build_site(course_root(), out)
    return out


@pytest.mark.slow
@pytest.mark.parametrize("name", ["index", *(path.stem for path in LESSONS)])
def test_every_lesson_as_a_page(browser, whole, name):
    """No error, no request, no raw TeX; every widget alive; both themes; nothing over the edge; no barrier."""
    notebook = course_root() / "solutions" / f"{name}.ipynb"
    count = widgets_of(notebook) if notebook.exists() else 0
    with watched_page(browser, ("file:",), offline=True, color_scheme="dark") as page:
        page.goto((whole / f"{name}.html").as_uri())
        page.wait_for_function(ALIVE, arg=count)
        assert page.evaluate(THEMES) == ["dark"] * count
        assert page.evaluate(RAW) == []
        # Dark: outputs were made for a light page, so that this is where colours go wrong.
        assert axe_problems(page, "html") == []
        page.emulate_media(color_scheme="light")
        page.wait_for_function(f"() => ({THEMES})().every((theme) => theme === 'light')")
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 800})
            settle(page)
            settle(page)
            assert page.evaluate(OVER) <= 0, width
            assert page.locator(".wide").evaluate_all(CUT) == []
