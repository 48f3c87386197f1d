"""Masks and pooling: the properties of tests/properties/masks.py, tried on many sizes, and other devices."""

import properties
import pytest
import torch
from hypothesis import given, settings

from course_utils import masks

PROPERTIES = [
    pytest.param(name, holds, id=holds.__name__)
    for name, every in properties.OF.items()
    if hasattr(masks, name)
    for holds in every
]


@pytest.mark.parametrize("name, holds", PROPERTIES)
@settings(max_examples=15)
@given(case=properties.cases)
def test_property(name, holds, case):
    holds(getattr(masks, name), case)


def test_masks_live_where_what_they_hide_lives():
    lengths = torch.empty(2, dtype=torch.long, device="meta")
    tokens = torch.empty(2, 5, dtype=torch.long, device="meta")
    made = (
        masks.causal_mask(5, "meta"),
        masks.window_mask(5, 2, "meta"),
        masks.padding_mask(lengths, 5),
        masks.decoder_mask(tokens, 0),
        masks.mean_pool(torch.empty(2, 5, 3, device="meta"), lengths),
    )
    assert {mask.device.type for mask in made} == {"meta"}
