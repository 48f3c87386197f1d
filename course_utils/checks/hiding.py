"""Right and wrong ways to hide keys from a softmax; shared by all exercises with an attention mask.

Each takes scores (..., Tk) and a mask that broadcasts to them, True = may attend, or None.
"""

from collections.abc import Callable

from torch import Tensor

from course_utils.checks.model import Misconception, Steps

Hide = Callable[[Tensor, Tensor | None], Tensor]
MINUS_INF = float("-inf")

# For hints. A row of minus infinity alone has no softmax, and a fully hidden row is such a row.
LOWEST = "torch.finfo(scores.dtype).min"
WHY_LOWEST = "with -inf a fully hidden row would become NaN"
HIDE_LINE = f"scores.masked_fill(~mask, {LOWEST}) before the softmax; {WHY_LOWEST}"


def hide(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Right: a hidden score becomes minus infinity."""
    return scores if mask is None else scores.masked_fill(~mask, MINUS_INF)


def normalise(scores: Tensor) -> Tensor:
    """Right: softmax over the keys."""
    return scores.softmax(-1)


def settle(weights: Tensor, mask: Tensor | None) -> Tensor:
    """Right: a row that may attend to nothing gets zeros instead of NaN."""
    return weights if mask is None else weights.masked_fill(~mask.any(-1, keepdim=True), 0.0)


def when_masked(change: Callable[[Tensor, Tensor], Tensor]) -> Hide:
    """A step that does nothing without a mask."""
    return lambda scores, mask: scores if mask is None else change(scores, mask)


def fill(value: float) -> Hide:
    """Hidden scores become `value`."""
    return when_masked(lambda scores, mask: scores.masked_fill(~mask, value))


def add_if_hidden(value: float) -> Hide:
    """`value` is added to hidden scores."""
    return when_masked(lambda scores, mask: scores + (~mask).to(scores.dtype) * value)


def with_and_without_care(*steps: Steps) -> tuple[Steps, ...]:
    """Each way with zeros, with NaN, and with equal weights in rows that may see nothing."""
    not_settled = {"settle": lambda weights, mask: weights}
    equal = not_settled | {"hide": fill(-1e9)}
    return tuple(
        way for step in steps for way in (step, not_settled | step, equal | step) if way is step or "hide" not in step
    ) + tuple(not_settled | step for step in steps if "hide" in step)


KEEP: Steps = {"hide": lambda scores, mask: scores}
INVERTED: tuple[Steps, ...] = (
    {"hide": when_masked(lambda s, m: s.masked_fill(m, MINUS_INF))},
    {"hide": when_masked(lambda s, m: s.masked_fill(m, MINUS_INF)), "settle": lambda w, m: w},
    {"hide": when_masked(lambda s, m: s.masked_fill(m, -1e9)), "settle": lambda w, m: w},
    {"hide": when_masked(lambda s, m: s.masked_fill(m, MINUS_INF)), "settle": lambda w, m: w.nan_to_num(0.0)},
)
AFTER_SOFTMAX: tuple[Steps, ...] = (
    {"hide": lambda s, m: s, "settle": lambda w, m: w if m is None else w.masked_fill(~m, 0.0)},
)


def _divide_again(tiny: float) -> Steps:
    def settle(weights: Tensor, mask: Tensor | None) -> Tensor:
        kept = weights if mask is None else weights.masked_fill(~mask, 0.0)
        return kept if mask is None else kept / (kept.sum(-1, keepdim=True) + tiny)

    return {"hide": lambda s, m: s, "settle": settle}


RENORMALISED: tuple[Steps, ...] = tuple(_divide_again(tiny) for tiny in (0.0, 1e-9, 1e-8, 1e-12))
MULTIPLIED: tuple[Steps, ...] = ({"hide": when_masked(lambda s, m: s * m)}, {"hide": fill(0.0)})
NOT_SETTLED: tuple[Steps, ...] = ({"settle": lambda weights, mask: weights},)

_SMALL = (1e-9, -1e-9, 1e-8, -1e-8, 1e-10, -1e-10)


def no_effect(id: str, hidden: str = "hidden keys", line: str = HIDE_LINE) -> Misconception:
    """A mask that changes nothing: it is not used, what masked_fill returns is dropped, or next to nothing is added."""
    return Misconception(
        id,
        f"The mask has no effect: {hidden} get the weight that they would get without it.",
        (
            "Does the line with the mask change the scores? masked_fill returns a new tensor.",
            "Is there such a line, and which number does it use? -1e-9 is practically 0, where -1e9 was meant.",
            line,
        ),
        (KEEP, {"hide": lambda s, m: s, "settle": lambda w, m: w}, *({"hide": add_if_hidden(x)} for x in _SMALL)),
    )


def filled_with_1e_9(id: str, line: str = HIDE_LINE) -> Misconception:
    """Hidden scores become 1e-9 or -1e-9. Only double precision tells that from 0, so the inputs must have it."""
    return Misconception(
        id,
        "1e-9 or another number next to 0 was written for -1e9. It is an ordinary score, so nothing is hidden.",
        ("What is exp(1e-9)?", "Look at sign and exponent of your mask value.", line),
        tuple({"hide": fill(x)} for x in _SMALL),
    )


def added_as_01(id: str, hidden: str = "hidden keys", line: str = HIDE_LINE) -> Misconception:
    """True and False are added to the scores as 1 and 0."""
    return Misconception(
        id,
        f"The mask is added to the scores as 0 and 1: {hidden} are merely one point lower.",
        (
            "What does True become when it is added?",
            "An additive mask holds 0 and minus infinity, not 1 and 0.",
            line,
        ),
        ({"hide": when_masked(lambda s, m: s + m.to(s.dtype))},),
    )
