"""Cases and misconceptions of `causal_mask` and `padding_mask`."""

import torch

from course_utils import masks as reference
from course_utils.checks.model import Case, Draw, Exercise, Misconception, Output, Recipe, Steps

YES_NO = "a mask holds yes/no values (bool): True = may attend, False = hidden."


def as_numbers(of) -> tuple[Steps, ...]:
    """The ways to answer with numbers where yes and no were asked for; `of` makes the right mask."""

    def way(change):
        return {"whole": lambda *arguments: change(of(*arguments))}

    return (
        way(lambda m: torch.zeros(m.shape).masked_fill(~m, float("-inf"))),
        way(lambda m: m.float()),
        way(lambda m: torch.zeros(m.shape).masked_fill(~m, -1e9)),
        way(lambda m: m.long()),
        way(lambda m: m.int()),
        way(lambda m: torch.zeros(m.shape).masked_fill(m, float("-inf"))),
        way(lambda m: (~m).float()),
        way(lambda m: (~m).long()),
    )


def _numbers(id: str, of) -> Misconception:
    return Misconception(
        id,
        "The mask holds numbers (0 and 1, or 0 and minus infinity) although a table of yes and no was asked for.",
        ("What is the dtype of your result?",
         "Additive masks are added to scores; yes/no masks are tested. They must not be mixed.",
         "dtype=torch.bool, or the result of a comparison"),
        as_numbers(of),
        convention=YES_NO,
    )  # fmt: skip


def triangle(T: int, diagonal: int = 0) -> torch.Tensor:
    """The causal mask, or one with the diagonal shifted."""
    return torch.ones(T, T, dtype=torch.bool).tril(diagonal)


# --- causal_mask


def _strict_with_corner(T):
    mask = triangle(T, -1)
    mask[0, 0] = True
    return mask


def _wholes(*functions) -> tuple[Steps, ...]:
    return tuple({"whole": function} for function in functions)


CAUSAL_MASK = Exercise(
    name="causal_mask",
    notebook="04",
    reference=reference.causal_mask,
    outputs=(Output("mask", ("query", "key")),),
    hints=(
        "Row = who is looking, column = what is looked at. May a word look at itself?",
        "The True part is a triangle that includes the diagonal. Its first row has exactly one True.",
        "torch.ones(T, T, dtype=torch.bool) and one of tril and triu; or compare two torch.arange(T)",
    ),
    cases=(
        Case("several words", "a word sees itself and all words before it", 5,
             lambda d: {"T": int(d.tokens(4, 8, 1))}),
        Case("two words", "the first word does not see the second", 2, lambda d: {"T": 2}),
        Case("a single word", "it sees itself", 1, lambda d: {"T": 1}),
        Case("many words", "the same at every call", 2, lambda d: {"T": int(d.tokens(20, 30, 1))}, repeat=True,
             keeps_inputs=True),
    ),
    recipe=Recipe(lambda s: s.whole, {"whole": reference.causal_mask}),
    misconceptions=(
        Misconception(
            "causal_triu",
            "The upper triangle is kept: every word sees itself and the future.",
            ("What does the first word see?", "Row = who is looking, column = what is looked at.", "tril, not triu"),
            _wholes(lambda T: torch.ones(T, T, dtype=torch.bool).triu()),
        ),
        Misconception(
            "causal_strict",
            "The diagonal is missing: a word does not see itself, and the first word sees nothing.",
            ("May a word look at itself?", "A row without any True becomes NaN in the softmax.",
             "tril() without an offset; or columns <= rows"),
            _wholes(lambda T: triangle(T, -1)),
        ),
        Misconception(
            "causal_one_ahead",
            "The diagonal is shifted: every word sees the next word, which is the answer.",
            ("What must position t predict?", "Entry [0, 1] must be False.", "tril() without an offset"),
            _wholes(lambda T: triangle(T, 1)),
        ),
        Misconception(
            "causal_inverted",
            "True marks the forbidden places instead of the allowed ones.",
            ("What does True mean in this course?", "The diagonal must be True.",
             "tril instead of triu(diagonal=1), or ~"),
            _wholes(lambda T: ~triangle(T)),
            convention="True = may attend.",
        ),
        Misconception(
            "causal_all_true",
            "The mask allows everything: training would see the future.",
            ("Where is the triangle?", "Entry [0, T-1] must be False.", "tril"),
            _wholes(lambda T: torch.ones(T, T, dtype=torch.bool)),
        ),
        Misconception(
            "causal_strict_with_patch",
            "The diagonal is missing, and only its first entry was switched on again.",
            ("May the second word look at itself?", "You cured the NaN of the first row, not its cause.",
             "tril() without an offset"),
            _wholes(_strict_with_corner),
        ),
        Misconception(
            "causal_nothing",
            "The mask hides everything, or all but the diagonal.",
            ("What may the last word see?", "Print the mask for T = 3.", "torch.ones, then tril"),
            _wholes(lambda T: torch.zeros(T, T, dtype=torch.bool), lambda T: torch.eye(T, dtype=torch.bool)),
        ),
        Misconception(
            "causal_extra_axes",
            "The mask has more axes than asked for.",
            ("Which shape does the statement name?", "It broadcasts over batch and heads as it is.", "(T, T)"),
            _wholes(lambda T: triangle(T)[None], lambda T: triangle(T)[None, None]),
            convention="the mask is (T, T).",
        ),
        _numbers("causal_additive", triangle),
    ),
)  # fmt: skip


