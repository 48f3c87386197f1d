"""The matrix that many widgets draw: what is under the pointer, what is painted, what a mask hides."""

import itertools
import re

import pytest
import torch

from course_utils import masks
from course_utils.widgets import AttentionViewer, MaskEditor

from .browser import mark, settle
from .entries import attention_viewer

pytestmark = pytest.mark.browser
COLOUR = """(stage, [x, y]) => {
  const canvas = stage.querySelector("canvas"), ratio = canvas.width / canvas.getBoundingClientRect().width;
  return [...canvas.getContext("2d").getImageData(Math.round(x * ratio), Math.round(y * ratio), 1, 1).data];
}"""
MASK = "() => courseWidget.model.get('mask')"


def told_at(page, stage, root, x, y):
    """What the first line of the live region says while the pointer is there."""
    stage.hover(position={"x": x, "y": y})
    settle(page)
    return root.locator(".cw-status p").first.inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_colour_under_the_pointer_is_that_of_the_number(show, scheme):
    weights = attention_viewer.heads(16)
    widget = AttentionViewer(weights, [f"q{i}" for i in range(16)], [f"k{i}" for i in range(16)], head=2)
    page, root = show(widget, color_scheme=scheme)
    mark(page, root)
    stage = root.locator(".cw-stage").first
    box, found = stage.bounding_box(), []
    for i in range(40):
        x, y = 60 + i * 131 % (box["width"] - 70), 60 + i * 53 % (box["height"] - 70)
        told = told_at(page, stage, root, x, y)
        if match := re.match(r"Query “q(\d+)”, key “k(\d+)”: weight ([\d.]+(?:e−\d)?)", told):  # noqa: RUF001
            query, key, weight = int(match[1]), int(match[2]), float(match[3].replace("−", "-"))  # noqa: RUF001
            assert weight == pytest.approx(weights[2, query, key], rel=0.05, abs=6e-5)
            found.append((weight, sum(stage.evaluate(COLOUR, [x, y])[:3])))
    assert len(found) > 25
    found.sort()
    brightness = [light for _, light in found]
    # Lines and digits are hit as well; apart from those, more weight is never lighter (darker on a dark page).
    sign = 1 if scheme == "light" else -1
    wrong = sum(sign * (after - before) > 2 for before, after in itertools.pairwise(brightness))
    assert wrong < len(found) / 4


def test_hidden_cells_are_hatched_and_zero_cells_are_not(show):
    weights, words = torch.eye(24), [f"w{i}" for i in range(24)]  # so many that no number is written into a cell
    told, colours = [], []
    for mask in (None, weights > 0):
        page, root = show(AttentionViewer(weights, words, mask=mask))
        mark(page, root)
        stage = root.locator(".cw-stage").first
        box = stage.bounding_box()
        x, y = box["width"] * 0.75, box["height"] * 0.35
        told.append("hidden" in told_at(page, stage, root, x, y))
        colours.append(len({tuple(stage.evaluate(COLOUR, [x + d, y + d])) for d in range(-8, 9)}))
    assert told == [False, True]
    assert colours[0] <= 3, "a cell and the lines beside it"
    assert colours[1] > colours[0], "strokes with soft edges"


def test_a_mouse_paints_a_stroke_of_one_kind(show):
    page, root = show(MaskEditor("a b c d e f", predict=False))
    stage = root.locator(".cw-stage").first
    box = stage.bounding_box()
    y = box["y"] + box["height"] * 0.5
    page.mouse.move(box["x"] + 60, y)
    page.mouse.down()
    for x in range(60, 180, 8):
        page.mouse.move(box["x"] + x, y)
    page.mouse.up()
    settle(page)
    rows = [row for row in page.evaluate(MASK) if 0 in row]
    assert len(rows) == 1, "the stroke went along one row"
    painted = [j for j, cell in enumerate(rows[0]) if not cell]
    assert len(painted) >= 2
    assert painted == list(range(painted[0], painted[-1] + 1))


def test_the_buttons_make_the_masks_of_the_course(show):
    words = "the dog bites a man <pad>".split()
    page, root = show(MaskEditor(words, predict=False))

    def press(name):
        root.get_by_role("button", name=name, exact=True).click()
        settle(page)
        return torch.tensor(page.evaluate(MASK)).bool()

    causal, real = masks.causal_mask(6), torch.tensor([word != "<pad>" for word in words])
    assert torch.equal(press("Hide the future"), causal)
    assert torch.equal(press("Hide padding"), causal & real)
    assert press("Show everything").all()
    assert torch.equal(press("Apply a window"), masks.window_mask(6, 3))
    assert press("Reset").all()


def test_a_row_that_sees_nothing_is_explained_both_ways(show):
    mask = torch.ones(4, 4, dtype=torch.bool)
    mask[1] = False
    page, root = show(MaskEditor("a b c d", mask, predict=False))
    status = root.locator(".cw-status")
    assert "“b” may attend to nothing: weights and output are set to zero" in status.inner_text()
    root.locator("select").last.select_option("nan")
    settle(page)
    assert "4 of 4 outputs are NaN" in status.inner_text()
