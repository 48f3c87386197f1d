"""The heads grid: heads in order, losses without them, one row in all of them, and errors that name the way out."""

import numpy as np
import pytest
import torch
import traitlets

from course_utils import masks
from course_utils.widgets import HeadsGrid

from .browser import mark, settle
from .entries import attention_viewer
from .entries.heads_grid import WORDS, make, model

WEIGHTS, LOSSES, LOSS = model(0)
PAYLOADS = {16: 6_000, 64: 40_000, 256: 450_000}


def test_heads_come_in_the_order_of_what_they_are_worth():
    grid = make(0)
    assert grid.heads_in_order() == [(i, j) for i in range(2) for j in range(3)]
    grid.order = "loss"
    rises = [grid.changes()[at] for at in grid.heads_in_order()]
    assert rises == sorted(rises, reverse=True)
    assert repr(grid.table()).splitlines()[3].startswith("layer {}, head {}".format(*grid.heads_in_order()[0]))
    grid.order = "spread"
    spreads = [grid.spreads()[at] for at in grid.heads_in_order()]
    assert spreads == sorted(spreads)
    assert 1 <= spreads[0] < spreads[-1] <= len(WORDS)


def test_the_words_name_the_head_that_was_taken_out():
    grid = HeadsGrid(WEIGHTS, WORDS, losses=LOSSES, loss=LOSS, ablated=(1, 2))
    assert f"Taken out: layer 1, head 2; loss {LOSSES[1, 2]:.4f}" in grid.describe()
    assert grid.changes()[1, 2] == pytest.approx(LOSSES[1, 2] - LOSS)
    grid.ablated = []
    assert "Taken out" not in grid.describe()


def test_one_layer_and_no_losses_will_do():
    one = HeadsGrid(WEIGHTS[0].float(), WORDS)
    assert one.grid == [1, 3]
    assert one.changes() is None
    assert "loss" not in one.describe()
    assert HeadsGrid(WEIGHTS[0], WORDS, losses=LOSSES[0], loss=LOSS).changes().shape == (1, 3)
    assert HeadsGrid(list(WEIGHTS), WORDS).grid == [2, 3]
    with pytest.raises(traitlets.TraitError, match=r"ablated is .*no losses were given"):
        one.ablated = [0, 1]
    with pytest.raises(traitlets.TraitError, match="no losses were given"):
        one.order = "loss"


def test_a_head_that_never_attends_is_no_mistake():
    weights = WEIGHTS.clone()
    weights[0, 1] = 0
    grid = HeadsGrid(weights, WORDS, losses=LOSSES, loss=LOSS, order="spread")
    assert np.isnan(grid.spreads()[0, 1])
    assert grid.heads_in_order()[-1] == (0, 1)
    assert "over nan" not in grid.describe()


@pytest.mark.parametrize("T", PAYLOADS)
def test_payload(T):
    grid = HeadsGrid(attention_viewer.heads(T), [str(i) for i in range(T)], mask=masks.causal_mask(T))
    assert len(grid.weights["bytes"]) + len(grid.hidden["bytes"]) <= PAYLOADS[T]


MISTAKES = {
    "losses alone": ({"loss": None}, "losses .* and loss .* come together"),
    "losses of one layer": ({"losses": LOSSES[0]}, r"losses has shape \(3,\); it must be \(layers, heads\)"),
    "heads in rows": ({"losses": LOSSES.T}, r"losses has shape \(3, 2\), but layers must be 2"),
    "a loss that is not finite": ({"losses": LOSSES * np.inf}, r"losses\[0, 0\] is .*finite"),
    "one matrix": ({"weights": WEIGHTS[0, 0]}, r"weights has shape \(7, 7\); it must be \(layers, heads, Tq, Tk\)"),
    "a batch": ({"weights": WEIGHTS[None]}, "without a batch"),
    "scores": ({"weights": WEIGHTS * 9}, "weights run from .*softmax"),
    "too few words": ({"queries": "a b"}, "weights has shape .*Tq must be 2"),
    "the opposite mask": ({"mask": ~masks.causal_mask(7)}, "mask hides query 3, key 2, but head 1 of layer 1"),
    "no such query": ({"query": 7}, "query is 7; it must be an index from 0 to 6"),
    "a head by one number": ({"ablated": [3]}, r"ablated is \[3\]; it must be \[layer, head\]"),
    "no such head": ({"ablated": (2, 0)}, r"ablated is \[2, 0\].*layer 0 to 1"),
    "no losses to sort by": ({"losses": None, "loss": None, "order": "loss"}, "no losses were given"),
}


@pytest.mark.parametrize("name", MISTAKES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_wrong_argument_is_named(name):
    changed, message = MISTAKES[name]
    good = {"weights": WEIGHTS, "queries": WORDS, "losses": LOSSES, "loss": LOSS}
    with pytest.raises((ValueError, traitlets.TraitError), match=message) as caught:
        HeadsGrid(**good | changed)
    assert str(caught.value).startswith("HeadsGrid: ")


@pytest.mark.browser
def test_a_click_takes_that_head_out_and_marks_that_row(show):
    page, root = show(make(0))
    mark(page, root)
    stage = root.locator(".cw-stage").first
    box = stage.bounding_box()
    # The second of three heads, in the upper of two layers; the third row of seven.
    wide = (box["width"] - 8 - 20) / 3
    stage.click(position={"x": 4 + wide + 10 + wide / 2, "y": 4 + wide * 2.5 / 7})
    settle(page)
    assert page.evaluate("() => courseWidget.model.get('ablated')") == [0, 1]
    assert page.evaluate("() => courseWidget.model.get('query')") == 2
    told = root.locator(".cw-status").inner_text()
    assert f"the loss is {LOSSES[0, 1]:.4f} instead of 0.4000" in told


@pytest.mark.browser
def test_sorted_heads_are_sorted_in_the_table_as_well(show):
    page, root = show(make(0))
    mark(page, root)
    root.locator("summary").click()
    root.locator("select").first.select_option("loss")
    settle(page)
    told = [float(text.replace("−", "-")) for text in root.locator("tbody td:nth-child(4)").all_inner_texts()]  # noqa: RUF001
    assert told == sorted(told, reverse=True)
    assert told == pytest.approx(sorted((LOSSES - LOSS).ravel(), reverse=True), abs=1e-4)


@pytest.mark.browser
@pytest.mark.parametrize("T", [1, 2, 64])
def test_every_size_is_drawn_without_losses(show, T):
    weights = torch.tensor(attention_viewer.heads(T)).reshape(2, 4, T, T)
    page, root = show(HeadsGrid(weights, [f"w{i}" for i in range(T)], mask=masks.causal_mask(T), predict=False))
    root.locator(".cw-stage").first.focus()
    page.keyboard.press("Control+End")
    settle(page)
    assert "Layer 1, head 3." in root.locator(".cw-status").inner_text()
