"""What only the step-by-step attention does: numbers that are edited, and the sums that cells are made of."""

import re

import numpy as np
import pytest
import torch
import traitlets

from course_utils.attention import scaled_dot_product_attention
from course_utils.widgets import DotProductSteps

from .browser import settle

EYE = np.eye(2)
browser_only = pytest.mark.browser


def steps(*arguments, **other):
    return lambda: DotProductSteps(*arguments, **other)


MISTAKES = {
    "q alone": (steps(EYE), "q, k and v come together"),
    "keys of another width": (steps(EYE, np.ones((3, 4)), np.ones((3, 1))), r"k has shape \(3, 4\), but d must be 2"),
    "fewer values than keys": (steps(EYE, EYE, np.ones((3, 1))), r"v has shape \(3, 1\), but Tk must be 2"),
    "a batch": (steps(EYE[None], EYE, EYE), r"q has shape \(1, 2, 2\)"),
    "too large": (steps(np.ones((9, 2)), EYE, EYE), r"q has shape \(9, 2\); at most 8"),
    "not finite": (steps(EYE, EYE, np.full((2, 2), np.inf)), r"v\[0, 0\] is inf"),
    "too few words": (steps(EYE, EYE, EYE, "one", "x y"), "queries has 1 words, but q has 2 rows"),
    "too many words": (steps(EYE, EYE, EYE, "one two", "x y z"), "keys has 3 words, but k has 2 rows"),
    "no such step": (steps(step="soften"), "step is 'soften'; it must be one of scores, scale"),
    "step 5": (steps(step=5), "step is 5; it must be an index from 0 to 4"),
    "no such query": (steps(query=2), "query is 2"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_wrong_argument_is_named(name):
    make, message = MISTAKES[name]
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        make()
    assert str(caught.value).startswith("DotProductSteps: ")


def test_a_wrong_mask_is_named():
    with pytest.raises(traitlets.TraitError, match=r"mask has shape \(3, 2\).*\(2, 3\)"):
        DotProductSteps(mask=np.ones((3, 2)))


def test_edited_numbers_come_back_and_are_checked():
    widget, seen = DotProductSteps(), []
    widget.observe(lambda change: seen.append(change["new"].tolist()), "k")
    rows = [[1.0, 0.0], [0.0, -7.5], [1.0, 1.0]]
    widget._handle_msg(
        {"content": {"data": {"method": "update", "state": {"k": rows}, "buffer_paths": []}}, "buffers": []}
    )
    assert widget.k.dtype == float
    assert widget.k.tolist() == rows == seen[0]
    assert len(seen) == 1
    with pytest.raises(ValueError, match="read-only"):
        widget.k[0, 0] = 1
    for wrong in (np.ones((2, 2)), np.full((3, 2), np.nan), "abc"):
        with pytest.raises(traitlets.TraitError, match="DotProductSteps: k"):
            widget.k = wrong
    assert widget.k.tolist() == rows


@pytest.mark.parametrize("bad", [None, [[1e7, 0], [0, 0], [0, 0]], [[0, 0], [0, -2e6], [0, 0]]])
def test_nothing_and_numbers_that_would_overflow_are_refused(bad):
    widget = DotProductSteps()
    with pytest.raises(traitlets.TraitError, match="DotProductSteps: k"):
        widget.k = bad
    assert np.abs(widget.k).max() < 10


def test_the_array_of_the_caller_stays_writable_and_apart():
    q = np.zeros((2, 2))
    widget = DotProductSteps(q, EYE, EYE)
    q[0, 0] = 5
    assert not widget.q.any()


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("scale", [0.1, 3, 100])
def test_every_output_is_a_convex_mix(masked, scale):
    random = np.random.default_rng(int(scale * 10))
    q, k, v = (random.standard_normal(shape) * scale for shape in ((3, 5), (6, 5), (6, 2)))
    mask = random.random((3, 6)) < 0.5 if masked else None
    widget = DotProductSteps(q, k, v, mask=mask)
    now = widget.results()
    want, _ = scaled_dot_product_attention(*map(torch.tensor, (q, k, v)), None if mask is None else torch.tensor(mask))
    assert np.abs(now["out"] - want.numpy()).max() < 1e-12 * scale
    for i in range(3):
        if mask is None or mask[i].any():
            assert now["weights"][i].min() >= 0
            assert now["weights"][i].sum() == pytest.approx(1)
            assert (now["out"][i] >= now["low"][i] - 1e-12 * scale).all()
            assert (now["out"][i] <= now["high"][i] + 1e-12 * scale).all()


def test_a_query_that_sees_nothing_is_told_in_words():
    widget = DotProductSteps(mask=[[0, 0, 0], [1, 1, 1]])
    assert "Query “month?” may attend to nothing: weights and output are 0." in widget.describe()
    assert "The mask hides 3 of 6 cells." in widget.describe()


@browser_only
def test_a_number_that_is_typed_changes_the_sum_below(show):
    page, root = show(DotProductSteps(query=0, column=1, predict=False))
    assert "q1·k1 + q2·k2 = 0·0 + 1.5·2 = 3.000" in root.locator(".cw-status").inner_text()
    field = root.get_by_label("k of March, number 2")
    field.fill("-4")
    settle(page)
    assert "0·0 + 1.5·(−4) = −6.000" in root.locator(".cw-status").inner_text()  # noqa: RUF001
    assert page.evaluate("() => courseWidget.model.get('k')") == [[1, 0], [0, -4], [1, 1]]
    field.fill("")
    field.blur()
    settle(page)
    assert field.input_value() == "-4", "what is no number becomes again what it was"
    field.press("ArrowUp")
    settle(page)
    assert page.evaluate("() => courseWidget.model.get('k')[1][1]") == -3.5


@browser_only
def test_a_number_that_would_overflow_is_not_taken(show):
    page, root = show(DotProductSteps(predict=False))
    field = root.get_by_label("q of month?, number 1 of 2")
    field.fill("1e300")
    field.blur()
    settle(page)
    assert field.input_value() == "0"
    assert page.evaluate("() => courseWidget.model.get('q')[0][0]") == 0


@browser_only
def test_the_mix_of_the_cell_under_the_pointer_adds_up(show):
    widget = DotProductSteps(step="mix", predict=False)
    page, root = show(widget)
    for i in range(2):
        for c in range(2):
            root.locator(".cw-cell").nth(2 * i + c).hover()
            settle(page)
            told = root.locator(".cw-status p").first.inner_text().replace("−", "-")  # noqa: RUF001
            assert widget.query_words[i] in told
            assert float(re.search(r"= ([-\d.]+)\.$", told)[1]) == pytest.approx(
                widget.results()["out"][i, c], abs=6e-4
            )
            pairs = re.findall(r"([\d.]+)·\(?(-?[\d.]+)", told)
            assert sum(float(w) * float(x) for w, x in pairs) == pytest.approx(widget.results()["out"][i, c], abs=0.05)
            marked = root.locator("input.cw-here").evaluate_all("(all) => all.map((e) => e.ariaLabel)")
            assert marked == [f"v of {word}, number {c + 1} of 2" for word in widget.key_words]


@browser_only
def test_the_claim_is_shown_with_its_numbers(show):
    page, root = show(DotProductSteps(step="mix", mask=[[1, 1, 1], [0, 0, 0]], predict=False))
    assert "sum 1.000; output outside the values by 0" in root.locator(".cw-claim").inner_text()
    root.locator(".cw-cell").nth(2).hover()
    settle(page)
    assert "No mix" in root.locator(".cw-claim").inner_text()
    assert "may attend to nothing" in root.locator(".cw-status").inner_text()


@browser_only
def test_large_scores_do_not_overflow_in_the_explanation(show):
    _, root = show(DotProductSteps(EYE * 60, EYE * 60, EYE, step="softmax", query=0, column=0, predict=False))
    told = root.locator(".cw-status").inner_text()
    assert "exp(score − " in told  # noqa: RUF001
    assert "∞" not in told
    assert "NaN" not in told
