"""Misconceptions of `scaled_dot_product_attention` about masks."""

import math

import torch

from course_utils.checks import hiding
from course_utils.checks.hiding import (
    MINUS_INF,
    add_if_hidden,
    added_as_01,
    fill,
    filled_with_1e_9,
    no_effect,
    when_masked,
    with_and_without_care,
)
from course_utils.checks.model import Misconception


def _causal(mask, q, k):
    triangle = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril()
    return triangle if mask is None else triangle & mask


def _if_mask(scores, mask):
    return scores.masked_fill(~mask, MINUS_INF) if mask else scores


HIDING = (
    Misconception(
        "sdpa_mask_inverted",
        "The mask is read upside down: the keys marked True are hidden.",
        ("What does True mean in this course?",
         "With a causal mask, changing a later key must not change an earlier output.",
         "masked_fill(~mask, ...): hide where the mask is False (nn.MultiheadAttention does the opposite)"),
        (*hiding.INVERTED, {"given": lambda m, q, k: m if m is None else ~m}),
        convention="True = may attend.",
    ),
    filled_with_1e_9("sdpa_mask_fill_1e-9"),
    Misconception(
        "sdpa_mask_fill_plus_inf",
        "Hidden scores get +infinity instead of -infinity; the softmax makes NaN of it.",
        ("What is exp(+inf)?", "Look at the sign of your mask value.", hiding.HIDE_LINE),
        with_and_without_care({"hide": fill(math.inf)}, {"hide": fill(1e9)}, {"hide": add_if_hidden(1e9)}),
    ),
    Misconception(
        "sdpa_mask_fill_minus_1e4",
        "Hidden scores get a number that is not small enough: real scores below it make hidden keys win.",
        ("How small can a real score be?", "Try q and k of opposite sign and size 200.",
         hiding.HIDE_LINE),
        tuple({"hide": fill(-x)} for x in (1e4, 9999, 1000, 100, 10, 1, 20, 50))
        + tuple({"hide": add_if_hidden(-x)} for x in (1e4, 1000, 100, 10)),
        convention="a hidden key gets weight 0, whatever the scores are.",
    ),
    Misconception(
        "sdpa_mask_times_inf",
        "(1 - mask) * -inf makes 0 * -inf = NaN at every visible key.",
        ("What is zero times infinity?", "Print the tensor that you add to the scores.",
         hiding.HIDE_LINE),
        with_and_without_care({"hide": when_masked(lambda s, m: s + (1 - m.to(s.dtype)) * MINUS_INF)}),
    ),
    added_as_01("sdpa_mask_added_as_01"),
    Misconception(
        "sdpa_mask_multiplied",
        "Hidden scores become 0, which is an ordinary score, instead of minus infinity.",
        ("Is 0 a small score? With all visible scores near -20, who wins?",
         "Multiplying by the mask makes 0 of a hidden score.",
         hiding.HIDE_LINE),
        hiding.MULTIPLIED,
    ),
    no_effect("sdpa_mask_ignored"),
    Misconception(
        "sdpa_mask_transposed",
        "The mask is transposed: it hides queries instead of keys.",
        ("What are the rows of a mask, queries or keys?", "With a causal mask the first query must see one key only.",
         "The mask fits the scores (..., Tq, Tk) as it is."),
        (*with_and_without_care({"given": lambda m, q, k: m if m is None else m.transpose(-2, -1)}),
         {"hide": when_masked(lambda s, m: s.masked_fill(~m.transpose(-2, -1), -1e9)), "settle": lambda w, m: w}),
    ),
    Misconception(
        "sdpa_mask_after_softmax",
        "The weights of hidden keys are set to zero after the softmax, so the rest does not sum to one.",
        ("What do the weights of a masked row sum to?", "Which comes first in your code, mask or softmax?",
         hiding.HIDE_LINE),
        hiding.AFTER_SOFTMAX,
    ),
    Misconception(
        "sdpa_mask_renormalised",
        "Hidden keys are removed after the softmax and the rest is divided by its sum, which can be 0.",
        ("What is left when a hidden key had all the weight?",
         "Try a hidden key whose score is far above the visible ones.",
         hiding.HIDE_LINE),
        hiding.RENORMALISED,
    ),
    Misconception(
        "sdpa_fully_masked_nan",
        "A row with nothing to attend to becomes NaN, and NaN spreads.",
        ("What does softmax make of a row of minus infinity?", "Try a mask with a row of False.",
         "Afterwards: weights.masked_fill(~mask, 0.0); or fill with torch.finfo(scores.dtype).min"),
        hiding.NOT_SETTLED,
    ),
    Misconception(
        "sdpa_if_mask_tensor",
        "`if mask:` asks a whole tensor for one yes or no, which it cannot give.",
        ("What is the truth value of a tensor with many entries?", "Read the last line of the error.",
         "if mask is not None:"),
        ({"hide": _if_mask},),
        symptom=lambda got, want: got.error is not None and "Boolean value of Tensor" in got.error.message,
    ),
    Misconception(
        "sdpa_causal_always",
        "A causal mask is built in: a query never sees a later key, even when no mask was given.",
        ("May the first query see the last key when there is no mask?",
         "Look for tril, triu or is_causal.",
         "Obey the mask that is given, nothing more."),
        with_and_without_care({"given": _causal}),
    ),
)  # fmt: skip
