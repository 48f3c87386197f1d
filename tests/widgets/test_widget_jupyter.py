"""Every widget where it is used: in JupyterLab and Notebook, in both themes, and in notebooks opened again."""

import json
from contextlib import contextmanager

import nbformat
import pytest

from .browser import mark, settle, wait_ready, walk, watched_page
from .jupyter import CURRENT, environment, in_kernel, open_notebook, run_all, stop_kernels, write_notebook
from .registry import ENTRIES

pytestmark = [pytest.mark.browser, pytest.mark.slow]
NODES = 50  # that a widget may leave behind each time its cell runs again
RERUNS = 4
SIZE = {"width": 1280, "height": 1200}
COUNT_NODES = "() => document.querySelectorAll('*').length"


def cell(name):
    """Code that shows an example and keeps it under the widget's own name."""
    return f"from widgets.registry import ENTRIES\n{name} = ENTRIES[{name!r}].make(0)\n{name}"


CELLS = [cell(name) for name in ENTRIES]
_noise = {}


@contextmanager
def jupyter_page(browser, address, app, root):
    """(page, check): check() fails on every error but those that the application has without any widget."""
    allowed = (address, address.replace("http", "ws"))
    if address not in _noise:
        _noise[address] = []
        write_notebook(root / "empty.ipynb", ["1 + 1"])
        with watched_page(browser, allowed, _noise[address], viewport=SIZE) as page:
            open_notebook(page, address, app, "empty.ipynb")
            run_all(page)
            page.locator(".jp-OutputArea-output").first.wait_for()
    errors = []

    def check():
        assert [error for error in errors if error not in _noise[address]] == []

    with watched_page(browser, allowed, errors, viewport=SIZE) as page:
        yield page, check
    stop_kernels(address)
    check()


@pytest.fixture(
    scope="module",
    params=[("lab", False), ("lab", True), ("notebook", False), ("notebook", True)],
    ids=["lab, light", "lab, dark", "notebook, light", "notebook, dark"],
)
def place(request, jupyter, browser):
    """A notebook in which every widget has run: (page, check, dark)."""
    app, dark = request.param
    address, root = jupyter(app, dark)
    write_notebook(root / "all.ipynb", CELLS)
    with jupyter_page(browser, address, app, root) as (page, check):
        open_notebook(page, address, app, "all.ipynb")
        run_all(page)
        wait_ready(page, len(ENTRIES))
        yield page, check, dark


def test_a_widget_lives_in_jupyter(place, entry):
    page, check, dark = place
    name = entry.name
    view = page.locator(".jp-CodeCell").nth(list(ENTRIES).index(name)).locator(".course-widget")
    theme = "dark" if dark else "light"
    page.wait_for_function("(theme) => document.body.dataset.jpThemeLight === String(theme === 'light')", arg=theme)
    settle(page)  # Notebook begins light and turns dark with the widgets already there
    assert view.get_attribute("data-theme") == theme
    assert in_kernel(page, f"print({name}.prediction)") == "None"
    mark(page, view)
    assert in_kernel(page, f"print({name}.prediction)") == "b"
    value = f"w = {name}; print({entry.kernel})"
    before = in_kernel(page, value)
    keys = entry.keyboard[0]
    walk(page, view, keys)
    assert in_kernel(page, value) != before
    for trait, want in keys.traits.items():
        assert in_kernel(page, f"print({name}.{trait} == {want!r})") == "True"
    in_kernel(page, f"{name}.prediction = None")
    view.locator("fieldset").wait_for()
    check()


def test_cells_that_run_again_leave_little(jupyter, browser):
    address, root = jupyter("lab")
    write_notebook(root / "again.ipynb", CELLS)
    with jupyter_page(browser, address, "lab", root) as (page, check):
        open_notebook(page, address, "lab", "again.ipynb")
        run_all(page)
        wait_ready(page, len(ENTRIES))
        settle(page)
        first = page.evaluate(COUNT_NODES)
        for _ in range(RERUNS):
            page.evaluate("() => { for (const e of document.querySelectorAll('.course-widget')) e.dataset.old = '1'; }")
            run_all(page)
            page.wait_for_function(
                "(n) => document.querySelectorAll('.course-widget[data-ready]:not([data-old])').length === n"
                " && !document.querySelector('[data-old]')",
                arg=len(ENTRIES),
            )
        assert (page.evaluate(COUNT_NODES) - first) / RERUNS / len(ENTRIES) <= NODES
        check()


