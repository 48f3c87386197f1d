"""A real browser, cut off from everything but this machine, that remembers every error."""

import importlib.util
import os
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path

FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
PATIENCE = 90_000  # milliseconds; a busy machine is slow, not wrong


def chromium() -> str | None:
    """The browser's file: what COURSE_CHROMIUM names, or one of the usual names on the path."""
    named = os.environ.get("COURSE_CHROMIUM")
    places = [Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")] if sys.platform == "darwin" else []
    found = [named] if named else [shutil.which(name) for name in NAMES] + [str(p) for p in places if p.is_file()]
    return next((place for place in found if place), None)


def missing(*packages: str) -> str | None:
    """What is missing to drive a browser, in words; None if nothing is. packages: others that are needed with it."""
    for name in ("playwright", *packages):
        if importlib.util.find_spec(name) is None:
            return f"{name} is missing (pip install -e '.[test]')"
    if chromium() is None:
        return "no Chromium or Chrome is on the path (Debian: apt-get install chromium; COURSE_CHROMIUM names another)"
    return None


@contextmanager
def launched():
    """A browser without a window; there can be one in a process at a time."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def watched_page(
    browser, allowed: tuple[str, ...] = ("file:", "data:", "blob:"), errors: list[str] | None = None, **options
):
    """A page of a fresh context. Leaving it fails if there was an error in it, or a request elsewhere.

    allowed: beginnings of addresses that may be asked for. errors: a list to collect into instead of failing.
    """
    strict, found = errors is None, [] if errors is None else errors
    context = browser.new_context(**{"viewport": {"width": 900, "height": 900}, **options})
    context.set_default_timeout(PATIENCE)

    def route(handler):
        if handler.request.url.startswith((*allowed, "data:", "blob:", "about:")):
            handler.continue_()
        else:
            found.append(f"request to {handler.request.url}")
            handler.abort()

    context.route("**/*", route)
    page = context.new_page()
    page.on("pageerror", lambda error: found.append(f"error: {error}"))
    page.on("console", lambda said: found.append(f"console: {said.text}") if said.type == "error" else None)
    try:
        yield page
        if strict and found:
            raise AssertionError("the page is not clean:\n" + "\n".join(found))
    finally:
        context.close()


def wait_ready(page, count: int = 1) -> None:
    page.wait_for_function("(n) => document.querySelectorAll('.course-widget[data-ready]').length >= n", arg=count)


def settle(page) -> None:
    """Two frames: what was asked for has been drawn."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())))")


def mark(page, within, letter: str = "b") -> None:
    """Mark a prediction, by pointer."""
    within.locator(f"input[type=radio][value={letter}]").check()
    within.get_by_role("button", name="Mark my answer").click()
    within.locator("fieldset").wait_for(state="detached")
    settle(page)
