"""Cases and misconceptions of `rnn_step`."""

import torch
import torch.nn.functional as F

from course_utils import recurrent as reference
from course_utils.checks.model import Case, Draw, Exercise, Misconception, Output, Recipe
from course_utils.checks.shared import DOUBLE_NOTE, in_double, weight_gradient_note, write_into

STATE = (Output("the new state", ("batch", "feature")),)


def _rnn(draw: Draw, B: int = 2, D: int = 3, H: int = 5, scale: float = 1.0) -> dict:
    return {
        "x": scale * draw.normal(B, D),
        "h": scale * draw.normal(B, H),
        "W_xh": draw.normal(D, H) / 2,
        "W_hh": draw.normal(H, H) / 2,
        "b": draw.normal(H),
    }


def _saturated(draw: Draw) -> dict:
    """Sums near 200 and near -200 among ordinary ones: there exp overflows in float32, and tanh is exactly 1 or -1."""
    arguments = _rnn(draw, B=4, D=2, H=3, scale=10.0)
    arguments["x"][:2, 0] = torch.tensor([200.0, -200.0])
    arguments["W_xh"][0, 0] = 1.0
    return arguments


def _by_hand(i, m, b):
    e = torch.exp(2 * (i + m + b))
    return (e - 1) / (e + 1)


def _by_hand_downwards(i, m, b):
    e = torch.exp(-2 * (i + m + b))
    return (1 - e) / (1 + e)


def _by_hand_both(i, m, b):
    up, down = torch.exp(i + m + b), torch.exp(-(i + m + b))
    return (up - down) / (up + down)


def _assemble_rnn(s):
    def run(x, h, W_xh, W_hh, b):
        inner = s.squash(s.from_input(x, W_xh), s.from_memory(h, W_hh), s.bias(b))
        return s.finish(inner, h)

    return run


