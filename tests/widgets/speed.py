"""How long a widget takes from the pointer to the picture; `python -m widgets.speed` in tests/ prints a table."""

import statistics
import tempfile
from pathlib import Path

from .browser import FLAGS, chromium, mark, settle, wait_ready, watched_page
from .entries import attention_viewer

SIZES = (16, 64, 256)
WATCH = """() => {
  globalThis.times = [];
  globalThis.empty = [];
  // After the frame in which something was drawn, at the next turn of the event loop.
  const after = (list, from) => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => list.push(performance.now() - from);
    channel.port2.postMessage(0);
  };
  let moved = 0;
  addEventListener("pointermove", (e) => {
    moved = e.timeStamp;
    // The frame that a page with nothing to do would give for the same event.
    if (globalThis.idle) requestAnimationFrame(() => after(empty, e.timeStamp));
  }, true);
  new MutationObserver(() => { if (moved) after(times, moved); moved = 0; })
    .observe(document.querySelector(".course-widget"), { attributes: true, attributeFilter: ["data-frames"] });
}"""


def hover_times(page, root, moves=60):
    """Milliseconds from a move of the pointer to the drawn picture: (over the matrix, over nothing)."""
    page.evaluate(WATCH)
    box = root.locator(".cw-stage").first.bounding_box()
    for i in range(moves):
        page.mouse.move(box["x"] + 80 + i * 131 % (box["width"] - 90), box["y"] + 80 + i * 53 % (box["height"] - 90))
        page.wait_for_timeout(20)
    page.mouse.move(2, 2)
    settle(page)
    page.evaluate("() => { globalThis.idle = true; }")
    for i in range(moves):
        page.mouse.move(1 + i % 3, 1 + i % 2)
        page.wait_for_timeout(20)
    return page.evaluate("() => times"), page.evaluate("() => empty")


def quantiles(times):
    """(median, 95th percentile)."""
    return statistics.median(times), statistics.quantiles(times, n=20)[18]


def main():
    from playwright.sync_api import sync_playwright

    print("T    payload, bytes   hover to picture, ms p50/p95: one head   two heads   an empty frame")
    with sync_playwright() as play, tempfile.TemporaryDirectory() as folder:
        browser = play.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        for T in SIZES:
            told = []
            for other in (-1, 3):
                widget = attention_viewer.make(0, T)
                widget.other = other
                file = Path(folder) / "page.html"
                file.write_text(widget.to_html(), encoding="utf-8")
                with watched_page(browser, offline=True) as page:
                    page.goto(file.as_uri())
                    wait_ready(page)
                    root = page.locator(".course-widget")
                    mark(page, root)
                    times, empty = hover_times(page, root)
                    told.append("{:.0f}/{:.0f}".format(*quantiles(times)))
            payload = len(widget.weights["bytes"]) + len(widget.hidden["bytes"])
            print(f"{T:<4} {payload:>14} {told[0]:>40} {told[1]:>11} {'{:.0f}/{:.0f}'.format(*quantiles(empty)):>16}")
        browser.close()


if __name__ == "__main__":
    main()
