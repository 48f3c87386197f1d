"""Compares what an answer did with what the reference did, in the student's terms.

No text here ever contains a number from the reference: only shapes, positions and what was received.
"""

import re
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from typing import Any

import torch
from torch import Tensor

from course_utils.checks.model import Case, Output
from course_utils.checks.telling import (
    confined,
    describe,
    first_place,
    in_words,
    kind_of,
    share,
    tell_changed,
    tell_error,
    tell_misfits,
    wrong_call,
    wrong_signature,
)
from course_utils.checks.values import Call, Foreign, Outcome, Raised

RELATIVE, ABSOLUTE = 1e-4, 2e-5

# What a case's own comparison says where it sees that something is wrong, and other cases can tell what.
ELSEWHERE = "The result is not the right one here."
RANDOM = "Two calls with the same input give different results."


@dataclass(frozen=True)
class Problem:
    """Why a case failed: a kind ("shape", "value", …) that chooses the hint, a sentence, and the output."""

    kind: str
    text: str
    output: int | None = None


def first_problem(case: Case, call: Call, outputs: tuple[Output, ...], got: Outcome, want: Outcome) -> Problem | None:
    """The most telling difference between an outcome and the reference's; None when the case passes."""
    if case.must_raise:
        return None if got.error is not None else Problem("accepted", "This cannot be done, and raises no error.")
    problem = _error_or_structure(call, outputs, got, want)
    if problem is not None:
        return problem
    problem = _result_problem(case, call, outputs, got, want)
    return _conduct_problem(case, call, got, want) if problem is None else problem


def _error_or_structure(call: Call, outputs: tuple[Output, ...], got: Outcome, want: Outcome) -> Problem | None:
    if got.inside is not None and got.inside.misfits:
        return Problem("weights", tell_misfits(got, call))
    if got.error is not None:
        return Problem(_kind_of_error(got.error), tell_error(got.error, call))
    if call.probe is not None and isinstance(got.value, Foreign):
        return Problem("structure", f"Expected {call.probe.returns}, your function returns {describe(got.value)}.")
    return _structure(outputs, got.value, want.value)


def _result_problem(case: Case, call: Call, outputs: tuple[Output, ...], got: Outcome, want: Outcome) -> Problem | None:
    loose = loose_positions(case, call, len(outputs))
    pairs = list(zip(outputs, as_tuple(got.value), as_tuple(want.value), loose, strict=True))
    checks = [("shape", _shape), ("kind", _kind), ("nan", _nan)]
    if case.compare is None:
        checks.append(("value", partial(_value, tolerance=case.tolerance)))
    for kind, check in checks:
        for number, (output, received, wanted, free) in enumerate(pairs):
            text = check(output, received, wanted, free)
            if text:
                return Problem(kind, text, number)
    if any(not same_form(value, got.value) for value in got.more):
        return Problem("property", "Called again with inputs of the same sizes, your module gives another shape.")
    told = case.compare(call, got, want) if case.compare else ""
    return Problem("property", told) if told else None


def _conduct_problem(case: Case, call: Call, got: Outcome, want: Outcome) -> Problem | None:
    """What an answer does besides giving the right result."""
    if case.keeps_inputs and got.changed:
        return Problem("changed", tell_changed(got.changed))
    if case.repeat and case.compare is None and not repeats(got):
        return Problem("repeat", RANDOM)
    return _gradient_problem(case, call, got, want)


def loose_positions(case: Case, call: Call, count: int) -> tuple[Tensor | None, ...]:
    """For each output the positions that only have to be finite."""
    return case.loose(call.arguments) if case.loose else (None,) * count


def as_tuple(value: Any) -> tuple[Any, ...]:
    """One result or several, as a tuple."""
    return value if isinstance(value, tuple) else (value,)


def close(a: Tensor, b: Tensor, tolerance: float | None = None) -> Tensor:
    """Where two tensors of one shape agree; NaN agrees with NaN. tolerance: absolute, None for the usual."""
    a, b = a.double(), b.double()
    finite = b[b.isfinite()]
    scale = max(1.0, float(finite.abs().max())) if finite.numel() else 1.0
    return torch.isclose(a, b, rtol=RELATIVE, atol=tolerance or ABSOLUTE * scale, equal_nan=True)


