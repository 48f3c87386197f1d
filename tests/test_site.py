"""`course site`: what is written, formulas, and the texts of the pages. What pages do: test_site_pages.py."""

import re
from html.parser import HTMLParser

import pytest
from site_lessons import code, html_output, lesson, save, stream, widget_output

from course_utils import cli
from course_utils.folders import CourseError, course_root

pytest.importorskip("math_core")
pytest.importorskip("ziamath")

from course_utils.site import build_site
from course_utils.site.folder import LIST
from course_utils.site.mathematics import in_html, mathml
from course_utils.site.pages import read_page
from course_utils.widgets import MaskEditor


@pytest.fixture
def root(tmp_path):
    """A course with two small solved lessons."""
    save(tmp_path, "01_first", lesson("01", "First & best"), code("1 + 1", stream("2")))
    save(tmp_path, "02_second", lesson("02", "Second"))
    return tmp_path


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# ---------------------------------------------------------------- the folder


def test_two_runs_write_the_same_bytes(root):
    first = build_site(root, root / "a")
    build_site(root, root / "b")
    build_site(root, root / "a")
    assert contents(root / "a") == contents(root / "b")
    assert {path.name for path in first} | {LIST} == set(contents(root / "a"))


def test_a_lesson_that_is_gone_takes_its_page_along(root):
    build_site(root, root / "site")
    (root / "site" / "notes.txt").write_text("mine", encoding="utf-8")
    (root / "solutions" / "02_second.ipynb").unlink()
    build_site(root, root / "site")
    assert not (root / "site" / "02_second.html").exists()
    assert (root / "site" / "notes.txt").read_text(encoding="utf-8") == "mine"
    assert "02_second" not in (root / "site" / "index.html").read_text(encoding="utf-8")


def test_a_folder_of_somebody_else_is_left_alone(root):
    other = root / "other"
    other.mkdir()
    (other / "index.html").write_text("mine", encoding="utf-8")
    before = contents(other)
    with pytest.raises(CourseError, match=re.escape(str(other))):
        build_site(root, other)
    assert contents(other) == before
    with pytest.raises(CourseError, match="file"):
        build_site(root, other / "index.html")


def test_a_list_cannot_name_files_elsewhere(root):
    build_site(root, root / "site")
    (root / "precious.txt").write_text("mine", encoding="utf-8")
    with (root / "site" / LIST).open("a", encoding="utf-8") as names:
        names.write(f"../precious.txt\n{root / 'precious.txt'}\n..\n")
    build_site(root, root / "site")
    assert (root / "precious.txt").exists()


def test_an_error_leaves_the_old_pages(root):
    build_site(root, root / "site")
    before = contents(root / "site")
    save(root, "02_second", lesson("02", "Second", r"$\nosuchcommand{x}$"))
    with pytest.raises(CourseError, match=r"02_second.*\\nosuchcommand"):
        build_site(root, root / "site")
    assert contents(root / "site") == before


def test_without_solutions_it_says_what_to_run(tmp_path):
    with pytest.raises(CourseError, match="course build"):
        build_site(tmp_path, tmp_path / "site")


def test_the_command(root, monkeypatch, capsys):
    (root / "lessons").mkdir()
    monkeypatch.setattr(cli, "course_root", lambda: root)
    assert cli.main(["site"]) == 0
    assert (root / "site" / "index.html").is_file()
    assert "index.html" in capsys.readouterr().out
    assert cli.main(["site", "--out", str(root / "solutions")]) == 1
    assert "nothing was written" in capsys.readouterr().err


def test_the_site_is_not_committed():
    assert "/site/" in (course_root() / ".gitignore").read_text(encoding="utf-8").split()


# ---------------------------------------------------------------- formulas


def shape(text):
    """Names of elements with what stands in them, without attributes."""
    return re.sub(r"(<\w+)[^>]*>", r"\1>", text)


def test_a_formula_is_mathml_with_its_parts_in_place():
    assert shape(mathml(r"\sqrt{d_k}", block=False)) == (
        "<math><msqrt><msub><mi>d</mi><mi>k</mi></msub></msqrt></math>"
    )
    rows = mathml("\\begin{aligned}a &= b \\\\ c &= d\\end{aligned}", block=True)
    assert rows.count("<mtr") == 2
    assert rows.count("<mtd") == 4
    assert "&" not in rows


