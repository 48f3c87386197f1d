"""The RNN's bottleneck: the numbers are those of a real RNN, at every length; errors that name the way out."""

import re

import numpy as np
import pytest
import torch
import traitlets

from course_utils.widgets import RNNBottleneck

from .browser import mark, settle
from .entries.rnn_bottleneck import WORDS, make

RANDOM = np.random.default_rng(3)
T, D, H = 5, 3, 4
X, W_XH, W_HH, B = (RANDOM.standard_normal(shape) for shape in ((T, D), (D, H), (H, H), (H,)))
GOOD = {"x": X, "W_xh": W_XH, "W_hh": W_HH * 0.4, "b": B}


def test_the_influence_is_that_of_torch_own_rnn():
    rnn = torch.nn.RNN(D, H, batch_first=True, dtype=torch.float64)
    x = torch.tensor(X)[None].requires_grad_()
    weights = {"W_xh": rnn.weight_ih_l0.T, "W_hh": rnn.weight_hh_l0.T, "b": rnn.bias_ih_l0 + rnn.bias_hh_l0}
    rows = [torch.autograd.grad(rnn(x)[0][0, -1, j], x)[0][0] for j in range(H)]
    want = torch.stack(rows).pow(2).sum(dim=(0, 2)).sqrt()
    assert np.abs(RNNBottleneck.measure(x[0], **weights) - want.numpy()).max() < 1e-12
    widget = RNNBottleneck("a b c d e", x[0], **weights)
    assert np.abs(widget.norms() - want.numpy()).max() < 1e-12
    assert np.abs(widget.states() - rnn(x)[0][0].detach().numpy()).max() < 1e-12


def test_measuring_has_no_limit_of_length_or_size():
    norms = RNNBottleneck.measure(RANDOM.standard_normal((60, 20)), np.eye(20), np.eye(20) * 0.5, np.zeros(20))
    assert norms.shape == (60,)
    assert norms[0] < 1e-9 * norms[-1]


def test_the_state_has_the_same_size_at_every_length_and_the_last_word_counts_one():
    widget = make(0)
    for length in range(1, len(WORDS) + 1):
        widget.length = length
        assert widget.states().shape == (length, 8)
        assert widget.left()[-1] == 1
        assert "the last state holds 8" in widget.describe()
        assert len(widget.table().cells) >= length


def test_a_recurrence_that_turns_without_shrinking_forgets_nothing():
    turn, _ = np.linalg.qr(RANDOM.standard_normal((H, H)))
    widget = RNNBottleneck("a b c d e", X * 1e-6, W_XH, turn, np.zeros(H))
    assert np.abs(widget.left() - 1).max() < 1e-6


def test_a_word_beyond_the_length_counts_as_the_last_one_read():
    widget = make(0)
    widget.step, widget.length = 7, 4
    assert "Word 4, “the”: 1.00 is left. Steps to the last state: RNN 0, attention 1." in widget.describe()


def test_words_alone_give_an_rnn_as_torch_begins_it_in_which_the_first_word_is_lost():
    widget = RNNBottleneck()
    assert widget.left()[0] < 0.01
    assert repr(widget) == repr(RNNBottleneck())
    assert max(np.abs(w).max() for w in widget.arrays()[1:]) <= 8**-0.5


MISTAKES = {
    "weights alone": ({"W_xh": W_XH}, "x, W_xh, W_hh and b come together"),
    "torch's transposed weight": ({**GOOD, "W_xh": W_XH.T}, r"W_xh has shape \(4, 3\), but D must be 3 in \(D, H\)"),
    "a hidden weight of another size": ({**GOOD, "W_hh": np.eye(3)}, r"W_hh has shape \(3, 3\), but H must be 4"),
    "two biases": ({**GOOD, "b": np.zeros(8)}, r"b has shape \(8,\), but H must be 4"),
    "a batch": ({**GOOD, "x": X[None]}, r"x has shape \(1, 5, 3\); it must be \(T, D\)"),
    "too few inputs": ({**GOOD, "x": X[:4]}, "x has shape .*T must be 5"),
    "NaN": ({**GOOD, "b": np.array([0, np.nan, 0, 0])}, r"b\[1\] is nan"),
    "too wide": ({"x": np.ones((5, 20)), "W_xh": np.ones((20, 4)), "W_hh": np.eye(4), "b": np.ones(4)}, "at most 16"),
    "no length": ({"length": 0}, "length is 0; it must be a number of words from 1 to 5"),
    "no such word": ({"step": 5}, "step is 5; it must be an index from 0 to 4$"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_wrong_argument_is_named(name):
    arguments, message = MISTAKES[name]
    with pytest.raises(ValueError, match=f"^RNNBottleneck: .*{message}"):
        RNNBottleneck("a b c d e", **arguments)


def test_too_many_words_and_selections_out_of_range_are_refused():
    with pytest.raises(ValueError, match="words has 25 words; at most 24"):
        RNNBottleneck(["w"] * 25)
    widget = make(0)
    for name, value in (("length", 0), ("length", 13), ("step", 12), ("step", -1)):
        with pytest.raises(traitlets.TraitError, match=f"{name} is {value}"):
            setattr(widget, name, value)


@pytest.mark.browser
def test_the_page_says_the_numbers_of_torch_at_every_length(show):
    widget = make(0)
    page, root = show(widget)
    mark(page, root)
    status = root.locator(".cw-status p").first
    for length in (1, 4, len(WORDS)):
        page.evaluate("(length) => courseWidget.model.set('length', length)", length)
        settle(page)
        widget.length = length
        told = re.search(r"is (\S+) times .*: (\S+) and (\S+)\)", status.inner_text().replace("\u2212", "-"))
        want = (widget.left()[0], widget.norms()[0], widget.norms()[-1])
        assert [float(x) for x in told.groups()] == pytest.approx(want, rel=0.06)


@pytest.mark.browser
@pytest.mark.parametrize("touch", [False, True])
def test_pointing_shows_a_word_and_a_click_keeps_it(show, touch):
    page, root = show(make(0), viewport={"width": 390, "height": 900}, has_touch=touch)
    mark(page, root)
    stage, status = root.locator(".cw-stage"), root.locator(".cw-status")
    row = {"x": 100, "y": 62 + 24 * 4 + 12}
    if not touch:
        stage.hover(position=row)
        settle(page)
        assert "Word 5 of 12, “old”" in status.inner_text()
        assert page.evaluate("() => courseWidget.model.get('step')") == 0
    (stage.tap if touch else stage.click)(position=row)
    settle(page)
    assert page.evaluate("() => courseWidget.model.get('step')") == 4
    page.mouse.move(1, 1)
    settle(page)
    assert "Word 5 of 12, “old”" in status.inner_text()


@pytest.mark.browser
def test_a_shorter_sentence_takes_the_word_with_it(show):
    page, root = show(make(0))
    mark(page, root)
    page.evaluate("() => { courseWidget.model.set('step', 9); courseWidget.model.set('length', 3); }")
    settle(page)
    assert "Word 3 of 3, “that”" in root.locator(".cw-status").inner_text()
    assert root.locator("input").nth(1).get_attribute("max") == "3"
