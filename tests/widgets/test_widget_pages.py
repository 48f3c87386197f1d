"""Every widget in a browser, as a page of its own, without kernel and without network."""

import pytest

from course_utils.benchmarks import hover as speed

from .browser import axe_problems, mark, settle, wait_ready, walk
from .entries import attention_viewer

pytestmark = pytest.mark.browser
WIDTHS = (320, 390, 768)
TARGET = 24  # CSS pixels, WCAG 2.2, 2.5.8
FRAMES = 4  # a ratio, so that a busy machine does not decide


def state_of(page):
    """Traits of the widget on this page."""
    return lambda name: page.evaluate("(name) => courseWidget.model.get(name)", name)


def pixels(root):
    """What is drawn, without the table."""
    return root.screenshot()


def test_nothing_is_given_away_before_the_prediction(show, entry):
    (page, root), (other_page, other) = show(entry.make(0)), show(entry.make(1))
    assert root.locator("details").is_hidden()
    assert "prediction" in root.locator(".cw-status").inner_text()
    assert root.get_by_role("button", name="Mark my answer").is_disabled()
    assert pixels(root) == pixels(other), "before the prediction the picture depends on the numbers"
    mark(page, root)
    mark(other_page, other)
    assert state_of(page)("prediction") == "b"
    assert root.locator("details").is_visible()
    assert pixels(root) != pixels(other)


def test_the_prediction_can_be_marked_by_keyboard(show, entry):
    page, _ = show(entry.make(0))
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    settle(page)
    assert state_of(page)("prediction") == "b"
    assert page.evaluate("() => document.activeElement !== document.body"), "the focus got lost"


def test_every_step_by_keyboard(show, entry):
    page, root = show(entry.make(0))
    mark(page, root)
    for keys in entry.keyboard:
        walk(page, root, keys, state_of(page))


def test_everything_that_can_be_used_is_reached_by_tab(show, entry):
    page, root = show(entry.make(0))
    mark(page, root)
    page.evaluate("() => document.activeElement.blur()")
    seen = set()
    for _ in range(root.locator("*").count()):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("() => [...document.querySelectorAll('*')].indexOf(document.activeElement)"))
    places = "(all) => all.filter((e) => e.offsetParent).map((e) => [...document.querySelectorAll('*')].indexOf(e))"
    wanted = root.locator("button:enabled, select, input, summary, .cw-stage").evaluate_all(places)
    assert wanted
    assert set(wanted) <= seen


def test_the_table_has_the_numbers(show, entry):
    page, root = show(entry.make(0))
    mark(page, root)
    root.locator("summary").click()
    root.locator("table").wait_for()
    rows = root.locator("tbody tr").count()
    assert rows > 1
    assert root.locator("tbody td").count() >= rows
    assert root.locator("caption").inner_text()
    assert root.locator("thead th").count() == root.locator("tbody tr").first.locator("th, td").count()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(show, entry, scheme):
    page, root = show(entry.make(0), color_scheme=scheme)
    assert root.get_attribute("data-theme") == scheme
    assert axe_problems(page) == []
    mark(page, root)
    root.locator("summary").click()
    root.locator("table").wait_for()
    for keys in entry.keyboard[:1]:
        walk(page, root, keys)
    assert axe_problems(page) == []


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_runs_over_the_edge(show, entry, width):
    page, root = show(entry.make(0), viewport={"width": width, "height": 800})
    over = "() => document.documentElement.scrollWidth - innerWidth"
    assert page.evaluate(over) <= 0
    mark(page, root)
    root.locator("summary").click()
    settle(page)
    assert page.evaluate(over) <= 0
    page.set_viewport_size({"width": 320, "height": 800})
    settle(page)
    settle(page)
    assert page.evaluate(over) <= 0
    inner = """(all) => all.filter((e) => e.offsetParent && e.getBoundingClientRect().right > innerWidth + 0.5)
      .map((e) => e.outerHTML)"""
    assert root.locator("button, select, fieldset, p, summary").evaluate_all(inner) == []


