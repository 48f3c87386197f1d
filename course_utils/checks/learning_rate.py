"""Cases of `noam_lr`. A case asks for several rates, which are compared by their ratios."""

import math

from torch import Tensor

from course_utils import training as reference
from course_utils.checks.compare import same_form, same_values
from course_utils.checks.learning_rate_mistakes import MISCONCEPTIONS, RIGHT, assemble
from course_utils.checks.model import Case, Draw, Exercise, Output, Recipe
from course_utils.checks.telling import in_words
from course_utils.checks.values import Call, Outcome

# A rate may be off by this share of itself: rates are tiny, an absolute tolerance would let everything pass.
RELATIVE = 1e-4


def _plan(draw: Draw) -> dict:
    """A width and a length of the warm-up that cannot be taken for each other."""
    return {"step": 1, "d_model": int(draw.tokens(20, 30, 1)), "warmup": int(draw.tokens(8, 14, 1))}


def _during(draw: Draw) -> dict:
    return _plan(draw) | {"step": int(draw.tokens(2, 4, 1))}


def _after(draw: Draw) -> dict:
    plan = _plan(draw)
    return plan | {"step": plan["warmup"] + int(draw.tokens(2, 6, 1))}


def _top(draw: Draw) -> dict:
    plan = _plan(draw)
    return plan | {"step": plan["warmup"]}


def _of_the_paper(draw: Draw) -> dict:
    return {"step": int(draw.tokens(5000, 90_000, 1)), "d_model": 512, "warmup": 4000}


def _at(*steps):
    """Further calls with the same width and warm-up; each of `steps` makes a step of the first call's arguments."""
    return lambda a: tuple(a | {"step": step(a["step"], a["warmup"])} for step in steps)


def _compare(call: Call, got: Outcome, want: Outcome) -> str:
    """What is wrong with the rates of several calls, or where they differ from those of a misconception."""
    calls = (call.arguments, *call.more)
    if not all(same_form(value, want.value) for o in (got, want) for value in o.more):
        return "" if same_values(got.more, want.more) else "Not every result is a single number."
    mine, right = ([float(v) for v in (o.value, *o.more)] for o in (got, want))
    wrong = [a for a, x, y in zip(calls, mine, right, strict=True) if not _near(x, y)]
    if not wrong:
        forgets = not _repeats(got) and _repeats(want)
        return "Two calls with the same arguments give different rates." if forgets else ""
    a = wrong[0]
    text = f"The rate is not right at step {a['step']}, with d_model = {a['d_model']} and warmup = {a['warmup']}."
    if len({a["step"] for a in calls}) > 1 and all(_near(x, mine[0]) for x in mine):
        text += f" It is the same at the steps {in_words(a['step'] for a in calls)}."
    elif len(calls) > 1 and all(_near(x * right[0], y * mine[0]) for x, y in zip(mine, right, strict=True)):
        text += " All rates of this case are off by the same factor."
    return text


def _near(x: float, y: float) -> bool:
    return math.isclose(x, y, rel_tol=RELATIVE) or (math.isnan(x) and math.isnan(y))


def _repeats(outcome: Outcome) -> bool:
    if outcome.second is None:
        return True
    again = outcome.second.value
    return isinstance(again, Tensor) and again.dim() == 0 and _near(float(again), float(outcome.value))


CASES = (
    Case("during the warm-up", "the rate rises in proportion to the step", 2, _during,
         more=_at(lambda step, warmup: 1, lambda step, warmup: warmup // 2 + 1), compare=_compare),
    Case("after the warm-up", "the rate falls with the root of the step", 2, _after,
         more=_at(lambda step, warmup: 4 * step, lambda step, warmup: 30 * warmup), compare=_compare),
    Case("the end of the warm-up", "the rate is largest where rise and fall meet", 2, _top,
         more=_at(lambda step, warmup: warmup - 1, lambda step, warmup: warmup + 1), compare=_compare),
    # The only case of a single call: a symptom knows it by that.
    Case("step 0", "a training loop that counts from 0 gets the rate of step 1", 1,
         lambda d: _plan(d) | {"step": 0}, compare=_compare),
    Case("other widths", "a wider model gets a smaller rate", 1, _during,
         more=lambda a: tuple(a | {"d_model": k * a["d_model"]} for k in (2, 9)), compare=_compare),
    Case("d_model = 512, warmup = 4000", "the numbers of the paper", 1, _of_the_paper,
         more=_at(lambda step, warmup: step // 50, lambda step, warmup: 4000), compare=_compare),
    Case("a warm-up of one step, and called again", "the rate falls from the first step on; calls leave no trace", 1,
         lambda d: _plan(d) | {"warmup": 1}, more=_at(lambda step, warmup: 2, lambda step, warmup: 9),
         repeat=True, keeps_inputs=True, compare=_compare),
)  # fmt: skip

NOAM_LR = Exercise(
    name="noam_lr",
    notebook="06",
    reference=reference.noam_lr,
    outputs=(Output("the learning rate", (), number=True),),
    cases=CASES,
    recipe=Recipe(assemble, RIGHT),
    misconceptions=MISCONCEPTIONS,
    hints=(
        "Two curves: one rises with the step, one falls. Which of them counts at step 1, and which long after?",
        "The smaller of the two counts, and they meet at step = warmup: put that step into both formulas. "
        "d_model ** -0.5 multiplies what comes out.",
        "step = max(step, 1); d_model ** -0.5 * min(step ** -0.5, step * warmup ** -1.5)",
    ),
)
