"""Cases and misconceptions of `apply_rope`."""

import torch

from course_utils import positions as reference
from course_utils.checks.model import Case, Draw, Exercise, Misconception, Output, Recipe
from course_utils.checks.shared import DOUBLE_NOTE, in_double, write_into


def _x(draw: Draw, *shape: int) -> dict:
    return {"x": draw.normal(*shape)}


def _first_axis(draw: Draw) -> dict:
    """(1, 0, ...) at every position: the result shows the angles themselves."""
    x = torch.zeros(int(draw.tokens(5, 9, 1)), 8)
    x[:, 0::2] = 1.0
    return {"x": x}


CASES = (
    Case("a batch of sentences", "every pair is turned, by an angle that grows with the position", 3,
         lambda d: _x(d, 3, 5, 8)),
    Case("heads", "positions belong to the second-last axis, also with (B, h, T, d)", 2,
         lambda d: {"x": d.normal(2, 6, 3, 4).transpose(1, 2)}),
    Case("pairs (1, 0)", "the pairs turn towards their second entry, the later pairs slower", 1, _first_axis),
    Case("a single pair", "d = 2, without a batch", 1, lambda d: _x(d, 7, 2)),
    Case("many positions", "the angle is in proportion to the position", 1, lambda d: _x(d, 1, 60, 6)),
    Case("nothing", "zero stays zero: it is turned, not shifted", 1,
         lambda d: {"x": torch.cat([torch.zeros(1, 4, 6), d.normal(1, 4, 6)])}),
    Case("gradients, and x is kept", "gradients flow back to x; x is not written to; no randomness", 1,
         lambda d: _x(d, 2, 4, 10), gradients_of=("x",), repeat=True, keeps_inputs=True),
    Case("double precision", "works in float64", 0, lambda d: in_double(_x(d, 2, 3, 4)), note=DOUBLE_NOTE),
)  # fmt: skip


def _assemble(s):
    def run(x):
        d = x.shape[-1]
        angle = s.angles(s.positions(x), s.frequencies(torch.arange(0, d, 2, dtype=torch.float64), d))
        return s.finish(s.turn(x, angle.cos().to(x.dtype), angle.sin().to(x.dtype)), x)

    return run


def _count(size, start=0):
    return torch.arange(start, size + start, dtype=torch.float64)


def _interleave(even, odd):
    return torch.stack([even, odd], dim=-1).flatten(-2)


def _pairs(first, second, join=_interleave):
    """Two formulas, one for the first number of a pair and one for the second."""

    def turn(x, cos, sin):
        a, b = x[..., 0::2], x[..., 1::2]
        return join(first(a, b, cos, sin), second(a, b, cos, sin))

    return {"turn": turn}


def _upper(a, b, cos, sin):
    return a * cos - b * sin


def _lower(a, b, cos, sin):
    return a * sin + b * cos


