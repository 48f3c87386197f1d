"""Cases and misconceptions of `feed_forward`."""

import torch
import torch.nn.functional as F

from course_utils import layers as reference
from course_utils.checks.model import Case, Draw, Exercise, Misconception, Output, Recipe
from course_utils.checks.shared import DOUBLE_NOTE, in_double, looks_like_dropout, weight_gradient_note, write_into


def _network(draw: Draw, *shape: int, d_ff: int = 7) -> dict:
    """Hidden numbers of both signs, near zero and far from it; no bias that could be left out."""
    d = shape[-1]
    b1, b2 = draw.normal(d_ff), draw.normal(d)
    return {
        "x": 1.5 * draw.normal(*shape),
        "W1": draw.normal(d, d_ff),
        "b1": b1 + b1.sign(),
        "W2": draw.normal(d_ff, d),
        "b2": b2 + b2.sign(),
    }


def _silent(draw: Draw) -> dict:
    """Every hidden number is far below zero, except in the first position."""
    arguments = _network(draw, 2, 3, 4, d_ff=6)
    arguments["b1"] = -40 - arguments["b1"].abs()
    arguments["x"][:, 0] = 100 * arguments["x"][:, 0]
    return arguments


CASES = (
    Case("ordinary numbers", "two linear maps with a ReLU between them", 3, lambda d: _network(d, 2, 3, 4)),
    Case("as many hidden features as inputs", "weights have shape (in, out): x @ W", 2,
         lambda d: _network(d, 2, 3, 5, d_ff=5)),
    Case("nothing passes the ReLU", "what is left is the second bias, negative or not", 1, _silent),
    Case("four axes", "each vector is treated by itself, whatever axes come before the last", 1,
         lambda d: _network(d, 2, 4, 2, 6, d_ff=3)),
    Case("a single vector", "the same with no other axis", 1, lambda d: _network(d, 6, d_ff=4)),
    Case("gradients, and x is kept", "gradients flow back to x; nothing is written to", 2,
         lambda d: _network(d, 3, 2, 4, d_ff=5), gradients_of=("x",), repeat=True, keeps_inputs=True),
    Case("gradients of the weights", "gradients flow back to the weights", 0,
         lambda d: _network(d, 2, 3, 4), gradients_of=("W1", "b1", "W2", "b2"),
         note=weight_gradient_note("the weights")),
    Case("double precision", "works in float64", 0, lambda d: in_double(_network(d, 2, 3, 4)), note=DOUBLE_NOTE),
)  # fmt: skip


def _assemble(s):
    def run(x, W1, b1, W2, b2):
        x = s.prepare(x)
        hidden = s.activate(s.first(x, W1), s.bias_one(b1))
        return s.finish(s.second(hidden, W2) + s.bias_two(b2), x)

    return run


RIGHT = {
    "prepare": lambda x: x,
    "first": lambda x, W: x @ W,
    "bias_one": lambda b: b,
    "activate": lambda h, b: F.relu(h + b),
    "second": lambda hidden, W: hidden @ W,
    "bias_two": lambda b: b,
    "finish": lambda out, x: out,
}


def _linear(h, b):
    return h + b


def _another(activation):
    return {"activate": lambda h, b: activation(h + b)}


def _transposed(h, W):
    return h @ W.T