# --- padding_mask


def _lengths(draw: Draw, B: int, T: int) -> dict:
    """Every sentence of another length, one of them full."""
    lengths = 1 + draw.distinct(0, T - 1, B)
    lengths[0] = T
    return {"lengths": lengths, "T": T}


def real(lengths, T):
    """The padding mask."""
    return torch.arange(T) < lengths.unsqueeze(1)


PADDING_MASK = Exercise(
    name="padding_mask",
    notebook="04",
    reference=reference.padding_mask,
    outputs=(Output("mask", ("batch", "time")),),
    hints=(
        "A sentence of length 3: which positions are real? Positions start at 0.",
        "Compare every position with every length. Which of the two needs a new axis, so that the result is (B, T)?",
        "torch.arange(T) < lengths.unsqueeze(1)",
    ),
    cases=(
        Case("sentences of different lengths", "the first `length` positions of each sentence are real", 4,
             lambda d: _lengths(d, 3, 6)),
        Case("more sentences than positions", "rows are sentences, columns are positions", 2,
             lambda d: {"lengths": torch.tensor([1, 3, 2, 3, 1, 2])[d.distinct(0, 6, 6)], "T": 3}),
        Case("as many sentences as positions", "rows are sentences, columns are positions", 1,
             lambda d: {"lengths": torch.tensor([1, 2, 4, 4])[d.distinct(0, 4, 4)], "T": 4}),
        Case("nobody is full", "T is what was passed, not the longest length", 2,
             lambda d: {"lengths": 1 + d.distinct(0, 4, 2), "T": 7}),
        Case("one position, lengths are kept", "T = 1; the lengths are not written to", 1,
             lambda d: {"lengths": d.tokens(0, 2, 5), "T": 1}, repeat=True, keeps_inputs=True),
    ),
    recipe=Recipe(lambda s: s.whole, {"whole": real}),
    misconceptions=(
        Misconception(
            "pad_inverted",
            "True marks padding instead of real words.",
            ("What does True mean in this course?", "The first column must be True.", "<, not >="),
            _wholes(lambda lengths, T: ~real(lengths, T)),
            convention="True = real word, may be attended to.",
        ),
        Misconception(
            "pad_off_by_one_short",
            "The last real word is hidden, as if positions were counted from 1.",
            ("Is the word at index length - 1 real?", "The sums of the rows must be the lengths.",
             "torch.arange(T) < lengths.unsqueeze(1)"),
            _wholes(lambda lengths, T: real(lengths - 1, T)),
        ),
        Misconception(
            "pad_off_by_one_long",
            "One position of padding counts as real.",
            ("Is the position with index `length` real?", "The sums of the rows must be the lengths.", "<, not <="),
            _wholes(lambda lengths, T: real(lengths + 1, T)),
        ),
        Misconception(
            "pad_transposed",
            "The mask is (T, B) instead of (B, T).",
            ("Which axis is the batch?", "Try three sentences of six positions.", "lengths.unsqueeze(1)"),
            _wholes(lambda lengths, T: real(lengths, T).T),
        ),
        Misconception(
            "pad_left",
            "The real words are taken to be at the right end.",
            ("On which side does this batch pad?", "The first column must be True.",
             "torch.arange(T) < lengths.unsqueeze(1)"),
            _wholes(lambda lengths, T: real(lengths, T).flip(1),
                    lambda lengths, T: torch.arange(T) >= lengths.unsqueeze(1).neg() + T),
            convention="padding comes last.",
        ),
        Misconception(
            "pad_longest",
            "The mask is as wide as the longest sentence instead of T.",
            ("Is there an argument that you did not use?", "Try T larger than every length.", "torch.arange(T)"),
            _wholes(lambda lengths, T: real(lengths, int(lengths.max()))),
        ),
        Misconception(
            "pad_no_new_axis",
            "Positions and lengths are compared without a new axis: that fits only where B = T, and then it is wrong.",
            ("Which shape have positions (T) and lengths (B) together?", "Try three sentences of six positions.",
             "lengths.unsqueeze(1), or lengths[:, None]"),
            _wholes(lambda lengths, T: torch.arange(T) < lengths),
        ),
        Misconception(
            "pad_all_true",
            "Nothing is hidden.",
            ("Where do the lengths enter?", "Print the mask of a short sentence.",
             "torch.arange(T) < lengths[:, None]"),
            _wholes(lambda lengths, T: torch.ones(len(lengths), T, dtype=torch.bool)),
        ),
        Misconception(
            "pad_extra_axes",
            "The mask has more axes than asked for.",
            ("Which shape does the statement name?", "Axes for queries and heads come where the mask is used.",
             "(B, T)"),
            _wholes(lambda lengths, T: real(lengths, T)[:, None], lambda lengths, T: real(lengths, T)[:, None, None]),
            convention="the mask is (B, T).",
        ),
        _numbers("pad_additive", real),
    ),
)  # fmt: skip