@pytest.fixture(scope="module")
def executed(browser, tmp_path_factory):
    """A notebook with every widget: (as the build leaves it, as JupyterLab would save it)."""
    from nbclient import NotebookClient

    from course_utils.authoring.run import WIDGET_VIEW

    folder = tmp_path_factory.mktemp("executed")
    file = folder / "widgets.ipynb"
    write_notebook(file, CELLS)
    notebook = nbformat.read(file, as_version=4)
    NotebookClient(notebook, store_widget_state=False, record_timing=False, timeout=300).execute(
        env=environment(folder)
    )
    saved = json.loads(json.dumps(notebook))
    for code in notebook.cells:
        for output in code.outputs:
            output.data.pop(WIDGET_VIEW)
    return notebook, saved


def test_a_run_stores_no_state_of_widgets(executed):
    assert "model_id" not in json.dumps(executed[0])
    for notebook in executed:
        assert "widgets" not in notebook["metadata"]
        for code in notebook["cells"]:
            (output,) = code["outputs"]
            assert output["output_type"] == "execute_result"
            assert "<img" in output["data"]["text/html"]


@pytest.mark.parametrize("which", [0, 1], ids=["as built", "as saved by a student"])
def test_a_notebook_that_is_not_trusted_shows_pictures(executed, jupyter, browser, which):
    address, root = jupyter("lab")
    (root / f"strange-{which}.ipynb").write_text(json.dumps(executed[which]), encoding="utf-8")
    with jupyter_page(browser, address, "lab", root) as (page, check):
        open_notebook(page, address, "lab", f"strange-{which}.ipynb")
        pictures = page.locator(".jp-OutputArea-output img")
        pictures.first.wait_for()
        page.wait_for_function(f"() => {CURRENT}.content.widgets.every((c) => !c.model.trusted)")
        for i, entry in enumerate(ENTRIES.values()):
            pictures.nth(i).scroll_into_view_if_needed()
            assert pictures.nth(i).get_attribute("alt") == entry.make(0).describe()
            assert pictures.nth(i).evaluate("(img) => img.complete && img.naturalWidth > 100")
        assert page.locator(".jp-OutputArea-output iframe").count() == 0
        check()


def test_a_trusted_notebook_without_a_kernel_is_alive(executed, jupyter, browser):
    """What the build leaves, trusted: the page in its frame takes the theme of the page around it."""
    address, root = jupyter("lab", True)
    (root / "trusted.ipynb").write_text(json.dumps(executed[0]), encoding="utf-8")
    with jupyter_page(browser, address, "lab", root) as (page, check):
        open_notebook(page, address, "lab", "trusted.ipynb")
        page.locator(".jp-OutputArea-output img").first.wait_for()
        page.evaluate(f"() => {{ for (const c of {CURRENT}.content.widgets) c.model.trusted = true; }}")
        for i in range(len(ENTRIES)):
            view = page.frame_locator("iframe").nth(i).locator(".course-widget[data-ready]")
            view.wait_for()
            assert view.get_attribute("data-theme") == "dark"
        check()


def test_an_exported_page_is_alive_without_network(executed, browser, tmp_path):
    from nbconvert import HTMLExporter

    file = tmp_path / "page.html"
    html, _ = HTMLExporter(template_name="basic").from_notebook_node(nbformat.from_dict(executed[0]))
    file.write_text(
        f"<!doctype html><html lang='en'><meta charset='utf-8'><body>{html}</body></html>", encoding="utf-8"
    )
    with watched_page(browser, ("file:",), offline=True) as page:
        page.goto(file.as_uri())
        for i, entry in enumerate(ENTRIES.values()):
            frame = page.frame_locator("iframe").nth(i)
            view = frame.locator(".course-widget[data-ready]")
            view.wait_for()
            mark(page, view)
            assert page.locator("img").nth(i).is_hidden(), entry.name
            height = page.locator("iframe").nth(i).bounding_box()["height"]
            assert abs(height - view.bounding_box()["height"]) < 12
