"""The alignment: what is judged and how, the lines between the sentences, errors that name the way out."""

import numpy as np
import pytest
import torch
import traitlets

from course_utils.data.dates import date_corpus
from course_utils.evaluation import alignment_accuracy
from course_utils.widgets import AdditiveAlignment

from .browser import mark, settle
from .entries.additive_alignment import GOLD, SOURCE, TARGET, make

EVEN = np.full((2, 3), 1 / 3)


def test_agreement_is_the_alignment_accuracy_of_the_course():
    pair = date_corpus("hu", n_train=10, max_dates=2, max_test_dates=2, seed=1).test[2][0]
    scores = torch.randn(len(pair.target), len(pair.source), generator=torch.Generator().manual_seed(0))
    weights = scores.softmax(-1)
    right, judged = AdditiveAlignment(weights, pair.source, pair.target, pair.alignment).agreement()
    assert right / judged == pytest.approx(alignment_accuracy(weights[None], [pair]))
    assert judged == sum(gold is not None for gold in pair.alignment)


@pytest.mark.parametrize(
    ("order", "reverse"), [([0, 1, 2, 3], 0), ([3, 2, 1, 0], 6), ([3, 1, 2, 0], 5), ([1, 1, 1, 1], 0)]
)
def test_reversed_pairs_tell_word_order(order, reverse):
    widget = AdditiveAlignment(np.eye(4)[order], "a b c d", "w x y z")
    assert widget.reversed_pairs() == reverse
    assert f"{reverse} of 6 pairs of target words read in reverse order." in widget.describe()


def test_without_gold_nothing_is_judged():
    widget = AdditiveAlignment(EVEN, "a b c", "x y")
    assert widget.agreement() == (0, 0)
    assert "gold" not in widget.describe()
    assert "2 rows of weights, 2 context vectors; the rows sum to 1.0000" in widget.describe()


MISTAKES = {
    "transposed": ((EVEN.T, "a b c", "x y"), r"weights has shape \(3, 2\).*transposed"),
    "no <eos>": ((EVEN, "a b", "x y"), r'weights has shape \(2, 3\), but .* 2 target and 2 source.*"<eos>"'),
    "a batch": ((EVEN[None], "a b c", "x y"), r"weights has shape \(1, 2, 3\); it must be \(Tt, Ts\)"),
    "scores": ((EVEN * -5, "a b c", "x y"), "weights run from -1.67 to -1.67.*softmax"),
    "softmax over target words": (
        ([[1, 0, 0.5], [0, 1, 0.5]], "a b c", "x y"),
        "target word 0, “x”, sum to 1.5.*columns",
    ),
    "dropout": ((EVEN * [[1], [0.8]], "a b c", "x y"), "target word 1, “y”, sum to 0.8.*dropout"),
    "NaN": (([[np.nan, 1.0]], "a b", "x"), r"weights\[0, 0\] is nan"),
    "gold of another length": ((EVEN, "a b c", "x y", [0]), "gold has entries: 1, but .*: 2"),
    "no such gold word": ((EVEN, "a b c", "x y", [0, 3]), r"gold\[1\] is 3; it must be None or an index from 0 to 2"),
    "no words": ((EVEN, [], "x y"), "source is empty"),
    "too many words": ((EVEN, ["a"] * 33, "x y"), "source has 33 words; at most 32"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_wrong_argument_is_named(name):
    arguments, message = MISTAKES[name]
    with pytest.raises(ValueError, match=f"^AdditiveAlignment: .*{message}"):
        AdditiveAlignment(*arguments)


def test_a_selection_out_of_range_is_refused():
    with pytest.raises(ValueError, match="source_word is 3; it must be an index from 0 to 2, or None"):
        AdditiveAlignment(EVEN, "a b c", "x y", source_word=3)
    widget = AdditiveAlignment(EVEN, "a b c", "x y", step=1)
    for name, value in (("step", 2), ("step", -1), ("source_word", 3)):
        with pytest.raises(traitlets.TraitError, match=f"{name} is {value}"):
            setattr(widget, name, value)


@pytest.mark.browser
def test_words_beside_the_lines_can_be_pointed_at_and_clicked(show):
    page, root = show(make(0))
    mark(page, root)
    status, words = root.locator(".cw-status"), root.locator(".cw-lines ol")
    weights = make(0).array()
    words.nth(0).get_by_text("March", exact=True).hover()
    settle(page)
    j = SOURCE.index("March")
    assert f"Query “{TARGET[0]}” (step 1 of 10), key “March”: weight" in status.inner_text()
    assert f"In all steps together “March” gets {weights[:, j].sum():.2f}" in status.inner_text()
    words.nth(1).get_by_text("kedd", exact=True).click()
    settle(page)
    assert page.evaluate("() => courseWidget.model.get('step')") == TARGET.index("kedd")
    assert "Context vector 9 = " in status.inner_text()
    assert f"h“{SOURCE[int(weights[8].argmax())]}”" in status.inner_text()


@pytest.mark.browser
def test_pointing_gives_nothing_away_before_the_prediction(show):
    shots = []
    for seed in (0, 1):
        page, root = show(make(seed))
        root.locator(".cw-lines li").last.hover()
        settle(page)
        shots.append(root.screenshot())
    assert shots[0] == shots[1]


@pytest.mark.browser
def test_the_page_counts_as_python_does(show):
    gold = [(j + 1) % len(SOURCE) if j is not None and i % 2 else j for i, j in enumerate(GOLD)]
    widget = AdditiveAlignment(make(0).array(), SOURCE, TARGET, gold)
    page, root = show(widget)
    mark(page, root)
    right, judged = widget.agreement()
    assert 0 < right < judged
    told = root.locator(".cw-status").inner_text()
    assert f"On the gold word: {right} of {judged}." in told
    assert f"Read in reverse order: {widget.reversed_pairs()} of 45" in told
    page.evaluate("() => courseWidget.model.set('step', 1)")
    settle(page)
    assert f"its gold word is “{SOURCE[gold[1]]}”" in root.locator(".cw-status").inner_text()
