"""What only the permutation widget does: words that are dragged, and outputs that move with them."""

import itertools

import numpy as np
import pytest
import torch
import traitlets

from course_utils.attention import self_attention
from course_utils.widgets import Permutation

from .browser import mark, settle

ORDER = "() => courseWidget.model.get('order')"
EYE = np.eye(3)


def permutation(*arguments, **other):
    return lambda: Permutation(*arguments, **other)


MISTAKES = {
    "one word": (permutation("dog"), "words has 1 words; it must have 2 to 10"),
    "x alone": (permutation("a b c", EYE), "x, W_q, W_k and W_v come together"),
    "rows for words": (permutation("a b", EYE, EYE, EYE, EYE), r"x has shape \(3, 3\), but T must be 2"),
    "transposed": (permutation("a b c", np.ones((3, 2)), EYE, EYE, EYE), r"W_q has shape \(3, 3\), but d must be 2"),
    "keys of another width": (
        permutation("a b c", EYE, EYE, EYE[:, :2], EYE),
        r"W_k has shape \(3, 2\), but dk must be 3",
    ),
    "positions for more": (
        permutation("a b c", positions=np.ones((4, 4))),
        r"positions has shape \(4, 4\), but T must be 3",
    ),
    "a word twice": (
        permutation("a b c", order=[0, 0, 1]),
        r"order is \[0, 0, 1\]; it must hold each index from 0 to 2",
    ),
    "no switch": (permutation(with_positions=EYE), "with_positions is"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_wrong_argument_is_named(name):
    make, message = MISTAKES[name]
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        make()
    assert str(caught.value).startswith("Permutation: ")


def test_an_order_that_is_none_is_refused_later_too():
    widget = Permutation("a b c")
    for wrong in ([0, 1], [0, 1, 1], [1, 2, 3]):
        with pytest.raises(traitlets.TraitError, match="each index from 0 to 2 once"):
            widget.order = wrong
    assert widget.order == [2, 1, 0]


def test_every_order_gives_the_same_rows_without_positions_and_others_with_them():
    widget = Permutation("a b c d")
    for order in itertools.permutations(range(4)):
        widget.order = list(order)
        widget.with_positions = False
        assert widget.difference() < 1e-12
        widget.with_positions = True
        assert (widget.difference() > 0.01) == (list(order) != [0, 1, 2, 3])


def test_the_matrices_and_positions_of_the_lesson_are_used():
    random = torch.Generator().manual_seed(0)
    x, W_q, W_k, W_v, positions = (
        torch.randn(*shape, generator=random, dtype=torch.float64) for shape in ((5, 4), (4, 6), (4, 6), (4, 3), (5, 4))
    )
    order = torch.tensor([3, 0, 4, 1, 2])
    widget = Permutation("v w x y z", x, W_q, W_k, W_v, positions, order=order, with_positions=True)
    left, right = widget.outputs()
    assert np.allclose(left, self_attention(x[order] + positions, W_q, W_k, W_v)[0], atol=1e-12)
    assert np.allclose(right, self_attention(x + positions, W_q, W_k, W_v)[0][order], atol=1e-12)


def test_rounding_is_not_told_as_a_number():
    widget = Permutation()
    assert "0 (but for rounding)" in widget.describe()
    assert "e-1" not in widget.describe()


def middle(box):
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


@pytest.mark.browser
@pytest.mark.parametrize("width", [900, 320])
def test_a_word_is_dragged_to_another_place(show, width):
    page, root = show(
        Permutation("the dog bites a small man", order=range(6)), viewport={"width": width, "height": 900}
    )
    mark(page, root)
    chips = root.locator(".cw-chip")
    (x, y), (to_x, to_y) = middle(chips.nth(1).bounding_box()), middle(chips.nth(4).bounding_box())
    page.mouse.move(x, y)
    page.mouse.down()
    for part in range(1, 13):
        page.mouse.move(x + (to_x + 12 - x) * part / 12, y + (to_y - y) * part / 12)
    page.mouse.up()
    settle(page)
    order = page.evaluate(ORDER)
    assert sorted(order) == list(range(6))
    assert order.index(1) == 4, order
    assert [w for w in order if w != 1] == [0, 2, 3, 4, 5], "the others keep their order"
    assert "“dog” is now at place 5 of 6." in root.locator(".cw-status").inner_text()
    assert chips.nth(4).get_attribute("aria-pressed") == "false", "a drag is no click"


@pytest.mark.browser
def test_two_words_that_are_tapped_change_places(show):
    page, root = show(Permutation("a b c d", order=range(4), predict=False), has_touch=True)
    root.locator(".cw-chip").nth(0).tap()
    settle(page)
    assert "“a” is chosen" in root.locator(".cw-status").inner_text()
    root.locator(".cw-chip").nth(2).tap()
    settle(page)
    assert page.evaluate(ORDER) == [2, 1, 0, 3]


@pytest.mark.browser
def test_a_word_that_moves_keeps_the_focus(show):
    page, root = show(Permutation("a b c d", order=range(4), predict=False))
    root.locator(".cw-chip").first.focus()
    for _ in range(2):
        page.keyboard.press("Alt+ArrowRight")
        settle(page)
    assert page.evaluate("() => document.activeElement.textContent").startswith("3a")
    assert page.evaluate(ORDER) == [1, 2, 0, 3]
    assert page.url.startswith("file:"), "Alt and an arrow has not left the page"


@pytest.mark.browser
def test_the_claim_is_a_number(show):
    page, root = show(Permutation(predict=False))
    claim = root.locator(".cw-claim")
    assert "equal, but for rounding" in claim.inner_text()
    root.get_by_role("button", name="Positions: off").click()
    settle(page)
    assert "not equal" in claim.inner_text()
    root.get_by_role("button", name="Original order").click()
    settle(page)
    assert "= 0.0: nothing is shuffled yet" in claim.inner_text()
