"""Cases and misconceptions of `mean_pool`."""

import torch

from course_utils import masks as reference
from course_utils.checks.model import Case, Draw, Exercise, Misconception, Output, Recipe
from course_utils.checks.shared import DOUBLE_NOTE, in_double, write_into


def _sentences(draw: Draw, lengths: list[int], T: int, D: int = 4, padding: float = 0.0) -> dict:
    x, lengths = draw.normal(len(lengths), T, D), torch.tensor(lengths)
    real = (torch.arange(T) < lengths.unsqueeze(1)).unsqueeze(-1)
    return {"x": torch.where(real, x, padding * x + padding), "lengths": lengths}


def _nan_padding(draw: Draw) -> dict:
    arguments = _sentences(draw, [2, 4], 4)
    arguments["x"][0, 2:] = float("nan")
    return arguments


CASES = (
    Case("padding full of large numbers", "padding has no part in the mean", 3,
         lambda d: _sentences(d, [3, 5, 1], 6, padding=100.0)),
    Case("padding of zeros", "the sum is divided by the number of real words", 2,
         lambda d: _sentences(d, [2, 4, 3, 1], 5, 3)),
    Case("no padding", "a plain mean over the positions", 1, lambda d: _sentences(d, [3, 3], 3, 5)),
    Case("long padding", "a sentence's mean does not depend on how much padding follows", 2,
         lambda d: _sentences(d, [2, 7], 12, 3, padding=-50.0)),
    Case("one sentence", "a batch of one", 1, lambda d: _sentences(d, [4], 6, 2, padding=9.0)),
    Case("gradients, and arguments are kept", "gradients flow to the real words only; nothing is written to", 1,
         lambda d: _sentences(d, [2, 3], 4, padding=5.0), gradients_of=("x",), repeat=True, keeps_inputs=True),
    Case("double precision", "works in float64", 0, lambda d: in_double(_sentences(d, [2, 3], 4, padding=3.0)),
         note=DOUBLE_NOTE),
    Case("padding of NaN", "padding has no part, whatever it holds", 0, _nan_padding,
         note="Passed. Where padding holds NaN or infinity, your result is NaN, because 0 * NaN is NaN: masked_fill or "
              "torch.where would be safe there."),
)  # fmt: skip


def _assemble(s):
    def run(x, lengths):
        x = s.prepare(x)
        real = s.real(torch.arange(x.shape[1]) < lengths.unsqueeze(1)).unsqueeze(-1)
        return s.finish(s.add(s.hide(x, real), real) / s.count(x, lengths, real), x, real)

    return run


def _every(mask):
    return torch.ones_like(mask)


def _hide_in_place(x, real):
    return write_into(x, x.masked_fill(~real, 0.0))


def _of_all_words(x, lengths):
    return x[torch.arange(x.shape[1]) < lengths.unsqueeze(1)].mean(0)


RIGHT = {
    "prepare": lambda x: x,
    "real": lambda mask: mask,
    "hide": lambda x, real: x.masked_fill(~real, 0.0),
    "add": lambda hidden, real: hidden.sum(1),
    "count": lambda x, lengths, real: lengths.unsqueeze(-1),
    "finish": lambda mean, x, real: mean,
}