def repeats(got: Outcome) -> bool:
    """Whether the second call gave what the first gave."""
    if got.second is None:
        return True
    if got.second.error is not None:
        return False
    return same_values(got.value, got.second.value)


def same_values(a: Any, b: Any, tolerance: float | None = None) -> bool:
    """Whether two plain values agree in structure, shape, kind and numbers."""
    if isinstance(a, tuple) or isinstance(b, tuple):
        return (
            isinstance(a, tuple)
            and isinstance(b, tuple)
            and len(a) == len(b)
            and all(same_values(x, y, tolerance) for x, y in zip(a, b, strict=True))
        )
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return same_form(a, b) and bool(close(a, b, tolerance).all())
    if isinstance(a, float) and isinstance(b, float):
        return bool(close(torch.tensor(a), torch.tensor(b)))
    return type(a) is type(b) and a == b


def same_form(a: Any, b: Any) -> bool:
    """Whether two tensors have the same shape and kind of numbers."""
    both = isinstance(a, Tensor) and isinstance(b, Tensor)
    return both and a.shape == b.shape and kind_of(a) == kind_of(b)


def same_error(a: Raised | None, b: Raised | None) -> bool:
    """Whether two errors say the same, whatever sizes they mention."""
    if a is None or b is None:
        return a is b
    return a.kind == b.kind and re.sub(r"\d+", "#", a.message) == re.sub(r"\d+", "#", b.message)


def same_gradients(a: Outcome, b: Outcome) -> bool:
    """Whether the same gradients arrived; none at all counts as zeros."""
    if (a.gradient_error is None) != (b.gradient_error is None):
        return False
    for name in a.gradients:
        x, y = _unless_zero(a.gradients[name]), _unless_zero(b.gradients.get(name))
        if (x is None) != (y is None) or (x is not None and not same_values(x, y)):
            return False
    return True


def _unless_zero(gradient: Tensor | None) -> Tensor | None:
    return None if gradient is None or not gradient.any() else gradient


def _kind_of_error(error: Raised) -> str:
    if error.kind == "DidNotReturnError":
        return "endless"
    if wrong_signature(error):
        return "signature"
    return "call" if wrong_call(error) else "error"


def _structure(outputs: tuple[Output, ...], got: Any, want: Any) -> Problem | None:
    names = " and ".join(o.name for o in outputs)
    if got is None:
        return Problem("structure", "Your function returns None. Does every path end in a `return`?")
    if isinstance(got, Foreign) and got.description in ("generator", "coroutine"):
        return Problem("structure", f"Your function makes a {got.description} (`yield` or `async`), not a result.")
    if len(outputs) > 1:
        if not isinstance(got, tuple) or len(got) != len(outputs):
            return Problem(
                "structure", f"Expected {len(outputs)} results ({names}), your function returns {describe(got)}."
            )
    elif isinstance(got, tuple):
        return Problem("structure", f"Expected one result ({names}), your function returns {describe(got)}.")
    for number, (output, received) in enumerate(zip(outputs, as_tuple(got), strict=True)):
        if not isinstance(received, Tensor):
            kind = "number" if output.number else "tensor"
            return Problem(
                "structure", f"Expected a {kind} as {output.name}, your function returns {describe(received)}.", number
            )
    return None


def _shape(output: Output, got: Tensor, want: Tensor, free: Tensor | None) -> str:
    if got.shape == want.shape:
        return ""
    names = output.axis_names(want.dim())
    text = f"{output.name}: expected shape {_shaped(want, names)}, received {tuple(got.shape)}."
    if got.dim() == want.dim() <= 4:
        for order in permutations(range(want.dim())):
            if tuple(want.shape[i] for i in order) == tuple(got.shape):
                return f"{text} The axes are there, in the order {', '.join(names[i] for i in order)}."
    return text


