"""Image patches: what the two maps say, how they look on a picture, and errors that name the way out."""

import numpy as np
import pytest
import torch
import traitlets

from course_utils.plots.style import contrast
from course_utils.vision import attention_rollout
from course_utils.widgets import ImagePatches
from course_utils.widgets.image_patches import GLOW, tinted

from .browser import mark, settle
from .entries.image_patches import COLUMNS, ROWS, P, make, picture, weights

GOOD = weights(0)
N = 1 + ROWS * COLUMNS
PIXEL = """(stage, [x, y]) => {
  const c = stage.querySelector("canvas"), ratio = c.width / c.getBoundingClientRect().width;
  return [...c.getContext("2d").getImageData(Math.round(x * ratio), Math.round(y * ratio), 1, 1).data].slice(0, 3);
}"""


def test_layers_may_come_as_the_model_gives_them_and_rollout_is_made_of_them():
    layers = [layer[None].float() for layer in GOOD]
    widget = ImagePatches(torch.tensor(picture()), [layer[0] for layer in layers], P)
    _, seen, rollout = widget.arrays()
    assert np.abs(seen - GOOD.numpy()).max() < 1e-5
    assert np.abs(rollout - attention_rollout(layers)[0].numpy()).max() < 1e-5
    assert widget.layer == len(layers) - 1


def test_maps_that_are_the_same_agree_and_those_that_are_opposite_do_not():
    row = torch.linspace(0.5, 1.5, N, dtype=torch.float64) / N
    same = row.expand(1, 1, N, N)
    widget = ImagePatches(picture(), same, P, rollout=same[0, 0])
    assert widget.agreement() == pytest.approx(1, abs=1e-4)
    widget = ImagePatches(picture(), same, P, rollout=row.flip(0).expand(N, N))
    assert widget.agreement() == pytest.approx(-1, abs=1e-4)
    widget = ImagePatches(picture(), same, P, rollout=np.full((N, N), 1 / N))
    assert np.isnan(widget.agreement())
    assert "none, as one of them is constant" in widget.describe()


def test_what_rollout_leaves_on_its_own_patch_does_not_count():
    widget = make(0)
    widget.query = 3
    before = widget.agreement()
    rollout = widget.arrays()[2].copy()
    rollout[3, 3] = 0.9
    other = ImagePatches(picture(), GOOD, P, rollout=rollout, query=3)
    assert other.agreement() == pytest.approx(before, abs=1e-3)


def test_more_weight_is_brighter_on_every_pixel():
    ramp = np.linspace(0, 1, 11)
    for pixel in (0.0, 0.3, 1.0):
        seen = [tinted(np.full((1, 1, 1), pixel), np.array([[amount]]), 1, 0.8)[0, 0] for amount in ramp]
        against_black = [contrast((0, 0, 0), colour) for colour in seen]
        assert (np.diff(against_black) > 0).all()
    untouched = tinted(np.full((1, 1, 1), 0.4), np.array([[1.0]]), 1, 0.0)
    assert np.allclose(untouched, 0.4)
    assert GOOD.shape[-1] == N
    assert len(GLOW) == 3


MISTAKES = {
    "channels first": ({"image": np.zeros((3, 24, 30))}, r"image has shape \(3, 24, 30\).*permute"),
    "brightness to 255": ({"image": picture() * 255}, "image runs from 0 to 255.*divide by 255"),
    "a large photograph": ({"image": np.zeros((240, 300, 3))}, "image holds 216,000 numbers"),
    "a patch that does not fit": ({"patch": 5}, "patch is 5, which does not divide an image of 24 x 30"),
    "no number": ({"patch": "6"}, "patch is '6'"),
    "without the class token": (
        {"weights": GOOD[:, :, 1:, 1:]},
        r"weights has shape \(2, 3, 20, 20\), but 1 \+ N must be 21",
    ),
    "a batch": ({"weights": GOOD[None]}, r"without a batch"),
    "layers of different shape": ({"weights": [GOOD[0], GOOD[1, :2]]}, "all must have the same"),
    "scores": ({"weights": GOOD * 30}, "weights run from .*softmax"),
    "softmax over queries": ({"weights": GOOD.mT}, "sum to .*last axis"),
    "rollout of patches only": (
        {"rollout": np.zeros((20, 20))},
        r"rollout has shape \(20, 20\), but 1 \+ N must be 21",
    ),
    "no such token": ({"query": 21}, "query is 21; it must be an index from 0 to 20"),
    "no such layer": ({"layer": 2}, "layer is 2"),
    "no such head": ({"head": 3}, "head is 3; it must be an index from 0 to 2, or None"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_wrong_argument_is_named(name):
    changed, message = MISTAKES[name]
    with pytest.raises(ValueError, match=message) as caught:
        ImagePatches(**{"image": picture(), "weights": GOOD, "patch": P} | changed)
    assert str(caught.value).startswith("ImagePatches: ")


def test_a_selection_out_of_range_is_refused_later_too():
    widget = make(0)
    for name, value in (("query", 21), ("query", -1), ("layer", 2), ("head", -2), ("overlay", 1.5)):
        with pytest.raises(traitlets.TraitError, match=f"{name} is {value}"):
            setattr(widget, name, value)
    with pytest.raises(traitlets.TraitError):
        widget.show = "neither"


@pytest.mark.browser
def test_a_click_asks_for_that_patch_and_the_read_ones_glow(show):
    one = np.zeros((1, 1, N, N))
    one[..., 8] = 1.0  # every token reads patch 7 (row 1, column 2) alone
    page, root = show(ImagePatches(picture() * 0, one, P, predict=False))
    stages = root.locator(".cw-stage")
    box = stages.first.bounding_box()
    cell = box["width"] / COLUMNS
    read, other = ([(j + 0.5) * cell, (i + 0.3) * cell] for i, j in ((1, 2), (2, 1)))
    glow, dark = (stages.first.evaluate(PIXEL, at) for at in (read, other))
    assert min(glow[:2]) > 100
    assert max(dark) < 20
    stages.first.click(position={"x": 4.5 * cell, "y": 3.5 * cell})
    settle(page)
    assert page.evaluate("() => courseWidget.model.get('query')") == N - 1
    stages.first.click(position={"x": 4.5 * cell, "y": 3.5 * cell})
    settle(page)
    assert page.evaluate("() => courseWidget.model.get('query')") == 0


@pytest.mark.browser
def test_one_map_alone_and_a_photograph_in_colour(show):
    colours = np.stack([picture(), picture() * 0, 1 - picture()], axis=-1)
    page, root = show(ImagePatches(colours, GOOD, P, overlay=0))
    stage = root.locator(".cw-stage").first
    corner = stage.evaluate(PIXEL, [8, 8])
    mark(page, root)
    assert stage.evaluate(PIXEL, [8, 8]) == corner == [0, 0, 255]
    page.evaluate("() => courseWidget.model.set('show', 'rollout')")
    settle(page)
    assert [root.locator(".cw-stage").nth(i).is_visible() for i in (0, 1)] == [False, True]
