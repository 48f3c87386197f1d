"""Positions: the properties of tests/properties/positions.py, tried on many sizes, and other devices."""

import properties
import pytest
import torch
from hypothesis import given, settings

from course_utils import positions
from course_utils.positions import LearnedPositions, TokenEmbedding, alibi_bias, apply_rope, sinusoidal_positions

PROPERTIES = [
    pytest.param(name, holds, id=holds.__name__)
    for name, every in properties.OF.items()
    if hasattr(positions, name)
    for holds in every
]


@pytest.mark.parametrize("name, holds", PROPERTIES)
@settings(max_examples=12)
@given(case=properties.cases)
def test_property(name, holds, case):
    holds(getattr(positions, name), case)


def test_rope_at_position_one_is_what_the_paper_says():
    """d = 4: the first pair turns by 1, the second by 10000^(-1/2) = 0.01."""
    x = torch.tensor([[9.0, 9.0, 9.0, 9.0], [1.0, 0.0, 0.0, 1.0]], dtype=torch.float64)
    expected = [0.5403023058681398, 0.8414709848078965, -0.009999833334166664, 0.9999500004166653]
    assert apply_rope(x)[1].tolist() == pytest.approx(expected, abs=1e-12)


def test_the_slopes_of_eight_heads_are_those_of_the_paper():
    assert (-alibi_bias(8, 2)[:, 0, 1]).tolist() == [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]


def test_far_positions_keep_their_accuracy():
    """At t = 100 000 an angle in float32 is off by a hundredth."""
    far = sinusoidal_positions(100_001, 2)[-1]
    assert far.tolist() == pytest.approx([0.0357487979, -0.9993608074], abs=1e-6)


def test_rope_works_on_another_device():
    assert apply_rope(torch.empty(2, 3, 4, device="meta"), 5).device.type == "meta"


@pytest.mark.parametrize("make", [lambda: TokenEmbedding(7, 4), lambda: LearnedPositions(8, 4)])
def test_modules_can_be_made_on_another_device(make):
    with torch.device("meta"):
        module = make()
    assert {t.device.type for t in (*module.parameters(), *module.buffers())} == {"meta"}


def test_functions_follow_the_default_device():
    with torch.device("meta"):
        made = (sinusoidal_positions(3, 4), alibi_bias(2, 3), apply_rope(torch.empty(3, 4)))
    assert {t.device.type for t in made} == {"meta"}
