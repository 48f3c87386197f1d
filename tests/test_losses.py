"""The loss of language models: the properties of tests/properties/losses.py, tried on many sizes."""

import properties
import pytest
from hypothesis import given, settings

from course_utils import losses

PROPERTIES = [
    pytest.param(name, holds, id=holds.__name__)
    for name, every in properties.OF.items()
    if hasattr(losses, name)
    for holds in every
]


@pytest.mark.parametrize("name, holds", PROPERTIES)
@settings(max_examples=15)
@given(case=properties.cases)
def test_property(name, holds, case):
    holds(getattr(losses, name), case)