def test_fingers_find_what_they_touch(show, entry):
    page, root = show(entry.make(0), viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True)
    small = """(all, least) => all.filter((e) => e.offsetParent)
      .filter((e) => Math.min(e.getBoundingClientRect().width, e.getBoundingClientRect().height) < least)
      .map((e) => e.outerHTML.slice(0, 80))"""
    targets = "button, select, summary, label, .cw-stage"
    assert root.locator(targets).evaluate_all(small, TARGET) == []
    root.locator("input[type=radio]").first.tap()
    root.get_by_role("button", name="Mark my answer").tap()
    settle(page)
    assert state_of(page)("prediction") == "a"
    assert root.locator(targets).evaluate_all(small, TARGET) == []
    if entry.acts_on:
        before = state_of(page)(entry.acts_on)
        stage = root.locator(".cw-stage").first
        stage.scroll_into_view_if_needed()
        box = stage.bounding_box()
        stage.tap(position={"x": box["width"] / 2, "y": box["height"] * 0.6})
        settle(page)
        assert state_of(page)(entry.acts_on) != before


def test_a_click_acts_on_the_cell_below_the_pointer(show, entry):
    if not entry.acts_on:
        pytest.skip("this widget has no matrix")
    page, root = show(entry.make(0))
    mark(page, root)
    before = state_of(page)(entry.acts_on)
    stage = root.locator(".cw-stage").first
    box = stage.bounding_box()
    stage.hover(position={"x": box["width"] / 2, "y": box["height"] * 0.6})
    settle(page)
    assert "Query" in root.locator(".cw-status").inner_text()
    stage.click(position={"x": box["width"] / 2, "y": box["height"] * 0.6})
    settle(page)
    assert state_of(page)(entry.acts_on) != before


def test_the_theme_of_the_page_is_followed_at_once(show, entry):
    page, _ = show(entry.make(0), color_scheme="light")
    page.emulate_media(color_scheme="dark")
    page.wait_for_function("() => document.querySelector('.course-widget').dataset.theme === 'dark'")
    page.evaluate("() => { document.body.style.backgroundColor = 'white'; }")
    page.wait_for_function("() => document.querySelector('.course-widget').dataset.theme === 'light'")


def test_on_a_screen_with_small_pixels_it_is_drawn_finely(show, entry):
    _, root = show(entry.make(0), device_scale_factor=2)
    sizes = root.locator("canvas").evaluate_all(
        "(all) => all.filter((c) => c.offsetParent).map((c) => c.width / c.getBoundingClientRect().width)"
    )
    assert all(abs(ratio - 2) < 0.05 for ratio in sizes)


def test_a_view_that_ends_leaves_nothing(show, entry):
    page, _ = show(entry.make(0))
    left = page.evaluate("""async () => {
      const el = document.createElement('div');
      document.body.append(el);
      const { model } = courseWidget;
      const before = document.querySelectorAll('*').length;
      const stop = await courseWidget.widget.render({ model, el });
      const grown = document.querySelectorAll('*').length - before;
      await new Promise((done) => setTimeout(done, 100));
      stop();
      model.set('prediction', 'a');
      await new Promise((done) => setTimeout(done, 100));
      return [grown > 5, document.querySelectorAll('*').length - before, el.childNodes.length];
    }""")
    assert left[0]
    assert left[2] == 0


def test_python_that_gives_new_inputs_draws_anew(show):
    viewer = attention_viewer.make(0)
    page, root = show(viewer)
    mark(page, root)
    words = [f"new{i}" for i in range(len(viewer.query_words))]
    page.evaluate("(words) => courseWidget.model.set('query_words', words)", words)
    page.wait_for_function(
        "() => document.querySelector('select:nth-of-type(1)') && document.body.textContent.includes('new3')"
    )


@pytest.mark.parametrize("T", [1, 2, 64, 256])
def test_the_viewer_draws_every_size(show, T):
    page, root = show(attention_viewer.make(0, T))
    mark(page, root)
    root.locator(".cw-stage").first.focus()
    page.keyboard.press("Control+End")
    page.keyboard.press("Enter")
    settle(page)
    assert state_of(page)("query") == T - 1
    assert state_of(page)("key") == T - 1
    wait_ready(page)
    assert page.evaluate("() => document.documentElement.scrollWidth - innerWidth") <= 0


@pytest.mark.slow
@pytest.mark.parametrize("T", speed.SIZES)
def test_a_hover_costs_no_more_than_a_few_frames(show, T):
    widget = attention_viewer.make(0, T)
    page, root = show(widget)
    mark(page, root)
    times, empty = speed.hover_times(page, root)
    # Without a screen a browser may draw frames faster than any screen shows them: none counts less than 1/60 s.
    frame = max(speed.quantiles(empty)[0], 1000 / 60)
    assert speed.quantiles(times)[0] <= FRAMES * frame
