"""Cases and misconceptions of `decoder_mask`."""

import torch

from course_utils import masks as reference
from course_utils.checks.masks import YES_NO, as_numbers, real, triangle
from course_utils.checks.model import Case, Draw, Exercise, Misconception, Output, Recipe


def _tokens(draw: Draw, lengths: list[int], T: int, pad_id: int) -> dict:
    """Words 0 … 9 without the padding id, padding at the end."""
    words = draw.tokens(0, 9, len(lengths), T)
    words += words >= pad_id
    return {"tokens": words.masked_fill(~real(torch.tensor(lengths), T), pad_id), "pad_id": pad_id}


def _with_zeros(draw: Draw) -> dict:
    """The word 0 is an ordinary word, and padding has the id 3."""
    arguments = _tokens(draw, [5, 3], 5, 3)
    arguments["tokens"][:, 1] = 0
    return arguments


def _in_the_middle(draw: Draw) -> dict:
    arguments = _tokens(draw, [6, 4, 6], 6, 7)
    arguments["tokens"][0, 2] = arguments["tokens"][1, 0] = arguments["tokens"][2, 3] = 7
    return arguments


def _decoder_parts(s):
    def run(tokens, pad_id):
        T = tokens.shape[1]
        return s.finish(s.combine(s.causal(T), s.padding(tokens, s.pad(pad_id))), tokens.shape[0], T)

    return run


def _as_keys(tokens, pad_id):
    return (tokens != pad_id)[:, None, None, :]


def _as_queries(tokens, pad_id):
    return (tokens != pad_id)[:, None, :, None]