def _half_split(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return torch.cat([_upper(a, b, cos, sin), _lower(a, b, cos, sin)], dim=-1)


def _quarter_turn(x):
    return _interleave(-x[..., 1::2], x[..., 0::2])


def _quarter_turn_of_halves(x):
    a, b = x.chunk(2, dim=-1)
    return torch.cat([-b, a], dim=-1)


def _tiled(quarter_turn, spread):
    return {"turn": lambda x, cos, sin: x * spread(cos) + quarter_turn(x) * spread(sin)}


def _twice(t):
    return torch.cat([t, t], dim=-1)


def _each_twice(t):
    return t.repeat_interleave(2, dim=-1)


def _along_axis_1(x):
    """Positions from axis 1, shaped to fit."""
    if x.dim() < 4:
        return _count(x.shape[-2]).unsqueeze(1)
    return _count(x.shape[1]).view(-1, 1, 1)


RIGHT = {
    "positions": lambda x: _count(x.shape[-2]).unsqueeze(1),
    "frequencies": lambda two_i, d: 10000 ** (-two_i / d),
    "angles": lambda t, frequencies: t * frequencies,
    "finish": lambda turned, x: turned,
} | _pairs(_upper, _lower)

MISCONCEPTIONS = (
    Misconception(
        "rope_tiled_angles",
        "The angles are laid out for halves while the rotation pairs neighbours, or the other way round.",
        ("Which angle belongs to feature 1?",
         "With d = 4, print the angles of one position next to the features.",
         "repeat_interleave(2, dim=-1), not repeat or cat"),
        (_tiled(_quarter_turn, _twice), _tiled(_quarter_turn_of_halves, _each_twice)),
    ),
    Misconception(
        "rope_half_split",
        "The pairs are (i, i + d/2) instead of neighbours.",
        ("Which two numbers form a pair in the statement?",
         "x.chunk(2, dim=-1) makes halves; x[..., 0::2] takes every second number.",
         "even, odd = x[..., 0::2], x[..., 1::2]"),
        ({"turn": _half_split}, _tiled(_quarter_turn_of_halves, _twice)),
        convention="the pairs are the neighbours (0, 1), (2, 3), … .",
    ),
    Misconception(
        "rope_wrong_axis",
        "The position is counted along axis 1. With heads that is the head, and all words of a head turn alike.",
        ("Which axis is time in (B, h, T, d)?",
         "Count axes from the end.",
         "T = x.shape[-2]"),
        ({"positions": _along_axis_1}, {"positions": lambda x: _count(x.shape[1]).view(-1, *[1] * (x.dim() - 2))},
         {"positions": lambda x: _count(x.shape[1]).unsqueeze(1)}, {"positions": lambda x: _count(x.shape[0]).view(
             -1, *[1] * (x.dim() - 1))}, {"positions": lambda x: _count(x.shape[0]).unsqueeze(1)}),
    ),
    Misconception(
        "rope_clockwise",
        "The rotation goes the other way round.",
        ("In which direction does (1, 0) turn?",
         "At position 1 the second number of (1, 0) must become positive.",
         "first = even * cos - odd * sin, second = even * sin + odd * cos"),
        (_pairs(lambda a, b, cos, sin: a * cos + b * sin, lambda a, b, cos, sin: b * cos - a * sin),),
    ),
    Misconception(
        "rope_single_frequency",
        "All pairs turn equally fast.",
        ("Does every pair have a speed of its own?",
         "At position 1, compare the angle of the first pair with that of the second.",
         "10000 ** (-torch.arange(0, d, 2) / d)"),
        ({"frequencies": lambda two_i, d: torch.ones_like(two_i)},
         {"frequencies": lambda two_i, d: torch.full_like(two_i, 1e-4)}),
    ),
    Misconception(
        "rope_cos_only",
        "Only one of cosine and sine is applied.",
        ("What does a rotation do to the length of a vector?",
         "Write out the 2 x 2 rotation matrix: it has four entries.",
         "even * cos - odd * sin and even * sin + odd * cos"),
        (_pairs(lambda a, b, cos, sin: a * cos, lambda a, b, cos, sin: b * cos),
         _pairs(lambda a, b, cos, sin: -b * sin, lambda a, b, cos, sin: a * sin),
         _pairs(lambda a, b, cos, sin: a * cos, lambda a, b, cos, sin: b * sin)),
    ),
    Misconception(
        "rope_sign_slip",
        "The signs of the two formulas are alike, so that it is no rotation.",
        ("What does a rotation do to the length of a vector?",
         "One of the two formulas has a minus sign, the other has none.",
         "even * cos - odd * sin and even * sin + odd * cos"),
        (_pairs(_upper, lambda a, b, cos, sin: a * sin - b * cos),
         _pairs(_upper, lambda a, b, cos, sin: b * cos - a * sin),
         _pairs(lambda a, b, cos, sin: a * cos + b * sin, _lower),
         _pairs(_upper, lambda a, b, cos, sin: -a * sin - b * cos)),
    ),
    Misconception(
        "rope_overwritten",
        "The first number of a pair is overwritten before the second is computed from it.",
        ("Which value of the first number enters the second formula?",
         "Look for an assignment to the first half between the two formulas.",
         "Compute both from the old numbers, then put them together."),
        (_pairs(_upper, lambda a, b, cos, sin: _lower(_upper(a, b, cos, sin), b, cos, sin)),),
    ),
    Misconception(
        "rope_added",
        "Something is added to the vector, as sinusoidal positions are, instead of turning it.",
        ("What must become of a vector of zeros?",
         "A rotation multiplies.",
         "even * cos - odd * sin and even * sin + odd * cos"),
        ({"turn": lambda x, cos, sin: x + _interleave(sin, cos)},
         {"turn": lambda x, cos, sin: x + _each_twice(torch.atan2(sin, cos))},
         {"turn": lambda x, cos, sin: x + _each_twice(_unwrapped(x))},
         {"turn": lambda x, cos, sin: x + _interleave(cos, sin)}),
    ),
    Misconception(
        "rope_not_flattened_right",
        "The turned pairs are put together as halves after they were read as neighbours: features change place.",
        ("What must happen at position 0?",
         "Compare x and your result at position 0.",
         "torch.stack([first, second], dim=-1).flatten(-2)"),
        (_pairs(_upper, _lower, lambda a, b: torch.cat([a, b], dim=-1)),
         _pairs(_upper, _lower, lambda a, b: torch.stack([a, b], dim=-2).flatten(-2))),
    ),
    Misconception(
        "rope_pair_swapped",
        "The two numbers of a pair come out in the other order.",
        ("What must happen at position 0?", "Compare x and your result at position 0.",
         "torch.stack([first, second], dim=-1)"),
        (_pairs(_upper, _lower, lambda a, b: _interleave(b, a)),),
    ),
    Misconception(
        "rope_starts_at_1",
        "The positions begin at 1. Products of queries and keys do not show it, and yet it is another function.",
        ("By which angle is the first word turned?", "Position 0 must stay as it is.", "torch.arange(T)"),
        ({"positions": lambda x: _count(x.shape[-2], 1).unsqueeze(1)},),
        convention="positions count from 0.",
    ),
    Misconception(
        "rope_half_frequencies",
        "The exponent is i/d instead of 2i/d: the pairs turn too fast.",
        ("Does i in the formula count pairs or features?", "Print your d/2 frequencies.",
         "10000 ** (-torch.arange(0, d, 2) / d)"),
        ({"frequencies": lambda two_i, d: 10000 ** (-two_i / 2 / d)},),
    ),
    Misconception(
        "rope_double_exponent",
        "The index steps by 2 already and is multiplied by 2 once more.",
        ("Does i in the formula count pairs or features?", "torch.arange(0, d, 2) is the 2i of the formula.",
         "10000 ** (-torch.arange(0, d, 2) / d)"),
        ({"frequencies": lambda two_i, d: 10000 ** (-2 * two_i / d)},),
    ),
    Misconception(
        "rope_multiplied_freq",
        "The position is multiplied by 10000^(2i/d) instead of divided.",
        ("Do the later pairs turn faster or slower?", "Print your frequencies.",
         "10000 ** (-torch.arange(0, d, 2) / d), with the minus"),
        ({"frequencies": lambda two_i, d: 10000 ** (two_i / d)},),
    ),
    Misconception(
        "rope_wrong_base",
        "The base of the frequencies is not 10000.",
        ("How many zeros?", "Look at the base of your power.", "10000 ** (-torch.arange(0, d, 2) / d)"),
        tuple({"frequencies": lambda two_i, d, base=base: base ** (-two_i / d)} for base in (1000, 100000, 100, 10)),
    ),
    Misconception(
        "rope_not_turned",
        "x comes back as it is.",
        ("Where do sine and cosine enter?", "Compare x and your result at position 1.",
         "even * cos - odd * sin and even * sin + odd * cos"),
        ({"turn": lambda x, cos, sin: x.clone()},),
    ),
    Misconception(
        "rope_x_overwritten",
        "The result is written into x itself: the caller's tensor changes.",
        ("What does x look like after the call?", "Assignments to x[..., 0::2] write into the caller's tensor.",
         "Make a new tensor: torch.stack, or x.clone() first."),
        ({"finish": lambda turned, x: write_into(x, turned)},),
        symptom=lambda got, want: "x" in got.changed,
    ),
)  # fmt: skip


def _unwrapped(x):
    d = x.shape[-1]
    frequencies = 10000 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    return (_count(x.shape[-2]).unsqueeze(1) * frequencies).to(x.dtype)


APPLY_ROPE = Exercise(
    name="apply_rope",
    notebook="03",
    reference=reference.apply_rope,
    outputs=(Output("turned x", ("position", "feature")),),
    cases=CASES,
    recipe=Recipe(_assemble, RIGHT),
    misconceptions=MISCONCEPTIONS,
    hints=(
        "Positions belong to the second-last axis, pairs to the last. Which shape do the angles need?",
        "Take x[..., 0::2] and x[..., 1::2], make the two formulas, put the results back interleaved.",
        "torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)",
    ),
)
