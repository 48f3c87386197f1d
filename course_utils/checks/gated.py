"""Cases and misconceptions of `gru_step`."""

import torch

from course_utils import recurrent as reference
from course_utils.checks.model import Case, Draw, Exercise, Misconception, Recipe
from course_utils.checks.recurrent import STATE
from course_utils.checks.shared import DOUBLE_NOTE, in_double, weight_gradient_note, write_into


def _gru(draw: Draw, B: int = 2, D: int = 3, H: int = 5) -> dict:
    return {
        "x": draw.normal(B, D),
        "h": draw.normal(B, H),
        "W": draw.normal(3, D, H) / 2,
        "U": draw.normal(3, H, H) / 2,
        "b": draw.normal(3, H),
    }


def _gru_forced(draw: Draw, gate: int, value: float, B: int = 2, D: int = 3, H: int = 4) -> dict:
    arguments = _gru(draw, B, D, H)
    arguments["b"][gate] = value
    return arguments


def _gate(number):
    return lambda x, h, W, U, b: torch.sigmoid(x @ W[number] + h @ U[number] + b[number])


def _gate_without_bias(number):
    return lambda x, h, W, U, b: torch.sigmoid(x @ W[number] + h @ U[number])


def _assemble_gru(s):
    def run(x, h, W, U, b):
        r, z = s.reset(x, h, W, U, b), s.update(x, h, W, U, b)
        n = s.squash(s.candidate(x, h, r, W[2], U[2], b[2]))
        return s.finish(s.mix(z, n, h), h)

    return run