def test_dollars_in_outputs_are_formulas_except_where_jupyterlab_leaves_them():
    told = in_html("<p title='$a$ > b'>$x &lt; 1$ and <code>$y$</code></p><iframe srcdoc='<b>$z$</b>'></iframe>")
    assert told.startswith("<p title='$a$ > b'><math>")
    assert "<code>$y$</code>" in told
    assert "<iframe srcdoc='<b>$z$</b>'>" in told
    assert "&lt;" in told
    assert "$x" not in told


# ---------------------------------------------------------------- the text of a page


class Ids(HTMLParser):
    """All ids of a page, and what it links to or loads."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.headings = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if "id" in attrs:
            self.ids.append(attrs["id"])
        self.links += [attrs[name] for name in ("href", "src") if name in attrs]
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(attrs.get("id"))


def test_the_index_says_what_a_lesson_teaches_and_how_long_it_takes(root):
    page = read_page(root / "solutions" / "01_first.ipynb")
    assert (page.number, page.title, page.time) == ("01", "First & best", "ten minutes; running takes one")
    assert page.goals == ["say <em>why</em>, in words that run on", "write <code>it</code>"]
    build_site(root, root / "site")
    text = (root / "site" / "index.html").read_text(encoding="utf-8")
    for told in ("01 First &amp; best", page.time, *page.goals, "solutions of all exercises"):
        assert told in text


@pytest.mark.parametrize("lost", ["**Time**", "**You will be able to**", "**The question.**", "# 01"])
def test_a_lesson_without_its_head_is_named(root, lost):
    save(root, "01_first", lesson("01", "First").replace(lost, "nothing"))
    with pytest.raises(CourseError, match=r"01_first.*needs"):
        build_site(root, root / "site")


def test_links_lead_somewhere_and_ids_are_used_once(root):
    text = "## Twice\n\n## Twice\n\n### $x$ alone\n\n### $y$\n\nsee [there](02_second.ipynb#twice), [up](#twice-2)"
    save(root, "01_first", lesson("01", "First", text))
    save(root, "02_second", lesson("02", "Second", "## Twice"))
    build_site(root, root / "site")
    pages = {path.name: Ids(path.read_text(encoding="utf-8")) for path in (root / "site").glob("*.html")}
    for name, page in pages.items():
        assert len(page.ids) == len(set(page.ids)), name
        for link in page.links:
            file, _, place = link.partition("#")
            assert not re.match(r"\w+://|//", link), f"{name} needs the network: {link}"
            if not link.startswith("data:"):
                assert (root / "site" / (file or name)).is_file(), link
                assert not place or place in pages[file or name].ids, link
    first = pages["01_first.html"]
    assert all(first.headings)
    assert {"02_second.html", "02_second.html#twice", "index.html"} <= set(first.links)
    assert "01_first.html" in pages["02_second.html"].links


def test_outputs_are_kept_as_they_can_live_and_state_is_not(root):
    widget = MaskEditor("a b c")
    save(
        root,
        "01_first",
        lesson("01", "First"),
        code("w", widget_output(widget)),
        code("print('<b>')", stream("<b> \x1b[31mred\x1b[0m")),
        code("html", html_output("<p>shown</p>", "not shown")),
        widgets={"application/vnd.jupyter.widget-state+json": {"state": {"secret": {}}}},
    )
    build_site(root, root / "site")
    text = (root / "site" / "01_first.html").read_text(encoding="utf-8")
    assert text.count("<iframe") == 1
    assert "widget-view" not in text and "secret" not in text and "require" not in text
    assert "&lt;b&gt;" in text and "\x1b" not in text
    assert "<p>shown</p>" in text and "not shown" not in text


def test_no_heading_of_a_table_is_empty(root):
    save(root, "01_first", lesson("01", "First", "| | b |\n|---|---|\n| 1 | 2 |"))
    assert "<th></th>" not in read_page(root / "solutions" / "01_first.ipynb").body
