"""What tests do in a browser: look for barriers, and walk through a widget by keyboard."""

from course_utils.browser.chromium import FLAGS, PATIENCE, chromium, mark, missing, settle, wait_ready, watched_page

__all__ = ["FLAGS", "PATIENCE", "axe_problems", "chromium", "mark", "settle", "tab_to", "wait_ready", "walk"]
__all__ += ["watched_page", "why_not"]


def why_not() -> str | None:
    """What is missing for browser tests, in words; None if nothing is."""
    return (reason := missing("axe_playwright_python")) and f"NO BROWSER TESTS: {reason}"


def axe_problems(page, within: str = ".course-widget") -> list[str]:
    """What axe-core finds wrong: rule, what it is about, and where."""
    from axe_playwright_python.sync_playwright import Axe

    # Without "preload" axe would ask for style sheets, which a page from a disk may not do; it needs none of them.
    found = Axe().run(page, context=within, options={"preload": False}).response["violations"]
    return [f"{rule['id']}: {rule['help']}: {node['html'][:120]}" for rule in found for node in rule["nodes"]]


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
