"""Positions: RoPE scores depend on the distance alone, added positions do not, and errors name the way out."""

import numpy as np
import pytest
import torch
import traitlets

from course_utils.positions import apply_rope, sinusoidal_positions
from course_utils.widgets import Positions

from .browser import mark, settle
from .entries.positions import SIZE, D, make

TABLE = np.random.default_rng(5).standard_normal((SIZE, D))


def test_a_rotated_score_depends_on_the_distance_only():
    widget = make(0)
    assert widget.unevenness("rope") < 1e-12
    assert min(widget.unevenness("sinusoid"), widget.unevenness("learned")) > 0.1
    assert "nothing but rounding" in widget.describe()
    widget.kind = "sinusoid"
    assert "difference of nothing" not in widget.describe()


def test_scores_are_those_of_the_course():
    widget = make(1)
    q, k = (torch.tensor(x) for x in widget.arrays())
    turned = apply_rope(q.expand(SIZE, -1)) @ apply_rope(k.expand(SIZE, -1)).T
    assert np.abs(widget.scores("rope") - turned.numpy()).max() < 1e-12
    waves = sinusoidal_positions(SIZE, D).double()
    assert np.abs(widget.scores("sinusoid") - ((q + waves) @ (k + waves).T).numpy()).max() < 1e-4


def test_sinusoids_alone_and_rotations_alone_are_equally_alike():
    widget = make(0)
    rotated = widget.likeness()
    widget.kind = "sinusoid"
    assert np.allclose(rotated, widget.likeness())
    assert np.allclose(np.diag(rotated), 1)


def test_a_shift_stays_inside_and_the_default_type_as_it_was():
    widget = Positions(T=10, i=8, j=1, shift=5)
    assert widget.moved() == 1
    widget.shift = -9
    assert widget.moved() == -1
    assert torch.get_default_dtype() == torch.float32
    assert Positions(T=3).i == 2


def test_the_table_holds_every_place_of_the_pair():
    widget = Positions(T=12, i=4, j=7)
    rows = [row.split() for row in repr(widget.table()).splitlines()[3:]]
    assert [row[1:3] for row in rows] == [[str(n), str(n + 3)] for n in range(9)]
    assert len({row[3] for row in rows}) == 1
    assert len({row[4] for row in rows}) > 1


MISTAKES = {
    "q alone": ({"q": np.ones(4)}, "q and k come together"),
    "k of another width": ({"q": np.ones(4), "k": np.ones(6)}, r"k has shape \(6,\), but d must be 4"),
    "an odd width": ({"q": np.ones(5), "k": np.ones(5)}, "q has 5 features; rotations turn pairs"),
    "a batch": ({"q": np.ones((1, 4)), "k": np.ones((1, 4))}, r"q has shape \(1, 4\); it must be \(d,\)"),
    "too many positions": ({"T": 65}, "T is 65; from 2 to 64"),
    "a long table": ({"learned": np.ones((65, 4))}, "learned has 65; .*take a part of the table"),
    "a table of another width": (
        {"learned": TABLE, "q": np.ones(4), "k": np.ones(4)},
        r"q has shape \(4,\), but d must be 16",
    ),
    "no table": ({"kind": "learned"}, 'kind is "learned", but learned'),
    "no such position": ({"T": 10, "i": 10}, "i is 10; it must be an index from 0 to 9"),
    "no such shift": ({"T": 10, "shift": 11}, "shift is 11; it must be -9 to 9"),
    "infinite": ({"learned": TABLE * np.inf}, r"learned\[0, 0\] is .*finite"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_wrong_argument_is_named(name):
    changed, message = MISTAKES[name]
    with pytest.raises((ValueError, traitlets.TraitError), match=message) as caught:
        Positions(**changed)
    assert str(caught.value).startswith("Positions: ")


def test_a_selection_out_of_range_is_refused_later_too():
    widget = Positions(T=10)
    for name, value in (("i", 10), ("j", -1), ("shift", 10)):
        with pytest.raises(traitlets.TraitError, match=f"{name} is {value}"):
            setattr(widget, name, value)
    with pytest.raises(traitlets.TraitError, match="learned"):
        widget.kind = "learned"


@pytest.mark.browser
def test_the_pair_moves_and_the_score_stays_or_not(show):
    page, root = show(make(0))
    mark(page, root)
    told = root.locator(".cw-status p").first
    sliders = root.locator("input[type=range]")
    for kind, stays in (("RoPE", True), ("Added sinusoids", False), ("Added learned vectors", False)):
        root.get_by_role("button", name=kind).click()
        sliders.nth(2).focus()
        page.keyboard.press("End")
        settle(page)
        assert ("difference exactly 0" in told.inner_text() or "e−" in told.inner_text()) == stays  # noqa: RUF001
    sliders.nth(0).focus()
    page.keyboard.press("End")  # no place is left to move to
    settle(page)
    assert "not moved yet" in told.inner_text()
    assert page.evaluate("() => courseWidget.model.get('shift')") == 0


@pytest.mark.browser
def test_only_what_was_given_can_be_chosen(show):
    page, root = show(Positions(T=6, predict=False))
    settle(page)
    assert root.get_by_role("button").all_inner_texts() == ["RoPE", "Added sinusoids"]
