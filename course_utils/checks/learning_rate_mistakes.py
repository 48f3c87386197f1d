"""The recipe of `noam_lr`, and its misconceptions."""

import math

from course_utils.checks.model import Misconception


def assemble(s):
    """The rate from its steps."""

    def run(step, d_model, warmup):
        step = s.start(step)
        return s.width(d_model, warmup) * s.choose(s.fall(step, warmup), s.rise(step, warmup))

    return run


RIGHT = {
    "start": lambda step: max(step, 1),
    "width": lambda d_model, warmup: d_model**-0.5,
    "fall": lambda step, warmup: step**-0.5,
    "rise": lambda step, warmup: step * warmup**-1.5,
    "choose": min,
}


def _as_given(step):
    return step


def _unless_zero(step, warmup):
    return step**-0.5 if step else math.inf


def _divides_by_zero(got, want):
    """The step-0 case, known by being a single call, ends in an error about a division or power of zero."""
    error = got.error
    if error is None or want.more:
        return False
    return error.kind == "ZeroDivisionError" or (error.kind == "ValueError" and "math domain" in error.message)


_WITHOUT_PARENTHESES = {
    "width": lambda d_model, warmup: d_model**-1 / 2,
    "fall": lambda step, warmup: step**-1 / 2,
    "rise": lambda step, warmup: step * warmup**-3 / 2,
}

_BOTH = "min(step ** -0.5, step * warmup ** -1.5)"