RNN_STEP = Exercise(
    name="rnn_step",
    notebook="01",
    reference=reference.rnn_step,
    outputs=STATE,
    hints=(
        "Three things flow into the new state: the input, the state before, and the bias.",
        "Build the two matrix products first and print their shapes: both are (B, H).",
        "return torch.tanh(x @ W_xh + h @ W_hh + b)",
    ),
    cases=(
        Case("ordinary numbers", "the new state comes from the input, the old state and the bias", 3, _rnn),
        Case("large numbers", "the state stays between -1 and 1, however large the input is", 2,
             _saturated),
        Case("large bias, one sentence", "the bias is added", 1,
             lambda d: _rnn(d, B=1, D=4, H=2) | {"b": 3 * torch.ones(2)}),
        Case("the old state is kept", "the function makes a new tensor and leaves its arguments alone", 2,
             lambda d: _rnn(d, B=3, D=5, H=4), repeat=True, keeps_inputs=True),
        Case("gradients", "gradients flow back to the input and to the old state", 2,
             lambda d: _rnn(d, B=3, D=2, H=4), gradients_of=("x", "h")),
        Case("gradients of the weights", "gradients flow back to the weights", 0,
             lambda d: _rnn(d, B=3, D=2, H=4), gradients_of=("W_xh", "W_hh", "b"),
             note=weight_gradient_note("the weights")),
        Case("double precision", "works in float64", 0, lambda d: in_double(_rnn(d)), note=DOUBLE_NOTE),
    ),
    recipe=Recipe(
        _assemble_rnn,
        {
            "from_input": lambda x, W: x @ W,
            "from_memory": lambda h, W: h @ W,
            "bias": lambda b: b,
            "squash": lambda i, m, b: torch.tanh(i + m + b),
            "finish": lambda new, h: new,
        },
    ),
    misconceptions=(
        Misconception(
            "rnn_no_tanh",
            "The new state is the plain weighted sum: the tanh that squashes it is missing.",
            ("What keeps the state bounded when the step is applied a hundred times?",
             "Give the function inputs of size 10 and look at the largest entry of the result.",
             "Wrap the whole sum: torch.tanh(...)"),
            ({"squash": lambda i, m, b: i + m + b},),
        ),
        Misconception(
            "rnn_other_activation",
            "Another function than tanh squashes the sum.",
            ("Between which two numbers does tanh stay? And your function?",
             "Give the function large positive and large negative inputs.",
             "torch.tanh(...)"),
            tuple({"squash": lambda i, m, b, f=f: f(i + m + b)} for f in (
                torch.relu, torch.sigmoid, F.gelu, F.hardtanh, torch.sin, lambda s: 2 * torch.sigmoid(s) - 1)),
            convention="the state goes through tanh.",
        ),
        Misconception(
            "rnn_forgets_hidden",
            "The cell looks at the current input only; the state before has no influence, so there is no memory.",
            ("Which argument of your function never influences the result?",
             "Call it twice with the same x and two different h.",
             "Add h @ W_hh inside the tanh."),
            ({"from_memory": lambda h, W: torch.zeros_like(h)},),
        ),
        Misconception(
            "rnn_tanh_on_part",
            "tanh is applied to a part of the sum, and the rest is added outside it.",
            ("Can your result be larger than 1?",
             "Follow the brackets: which of the three terms lie inside tanh?",
             "torch.tanh(input part + memory part + bias): one pair of brackets around everything."),
            ({"squash": lambda i, m, b: torch.tanh(i + b) + m},
             {"squash": lambda i, m, b: torch.tanh(i) + m + b},
             {"squash": lambda i, m, b: i + torch.tanh(m + b)},
             {"squash": lambda i, m, b: i + b + torch.tanh(m)},
             {"squash": lambda i, m, b: torch.tanh(i) + torch.tanh(m) + b},
             {"squash": lambda i, m, b: torch.tanh(i) + torch.tanh(m + b)},
             {"squash": lambda i, m, b: torch.tanh(i + b) + torch.tanh(m)}),
        ),
        Misconception(
            "rnn_bias_outside",
            "The bias is added after the tanh instead of inside it.",
            ("Can your result be larger than 1?",
             "Which of the three terms lie inside tanh?",
             "Move `+ b` inside the brackets of tanh."),
            ({"squash": lambda i, m, b: torch.tanh(i + m) + b},),
        ),
        Misconception(
            "rnn_no_bias",
            "The bias b is never added.",
            ("Is there an argument that you did not use?",
             "Set b to 3 everywhere: does your result move?",
             "... + b inside the tanh"),
            ({"bias": torch.zeros_like},),
        ),
        Misconception(
            "rnn_state_in_place",
            "The old state h is overwritten, so every state that somebody kept in a list becomes the same tensor.",
            ("What does the caller's h look like after the call?",
             "Look for `h[...] =`, `h +=`, or a method whose name ends in an underscore.",
             "Return the new tensor; do not write into h."),
            ({"finish": lambda new, h: write_into(h, new)},),
            symptom=lambda got, want: "h" in got.changed,
        ),
        Misconception(
            "rnn_sigmoid",
            "A sigmoid squashes the state, not tanh: it can never be negative.",
            ("Can your state be negative?",
             "Look at the name of the squashing function in the formula.",
             "torch.tanh, not torch.sigmoid"),
            ({"squash": lambda i, m, b: torch.sigmoid(i + m + b)},),
        ),
        Misconception(
            "rnn_exp_overflow",
            "tanh is written by hand with exp, which overflows: infinity divided by infinity is NaN.",
            ("What is exp(200) in float32?",
             "Give the function inputs of size 200 and look at the result.",
             "torch.tanh(...), which is safe everywhere"),
            ({"squash": _by_hand}, {"squash": _by_hand_downwards}, {"squash": _by_hand_both}),
        ),
        Misconception(
            "rnn_residual",
            "The old state is added once more outside the tanh: that is a residual connection, which this cell does "
            "not have.",
            ("Can your result be larger than 1?",
             "Look at what is added after the tanh: h comes in through W_hh alone.",
             "return the tanh as it is, without h +"),
            ({"finish": lambda new, h: h + new}, {"finish": lambda new, h: (h + new) / 2}),
        ),
        Misconception(
            "rnn_memory_transposed",
            "The recurrent matrix is used the wrong way round (transposed).",
            ("Which axis of W_hh is the input, which the output?",
             "Weights have shape (in, out) and are used as x @ W.",
             "h @ W_hh, without .T"),
            ({"from_memory": lambda h, W: h @ W.T},),
        ),
    ),
)  # fmt: skip
