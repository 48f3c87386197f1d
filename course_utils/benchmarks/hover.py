"""How long it takes from what a reader does to the picture, measured in the page itself."""

import statistics
from pathlib import Path

from course_utils.browser.chromium import settle

SIZES = (16, 64, 256)
HEADS = 8
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
# Any other view: from an event to the frame after something in `root` has changed. An image must be new, and decoded.
WATCH_ANY = """(root, [kind, image]) => {
  globalThis.times = [];
  let from = 0, last = root.querySelector("img")?.src;
  addEventListener(kind, (e) => { from = e.timeStamp; }, true);
  const done = (start) => requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => times.push(performance.now() - start);
    channel.port2.postMessage(0);
  });
  new MutationObserver(() => {
    if (!from) return;
    const start = from, img = root.querySelector("img");
    if (!image) { from = 0; return done(start); }
    if (!img || img.src === last) return;
    from = 0;
    last = img.src;
    img.decode().then(() => done(start));
  }).observe(root, { subtree: true, childList: true, attributes: true, characterData: true });
}"""


def example(T: int, seed: int = 0):
    """Weights (8, T, T) of causal heads from sharp to broad, as trained ones are, and T words."""
    import numpy as np

    random = np.random.default_rng(seed)
    scores = random.standard_normal((HEADS, T, T)) * np.linspace(1, 6, HEADS)[:, None, None]
    scores = np.where(np.tri(T, dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True), [f"w{i}" for i in range(T)]


def move_over(page, box: dict[str, float], moves: int, edge: int = 80) -> None:
    """Move the pointer about in the rectangle `box` without order, `edge` pixels away from its left and upper side."""
    width, height = max(box["width"] - edge - 10, 1), max(box["height"] - edge - 10, 1)
    for i in range(moves):
        page.mouse.move(box["x"] + edge + i * 131 % width, box["y"] + edge + i * 53 % height)
        page.wait_for_timeout(20)


def hover_times(page, root, moves: int = 60) -> tuple[list[float], list[float]]:
    """Milliseconds from a move of the pointer to the drawn picture: (over a widget's matrix, over nothing)."""
    page.evaluate(WATCH)
    move_over(page, root.locator(".cw-stage").first.bounding_box(), moves)
    page.mouse.move(2, 2)
    settle(page)
    page.evaluate("() => { globalThis.idle = true; }")
    for i in range(moves):
        page.mouse.move(1 + i % 3, 1 + i % 2)
        page.wait_for_timeout(20)
    return page.evaluate("() => times"), page.evaluate("() => empty")


def quantiles(times: list[float]) -> tuple[float, float]:
    """(median, 95th percentile)."""
    return statistics.median(times), statistics.quantiles(times, n=20, method="inclusive")[18]


def alone(browser, folder: Path, T: int) -> tuple[int, list[float], list[float]]:
    """The viewer in a page of its own, without Jupyter: (bytes of the page, times over the matrix, over nothing)."""
    from course_utils.browser.chromium import wait_ready, watched_page
    from course_utils.widgets import AttentionViewer

    text = AttentionViewer(*example(T), predict=False).to_html()
    file = folder / f"alone-{T}.html"
    file.write_text(text, encoding="utf-8")
    with watched_page(browser, offline=True) as page:
        page.goto(file.as_uri())
        wait_ready(page)
        return len(text.encode()), *hover_times(page, page.locator(".course-widget"))
