"""The recurrent steps and the encoder: the properties of tests/properties/recurrent.py, tried on many sizes."""

import properties
import pytest
from hypothesis import given, settings

from course_utils import recurrent

PROPERTIES = [
    pytest.param(name, holds, id=holds.__name__)
    for name, every in properties.OF.items()
    if hasattr(recurrent, name)
    for holds in every
]


@pytest.mark.parametrize("name, holds", PROPERTIES)
@settings(max_examples=15)
@given(case=properties.cases)
def test_property(name, holds, case):
    holds(getattr(recurrent, name), case)
