"""A real browser, cut off from everything but this machine, that remembers every error."""

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


def why_not() -> str | None:
    """What is missing for browser tests, in words; None if nothing is."""
    try:
        import axe_playwright_python  # noqa: F401
        import playwright  # noqa: F401
    except ImportError as error:
        return f"NO BROWSER TESTS: {error.name} is missing (pip install -e '.[test]')"
    if chromium() is None:
        return "NO BROWSER TESTS: no Chromium or Chrome is on the path (Debian: apt-get install chromium)"
    return None


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


def axe_problems(page, within: str = ".course-widget") -> list[str]:
    """What axe-core finds wrong: rule, what it is about, and where."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page, context=within).response["violations"]
    return [f"{rule['id']}: {rule['help']}: {node['html'][:120]}" for rule in found for node in rule["nodes"]]


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


def tab_to(page, within, selector: str, most: int = 40) -> None:
    """Press Tab until the element has the focus: nothing else may be needed to reach it."""
    target = within.locator(selector).first
    for _ in range(most):
        if target.evaluate("(e) => e === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{selector} cannot be reached by Tab")


def walk(page, within, keys, state=None) -> None:
    """One path of an entry; `state(name)` reads a trait and is asked for those that the path names."""
    page.evaluate("() => document.activeElement?.blur?.()")
    within.locator("summary, button, select, .cw-stage, input").first.focus()
    tab_to(page, within, keys.reach)
    for key in keys.press:
        page.keyboard.press(key)
    settle(page)
    told = within.locator(".cw-status").inner_text()
    assert keys.says in told, f"after {keys.press} on {keys.reach} the live region says {told!r}"
    for name, want in keys.traits.items() if state else ():
        assert state(name) == want, f"after {keys.press} on {keys.reach}: {name}"
