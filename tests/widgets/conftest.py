"""One page for each widget, and one Jupyter server for each application and theme that a test asks for."""

from contextlib import ExitStack

import pytest

from .browser import wait_ready, watched_page
from .jupyter import DARK, server
from .registry import ENTRIES


@pytest.fixture
def show(browser, tmp_path):
    """show(widget, **options of the browser's context): the widget's own page, offline; gives (page, root)."""
    with ExitStack() as stack:

        def open_page(widget, **options):
            file = tmp_path / f"{id(widget)}.html"
            file.write_text(widget.to_html(), encoding="utf-8")
            page = stack.enter_context(watched_page(browser, offline=True, **options))
            page.goto(file.as_uri())
            wait_ready(page)
            return page, page.locator(".course-widget")

        yield open_page


@pytest.fixture(scope="session")
def jupyter(browser, tmp_path_factory):
    """jupyter(app, dark): the address of a server, and the folder of its notebooks."""
    with ExitStack() as stack:
        running = {}

        def start(app, dark=False):
            if (app, dark) not in running:
                folder, root = tmp_path_factory.mktemp("server"), tmp_path_factory.mktemp("notebooks")
                theme = DARK if dark else "JupyterLab Light"
                running[app, dark] = stack.enter_context(server(app, root, folder, theme)), root
            return running[app, dark]

        yield start


@pytest.fixture(params=ENTRIES.values(), ids=ENTRIES)
def entry(request):
    return request.param
