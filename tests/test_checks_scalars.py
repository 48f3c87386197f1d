"""Results that are plain numbers: every kind of number is one, and nothing else is."""

import math

import numpy as np
import pytest
import torch

from course_utils.checks import check
from course_utils.checks.model import Output
from course_utils.checks.scalars import settled
from course_utils.checks.values import Outcome
from course_utils.training import noam_lr

RATE = (Output("the rate", (), number=True),)


@pytest.mark.parametrize("kind", [float, np.float64, np.float32, torch.tensor, lambda v: torch.tensor(v).double()])
def test_any_kind_of_number_passes(kind):
    report = check(lambda *arguments: kind(noam_lr(*arguments)), "noam_lr")
    assert report.passed, str(report)


@pytest.mark.parametrize(
    "kind",
    [str, bool, lambda v: [v], lambda v: torch.tensor([v]), lambda v: np.array([v]), complex, lambda v: None],
    ids=["text", "bool", "list", "axis", "array", "complex", "nothing"],
)
def test_nothing_else_does(kind):
    report = check(lambda *arguments: kind(noam_lr(*arguments)), "noam_lr")
    assert report.points == 0
    assert report.findings


def test_whole_numbers_become_floating_and_huge_ones_infinite():
    for value, wanted in ((3, 3.0), (10**400, math.inf), (-(10**400), -math.inf), (torch.tensor(2), 2.0)):
        got = settled(RATE, Outcome(value, second=Outcome(value), more=(value,)))
        for tensor in (got.value, got.second.value, *got.more):
            assert tensor.dtype == torch.float64 and tensor.item() == wanted


def test_results_that_are_no_numbers_stay_as_they_are():
    outcome = Outcome(value=1.5)
    assert settled((Output("the loss", ()),), outcome) is outcome


def test_a_number_instead_of_a_tensor_is_said_to_be_one():
    assert "returns a plain float" in str(check(lambda *_: np.float64(1.5), "lm_loss"))
    assert "Expected a number as the learning rate" in str(check(lambda *_: "0.1", "noam_lr"))
