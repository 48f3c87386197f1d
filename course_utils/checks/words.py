"""Properties that hold for layers (B, T, d) -> (B, T, d) with any weights: words change places, reach, hide."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from course_utils.checks.compare import close, same_form
from course_utils.checks.values import Call, Outcome

ORDER = torch.tensor([3, 0, 4, 1, 2])


def same(a: Tensor, b: Tensor) -> bool:
    """Whether two results agree, up to rounding."""
    return bool(close(a, b, 1e-4 * max(1.0, float(b.abs().max()))).all())


def changed_word(arguments: dict[str, Any], name: str, word: int | slice, sample: int | None = None) -> dict[str, Any]:
    """The arguments with a word moved, in one sample or in all."""
    x = arguments[name].clone()
    # Uneven: a norm takes away what is added to all features alike.
    x[sample if sample is not None else slice(None), word] += torch.linspace(-3.0, 4.0, x.shape[-1])
    return arguments | {name: x}


def for_each_word(name: str, first: int) -> Callable[[dict[str, Any]], tuple[dict[str, Any], ...]]:
    """A call for each word from `first` on, with that word moved."""
    return lambda a: tuple(changed_word(a, name, word) for word in range(first, a[name].shape[1]))


def permuted(call: Call, got: Outcome, want: Outcome) -> str:
    """The first further call has the words in `ORDER`."""
    if same(got.more[0], got.value[:, ORDER]):
        return ""
    return "When the words of a sentence change places, the outputs do not change places with them."


def reach(call: Call, got: Outcome, want: Outcome) -> str:
    """In each further call one word is moved, from the first on."""
    for word, other in enumerate(got.more):
        unmoved = (other - got.value).abs().amax((0, 2)) < 1e-6
        if unmoved.any():
            place = int(unmoved.nonzero()[0])
            return f"Without a mask every word reaches every word; changing word {word} does not change output {place}."
    return ""


def no_future(call: Call, got: Outcome, want: Outcome) -> str:
    """In each further call one word is moved, from the second on."""
    for word, other in enumerate(got.more, 1):
        if not same(other[:, :word], got.value[:, :word]):
            return f"Under a causal mask, changing word {word} changes an output before it."
    return ""


def repeats(call: Call, got: Outcome, want: Outcome) -> str:
    """The second call gives what the first gave."""
    second = got.second
    alike = second is None or (same_form(second.value, got.value) and same(second.value, got.value))
    return "" if alike else "Two calls with the same input give different results."
