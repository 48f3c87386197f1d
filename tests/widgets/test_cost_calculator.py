"""The cost calculator: the counts are those of the course's own layer; windows, timings, errors."""

import math

import pytest
import torch
import traitlets
from torch.utils.flop_counter import FlopCounterMode

from course_utils.multihead import MultiHeadAttention
from course_utils.widgets import CostCalculator

from .browser import mark, settle
from .entries.cost_calculator import make

TIMES = [(64, 0.001), (256, 0.008), (1024, 0.1)]


@pytest.mark.parametrize(("T", "d", "heads", "batch"), [(20, 16, 4, 3), (64, 8, 1, 2), (17, 12, 3, 1)])
def test_the_layer_of_the_course_costs_what_is_said(T, d, heads, batch):
    layer, x = MultiHeadAttention(d, heads), torch.randn(batch, T, d)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        layer(x)
    costs = CostCalculator(T, d, heads, batch=batch).costs()
    assert costs.projections + costs.scores == counter.get_total_flops() / 2
    assert costs.weights == layer.weights.numel() * layer.weights.element_size()


@pytest.mark.parametrize("d", [16, 64, 512])
@pytest.mark.parametrize("mlp", [False, True])
def test_where_they_cross_both_cost_the_same(d, mlp):
    widget = CostCalculator(d=d, heads=2, mlp=mlp)
    costs = widget.costs(int(widget.crossing()))
    assert costs.scores == costs.projections + mlp * costs.mlp
    costs = widget.costs(int(widget.memory_crossing()))
    assert costs.weights == costs.qkv


def test_twice_the_length_is_fourfold_unless_a_window_holds_it():
    for window, factor in ((None, 4), (32, 2)):
        one, two = (CostCalculator(T, 64, 8, window=window).costs() for T in (256, 512))
        assert (two.scores / one.scores, two.weights / one.weights) == (factor, factor)
        assert two.projections / one.projections == 2
    narrow, wide = CostCalculator(d=64, window=100), CostCalculator(d=64, window=200)
    assert math.isinf(narrow.crossing())
    assert wide.crossing() == 128
    assert "A window keeps scores and mixing below" in narrow.describe()


def test_timings_keep_the_sizes_that_they_were_measured_with():
    widget = CostCalculator(512, 64, 8, timings=TIMES)
    rate, powers = widget.rate(), widget.powers()
    widget.d, widget.layers = 128, 4
    assert (widget.rate(), widget.powers()) == (rate, powers)
    assert 1 < powers[1] < 2, "projections grow like T, the rest like T²"


def test_times_that_follow_the_count_give_its_rate_and_its_power():
    exact = [(T, CostCalculator(T).costs().scores + CostCalculator(T).costs().projections) for T, _ in TIMES]
    widget = CostCalculator(timings=[(torch.tensor(T), n / 1e9) for T, n in exact])
    assert widget.rate() == pytest.approx(1e9)
    time, count = widget.powers()
    assert time == pytest.approx(count)
    assert CostCalculator(timings=TIMES[:1]).powers() is None
    assert math.isnan(CostCalculator().rate())


MISTAKES = {
    "heads that do not fit": ({"d": 64, "heads": 6}, "heads is 6, d is 64; d must be a multiple of heads"),
    "half a position": ({"T": 8.5}, "T is 8.5; it must be a whole number from 16 to 131,072"),
    "too short": ({"T": 8}, "T is 8"),
    "no layer": ({"layers": 0}, "layers is 0; it must be a whole number from 1"),
    "a negative window": ({"window": -1}, "window is -1.*no window"),
    "seconds alone": ({"timings": [0.1, 0.2]}, r"timings\[0\] is 0.1; it must be a pair \(T, seconds\)"),
    "seconds first": ({"timings": [(0.1, 64)]}, r"timings\[0\] is .*; it must be \(T, seconds\) with T from 16"),
    "no time": ({"timings": [(64, 0.1), (128, 0)]}, r"timings\[1\] .*seconds above 0"),
    "another picture": ({"show": "energy"}, 'show is \'energy\'; it must be "operations" or "memory"'),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_wrong_argument_is_named(name):
    arguments, message = MISTAKES[name]
    with pytest.raises(ValueError, match=f"^CostCalculator: .*{message}"):
        CostCalculator(**arguments)


def test_a_size_that_does_not_fit_is_refused_later_too():
    widget = CostCalculator()
    for name, value in (("T", 15), ("heads", 7), ("d", 12), ("batch", 0)):
        with pytest.raises(traitlets.TraitError, match=f"{name} is {value}"):
            setattr(widget, name, value)


def test_features_and_heads_may_change_together():
    widget = CostCalculator(d=64, heads=8)
    data = {"method": "update", "state": {"d": 12, "heads": 6}, "buffer_paths": []}
    widget._handle_msg({"content": {"data": data}, "buffers": []})
    assert (widget.d, widget.heads) == (12, 6)


@pytest.mark.browser
def test_fewer_features_take_heads_with_them(show):
    page, root = show(CostCalculator(d=96, heads=48, predict=False))
    root.locator("select").first.select_option("64")
    settle(page)
    d, heads = page.evaluate("() => [courseWidget.model.get('d'), courseWidget.model.get('heads')]")
    assert (d, heads) == (64, 32)
    assert root.locator("select").nth(1).input_value() == "32"


@pytest.mark.browser
def test_the_page_says_what_python_says(show):
    widget = make(0)
    page, root = show(widget)
    mark(page, root)
    told = root.locator(".cw-status").inner_text()
    assert f"at T = 2d = {widget.crossing():,.0f}" in told
    time, count = widget.powers()
    assert f"like T to the {time:.2f}, the count like T to the {count:.2f}" in told
    root.locator("summary").click()
    cells = root.locator("tbody tr").filter(has_text="1,024").first.locator("td").all_inner_texts()
    costs = widget.costs(1024)
    assert [int(text.replace(",", "")) for text in cells[:3]] == [costs.projections, costs.mlp, costs.scores]


@pytest.mark.browser
def test_pointing_at_the_chart_looks_at_a_length_and_a_click_keeps_it(show):
    page, root = show(make(0))
    mark(page, root)
    stage = root.locator(".cw-stage")
    width = stage.bounding_box()["width"]
    stage.hover(position={"x": width * 0.9, "y": 100})
    settle(page)
    assert "At T = 512:" not in root.locator(".cw-status").inner_text()
    assert page.evaluate("() => courseWidget.model.get('T')") == 512
    stage.click(position={"x": width * 0.5, "y": 100})
    settle(page)
    page.mouse.move(1, 1)
    settle(page)
    T = page.evaluate("() => courseWidget.model.get('T')")
    assert 512 < T < 4096
    assert f"At T = {T:,}:" in root.locator(".cw-status").inner_text()
