"""Cases of `dropout`: what is random is compared by frequencies over thousands of entries, the rest exactly."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from course_utils import layers as reference
from course_utils.checks.answers import cotangent
from course_utils.checks.compare import same_form, same_values
from course_utils.checks.dropout_mistakes import MISCONCEPTIONS, RIGHT, assemble
from course_utils.checks.model import Case, Draw, Exercise, Output, Recipe
from course_utils.checks.shared import DOUBLE_NOTE, in_double
from course_utils.checks.telling import tell_error
from course_utils.checks.values import Call, Outcome

# A right answer drops a share of the entries within 0.008 of p in every case (one standard deviation).
FAR = 0.04
# Where every entry is dropped by itself, the mean over an axis of n entries varies 1/n as much as a single entry;
# where the axis shares its draw, as much.
SHARED = 0.5
# The numbers of dropped entries in 150 rows vary as independent draws do, up to a tenth (one standard deviation).
FIXED, MANY_ROWS = 0.3, 150
EXACT, NEARLY = 1e-4, 0.06
AXES = ("batch", "time", "feature")


def _inputs(draw: Draw, *shape: int, p: float, training: bool = True) -> dict[str, Any]:
    """Numbers of both signs, none of them near zero, so that a zero was dropped."""
    x = draw.normal(*shape)
    return {"x": x + 0.2 * x.sign(), "p": p, "training": training}


class _Look:
    """What dropout did to its input, seen from the factor on every entry; computed where it is asked for."""

    def __init__(self, factor: Tensor, p: float) -> None:
        self.factor, self.p = factor.nan_to_num(0.0, 1e30, -1e30), p
        self.dropped = self.factor == 0

    @cached_property
    def zeros(self) -> float:
        """The share of entries that are zero."""
        return int(self.dropped.sum()) / self.dropped.numel()

    @cached_property
    def scale(self) -> float:
        """The mean factor on the entries that are not zero."""
        return float(self.factor.double().mean()) / (1 - self.zeros) if self.zeros < 1 else 0.0

    @cached_property
    def even(self) -> bool:
        """Whether all entries that are not zero have the same factor."""
        off = (self.factor - self.scale).abs() > EXACT * abs(self.scale)
        return not bool((off & ~self.dropped).any())

    @property
    def exact(self) -> bool:
        """Whether this factor is 1 / (1 - p)."""
        return self.zeros == 1 or (self.even and abs(self.scale * (1 - self.p) - 1) <= EXACT)

    @property
    def unchanged(self) -> bool:
        """Whether the result is the input."""
        return self.zeros == 0 and self.even and abs(self.scale - 1) <= EXACT

    @cached_property
    def shared(self) -> tuple[int, ...]:
        """The axes along which all entries are dropped or kept together."""
        variance, dropped = self.zeros * (1 - self.zeros), self.dropped.float()
        if not variance or dropped.dim() == 1:
            return ()
        spread = [float((dropped.mean(axis) - self.zeros).pow(2).mean()) for axis in range(dropped.dim())]
        return tuple(axis for axis, s in enumerate(spread) if s > SHARED * variance)

    @cached_property
    def fixed(self) -> bool:
        """Whether every row has (nearly) the same number of zeros."""
        expected = self.zeros * (1 - self.zeros) * self.dropped.shape[-1]
        counts = self.dropped.float().sum(-1)
        return counts.numel() >= MANY_ROWS and expected > 0 and float(counts.var()) < FIXED * expected


def _looks(call: Call, outcome: Outcome) -> Iterator[tuple[str, dict[str, Any], _Look]]:
    """The looks at all calls of a case, and at the gradient, which is a mask like that of the forward pass."""
    for arguments, value in zip((call.arguments, *call.more), (outcome.value, *outcome.more), strict=True):
        yield "", arguments, _Look(value / arguments["x"], arguments["p"])
    gradient = outcome.gradients.get("x")
    if gradient is not None:
        yield "The gradient: ", call.arguments, _Look(gradient / cotangent(outcome.value), call.arguments["p"])


def _compare(call: Call, got: Outcome, want: Outcome) -> str:
    """How the behaviour differs from the right one, or from that of a misconception; masks are never compared."""
    if not all(same_form(value, call.arguments["x"]) for o in (got, want) for value in (o.value, *o.more)):
        # Never said: it is two wrong answers that are compared here.
        return "" if same_values((got.value, *got.more), (want.value, *want.more)) else "Entries are missing."
    if call.gradients_of and not got.changed:  # what writes into x cannot be differentiated: that is told elsewhere
        if got.gradient_error is not None and want.gradient_error is None:
            return f"No gradient could be computed: {tell_error(got.gradient_error, call)}"
        if (got.gradients.get("x") is None) != (want.gradients.get("x") is None):
            return "The result is right, but no gradient reaches `x`."
    for (where, arguments, mine), (_, _, other) in zip(_looks(call, got), _looks(call, want), strict=False):
        told = _difference(arguments, mine, other)
        if told:
            return where + told
    if _repeats(got) and not _repeats(want):
        return "Two calls in a row drop exactly the same entries: chance should decide anew every time."
    return "Two calls give different results." if _repeats(want) and not _repeats(got) else ""


def _difference(arguments: dict[str, Any], mine: _Look, other: _Look) -> str:
    given = f"With p = {arguments['p']:g}" if arguments["training"] else "With training=False"
    zero = f"{100 * mine.zeros:.0f} % of the entries are zero"
    if mine.unchanged != other.unchanged:
        return f"{given}, x comes back as it was." if mine.unchanged else f"{given}, the result is not x: {zero}."
    # Where few draws decide, shares may be far apart by chance: that the draws are few is what is told, below.
    if abs(mine.zeros - other.zeros) > FAR and not mine.shared and not other.shared:
        return f"{given}, {zero}."
    return _in_factors(mine, other, given) or _in_draws(mine, other)


def _in_factors(mine: _Look, other: _Look, given: str) -> str:
    far = NEARLY * max(abs(mine.scale), abs(other.scale))
    if abs(mine.scale - other.scale) > far and mine.shared == other.shared:
        size = "small" if abs(mine.scale) < abs(other.scale) else "large"
        return f"{given}, as many entries are zero as should be, but the others are too {size}."
    if mine.even != other.even:
        return "The entries that are left are not all multiplied by the same number."
    if mine.exact != other.exact:
        return "The entries that are left are multiplied by a number that is near the right one, but not equal to it."
    return ""


def _in_draws(mine: _Look, other: _Look) -> str:
    if mine.shared != other.shared:
        axes = " and ".join(AXES[axis] if axis < len(AXES) else f"axis {axis}" for axis in mine.shared)
        return f"Not every entry has its own draw: along {axes or 'no axis'}, all are dropped or kept together."
    if mine.fixed != other.fixed:
        return "Every row has equally many zeros: entries are not dropped independently of each other."
    return ""


def _repeats(outcome: Outcome) -> bool:
    second = outcome.second
    return second is not None and isinstance(second.value, Tensor) and torch.equal(outcome.value, second.value)


CASES = (
    Case("p = 0.1, thousands of entries", "each entry is dropped by its own draw; the others are divided by 1 - p", 3,
         lambda d: _inputs(d, 10, 20, 40, p=0.1), compare=_compare),
    Case("p = 0.8, thousands of entries", "p is the share that is dropped", 2,
         lambda d: _inputs(d, 10, 20, 40, p=0.8), compare=_compare),
    # A single point: x itself is right here.
    Case("evaluation, and p = 0", "with training=False, and where nothing is to be dropped, x comes back unchanged", 1,
         lambda d: _inputs(d, 3, 10, 40, p=0.4, training=False),
         more=lambda a: (a | {"p": 0.0, "training": True},), compare=_compare),
    Case("one long vector, p = 0.1", "any number of axes", 1, lambda d: _inputs(d, 1600, p=0.1), compare=_compare),
    Case("again, p = 0.2", "another call drops other entries", 1,
         lambda d: _inputs(d, 5, 30, 40, p=0.2), repeat=True, compare=_compare),
    Case("gradients at p = 0.3, and x is kept", "the gradient has the mask of the forward pass; x is not written to", 2,
         lambda d: _inputs(d, 6, 40, 25, p=0.3), gradients_of=("x",), keeps_inputs=True, compare=_compare),
    Case("double precision", "works in float64", 0, lambda d: in_double(_inputs(d, 10, 20, 30, p=0.2)),
         note=DOUBLE_NOTE, compare=_compare),
)  # fmt: skip

DROPOUT = Exercise(
    name="dropout",
    notebook="06",
    reference=reference.dropout,
    outputs=(Output("the result", AXES),),
    cases=CASES,
    recipe=Recipe(assemble, RIGHT),
    misconceptions=MISCONCEPTIONS,
    hints=(
        "One draw for each entry decides whether it stays. What must happen to those that stay, so that the mean of "
        "many results is x? And in evaluation?",
        "Numbers that lie evenly between 0 and 1 are below p with probability p: torch.rand_like(x). The share 1 - p "
        "survives: divide by that, in training only.",
        "if not training: return x; kept = torch.rand_like(x) >= p; torch.where(kept, x / (1 - p), 0.0)",
    ),
)
