"""Misconceptions of `TransformerBlock` about how it calls its attention: mask, inputs, axes, heads."""

import math

import torch

from course_utils.checks.block_mistakes import LINE_1
from course_utils.checks.block_recipe import attend
from course_utils.checks.model import Misconception
from course_utils.multihead import FusedMultiHeadAttention


def _causal(x):
    return torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()


def _where_nothing_is_seen(fill):
    """The attention, with something else in rows that may see nothing: every attention treats them in its own way."""

    def way(m, normed, x, mask):
        out = attend(m, normed, x, mask)
        if mask is None or bool(mask.any(-1).all()):
            return out
        seen = mask.any(-1, keepdim=True).reshape(-1, x.shape[1], 1)
        return torch.where(seen, out, fill(m.attn, normed))

    return way


# Hidden by minus infinity and not settled, or by a large negative number: NaN, or everything is seen alike.
_OWN_WAYS = tuple(
    _where_nothing_is_seen(fill)
    for fill in (
        lambda attn, x: attn.W_o(attn.W_v(x).mean(1, keepdim=True)),
        lambda attn, x: attn.W_o((attn.W_q(x) + attn.W_k(x) + attn.W_v(x)).mean(1, keepdim=True)) * math.nan,
    )
)


def _with_mask(change, ways):
    """The attention, in one of these ways, with another mask."""
    return tuple(
        {"attend": lambda m, normed, x, mask, way=way: way(m, normed, x, change(normed, mask))} for way in ways
    )


ATTENTION = (
    Misconception(
        "block_mask_not_passed",
        "The mask has no effect: it does not reach the attention, or changes nothing there.",
        ("Which of your lines uses the mask?", "Follow the mask from forward to the scores of the attention.", LINE_1),
        ({"mask": lambda mask: None},),
    ),
    Misconception(
        "block_mask_as_x_kv",
        "The mask is passed as the second argument of the attention, which is x_kv.",
        ("What is the second argument of the attention?", "The order is x_q, x_kv, mask.", "self.attn(n, None, mask)"),
        ({"attend": lambda m, normed, x, mask: m.attn(normed, mask)},),
    ),
    Misconception(
        "block_mask_inverted",
        "The mask is turned upside down before it reaches the attention.",
        ("What does True mean in this course?", "Look for ~mask or mask == 0.", "self.attn(n, None, mask)"),
        _with_mask(lambda x, mask: None if mask is None else ~mask, (attend, *_OWN_WAYS)),
        convention="True = may attend.",
    ),
    Misconception(
        "block_mask_transposed",
        "The mask is transposed: who may see and who is seen have changed places.",
        ("Which axis of the mask counts the words that look, and which those that are looked at?",
         "A causal mask turned over hides the past. Look for .T, .mT or transpose.", "self.attn(n, None, mask)"),
        _with_mask(lambda x, mask: None if mask is None else mask.mT, (attend, *_OWN_WAYS)),
        convention="row t of the mask says what word t may see.",
    ),
    Misconception(
        "block_always_causal",
        "A causal mask is always on, whichever mask is passed, or none.",
        ("Who decides what a word may see: the block, or who calls it?", "Call the block without a mask and change "
         "the last word: does the first output move?", LINE_1),
        (*_with_mask(lambda x, mask: _causal(x), (attend,)),
         *_with_mask(lambda x, mask: _causal(x) if mask is None else mask, (attend,)),
         *_with_mask(lambda x, mask: _causal(x) if mask is None else _causal(x) & mask, (attend, *_OWN_WAYS))),
        convention="the block masks what its argument says, and nothing without one.",
    ),
    Misconception(
        "block_sequence_first",
        "The attention reads the samples of a batch as the words of a sentence: batch and time have changed places.",
        ("Does the output for one sentence change when another sentence of the batch changes?",
         "Look for transpose(0, 1) and batch_first.", LINE_1),
        ({"attend": lambda m, normed, x, mask: m.attn(normed.transpose(0, 1)).transpose(0, 1)},),
        convention="x is (batch, time, feature).",
    ),
    Misconception(
        "block_other_heads",
        "The attention does not have n_heads heads.",
        ("Is there an argument that you did not use?", "Print block.attn, or its number of heads.",
         "The attention is made with both d_model and n_heads."),
        ({"attention": lambda d_model, n_heads: FusedMultiHeadAttention(d_model, 1)},
         {"attention": lambda d_model, n_heads: FusedMultiHeadAttention(d_model, d_model // n_heads)},
         {"attention": lambda d_model, n_heads: FusedMultiHeadAttention(d_model, d_model)}),
    ),
    Misconception(
        "block_three_inputs",
        "The attention is called with three inputs, as nn.MultiheadAttention is; here it takes x_q, x_kv and mask.",
        ("What does the third argument of your attention mean?", "For self-attention one input is enough.", LINE_1),
        ({"attend": lambda m, normed, x, mask: m.attn(normed, normed, normed)},
         {"attend": lambda m, normed, x, mask: m.attn(normed, normed, normed, mask)},
         {"attend": lambda m, normed, x, mask: m.attn(normed, normed, normed, mask=mask)}),
    ),
)  # fmt: skip
