"""Cases and misconceptions of `sinusoidal_positions`."""

import torch

from course_utils import positions as reference
from course_utils.checks.model import Case, Draw, Exercise, Misconception, Output, Recipe

# Angles up to 200 radians in float32 are off by some 1e-5.
TOLERANCE = 1e-4


def _size(draw: Draw, low: int, d: int) -> dict:
    return {"T": int(draw.tokens(low, low + 4, 1)), "d": d}


CASES = (
    Case("an even d", "sines and cosines of angles that grow with the position", 3, lambda d: _size(d, 7, 6),
         tolerance=TOLERANCE),
    Case("an odd d", "the last column is a sine without a cosine", 2, lambda d: _size(d, 10, 7), tolerance=TOLERANCE),
    Case("many positions, slow columns", "the columns turn slower and slower, each at its own pace", 2,
         lambda d: _size(d, 200, 16), tolerance=TOLERANCE),
    Case("two columns", "d = 2: one sine, one cosine, of the position itself", 1, lambda d: _size(d, 12, 2),
         tolerance=TOLERANCE),
    Case("one column", "d = 1: the sine of the position", 1, lambda d: _size(d, 5, 1), tolerance=TOLERANCE),
    Case("a single position", "T = 1: position 0 only; the table is the same at every call", 1,
         lambda d: {"T": 1, "d": 2 + int(d.tokens(0, 4, 1))}, repeat=True, keeps_inputs=True, tolerance=TOLERANCE),
)  # fmt: skip


