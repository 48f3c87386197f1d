"""Results that are plain numbers: brought into one form, so that they are compared like every other result."""

import math
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from course_utils.checks.model import Output
from course_utils.checks.values import Outcome


def settled(outputs: tuple[Output, ...], outcome: Outcome) -> Outcome:
    """The outcome; where the only output is a number, as a 0-d float64 tensor, whichever kind of number it was."""
    if len(outputs) != 1 or not outputs[0].number or outcome.error is not None:
        return outcome
    second = None if outcome.second is None else settled(outputs, outcome.second)
    return replace(
        outcome, value=_as_tensor(outcome.value), second=second, more=tuple(_as_tensor(v) for v in outcome.more)
    )


def _as_tensor(value: Any) -> Any:
    """A whole or floating-point number, plain or as a 0-d tensor, as a float64 tensor; anything else as it is."""
    if type(value) in (int, float):
        try:
            return torch.tensor(float(value), dtype=torch.float64)
        except OverflowError:
            return torch.tensor(math.inf if value > 0 else -math.inf, dtype=torch.float64)
    if isinstance(value, Tensor) and value.dim() == 0 and value.dtype != torch.bool and not value.is_complex():
        return value.double()
    return value
