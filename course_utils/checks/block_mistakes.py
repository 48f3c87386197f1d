"""Misconceptions of `TransformerBlock` about residuals, norms and the order of things."""

import torch.nn.functional as F
from torch import nn

from course_utils.checks.block_recipe import attend, feed, layers
from course_utils.checks.model import Misconception

LINE_1 = "x = x + self.drop(self.attn(self.ln1(x), None, mask))"
LINE_2 = "x = x + self.drop(self.ff2(F.relu(self.ff1(self.ln2(x)))))"
ALIKE = f"{LINE_1}; the line with ff1 and ff2 is built alike"


def _raw(m, x, *_):
    return x


def _add_in_place(m, x, normed, added):
    x += added
    return x


def _add_second_in_place(m, x, middle, normed, added):
    middle += added
    return middle


def _one_norm(module, d_model, d_ff):
    layers(module, d_model, d_ff)
    module.ln2 = module.ln1


def _batch_norms(module, d_model, d_ff):
    layers(module, d_model, d_ff)
    module.ln1, module.ln2 = nn.BatchNorm1d(d_model), nn.BatchNorm1d(d_model)


def _over_samples(norm, x):
    """Mean and spread over the batch, written by hand."""
    return (x - x.mean(0)) / (x.var(0, unbiased=False) + norm.eps).sqrt() * norm.weight + norm.bias


def _over_time(norm, x):
    """Features come second for a batch norm; a layer norm is made to run over words and features together."""
    if isinstance(norm, nn.BatchNorm1d):
        return norm(x.transpose(1, 2)).transpose(1, 2)
    return F.layer_norm(x, x.shape[1:]) * norm.weight + norm.bias


def _both_or_one(way):
    """Both norms replaced, or one of them."""
    first, second = lambda m, x: way(m.ln1, x), lambda m, middle, x: way(m.ln2, middle)
    return {"norm1": first, "norm2": second}, {"norm1": first}, {"norm2": second}


RESIDUALS = (
    Misconception(
        "block_no_attn_residual",
        "The result of the attention replaces x: the first residual is missing.",
        ("If the attention returned zeros, what should be left of x?", "x plus something.", LINE_1),
        ({"join1": lambda m, x, normed, added: added},),
    ),
    Misconception(
        "block_no_ffn_residual",
        "The result of the feed-forward network replaces x: the second residual is missing.",
        ("If the feed-forward network returned zeros, what should be left?", "Two residuals per block.", LINE_2),
        ({"join2": lambda m, x, middle, normed, added: added},),
    ),
    Misconception(
        "block_no_residual",
        "Neither of the two residuals is there.",
        ("If both sub-layers returned zeros, what should come out?", "x plus something, twice.", ALIKE),
        ({"join1": lambda m, x, normed, added: added, "join2": lambda m, x, middle, normed, added: added},),
    ),
    Misconception(
        "block_residual_from_norm",
        "The residual starts from the normalised x instead of x itself.",
        ("If both sub-layers returned zeros, what should come out: x, or x normalised?",
         "Is x overwritten by its norm before it is added?", ALIKE),
        ({"join1": lambda m, x, normed, added: normed + added,
          "join2": lambda m, x, middle, normed, added: normed + added},
         {"join1": lambda m, x, normed, added: normed + added},
         {"join2": lambda m, x, middle, normed, added: normed + added}),
    ),
    Misconception(
        "block_ffn_residual_from_input",
        "The second residual starts from the input of the block, so that the result of the attention is lost on the "
        "way.",
        ("If the feed-forward network returned zeros, what should come out?", "The second residual starts after the "
         "first.", LINE_2),
        ({"join2": lambda m, x, middle, normed, added: x + added},),
    ),
    Misconception(
        "block_residual_inside",
        "The residual is added inside, to what the sub-layer reads: it is not there afterwards.",
        ("If the sub-layers returned zeros, what should come out?", "The addition comes after the sub-layer.", ALIKE),
        ({"norm1": lambda m, x: m.ln1(x) + x, "join1": lambda m, x, normed, added: added},
         {"norm2": lambda m, middle, x: m.ln2(middle) + middle, "join2": lambda m, x, middle, normed, added: added},
         {"norm1": lambda m, x: m.ln1(x) + x, "join1": lambda m, x, normed, added: added,
          "norm2": lambda m, middle, x: m.ln2(middle) + middle, "join2": lambda m, x, middle, normed, added: added},
         {"norm1": lambda m, x: m.ln1(x) + x}, {"norm2": lambda m, middle, x: m.ln2(middle) + middle}),
    ),
    Misconception(
        "block_residual_twice",
        "A residual is added twice.",
        ("How often is x added to what the sub-layer returns?", "Look at every + in your forward.", ALIKE),
        ({"join1": lambda m, x, normed, added: 2 * x + added},
         {"join2": lambda m, x, middle, normed, added: 2 * middle + added},
         {"join2": lambda m, x, middle, normed, added: x + middle + added},
         {"join1": lambda m, x, normed, added: 2 * x + added,
          "join2": lambda m, x, middle, normed, added: 2 * middle + added}),
    ),
    Misconception(
        "block_sum_changed",
        "x and what a sub-layer returns are not simply added: one is subtracted from the other, or the sum is scaled.",
        ("If both sub-layers returned zeros, what should come out?", "Look at every + and - in your forward.", ALIKE),
        ({"join1": lambda m, x, normed, added: x - added},
         {"join2": lambda m, x, middle, normed, added: middle - added},
         {"join1": lambda m, x, normed, added: (x + added) / 2},
         {"join2": lambda m, x, middle, normed, added: (middle + added) / 2},
         {"join1": lambda m, x, normed, added: (x + added) / 2,
          "join2": lambda m, x, middle, normed, added: (middle + added) / 2}),
    ),
    Misconception(
        "block_in_place",
        "The caller's x is written to: `x += …` changes the tensor itself.",
        ("What does the caller's x hold after the call?", "Look for += and operations that end in an underscore.",
         LINE_1),
        ({"join1": _add_in_place}, {"join1": _add_in_place, "join2": _add_second_in_place}),
        symptom=lambda got, want: "x" in got.changed,
    ),
)  # fmt: skip