def _assemble(s):
    def run(T, d):
        column = torch.arange(d, dtype=torch.float64)
        t = s.positions(torch.arange(T, dtype=torch.float64).unsqueeze(1), T)
        return s.finish(s.waves(s.angle(t, s.frequencies(2 * (column // 2), column, d, T)), column))

    return run


def _alternate(angles, column):
    return torch.where(column % 2 == 0, angles.sin(), angles.cos())


RIGHT = {
    "positions": lambda t, T: t,
    "frequencies": lambda two_i, column, d, T: 10000 ** (-two_i / d),
    "angle": lambda t, frequencies: t * frequencies,
    "waves": _alternate,
    "finish": lambda table: table.float(),
}


def _angles(T, d):
    return torch.arange(T).unsqueeze(1) / 10000 ** (torch.arange(0, d, 2) / d)


def _halves(T, d):
    return torch.cat([_angles(T, d).sin(), _angles(T, d).cos()], dim=1)[:, :d]


def _fill_alternating(T, d):
    table = torch.zeros(T, d)
    table[:, 0::2] = _angles(T, d).sin()
    table[:, 1::2] = _angles(T, d).cos()
    return table


def _fill_alternating_short(T, d):
    table, angles = torch.zeros(T, d), _angles(T, d)[:, : d // 2]
    table[:, 0::2] = angles.sin()
    table[:, 1::2] = angles.cos()
    return table


def _stacked(T, d):
    return torch.stack([_angles(T, d).sin(), _angles(T, d).cos()], dim=-1).flatten(1)


def _frequencies(*ways):
    return tuple({"frequencies": way} for way in ways)


MISCONCEPTIONS = (
    Misconception(
        "sin_double_exponent",
        "The index steps by 2 already and is multiplied by 2 once more, so the frequencies fall twice as fast.",
        ("Does i in the formula count pairs or columns?",
         "torch.arange(0, d, 2) is the 2i of the formula.",
         "10000 ** (torch.arange(0, d, 2) / d)"),
        _frequencies(lambda two_i, column, d, T: 10000 ** (-2 * two_i / d)),
    ),
    Misconception(
        "sin_own_frequency_per_column",
        "Every column has a frequency of its own; a sine and its cosine must share one.",
        ("Which two columns describe the same angle?",
         "For every pair sin² + cos² must be 1.",
         "Columns 2i and 2i+1 both use 10000^(2i/d)."),
        _frequencies(lambda two_i, column, d, T: 10000 ** (-2 * column / d),
                     lambda two_i, column, d, T: 10000 ** (-column / d),
                     lambda two_i, column, d, T: 10000 ** (-2 * (column - column % 2 * 0.5) / d)),
    ),
    Misconception(
        "sin_halves",
        "All sines come first and all cosines after them.",
        ("What is row 0 of your table?", "It must be 0, 1, 0, 1, ...", "table[:, 0::2] = ..., table[:, 1::2] = ..."),
        ({"whole": _halves},),
        convention="sines and cosines alternate: even columns sine, odd columns cosine.",
    ),
    Misconception(
        "sin_power_swapped",
        "Base and exponent are exchanged: the fraction is raised to the power of 10000, or of 1/10000.",
        ("What is raised to what?", "The columns must turn slower from left to right.", "10000 ** (2i / d)"),
        _frequencies(lambda two_i, column, d, T: (two_i / d) ** 1e-4, lambda two_i, column, d, T: (two_i / d) ** 10000,
                     lambda two_i, column, d, T: 1 / (two_i / d) ** 10000,
                     lambda two_i, column, d, T: (two_i / d) ** -1e-4,
                     lambda two_i, column, d, T: (two_i / d * 10000 ** -1.0)),
    ),
    Misconception(
        "sin_multiplied_freq",
        "The position is multiplied by 10000^(2i/d) instead of divided.",
        ("Do the columns on the right turn faster or slower?", "Print the last column.",
         "t / 10000 ** (2i / d)"),
        _frequencies(lambda two_i, column, d, T: 10000 ** (two_i / d)),
    ),
    Misconception(
        "sin_only_sine",
        "The odd columns are sines, too.",
        ("What is row 0 of your table?", "It must contain ones.", "table[:, 1::2] = angles.cos()"),
        ({"waves": lambda angles, column: angles.sin()},),
    ),
    Misconception(
        "sin_cos_swapped",
        "The cosines are in the even columns and the sines in the odd ones.",
        ("What is the first number of your table?", "Row 0 must be 0, 1, 0, 1, ...",
         "table[:, 0::2] = angles.sin()"),
        ({"waves": lambda angles, column: torch.where(column % 2 == 0, angles.cos(), angles.sin())},),
        convention="even columns are sines.",
    ),
    Misconception(
        "sin_divides_by_T",
        "The exponent is divided by the number of positions instead of by d.",
        ("Must a position look different in a longer table?", "The first 5 rows of a table of 10 are a table of 5.",
         "10000 ** (2i / d)"),
        _frequencies(lambda two_i, column, d, T: 10000 ** (-two_i / T)),
    ),
    Misconception(
        "sin_normalised_positions",
        "Positions are divided by their number: the same position gets another code in a longer sentence.",
        ("Must a position look different in a longer table?", "The first 5 rows of a table of 10 are a table of 5.",
         "Positions are plain numbers: torch.arange(T)"),
        ({"positions": lambda t, T: t / T}, {"positions": lambda t, T: t / max(T - 1, 1)},
         {"positions": lambda t, T: t / (T - 1)}),
    ),
    Misconception(
        "sin_odd_d_crash",
        "An odd d does not work: there is one sine more than there are cosines.",
        ("How many even and how many odd columns are there for d = 7?",
         "Call it with d = 7 and look at both sides of the assignment.",
         "table[:, 1::2] = angles.cos()[:, : d // 2]"),
        ({"whole": _fill_alternating}, {"whole": _fill_alternating_short}, {"whole": _stacked}),
        convention="the table exists for any d of at least 1.",
    ),
    Misconception(
        "sin_half_frequencies",
        "The exponent is i/d instead of 2i/d, so only half of the frequencies are used.",
        ("Does i in the formula count pairs or columns?", "The slowest pair must turn with nearly 1/10000.",
         "10000 ** (torch.arange(0, d, 2) / d)"),
        _frequencies(lambda two_i, column, d, T: 10000 ** (-two_i / 2 / d)),
    ),
    Misconception(
        "sin_starts_at_1",
        "The positions begin at 1.",
        ("Which angle has the first position?", "Row 0 must be 0, 1, 0, 1, ...", "torch.arange(T)"),
        ({"positions": lambda t, T: t + 1},),
        convention="positions count from 0.",
    ),
    Misconception(
        "sin_wrong_base",
        "The base of the frequencies is not 10000.",
        ("How many zeros?", "Look at the number in your exponent's base.", "10000 ** (2i / d)"),
        _frequencies(*(lambda two_i, column, d, T, base=base: base ** (-two_i / d)
                       for base in (1000, 100000, 100, 10, 2.718281828459045))),
    ),
    Misconception(
        "sin_single_frequency",
        "All columns turn equally fast, for instance because // makes whole numbers of the exponents.",
        ("What is 2 // 7?", "Print your frequencies.", "2i / d, with one slash"),
        _frequencies(lambda two_i, column, d, T: torch.ones_like(two_i),
                     lambda two_i, column, d, T: torch.full_like(two_i, 1e-4)),
    ),
    Misconception(
        "sin_transposed",
        "The table is (d, T) instead of (T, d).",
        ("What are the rows of the table?", "Print its shape.", "positions.unsqueeze(1) * frequencies"),
        ({"finish": lambda table: table.float().T},),
    ),
    Misconception(
        "sin_extra_axis",
        "The table has an axis too many.",
        ("Which shape does the statement name?", "Print the shape of your result.", "(T, d), without a batch axis"),
        ({"finish": lambda table: table.float().unsqueeze(0)}, {"finish": lambda table: table.float().unsqueeze(1)}),
        convention="the table is (T, d); it broadcasts over a batch as it is.",
    ),
)  # fmt: skip

SINUSOIDAL_POSITIONS = Exercise(
    name="sinusoidal_positions",
    notebook="03",
    reference=reference.sinusoidal_positions,
    outputs=(Output("table", ("position", "feature")),),
    cases=CASES,
    recipe=Recipe(_assemble, RIGHT),
    misconceptions=MISCONCEPTIONS,
    hints=(
        "How many different frequencies are there for d columns?",
        "torch.arange(0, d, 2) is the 2i of the formula. Fill even and odd columns separately.",
        "angles = t / 10000 ** (torch.arange(0, d, 2) / d); sines into table[:, 0::2], "
        "angles.cos()[:, : d // 2] into table[:, 1::2]",
    ),
)
