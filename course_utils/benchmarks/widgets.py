"""The attention viewer beside what else shows attention in a notebook: what each sends, and how long a picture takes.

Everything runs in a real JupyterLab in a real browser, without a network, as on a reader's machine. Times depend on the
machine and on what else it does; compare rows of one run.
"""

import importlib.util
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from course_utils.browser import jupyter
from course_utils.browser.chromium import launched, missing, watched_page
from course_utils.folders import CourseError
from course_utils.plots import table

from .hover import HEADS, SIZES, WATCH_ANY, alone, hover_times, move_over, quantiles

VIEWPORT = {"width": 1280, "height": 1200}
SHOW_SECONDS = 120
SETUP = "from course_utils.benchmarks.hover import example\nweights, words = example({T})\n"
OUTPUT = ".jp-OutputArea-output"


@dataclass
class View:
    """A way to show attention: the package it comes from, code that imports, code that shows, what is done with it."""

    name: str
    package: str
    imports: str
    show: str
    act: (
        str  # "hover": over the matrix of a widget of the course; "choose": click a head; "any": over whatever is there
    )
    appears: str  # a selector: once it is there, something can be seen


VIEWS = (
    View(
        "AttentionViewer",
        "anywidget",
        "from course_utils.widgets import AttentionViewer",
        "AttentionViewer(weights, words, predict=False)",
        "hover",
        ".course-widget[data-ready]",
    ),
    View(
        "interact + matplotlib",
        "matplotlib",
        "%matplotlib inline\nimport matplotlib.pyplot as plt\nfrom ipywidgets import ToggleButtons, interact",
        "def show(head):\n"
        "    plt.imshow(weights[head], vmin=0, vmax=1)\n"
        "    plt.xticks(range(len(words)), words, rotation=90)\n"
        "    plt.yticks(range(len(words)), words)\n"
        "    plt.show()\n"
        "_ = interact(show, head=ToggleButtons(options=range(len(weights))))",
        "choose",
        f"{OUTPUT} img",
    ),
    View(
        "bertviz",
        "bertviz",
        "import torch\nfrom bertviz import head_view",
        "head_view([torch.tensor(weights)[None].float()], words)",
        "any",
        f"{OUTPUT} svg",
    ),
    View(
        "CircuitsVis",
        "circuitsvis",
        "import torch\nfrom circuitsvis.attention import attention_heads",
        "attention_heads(attention=torch.tensor(weights).float(), tokens=words)",
        "any",
        f"{OUTPUT} :is(canvas, img, svg)",
    ),
)


@dataclass
class Measured:
    """What was found of one view at one size; without times nothing was to be seen."""

    sent: int  # bytes that came to the browser until something was to be seen
    seconds: float | None  # until then
    times: list[float]
    each: float | None = None  # bytes for each further picture
    note: str = ""


class Traffic:
    """Bytes that came to a page from its kernel."""

    def __init__(self, page):
        self.bytes = 0
        page.on("websocket", lambda socket: socket.on("framereceived", self.add))

    def add(self, payload: str | bytes) -> None:
        self.bytes += len(payload.encode() if isinstance(payload, str) else payload)


def measure(browser, address: str, root: Path, view: View, T: int, moves: int) -> Measured:
    """Show one view in JupyterLab and use it."""
    from playwright.sync_api import TimeoutError as NothingCame

    file = f"{view.package}-{T}.ipynb"
    jupyter.write_notebook(root / file, [view.show])
    allowed = (address, address.replace("http", "ws"))
    with watched_page(browser, allowed, errors := [], viewport=VIEWPORT) as page:
        traffic = Traffic(page)
        jupyter.open_notebook(page, address, "lab", file)
        jupyter.wait_kernel(page)
        jupyter.in_kernel(page, SETUP.format(T=T) + view.imports)
        before, began = traffic.bytes, time.monotonic()
        jupyter.run_all(page)
        try:
            page.locator(view.appears).first.wait_for(timeout=1000 * (SHOW_SECONDS if view.act != "any" else 20))
        except NothingCame:
            blocked = sum(error.startswith("request to") for error in errors)
            asked = f": it asked for {blocked} files on the network" if blocked else ""
            return Measured(traffic.bytes - before, None, [], note=f"shows nothing{asked}")
        shown, sent = time.monotonic() - began, traffic.bytes - before
        page.wait_for_timeout(500)
        before = traffic.bytes
        times = act(page, view, moves)
        return Measured(sent, shown, times, (traffic.bytes - before) / max(1, len(times)))


def act(page, view: View, moves: int) -> list[float]:
    """Use the view; milliseconds from each event to the picture."""
    if view.act == "hover":
        return hover_times(page, page.locator(".course-widget"), moves)[0]
    output = page.locator(".jp-OutputArea").first
    kind = "click" if view.act == "choose" else "pointermove"
    output.evaluate(WATCH_ANY, [kind, view.act == "choose"])
    if view.act == "any":
        box = output.bounding_box()
        box["height"] = min(box["height"], VIEWPORT["height"] - box["y"])
        move_over(page, box, moves, edge=10)
        page.wait_for_timeout(500)
        return page.evaluate("() => times")
    for i in range(max(4, moves // 3)):
        page.locator(".widget-toggle-button").nth((i + 1) % HEADS).click()
        page.wait_for_function("(n) => times.length > n", arg=i)
    return page.evaluate("() => times")


def row(name: str, T: int, found: Measured) -> tuple:
    """A line of the table."""
    if not found.times:
        note = found.note or "no element changes under the pointer"
        return name, T, found.sent / 1e3, found.seconds, None, None, None, note
    median, high = quantiles(found.times)
    each = None if found.each is None else f"{found.each / 1e3:.1f}"
    return name, T, found.sent / 1e3, found.seconds, each, median, high, found.note


def main(repeats: int = 5) -> int:
    """Print the table; raises CourseError if there is no browser to measure in."""
    if reason := missing():
        raise CourseError(f"course bench widgets needs a browser: {reason}.")
    rows, frames, moves = [], [], 12 * repeats
    with tempfile.TemporaryDirectory() as name, launched() as browser:
        folder = Path(name)
        root, own = folder / "notebooks", folder / "server"
        root.mkdir()
        own.mkdir()
        for T in SIZES:
            sent, times, empty = alone(browser, folder, T)
            frames += empty
            rows.append(row("AttentionViewer, page without Jupyter", T, Measured(sent, None, times)))
        with jupyter.server("lab", root, own) as address:
            for view in VIEWS:
                if importlib.util.find_spec(view.package) is None:
                    print(f"{view.name}: not installed, not measured (pip install {view.package})")
                    continue
                for T in SIZES:
                    print(f"{view.name}, T = {T} …", flush=True)
                    rows.append(row(view.name, T, measure(browser, address, root, view, T, moves)))
                    jupyter.stop_kernels(address)
    header = ("view", "T", "sent, kB", "shown after, s", "each picture, kB", "median, ms", "95 %, ms", "")
    caption = f"From the event to the picture, {HEADS} heads: a hover, or the choice of a head where nothing hovers"
    print()
    print(repr(table(rows, header, caption=caption)))
    print(f"\nA frame in which nothing is drawn: {quantiles(frames)[0]:.1f} ms. Without a network.")
    return 0
