"""Pictures of the widgets on the built pages, for the README: each in the light and in the dark theme."""

import io
import re
from pathlib import Path

from course_utils.browser.chromium import launched, mark, missing, settle, watched_page
from course_utils.folders import CourseError

WIDTH = 760  # CSS pixels of the page; drawn with twice as many
MOST = 150_000  # bytes of a file
COLOURS = (256, 128, 64, 32)
LIVE = "iframe[srcdoc*='course-widget']"


def take_pictures(pages: list[Path], folder: Path) -> list[tuple[Path, str]]:
    """Picture every widget of these pages into `folder`; returns (file, description of the widget) pairs.

    A file is named after lesson, widget and theme: 04-who-may-attend-to-whom-dark.png. Raises CourseError if there is
    no browser, or no widget.
    """
    if reason := missing():
        raise CourseError(f"course site --pictures needs a browser: {reason}.")
    taken: list[tuple[Path, str]] = []
    folder.mkdir(parents=True, exist_ok=True)
    with launched() as browser:
        for page in pages:
            for theme in ("light", "dark"):
                options = {
                    "color_scheme": theme,
                    "device_scale_factor": 2,
                    "viewport": {"width": WIDTH, "height": 2400},
                }
                with watched_page(browser, offline=True, **options) as shown:
                    shown.goto(page.as_uri())
                    taken += _of_page(shown, page.stem[:2], theme, folder)
    if not taken:
        raise CourseError("These pages have no widget to take a picture of.")
    return taken


def _of_page(page, number: str, theme: str, folder: Path) -> list[tuple[Path, str]]:
    taken, used = [], {}
    for i in range(page.locator(LIVE).count()):
        frame = page.locator(LIVE).nth(i)
        inside = frame.content_frame.locator(".course-widget[data-ready]")
        inside.wait_for()
        if inside.locator("fieldset input[type=radio]").count():
            mark(page, inside, "a")
        stage = inside.locator(".cw-stage")
        if stage.count():  # a matrix shows most with the pointer on it
            box = stage.first.bounding_box()
            stage.first.hover(position={"x": box["width"] * 0.5, "y": box["height"] * 0.6})
        settle(page)
        slug = "-".join(re.findall(r"\w+", (frame.get_attribute("title") or "widget").lower()))
        used[slug] = used.get(slug, 0) + 1
        name = f"{number}-{slug}{'' if used[slug] == 1 else f'-{used[slug]}'}-{theme}.png"
        # The header sticks to the top of the page and would lie over what is below it.
        page.evaluate("() => { document.querySelector('header').style.position = 'static'; }")
        (folder / name).write_bytes(small(inside.screenshot()))
        words = frame.locator("xpath=preceding-sibling::*//img | preceding-sibling::img").first.get_attribute("alt")
        taken.append((folder / name, words or ""))
    return taken


def small(png: bytes) -> bytes:
    """The picture with as many colours as fit into `MOST` bytes, or else at three quarters of its size, again."""
    from PIL import Image

    picture = Image.open(io.BytesIO(png)).convert("RGB")
    while True:
        for colours in COLOURS:
            out = io.BytesIO()
            picture.quantize(colours, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(
                out, "PNG", optimize=True
            )
            if out.tell() <= MOST:
                return out.getvalue()
        picture = picture.resize((picture.width * 3 // 4, picture.height * 3 // 4), Image.Resampling.LANCZOS)