MISCONCEPTIONS = (
    Misconception(
        "ffn_no_activation",
        "There is no ReLU: two linear maps in a row are one linear map.",
        ("Which single matrix does the same as your two?", "What happens to the negative hidden numbers?",
         "F.relu(x @ W1 + b1)"),
        ({"activate": _linear},),
    ),
    Misconception(
        "ffn_activation_last",
        "The ReLU comes after the second map instead of between the two.",
        ("Can your result be negative?", "The activation belongs in the wide middle.",
         "F.relu(x @ W1 + b1) @ W2 + b2"),
        ({"activate": _linear, "finish": lambda out, x: F.relu(out)},),
    ),
    Misconception(
        "ffn_activation_both",
        "There is a ReLU after the second map as well.",
        ("Can your result be negative?", "What is added to the stream must be free to subtract.",
         "F.relu(x @ W1 + b1) @ W2 + b2"),
        ({"finish": lambda out, x: F.relu(out)},),
    ),
    Misconception(
        "ffn_gelu",
        "The activation is GELU instead of ReLU.",
        ("Which activation does the statement ask for?", "What becomes of a hidden number just below zero?",
         "F.relu"),
        (_another(F.gelu), _another(lambda h: F.gelu(h, approximate="tanh"))),
        convention="the activation is ReLU.",
    ),
    Misconception(
        "ffn_other_activation",
        "The activation is another function than ReLU.",
        ("Which activation does the statement ask for?", "What becomes of hidden numbers below zero, and above one?",
         "F.relu"),
        tuple(_another(a) for a in (torch.tanh, torch.sigmoid, F.silu, F.leaky_relu, F.elu, F.softplus, F.relu6,
                                    torch.abs, lambda h: h.softmax(-1), lambda h: F.leaky_relu(h, 0.1),
                                    lambda h: F.relu(h).pow(2))),
        convention="the activation is ReLU.",
    ),
    Misconception(
        "ffn_relu_upside_down",
        "The negative hidden numbers are kept, and the positive ones become zero.",
        ("Which side of zero does a ReLU let through?", "max(0, h), not min(0, h).", "F.relu(x @ W1 + b1)"),
        (_another(lambda h: h.clamp(max=0)), _another(lambda h: F.relu(-h))),
    ),
    Misconception(
        "ffn_relu_on_input",
        "The ReLU is applied to x before the first map, so what is negative in x is lost.",
        ("Which numbers does your ReLU see?", "Follow the brackets.", "F.relu(x @ W1 + b1)"),
        ({"prepare": F.relu, "activate": _linear}, {"prepare": F.relu}),
    ),
    Misconception(
        "ffn_bias_after_relu",
        "The first bias is added after the ReLU instead of before it.",
        ("Can a hidden number be negative?", "Follow the brackets: is b1 inside?", "F.relu(x @ W1 + b1)"),
        ({"activate": lambda h, b: F.relu(h) + b},),
    ),
    Misconception(
        "ffn_missing_bias",
        "The second bias is missing.",
        ("Is there an argument that you did not use?", "Set b2 to 3 everywhere: does your result move by 3?",
         "... @ W2 + b2"),
        ({"bias_two": torch.zeros_like},),
    ),
    Misconception(
        "ffn_missing_first_bias",
        "The first bias is missing.",
        ("Is there an argument that you did not use?", "Set b1 to -100 everywhere: what should be left?",
         "F.relu(x @ W1 + b1)"),
        ({"bias_one": torch.zeros_like},),
    ),
    Misconception(
        "ffn_weights_transposed",
        "A weight matrix is used the wrong way round (transposed).",
        ("Which axis of W1 is the input, which the output?",
         "F.linear expects (out, in); here weights are (in, out) and are used as x @ W.",
         "x @ W1 and hidden @ W2, without .T"),
        ({"first": _transposed, "second": _transposed}, {"first": _transposed}, {"second": _transposed},
         {"first": F.linear}, {"second": F.linear}, {"second": lambda h, W: h @ W.transpose(0, 1)},
         {"first": lambda x, W: (W @ x.transpose(-2, -1)).transpose(-2, -1)},
         {"first": lambda x, W: W @ x}, {"second": lambda h, W: W @ h}),
        convention="weights have shape (in, out) and are used as x @ W.",
    ),
    Misconception(
        "ffn_weights_swapped",
        "W2 is used where W1 belongs, and W1 where W2 does.",
        ("Which of the two makes the vectors wider?", "Compare the shapes in the docstring.",
         "x @ W1 first, hidden @ W2 afterwards"),
        ({"whole": lambda x, W1, b1, W2, b2: F.relu(x @ W2 + b2) @ W1 + b1},
         {"whole": lambda x, W1, b1, W2, b2: F.relu(x @ W2 + b1) @ W1 + b2}),
    ),
    Misconception(
        "ffn_residual",
        "x is added to the result: the residual connection is not a part of this function.",
        ("What should come out when W2 and b2 are zero?", "Who adds x: this function, or the block around it?",
         "F.relu(x @ W1 + b1) @ W2 + b2"),
        ({"finish": lambda out, x: out + x},),
        convention="the residual is added by the block, not here.",
    ),
    Misconception(
        "ffn_hidden_only",
        "The hidden features are returned: the second map is missing.",
        ("Which shape has the result?", "Which of the arguments have no part in your result?",
         "... @ W2 + b2"),
        ({"whole": lambda x, W1, b1, W2, b2: F.relu(x @ W1 + b1)}, {"whole": lambda x, W1, b1, W2, b2: x @ W1 + b1}),
    ),
    Misconception(
        "ffn_random",
        "Two calls with the same input differ: there is dropout, or there are layers with random weights of their own.",
        ("What in your function is random?",
         "torch's own dropout is on unless it is told training=False; nn.Linear draws weights when it is made.",
         "No dropout here, and no other weights than those passed: x @ W1"),
        tuple({"finish": lambda out, x, p=p: F.dropout(out, p)} for p in (0.1, 0.2, 0.3, 0.5))
        + tuple({"activate": lambda h, b, p=p: F.dropout(F.relu(h + b), p)} for p in (0.1, 0.2, 0.3, 0.5)),
        symptom=looks_like_dropout,
    ),
    Misconception(
        "ffn_in_place",
        "x is overwritten, and with it what the block wanted to add to the result.",
        ("What does x look like after the call?", "Look for relu_, `x +=`, `x[...] =` and inplace=True.",
         "New tensors: hidden = F.relu(x @ W1 + b1)"),
        ({"finish": lambda out, x: write_into(x, out)}, {"finish": lambda out, x: (write_into(x, out + x))},
         {"prepare": lambda x: write_into(x, F.relu(x))}),
        symptom=lambda got, want: "x" in got.changed,
    ),
)  # fmt: skip

FEED_FORWARD = Exercise(
    name="feed_forward",
    notebook="06",
    reference=reference.feed_forward,
    outputs=(Output("the new vectors", ("time", "feature")),),
    cases=CASES,
    recipe=Recipe(_assemble, RIGHT),
    misconceptions=MISCONCEPTIONS,
    hints=(
        "Two linear maps: the first makes each vector wider, the second brings it back. What stands between them?",
        "Print the shape after x @ W1 + b1. The activation belongs exactly there, once; its result is the input of "
        "the second map.",
        "F.relu(x @ W1 + b1) @ W2 + b2",
    ),
)
