"""What only the temperature widget does: random numbers that are the same in the browser, and what they show."""

import math

import numpy as np
import pytest
import traitlets

from course_utils.widgets import Temperature
from course_utils.widgets.temperature import KEYS, SIZES, measures, normals

from .browser import mark, settle

MISTAKES = {
    "no power of two": ({"d_k": 100}, "d_k is 100; it must be a power of two from 1 to 1024"),
    "too large": ({"d_k": 2048}, "d_k is 2048"),
    "a word": ({"d_k": "64"}, "d_k is '64'"),
    "no switch": ({"scaled": 8}, "scaled is 8; it must be True"),
    "temperature zero": ({"temperature": 0}, "temperature is 0; it must be a power of two from 1/16 to 16"),
    "no such seed": ({"seed": -1}, "seed is -1"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_wrong_argument_is_named(name):
    arguments, message = MISTAKES[name]
    with pytest.raises(ValueError, match=message) as caught:
        Temperature(**arguments)
    assert str(caught.value).startswith("Temperature: ")


def test_a_setting_out_of_range_is_refused_later_too():
    widget = Temperature()
    for name, value in (("d_k", 3), ("log_tau", 5), ("seed", -2)):
        with pytest.raises(traitlets.TraitError, match=f"{name} is {value}"):
            setattr(widget, name, value)


def test_the_random_numbers_are_normal_and_independent():
    z = normals(3, 400_000)
    error = 1 / math.sqrt(len(z))
    assert abs(z.mean()) < 5 * error
    assert abs((z**2).mean() - 1) < 5 * math.sqrt(2) * error
    assert abs((z**4).mean() - 3) < 5 * math.sqrt(96) * error
    for lag in (1, 2, 3, 16, 1024):
        assert abs((z[lag:] * z[:-lag]).mean()) < 5 * error, f"numbers {lag} apart go together"
    other = normals(4, 400_000)
    assert abs((z * other).mean()) < 5 * error, "two seeds go together"
    assert abs((z > 1.6448536).mean() - 0.05) < 5 * math.sqrt(0.05 * 0.95) * error


@pytest.mark.parametrize("seed", range(5))
def test_the_variance_is_d_k_and_the_division_makes_it_one(seed):
    widget = Temperature(seed=seed)
    for d in SIZES[4:]:  # the first numbers of one query are shared by its 16 scores: small sizes vary more
        assert widget.measures(d, scaled=False)["variance"] / d == pytest.approx(1, abs=0.25)
        assert widget.measures(d, scaled=True)["variance"] == pytest.approx(1, abs=0.25)
    raw, divided = ([widget.measures(d, scaled) for d in (1, 1024)] for scaled in (False, True))
    assert raw[1]["largest"] > 0.9
    assert divided[1]["largest"] < 0.35
    assert raw[1]["slope"] < 0.1 * divided[1]["slope"]
    assert raw[1]["entropy"] < 0.15
    assert divided[1]["entropy"] > 0.7


def test_a_high_temperature_makes_weights_equal_and_a_low_one_makes_one_large():
    scores = Temperature().scores(16)
    hot, cold = measures(scores, 1e9), measures(scores, 1e-9)
    assert hot["largest"] == pytest.approx(1 / KEYS)
    assert hot["entropy"] == pytest.approx(1)
    assert hot["slope"] == pytest.approx((1 - 1 / KEYS) / KEYS)
    assert cold["largest"] == pytest.approx(1)
    assert cold["slope"] == pytest.approx(0)
    assert np.isfinite(list(cold.values())).all()


@pytest.mark.browser
def test_the_page_shows_the_numbers_of_the_twin(show):
    widget = Temperature(256, scaled=True, seed=7)
    page, root = show(widget)
    mark(page, root)
    assert (
        f"Variance of q·k: {widget.scores().var(ddof=1):.2f}; in theory d_k = 256"
        in root.locator(".cw-claim").inner_text()
    )
    told = widget.measures()
    cards = root.locator(".cw-cards b").all_inner_texts()
    assert cards == [f"{told['largest']:.3f}", f"{told['entropy']:.3f}", f"{told['slope']:.4f}"]
    root.locator("summary").click()
    root.locator("table").wait_for()
    cells = root.locator("tbody tr").nth(10).locator("th, td").all_inner_texts()
    raw = widget.measures(1024, scaled=False)
    assert cells == ["1024", "not divided", *(f"{x:.4f}" for x in raw.values())]


@pytest.mark.browser
def test_resample_gives_other_numbers_and_the_same_seed_the_same(show):
    page, root = show(Temperature(predict=False))
    claim = root.locator(".cw-claim")
    first = claim.inner_text()
    root.get_by_role("button", name="Resample").click()
    settle(page)
    assert claim.inner_text() != first
    page.evaluate("() => courseWidget.model.set('seed', 0)")
    settle(page)
    assert claim.inner_text() == first


@pytest.mark.browser
def test_the_slider_changes_what_is_drawn_and_told(show):
    page, root = show(Temperature(1, predict=False))
    slider, status = root.get_by_label("d_k, in powers of two"), root.locator(".cw-status")
    before = root.locator("svg circle").first.get_attribute("cx")
    slider.fill("10")
    settle(page)
    assert "nearly all weight on one key, the softmax is saturated" in status.inner_text()
    assert root.locator("svg circle").first.get_attribute("cx") != before
    root.get_by_role("button", name="Divide by").click()
    settle(page)
    assert "scores divided by √1024 = 32.00: weight on several keys" in status.inner_text()
