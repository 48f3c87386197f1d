"""The attention functions: the properties of tests/properties/attention.py, tried on many sizes."""

import properties
import pytest
from hypothesis import given, settings

from course_utils import attention

PROPERTIES = [
    pytest.param(name, holds, id=holds.__name__)
    for name, every in properties.OF.items()
    if hasattr(attention, name)
    for holds in every
]


@pytest.mark.parametrize("name, holds", PROPERTIES)
@settings(max_examples=15)
@given(case=properties.cases)
def test_property(name, holds, case):
    holds(getattr(attention, name), case)