MISCONCEPTIONS = (
    Misconception(
        "pool_includes_padding",
        "The mean runs over padding, too: a sentence's vector depends on the padding behind it.",
        ("Divide what by what?",
         "The same sentence with 0 and with 6 positions of padding must give the same vector.",
         "Hide padding before the sum, and divide by the lengths."),
        ({"real": _every, "count": lambda x, lengths, real: x.shape[1]},
         {"hide": lambda x, real: x}),
    ),
    Misconception(
        "pool_divides_by_T",
        "Padding is left out of the sum, but not of the count: the division is by the padded length.",
        ("If all words are 1, what is their mean?",
         "You removed padding from the sum; remove it from the count as well.",
         "/ lengths.unsqueeze(-1), not .mean(dim=1)"),
        ({"count": lambda x, lengths, real: x.shape[1]},),
    ),
    Misconception(
        "pool_off_by_one",
        "A word too few or too many counts as real.",
        ("Which positions has a sentence of length 2?", "Print the mask that you use.", "torch.arange(T) < lengths"),
        ({"real": lambda mask: torch.cat([mask[:, 1:], torch.zeros_like(mask[:, :1])], 1)},
         {"real": lambda mask: torch.cat([torch.ones_like(mask[:, :1]), mask[:, :-1]], 1)},
         {"real": lambda mask: torch.cat([torch.ones_like(mask[:, :1]), mask[:, :-1]], 1),
          "count": lambda x, lengths, real: real.sum(1)},
         {"real": lambda mask: torch.cat([mask[:, 1:], torch.zeros_like(mask[:, :1])], 1),
          "count": lambda x, lengths, real: real.sum(1)},
         {"count": lambda x, lengths, real: lengths.unsqueeze(-1) + 1},
         {"count": lambda x, lengths, real: lengths.unsqueeze(-1) - 1}),
    ),
    Misconception(
        "pool_inverted",
        "The mean runs over the padding instead of the words.",
        ("What does True mean in your mask?", "Print the mask that you use.", "masked_fill(~real, 0.0)"),
        ({"real": lambda mask: ~mask, "count": lambda x, lengths, real: real.sum(1)},
         {"real": lambda mask: ~mask},
         {"real": lambda mask: ~mask, "count": lambda x, lengths, real: real.sum(1).clamp(min=1)}),
    ),
    Misconception(
        "pool_sum",
        "The words are added up, but the sum is not divided.",
        ("What is the mean of two equal words?", "Look for the division.", "/ lengths.unsqueeze(-1)"),
        ({"count": lambda x, lengths, real: 1},),
    ),
    Misconception(
        "pool_wrong_axis",
        "The mean runs over the features or over the batch instead of over the positions.",
        ("Which axis disappears?", "x is (B, T, D), the result is (B, D).", "dim=1"),
        ({"add": lambda hidden, real: hidden.sum(-1)}, {"add": lambda hidden, real: hidden.sum(0)},
         {"whole": lambda x, lengths: x.mean(-1)}, {"whole": lambda x, lengths: x.mean(0)}),
    ),
    Misconception(
        "pool_over_sentences",
        "All sentences get the same vector: the mean runs over the real words of the whole batch.",
        ("Should two sentences of a batch have the same mean?", "x[real] has lost which sentence a word is from.",
         "keep axis 0: sum over dim=1 only"),
        ({"whole": lambda x, lengths: _of_all_words(x, lengths).expand(len(x), -1)},
         {"whole": _of_all_words}),
    ),
    Misconception(
        "pool_lengths_no_axis",
        "The sums (B, D) are divided by the lengths (B) without a new axis.",
        ("Which axis of (B, D) meets the lengths?", "Try three sentences of four features.",
         "lengths.unsqueeze(-1)"),
        ({"count": lambda x, lengths, real: lengths},),
    ),
    Misconception(
        "pool_first_or_last",
        "One word is taken instead of the mean.",
        ("How many words have a part in a mean?", "Look at your index.", "sum over positions, divided by the lengths"),
        ({"whole": lambda x, lengths: x[torch.arange(len(x)), lengths - 1]}, {"whole": lambda x, lengths: x[:, 0]},
         {"whole": lambda x, lengths: x[:, -1]}),
    ),
    Misconception(
        "pool_max",
        "The largest number is taken instead of the mean.",
        ("Largest or mean?", "Look at max.", "sum over positions, divided by the lengths"),
        ({"whole": lambda x, lengths: x.masked_fill(
            torch.arange(x.shape[1])[None, :, None] >= lengths[:, None, None], float("-inf")).amax(1)},
         {"whole": lambda x, lengths: x.amax(1)}),
    ),
    Misconception(
        "pool_counts_zeros",
        "The number of real words is guessed from numbers that are not zero.",
        ("Must padding be zero, and can a word contain a zero?", "Put large numbers into the padding.",
         "The lengths are given: use them."),
        ({"real": _every, "count": lambda x, lengths, real: (x != 0).any(-1).sum(1, keepdim=True)},
         {"count": lambda x, lengths, real: (x != 0).any(-1).sum(1, keepdim=True)},
         {"real": _every, "count": lambda x, lengths, real: (x != 0).sum(1)}),
    ),
    Misconception(
        "pool_x_overwritten",
        "Padding is set to zero in x itself: the caller's tensor changes.",
        ("What does x look like after the call?", "Look for masked_fill_, *= and assignments to a slice.",
         "x.masked_fill(...), without the underscore"),
        ({"hide": _hide_in_place},),
        symptom=lambda got, want: "x" in got.changed,
    ),
)  # fmt: skip

MEAN_POOL = Exercise(
    name="mean_pool",
    notebook="04",
    reference=reference.mean_pool,
    outputs=(Output("mean", ("batch", "feature")),),
    cases=CASES,
    recipe=Recipe(_assemble, RIGHT),
    misconceptions=MISCONCEPTIONS,
    hints=(
        "Divide what by what? Only real words may appear in either.",
        "Set padding to zero before you sum over positions. What do you divide by, so that ones stay ones?",
        "real = torch.arange(x.shape[1]) < lengths.unsqueeze(1); "
        "x.masked_fill(~real.unsqueeze(-1), 0.0).sum(dim=1) / lengths.unsqueeze(-1)",
    ),
)
