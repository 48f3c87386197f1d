"""What the exercises have in common: notes of advisory cases, and small helpers."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.checks.model import Misconception, Steps
from course_utils.checks.values import Outcome

DOUBLE_NOTE = (
    "Passed. With double precision (float64) your function gives an error or another result: make new tensors with "
    "`x.new_zeros(...)` or `dtype=x.dtype` to be ready for that."
)


def weight_gradient_note(names: str) -> str:
    """The note for an answer through which no gradient reaches its weights."""
    return f"Passed. The gradients with respect to {names} are missing or wrong: a model built on this would not learn."


def in_double(arguments: dict[str, Any]) -> dict[str, Any]:
    """The same arguments with every float tensor in double precision, also inside a dict."""
    return {key: _double(value) for key, value in arguments.items()}


def _double(value: Any) -> Any:
    if isinstance(value, dict):
        return in_double(value)
    return value.double() if isinstance(value, Tensor) and value.is_floating_point() else value


def write_into(target: Tensor, new: Tensor) -> Tensor:
    """What a step does that overwrites an argument."""
    target.copy_(new)
    return target


def calls_differ(got: Outcome) -> bool:
    """Whether two calls gave two results of one shape, for symptoms of randomness."""
    first, second = got.value, None if got.second is None else got.second.value
    both = isinstance(first, Tensor) and isinstance(second, Tensor)
    return both and first.shape == second.shape and not identical(first, second)


def identical(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors are the same, number by number; NaN is NaN."""
    return bool(torch.isclose(a, b, rtol=0, atol=0, equal_nan=True).all())


def looks_like_dropout(got: Outcome, want: Outcome) -> bool:
    """Whether two calls differ and already the first is wrong; what remembers the call before is right at first."""
    return calls_differ(got) and got.value.shape == want.value.shape and not torch.allclose(got.value, want.value)


def no_super(id: str) -> Misconception:
    """A class whose __init__ does not call that of nn.Module; its recipe begins with the step "begin"."""
    return Misconception(
        id,
        "super().__init__() is missing: a module must be set up before layers are put into it.",
        (
            "What is the first line of every __init__ of a module?",
            "Read the last line of the error.",
            "super().__init__()",
        ),
        ({"begin": lambda parent: None},),
        symptom=lambda got, want: got.error is not None and "Module.__init__()" in got.error.message,
    )


def dropout_always(id: str, says: str, step: str) -> Misconception:
    """Dropout, which nobody asked for, on what goes through a step of the recipe."""
    variants: tuple[Steps, ...] = tuple({step: lambda x, p=p: F.dropout(x, p)} for p in (0.1, 0.2, 0.5))
    hints = ("Do two calls agree?", "F.dropout is on unless it is told training=False.", "No dropout here.")
    return Misconception(id, says, hints, variants, symptom=looks_like_dropout)