GRU_STEP = Exercise(
    name="gru_step",
    notebook="01",
    optional=True,
    reference=reference.gru_step,
    outputs=STATE,
    hints=(
        "Two gates with a sigmoid each, one candidate with tanh, and a weighted mean of candidate and old state.",
        "Compute r, z and n in three lines of the same form; only n uses r, and it uses it on h.",
        "n = tanh(x @ W[2] + (r * h) @ U[2] + b[2]), then (1 - z) * n + z * h",
    ),
    cases=(
        Case("ordinary numbers", "gates, candidate and mean follow the formula", 2, _gru),
        Case("update gate open", "with z near 1 the cell keeps its old state", 2, lambda d: _gru_forced(d, 1, 30.0)),
        Case("update gate closed", "with z near 0 the new state is the candidate", 1,
             lambda d: _gru_forced(d, 1, -30.0, B=3)),
        Case("reset gate closed", "with r near 0 the candidate sees the input and forgets the past", 2,
             lambda d: _gru_forced(d, 0, -100.0, B=3, D=4)),
        Case("the old state is kept", "the function makes a new tensor and leaves its arguments alone", 1,
             lambda d: _gru(d, B=1, D=4, H=3), repeat=True, keeps_inputs=True),
        Case("gradients", "gradients flow back to the input and to the old state", 2,
             lambda d: _gru(d, B=3, D=2, H=4), gradients_of=("x", "h")),
        Case("gradients of the weights", "gradients flow back to the weights", 0,
             lambda d: _gru(d, B=3, D=2, H=4), gradients_of=("W", "U", "b"),
             note=weight_gradient_note("the weights")),
        Case("double precision", "works in float64", 0, lambda d: in_double(_gru(d)), note=DOUBLE_NOTE),
    ),
    recipe=Recipe(
        _assemble_gru,
        {
            "reset": _gate(0),
            "update": _gate(1),
            "candidate": lambda x, h, r, W, U, b: x @ W + (r * h) @ U + b,
            "squash": torch.tanh,
            "mix": lambda z, n, h: (1 - z) * n + z * h,
            "finish": lambda new, h: new,
        },
    ),
    misconceptions=(
        Misconception(
            "gru_update_flipped",
            "The update gate is used the other way round: it keeps the candidate where it should keep the old state.",
            ("With z = 1, should the cell remember or overwrite?",
             "Set the update bias to 30 and compare your result with h.",
             "(1 - z) * n + z * h"),
            ({"mix": lambda z, n, h: z * n + (1 - z) * h},),
            convention="the new state is (1 - z) * n + z * h (both ways exist in papers).",
        ),
        Misconception(
            "gru_reset_unused",
            "The reset gate is computed and then not used in the candidate.",
            ("What is the reset gate supposed to reset?",
             "Set the reset bias to -100: does the candidate still depend on h?",
             "(r * h) @ U[2]"),
            ({"candidate": lambda x, h, r, W, U, b: x @ W + h @ U + b},),
        ),
        Misconception(
            "gru_reset_on_input",
            "The reset gate multiplies what comes from the input; only the old state is to be reset.",
            ("Does the gate forget the past or the present?",
             "Set the reset bias to -100: the candidate must still see x.",
             "r multiplies h and nothing else: x @ W[2] + (r * h) @ U[2] + b[2]"),
            ({"candidate": lambda x, h, r, W, U, b: r * (x @ W) + h @ U + b},
             {"candidate": lambda x, h, r, W, U, b: r * (x @ W + b) + h @ U},
             {"candidate": lambda x, h, r, W, U, b: r * (x @ W + h @ U + b)},
             {"candidate": lambda x, h, r, W, U, b: (r * x) @ W + h @ U + b}),
        ),
        Misconception(
            "gru_reset_after_matmul",
            "The reset gate is applied after the multiplication by U[2], as torch.nn.GRU does.",
            ("What does r multiply: h, or something made from h?",
             "With a U[2] that mixes features, the order of the two operations matters.",
             "(r * h) @ U[2], not r * (h @ U[2])"),
            ({"candidate": lambda x, h, r, W, U, b: x @ W + r * (h @ U) + b},
             {"candidate": lambda x, h, r, W, U, b: x @ W + r * (h @ U + b)}),
            convention="r is applied to h first, then multiplied by U (Cho et al. 2014).",
        ),
        Misconception(
            "gru_gates_share_weights",
            "Both gates use the same weights, so reset and update are always equal.",
            ("Are your two gates ever different?",
             "Look at the index in your two gate lines.",
             "r uses W[0], U[0], b[0]; z uses W[1], U[1], b[1]"),
            ({"update": _gate(0)}, {"reset": _gate(1)}),
        ),
        Misconception(
            "gru_candidate_sigmoid",
            "The candidate goes through a sigmoid instead of tanh, so it can never be negative.",
            ("Can your candidate be negative?",
             "Gates lie between 0 and 1. Where should a state lie?",
             "n = torch.tanh(...)"),
            ({"squash": torch.sigmoid},),
        ),
        Misconception(
            "gru_candidate_no_tanh",
            "The candidate has no tanh at all.",
            ("What keeps the candidate bounded?",
             "Print the largest entry of n.",
             "n = torch.tanh(...)"),
            ({"squash": lambda inner: inner},),
        ),
        Misconception(
            "gru_shares_exceed_one",
            "Candidate and old state are not mixed in shares that sum to one: one of them is added whole.",
            ("What do the two factors of n and h sum to?",
             "Set the update bias to 30: the result should be h.",
             "(1 - z) * n + z * h"),
            ({"mix": lambda z, n, h: n + z * h}, {"mix": lambda z, n, h: (1 - z) * n + h},
             {"mix": lambda z, n, h: z * n + h}, {"mix": lambda z, n, h: n + (1 - z) * h},
             {"mix": lambda z, n, h: n + h}),
        ),
        Misconception(
            "gru_gates_exchanged",
            "Reset and update gate have changed places: the order of the weights is reset, update, candidate.",
            ("Which gate is W[0]?",
             "Compare the order in the docstring with your indices.",
             "r from index 0, z from index 1"),
            ({"reset": _gate(1), "update": _gate(0)},),
        ),
        Misconception(
            "gru_no_bias",
            "The biases are missing, all or some of them.",
            ("Is there an argument that you did not use?",
             "There are three biases: one for each gate and one for the candidate.",
             "x @ W[i] + h @ U[i] + b[i]"),
            ({"candidate": lambda x, h, r, W, U, b: x @ W + (r * h) @ U},
             {"candidate": lambda x, h, r, W, U, b: x @ W + (r * h) @ U, "reset": _gate_without_bias(0),
              "update": _gate_without_bias(1)}),
        ),
        Misconception(
            "gru_returns_candidate",
            "The candidate itself is returned; the old state is not mixed in.",
            ("What does the update gate do in your code?",
             "Set the update bias to 30: the result should be h.",
             "return (1 - z) * n + z * h"),
            ({"mix": lambda z, n, h: n},),
        ),
        Misconception(
            "gru_state_in_place",
            "The old state h is overwritten, so a state that somebody kept changes later.",
            ("What does the caller's h look like after the call?",
             "Look for `h[...] =`, `h *=`, or a method whose name ends in an underscore.",
             "Return a new tensor; do not write into h."),
            ({"finish": lambda new, h: write_into(h, new)},),
            symptom=lambda got, want: "h" in got.changed,
        ),
    ),
)  # fmt: skip