def _shaped(tensor: Tensor, names: tuple[str, ...]) -> str:
    if not names:
        return "() (a single number)"
    return f"{tuple(tensor.shape)} = ({', '.join(names)})"


def _kind(output: Output, got: Tensor, want: Tensor, free: Tensor | None) -> str:
    if kind_of(got) == kind_of(want):
        return ""
    return f"{output.name}: expected {kind_of(want)}, received {kind_of(got)}."


def _nan(output: Output, got: Tensor, want: Tensor, free: Tensor | None) -> str:
    wanted = want.isfinite()
    if free is not None:
        wanted = wanted | free.expand(want.shape)
    bad = ~got.isfinite() & wanted
    if not bad.any():
        return ""
    what = "NaN" if got[bad].isnan().any() else "infinite numbers"
    if bad.dim() == 0:
        return f"{output.name} is {'not a number (NaN)' if bool(got.isnan()) else 'infinite'}."
    text = f"{output.name}: {what} in {share(bad)}{first_place(output, bad)}."
    if free is not None and not (bad & ~free.expand(want.shape)).any():
        text += " That is exactly where the mask allows nothing: any finite numbers would do there."
    return text


def _value(output: Output, got: Tensor, want: Tensor, free: Tensor | None, tolerance: float | None) -> str:
    wrong = ~close(got, want, tolerance)
    if free is not None:
        wrong &= ~free.expand(want.shape)
    if not wrong.any():
        return ""
    if wrong.dim() == 0:
        return f"{output.name}: a single number, as it should be, but not the right one."
    if wrong.numel() == 1:
        return f"{output.name}: the shape is right, the only number in it is not."
    sentences = [
        f"{output.name}: the shape is right, the numbers differ in {share(wrong)}{first_place(output, wrong)}."
    ]
    sentences += confined(output, wrong)
    if output.weights:
        sentences += _about_weights(output, got, want, free)
    return " ".join(sentences)


def _about_weights(output: Output, got: Tensor, want: Tensor, free: Tensor | None) -> list[str]:
    said = []
    keep = torch.ones_like(want, dtype=torch.bool) if free is None else ~free.expand(want.shape)
    if bool(((want == 0) & (got.abs() > 1e-6) & keep).any()):
        said.append("A key that the mask hides still gets weight.")
    rows_off = ~torch.isclose(got.double().sum(-1), torch.ones(()).double(), atol=1e-3) & keep.any(-1)
    if rows_off.any():
        names = output.axis_names(got.dim())
        axis = next((i for i in range(got.dim() - 1) if _sums_to_one(got, i)), None)
        said.append("The weights of a row (over the keys) do not sum to one.")
        if axis is not None:
            said.append(f"They sum to one over the axis `{names[axis]}` instead.")
    return said


def _sums_to_one(weights: Tensor, axis: int) -> bool:
    sums = weights.double().sum(axis)
    return bool(torch.isclose(sums, torch.ones_like(sums), atol=1e-3).all())


def _gradient_problem(case: Case, call: Call, got: Outcome, want: Outcome) -> Problem | None:
    if not call.gradients_of:
        return None
    if got.inside is not None and got.inside.loaded != "names" and got.idle and got.gradient_error is None:
        names = in_words((f"`{n}`" for n in got.idle), "or")
        return Problem(
            "gradient", f"No gradient reaches {names}: {'it' if len(got.idle) == 1 else 'they'} would never learn."
        )
    if case.compare is not None or same_gradients(got, want):
        return None
    if got.gradient_error is not None:
        return Problem("gradient", f"No gradient could be computed: {tell_error(got.gradient_error, call)}")
    missing = [n for n, g in got.gradients.items() if _unless_zero(g) is None and want.gradients[n] is not None]
    names = in_words((f"`{n}`" for n in missing or call.gradients_of), "or" if missing else "and")
    if len(missing) > 1 and len(missing) == len(got.gradients) and call.construction is None:
        names = "the arguments"  # not a matter of one of them: the whole result was cut off
    if missing:
        return Problem("gradient", f"The result is right, but no gradient reaches {names}.")
    return Problem("gradient", f"The result is right, but the gradients with respect to {names} are not.")