MISCONCEPTIONS = (
    Misconception(
        "lr_max",
        "The larger of the two formulas is taken instead of the smaller: the rate starts huge.",
        ("Which is larger: the rate at step 1 or that at the end of the warm-up?",
         "Print the rates of the first steps: they should rise.", _BOTH),
        ({"choose": max},),
    ),
    Misconception(
        "lr_sum",
        "The two formulas are added or multiplied; only the smaller of them should count.",
        ("Which of the two matters during the warm-up?", "Look at what stands between the two formulas.", _BOTH),
        ({"choose": lambda fall, rise: fall + rise}, {"choose": lambda fall, rise: fall * rise},
         {"choose": lambda fall, rise: (fall + rise) / 2}),
    ),
    Misconception(
        "lr_no_model_size",
        "The width of the model has no effect.",
        ("Is there an argument that you did not use?", "A model four times as wide gets half the rate.",
         "d_model ** -0.5 * ..."),
        ({"width": lambda d_model, warmup: 1.0},),
    ),
    Misconception(
        "lr_model_size_one_branch",
        "The width of the model scales only one of the two formulas.",
        ("Follow the brackets: what does d_model ** -0.5 multiply?",
         "Put step = warmup into both: they must be equal.", f"d_model ** -0.5 * {_BOTH}"),
        ({"whole": lambda step, d_model, warmup: min((d_model * max(step, 1)) ** -0.5, max(step, 1) * warmup**-1.5)},
         {"whole": lambda step, d_model, warmup: min(max(step, 1) ** -0.5,
                                                     d_model**-0.5 * max(step, 1) * warmup**-1.5)}),
    ),
    Misconception(
        "lr_model_size_up",
        "A wider model gets a larger rate: the sign of the exponent of d_model is missing.",
        ("Should a wider model take larger steps?", "Compare d_model = 64 and d_model = 256.", "d_model ** -0.5"),
        ({"width": lambda d_model, warmup: d_model**0.5},),
    ),
    Misconception(
        "lr_model_size_no_root",
        "The rate is divided by d_model itself instead of by its root.",
        ("By what does the rate of a model four times as wide differ?", "Look at the exponent of d_model.",
         "d_model ** -0.5"),
        ({"width": lambda d_model, warmup: 1 / d_model}, {"width": lambda d_model, warmup: d_model**-1.5},
         {"width": lambda d_model, warmup: d_model**-0.25}, {"width": lambda d_model, warmup: d_model**-2}),
    ),
    Misconception(
        "lr_step_zero",
        "Step 0 leads to a division by zero: its power -0.5 does not exist.",
        ("Which step does a loop over range(n) begin with?", "Call your function with step = 0.",
         "step = max(step, 1)"),
        ({"start": _as_given}, {"start": _as_given, "fall": lambda step, warmup: 1 / math.sqrt(step)},
         {"start": _as_given, "fall": lambda step, warmup: math.pow(step, -0.5)},
         {"start": _as_given, "fall": lambda step, warmup: 1 / step**0.5}),
        symptom=_divides_by_zero,
    ),
    Misconception(
        "lr_zero_at_zero",
        "The rate at step 0 is zero, or next to nothing: the first update would be wasted.",
        ("What does an update do with the rate 0?", "Call your function with step = 0 and with step = 1.",
         "step = max(step, 1)"),
        ({"start": _as_given, "fall": _unless_zero},
         *({"start": lambda step, tiny=tiny: max(step, tiny)} for tiny in (1e-12, 1e-9, 1e-8, 1e-6, 1e-5)),
         *({"start": lambda step, tiny=tiny: step + tiny} for tiny in (1e-12, 1e-9, 1e-8, 1e-6, 1e-5))),
        convention="step 0 counts as step 1.",
    ),
    Misconception(
        "lr_off_by_one",
        "The steps are counted one too far or too late: every rate is that of its neighbour.",
        ("Which rate has step 1?", "At step = warmup, rise and fall must be equal. Print both.",
         "step = max(step, 1), not step + 1"),
        ({"start": lambda step: step + 1}, {"start": lambda step: max(step - 1, 1)},
         {"start": lambda step: max(step, 1) + 1}),
        convention="step 0 counts as step 1; all other steps count as they are.",
    ),
    Misconception(
        "lr_warmup_exponent",
        "The rise has another power of the warm-up: rise and fall do not meet at step = warmup.",
        ("What are the two formulas at step = warmup?", "warmup * warmup ** k must be warmup ** -0.5: which k?",
         "step * warmup ** -1.5"),
        ({"rise": lambda step, warmup: step * warmup**-0.5}, {"rise": lambda step, warmup: step / warmup},
         {"rise": lambda step, warmup: step * warmup**-2}),
    ),
    Misconception(
        "lr_power_without_parentheses",
        "`** -1/2` is not the power -0.5: the power comes first, and what it gives is divided by 2.",
        ("What is 4 ** -1/2 in Python?", "Which comes first, the power or the division?", "** -0.5, or ** (-1/2)"),
        tuple({name: way for name, way in _WITHOUT_PARENTHESES.items() if name in names} for names in (
            ("fall",), ("width",), ("rise",), ("fall", "rise"), ("width", "fall"), ("width", "fall", "rise"),
            ("width", "rise"))),
    ),
    Misconception(
        "lr_step_warmup_swapped",
        "step and warmup have changed places in the formula.",
        ("Which of the two changes during training?", "At step 1 the rate should be small, and then rise.", _BOTH),
        ({"fall": lambda step, warmup: warmup**-0.5, "rise": lambda step, warmup: warmup * step**-1.5},),
    ),
    Misconception(
        "lr_constant_after",
        "The rate stays where it is after the warm-up instead of falling.",
        ("What does the rate do after the warm-up?", "Compare step = warmup and step = 4 * warmup.",
         "min(step ** -0.5, ...)"),
        ({"fall": lambda step, warmup: warmup**-0.5},),
    ),
    Misconception(
        "lr_never_falls",
        "The rate goes on rising after the warm-up.",
        ("What ends the rise?", "Compare step = warmup and step = 4 * warmup.", _BOTH),
        ({"choose": lambda fall, rise: rise}, {"fall": lambda step, warmup: step**0.5}),
    ),
    Misconception(
        "lr_no_warmup",
        "There is no warm-up: the rate is largest at step 1 and falls from there.",
        ("Is there an argument that you did not use?", "Print the rates of the first steps: they should rise.", _BOTH),
        ({"choose": lambda fall, rise: fall},),
    ),
    Misconception(
        "lr_fall_no_root",
        "After the warm-up the rate falls with another power of the step than its root.",
        ("Four times as many steps: how much smaller is the rate?", "Look at the exponent of step.", "step ** -0.5"),
        ({"fall": lambda step, warmup: 1 / step}, {"fall": lambda step, warmup: step**-1.5},
         {"fall": lambda step, warmup: step**-2}, {"fall": lambda step, warmup: step**-0.25},
         {"fall": lambda step, warmup: warmup**0.5 / step}),
    ),
    Misconception(
        "lr_rise_not_linear",
        "During the warm-up the rate does not rise in proportion to the step.",
        ("Twice the step: is it twice the rate?", "Look at the power of step in the second formula.",
         "step * warmup ** -1.5"),
        ({"rise": lambda step, warmup: step**2 * warmup**-1.5}, {"rise": lambda step, warmup: step**0.5 * warmup**-1.5},
         {"rise": lambda step, warmup: step**2 * warmup**-2.5}, {"rise": lambda step, warmup: step**0.5 / warmup},
         {"rise": lambda step, warmup: warmup**-1.5}, {"rise": lambda step, warmup: warmup**-0.5},
         {"rise": lambda step, warmup: step**1.5 * warmup**-1.5}),
    ),
    Misconception(
        "lr_relative",
        "The curve has its top at 1: that is a factor on a learning rate, not the rate of the paper.",
        ("What is the rate at step = warmup?", "It depends on d_model and on the warm-up.",
         f"d_model ** -0.5 * {_BOTH}"),
        ({"width": lambda d_model, warmup: warmup**0.5},),
        convention="the rate has no other factor than d_model ** -0.5.",
    ),
    Misconception(
        "lr_scaled_top",
        "The curve has its top at d_model ** -0.5, whatever the length of the warm-up.",
        ("Does a longer warm-up lower the top?", "What are the two formulas at step = warmup?",
         f"d_model ** -0.5 * {_BOTH}"),
        ({"width": lambda d_model, warmup: d_model**-0.5 * warmup**0.5},),
    ),
    Misconception(
        "lr_integer_division",
        "A division that drops the fraction (//) makes a whole number of an exponent or of a share.",
        ("What is -1 // 2, and what is 3 // 10?", "Look for // in your function.", "-0.5, or /"),
        ({"width": lambda d_model, warmup: d_model ** (-1 // 2), "fall": lambda step, warmup: step ** (-1 // 2),
          "rise": lambda step, warmup: step * warmup ** (-3 // 2)},
         {"rise": lambda step, warmup: step // warmup * warmup**-0.5},
         {"rise": lambda step, warmup: step // warmup**1.5}),
    ),
)  # fmt: skip
