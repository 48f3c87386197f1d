"""The parts of a Transformer and what trains it: the properties of tests/properties, tried on many sizes."""

import properties
import pytest
from hypothesis import given, settings

from course_utils import encoder_decoder, layers, training, transformer, vision

PROPERTIES = [
    pytest.param(module, name, holds, id=f"{name}-{holds.__name__}")
    for module in (layers, transformer, encoder_decoder, vision, training)
    for name, every in properties.OF.items()
    if getattr(getattr(module, name, None), "__module__", "") == module.__name__
    for holds in every
]


@pytest.mark.parametrize("module, name, holds", PROPERTIES)
@settings(max_examples=8)
@given(case=properties.cases)
def test_property(module, name, holds, case):
    holds(getattr(module, name), case)