DECODER_MASK = Exercise(
    name="decoder_mask",
    notebook="04",
    reference=reference.decoder_mask,
    outputs=(Output("mask", ("batch", "head", "query", "key")),),
    hints=(
        "Keys are columns. On which axis of (B, 1, T, T) does “this word is padding” belong?",
        "tokens != pad_id is (B, T). Give it two new axes in the middle, and let the causal triangle broadcast.",
        "torch.ones(T, T, dtype=torch.bool).tril() & (tokens != pad_id)[:, None, None, :]",
    ),
    cases=(
        Case("padding at the end", "no future, and no padding as a key", 3, lambda d: _tokens(d, [5, 2, 4], 5, 9)),
        Case("0 is a word", "padding is what has the id that was passed", 2, _with_zeros),
        Case("padding in the middle", "every column of a padding word is hidden, its row is not", 2, _in_the_middle),
        Case("padding has the id 0", "the id may be 0", 1, lambda d: _tokens(d, [2, 4], 4, 0)),
        Case("no padding, tokens are kept", "without padding it is causal; the tokens are not written to", 1,
             lambda d: _tokens(d, [3, 3, 3, 3], 3, 5), repeat=True, keeps_inputs=True),
        Case("a single word", "T = 1: (B, 1, 1, 1)", 1, lambda d: _tokens(d, [1, 1], 1, 4)),
    ),
    recipe=Recipe(
        _decoder_parts,
        {
            "causal": triangle,
            "pad": lambda pad_id: pad_id,
            "padding": _as_keys,
            "combine": lambda causal, visible: causal & visible,
            "finish": lambda mask, B, T: mask,
        },
    ),
    misconceptions=(
        Misconception(
            "decmask_pad_on_queries",
            "Padding is hidden as a query (row) instead of as a key (column).",
            ("Who looks at padding, and who is padding?",
             "The column of a padding word must be False in every row.",
             "(tokens != pad_id)[:, None, None, :]"),
            ({"padding": _as_queries},),
        ),
        Misconception(
            "decmask_or",
            "The two masks are combined with “or”: a key is visible if either of them allows it.",
            ("Must one condition hold, or both?", "A later real word must be hidden.", "&, not |"),
            ({"combine": lambda causal, visible: causal | visible},
             {"combine": lambda causal, visible: (causal.int() + visible.int()).bool()}),
        ),
        Misconception(
            "decmask_hides_pad_rows",
            "The rows of padding words are hidden as well, so that whole rows are empty.",
            ("What does a softmax make of an empty row?",
             "Nobody reads the rows of padding: leave them.",
             "(tokens != pad_id)[:, None, None, :] & causal, nothing more"),
            ({"padding": lambda tokens, pad_id: _as_keys(tokens, pad_id) & _as_queries(tokens, pad_id)},),
            convention="only keys (columns) that are padding are hidden.",
        ),
        Misconception(
            "decmask_pad_zero",
            "The padding id is a fixed number; the argument pad_id is not used.",
            ("Is there an argument that you did not use?", "Call it with pad_id = 3, and 0 as a word.",
             "tokens != pad_id"),
            ({"pad": lambda pad_id: 0}, {"padding": lambda tokens, pad_id: (tokens > 0)[:, None, None, :]},
             {"pad": lambda pad_id: 1}, {"pad": lambda pad_id: -100}),
        ),
        Misconception(
            "decmask_no_padding",
            "Padding is not hidden: the mask is only causal.",
            ("Where does pad_id enter?", "The column of a padding word must be False in every row.",
             "& (tokens != pad_id)[:, None, None, :]"),
            ({"padding": lambda tokens, pad_id: torch.ones_like(_as_keys(tokens, pad_id))},
             {"padding": lambda tokens, pad_id: torch.ones(tokens.shape[0], 1, 1, 1, dtype=torch.bool),
              "finish": lambda mask, B, T: mask[0, 0]}),
        ),
        Misconception(
            "decmask_no_causal",
            "The future is not hidden: the mask is only about padding.",
            ("What may the first word see?", "Entry [0, 1] of every sentence must be False.",
             "torch.ones(T, T, dtype=torch.bool).tril() & ..."),
            ({"causal": lambda T: torch.ones(T, T, dtype=torch.bool)},
             {"causal": lambda T: torch.ones(1, 1, dtype=torch.bool)}),
        ),
        Misconception(
            "decmask_pad_inverted",
            "The padding is visible and the real words are hidden.",
            ("What does True mean in this course?", "A sentence without padding must see itself.",
             "tokens != pad_id, not =="),
            ({"padding": lambda tokens, pad_id: (tokens == pad_id)[:, None, None, :]},),
            convention="True = may attend.",
        ),
        Misconception(
            "decmask_inverted",
            "True marks the forbidden places instead of the allowed ones.",
            ("What does True mean in this course?", "The diagonal of real words must be True.", "~ at the end"),
            ({"finish": lambda mask, B, T: ~mask},
             {"causal": lambda T: ~triangle(T), "padding": lambda tokens, pad_id: ~_as_keys(tokens, pad_id)}),
            convention="True = may attend.",
        ),
        Misconception(
            "decmask_triu",
            "The upper triangle is kept: every word sees the future.",
            ("What does the first word see?", "Row = who is looking, column = what is looked at.", "tril, not triu"),
            ({"causal": lambda T: torch.ones(T, T, dtype=torch.bool).triu()},),
        ),
        Misconception(
            "decmask_strict",
            "The diagonal is missing: a word does not see itself.",
            ("May a word look at itself?", "The first row of a sentence must contain a True.",
             "tril() without an offset"),
            ({"causal": lambda T: triangle(T, -1)},),
        ),
        Misconception(
            "decmask_one_ahead",
            "The diagonal is shifted: every word sees the next word, which is the answer.",
            ("What must position t predict?", "Entry [0, 1] of every sentence must be False.",
             "tril() without an offset"),
            ({"causal": lambda T: triangle(T, 1)},),
        ),
        Misconception(
            "decmask_no_head_axis",
            "The axis for the heads is missing, or in another place.",
            ("Which shape do the scores of all heads have?", "Scores are (B, h, T, T).",
             "(B, 1, T, T): mask.unsqueeze(1)"),
            ({"finish": lambda mask, B, T: mask[:, 0]}, {"finish": lambda mask, B, T: mask.transpose(0, 1)}),
            convention="the mask is (B, 1, T, T).",
        ),
        Misconception(
            "decmask_transposed",
            "Rows and columns are exchanged.",
            ("Which of the two last axes is looking?", "Row = who is looking, column = what is looked at.",
             "Look for a transpose too many."),
            ({"finish": lambda mask, B, T: mask.transpose(-2, -1)},),
        ),
        Misconception(
            "decmask_additive",
            "The mask holds numbers although a table of yes and no was asked for.",
            ("What is the dtype of your result?",
             "Additive masks are added to scores; yes/no masks are tested. They must not be mixed.",
             "& of two bool masks"),
            tuple({"finish": lambda mask, B, T, way=way["whole"]: way(mask)} for way in as_numbers(lambda m: m)),
            convention=YES_NO,
        ),
    ),
)  # fmt: skip