NORMS = (
    Misconception(
        "block_post_norm",
        "The norms stand behind the additions (post-norm, as first published).",
        ("Where does the norm sit in this exercise: before the sub-layer, or behind the addition?",
         "The stream itself is never normalised inside the block.", ALIKE),
        ({"norm1": _raw, "join1": lambda m, x, normed, added: m.ln1(x + added),
          "norm2": lambda m, middle, x: middle, "join2": lambda m, x, middle, normed, added: m.ln2(middle + added)},
         {"norm1": _raw, "join1": lambda m, x, normed, added: m.ln1(x + added)},
         {"norm2": lambda m, middle, x: middle, "join2": lambda m, x, middle, normed, added: m.ln2(middle + added)},
         {"norm1": _raw, "join1": lambda m, x, normed, added: m.ln1(x + added),
          "norm2": lambda m, middle, x: middle,
          "join2": lambda m, x, middle, normed, added: m.ln2(x + added)}),
        convention="the block is pre-norm: each sub-layer reads a normalised copy, and adds to x itself.",
    ),
    Misconception(
        "block_attn_not_normalised",
        "The attention reads x itself: ln1 is not used.",
        ("What happens to the attention if x is a hundred times larger?", "Is ln1 used in forward?", LINE_1),
        ({"norm1": _raw},),
    ),
    Misconception(
        "block_ffn_not_normalised",
        "The feed-forward network reads x itself: ln2 is not used.",
        ("What happens to the feed-forward network if x is a hundred times larger?", "Is ln2 used in forward?", LINE_2),
        ({"norm2": lambda m, middle, x: middle},),
    ),
    Misconception(
        "block_no_norm",
        "Nothing is normalised: ln1 and ln2 are not used.",
        ("What happens to both sub-layers if x is a hundred times larger?", "Are ln1 and ln2 used in forward?", ALIKE),
        ({"norm1": _raw, "norm2": lambda m, middle, x: middle},),
    ),
    Misconception(
        "block_same_norm",
        "One norm is used at both places: the scales and shifts of the other never act.",
        ("Does each sub-layer have a norm of its own?", "Which of ln1 and ln2 does each line use?", ALIKE),
        ({"norm2": lambda m, middle, x: m.ln1(middle)}, {"norm1": lambda m, x: m.ln2(x)}, {"layers": _one_norm}),
    ),
    Misconception(
        "block_norms_swapped",
        "The two norms are exchanged: ln2 stands before the attention, ln1 before the feed-forward network.",
        ("Which norm belongs to which sub-layer?", "Fresh norms are equal and hide it.", ALIKE),
        ({"norm1": lambda m, x: m.ln2(x), "norm2": lambda m, middle, x: m.ln1(middle)},),
        convention="ln1 belongs to the attention, ln2 to the feed-forward network.",
    ),
    Misconception(
        "block_norm_without_weights",
        "The input is normalised without the scale and shift of ln1 or ln2.",
        ("Which of your parameters never act?", "A functional norm knows the scale and shift of ln1 only if it is "
         "given them.", ALIKE),
        ({"norm1": lambda m, x: F.layer_norm(x, x.shape[-1:]),
          "norm2": lambda m, middle, x: F.layer_norm(middle, middle.shape[-1:])},
         {"norm1": lambda m, x: F.layer_norm(x, x.shape[-1:])},
         {"norm2": lambda m, middle, x: F.layer_norm(middle, middle.shape[-1:])}),
    ),
    Misconception(
        "block_norm_axes",
        "The norms run over other axes than the features of each word: over words, or over the batch.",
        ("Of how many numbers is the mean taken?", "Change one word: do the norms of the others move?",
         "nn.LayerNorm(d_model)"),
        ({"layers": _batch_norms, "norm1": lambda m, x: _over_time(m.ln1, x),
          "norm2": lambda m, middle, x: _over_time(m.ln2, middle)},
         *_both_or_one(_over_time), *_both_or_one(_over_samples)),
    ),
    Misconception(
        "block_only_query_normalised",
        "Only the queries come from the normalised x; keys and values are made of x itself, or the other way round.",
        ("Who reads ln1(x): queries, keys, values?", "All three read ln1(x).", LINE_1),
        ({"attend": lambda m, normed, x, mask: m.attn(normed, x, mask)},
         {"attend": lambda m, normed, x, mask: m.attn(x, normed, mask)}),
    ),
    Misconception(
        "block_norm_after_sublayer",
        "The result of a sub-layer is normalised instead of what it reads, or besides.",
        ("On which side of the attention does the norm stand?", "Put your parentheses in order: what is inside what?",
         ALIKE),
        ({"norm1": _raw, "norm2": lambda m, middle, x: middle,
          "attend": lambda m, normed, x, mask: m.ln1(attend(m, normed, x, mask)),
          "feed": lambda m, normed, mask: m.ln2(feed(m, normed, mask))},
         {"norm1": _raw, "attend": lambda m, normed, x, mask: m.ln1(attend(m, normed, x, mask))},
         {"norm2": lambda m, middle, x: middle, "feed": lambda m, normed, mask: m.ln2(feed(m, normed, mask))},
         {"attend": lambda m, normed, x, mask: m.ln1(attend(m, normed, x, mask)),
          "feed": lambda m, normed, mask: m.ln2(feed(m, normed, mask))}),
    ),
    Misconception(
        "block_norm_at_the_end",
        "The output of the block is normalised once more.",
        ("May the stream itself be normalised inside a pre-norm block?", "Look at your return.", "return x"),
        ({"last": lambda out: F.layer_norm(out, out.shape[-1:])},
         {"join2": lambda m, x, middle, normed, added: m.ln2(middle + added)},
         {"join1": lambda m, x, normed, added: m.ln1(x + added)},
         {"join2": lambda m, x, middle, normed, added: m.ln1(middle + added)},
         {"join1": lambda m, x, normed, added: m.ln1(x + added),
          "join2": lambda m, x, middle, normed, added: m.ln2(middle + added)}),
    ),
)  # fmt: skip


ORDER = (
    Misconception(
        "block_ffn_first",
        "The feed-forward network comes before the attention.",
        ("Which sub-layer reads the input of the block?", "Attention first.", ALIKE),
        ({"norm1": lambda m, x: m.ln2(x), "attend": lambda m, normed, x, mask: feed(m, normed, mask),
          "norm2": lambda m, middle, x: m.ln1(middle), "feed": lambda m, normed, mask: attend(m, normed, None, mask)},
         {"attend": lambda m, normed, x, mask: feed(m, normed, mask),
          "feed": lambda m, normed, mask: attend(m, normed, None, mask)}),
        convention="attention first, then the feed-forward network.",
    ),
    Misconception(
        "block_parallel",
        "Attention and feed-forward network work side by side on the same x; the second should read what the first "
        "has added.",
        ("What does the feed-forward network read: x before or after the attention?",
         "Is the x of your second line the result of the first?", LINE_2),
        ({"norm2": lambda m, middle, x: m.ln2(x)}, {"norm2": lambda m, middle, x: m.ln1(x)}),
        convention="the sub-layers follow each other.",
    ),
)  # fmt: skip
