"""Misconceptions of `MultiHeadAttention` about scores, softmax and masks."""

from dataclasses import replace

import torch
import torch.nn.functional as F

from course_utils.checks import dot_product_hiding
from course_utils.checks.hiding import fill, with_and_without_care
from course_utils.checks.model import Misconception
from course_utils.checks.shared import looks_like_dropout


def _per_sample(change):
    """A step that treats masks with a batch axis otherwise; gets the mask as (B, Tq, Tk), and q."""

    def place(mask, q):
        if mask is None or mask.dim() == 2:
            return mask
        return change(mask.squeeze(1) if mask.dim() == 4 else mask, q)

    return place


def _tile(mask, q):
    return mask.repeat(q.shape[1], 1, 1).view(q.shape[0], q.shape[1], *mask.shape[1:])


def _first_head(mask, q, k):
    if mask is None:
        return None
    full = torch.ones(*q.shape[:3], k.shape[-2], dtype=torch.bool)
    full[:, 0] = mask.expand(full.shape)[:, 0]
    return full


def _jointly(scores):
    B, h, Tq, Tk = scores.shape
    return scores.transpose(1, 2).reshape(B, Tq, h * Tk).softmax(-1).view(B, Tq, h, Tk).transpose(1, 2)


SCORES = (
    Misconception(
        "mha_scale_d_model",
        "The scores are divided by the root of d_model instead of that of the size of a head.",
        ("Over how many numbers does the product of one head run?", "One head hides it: try four.",
         "/ math.sqrt(d_model // n_heads)"),
        ({"scale": lambda s, q, k, d_model: s / d_model**0.5},),
    ),
    Misconception(
        "mha_no_scale",
        "The scores are not scaled.",
        ("How large are your scores when a head is large?", "Compare your code with the formula.",
         "/ math.sqrt(d_head)"),
        ({"scale": lambda s, q, k, d_model: s},),
    ),
    Misconception(
        "mha_scale_wrong",
        "The scores are scaled by another number than one over the root of the size of a head.",
        ("Over how many numbers does the product of one head run?", "Print the number you divide by.",
         "/ math.sqrt(d_head)"),
        ({"scale": lambda s, q, k, d_model: s / q.shape[-1]},
         {"scale": lambda s, q, k, d_model: s * q.shape[-1] ** 0.5},
         {"scale": lambda s, q, k, d_model: s / q.shape[1] ** 0.5},
         {"scale": lambda s, q, k, d_model: s / q.shape[2] ** 0.5},
         {"scale": lambda s, q, k, d_model: s / k.shape[2] ** 0.5},
         {"scale": lambda s, q, k, d_model: s / d_model}),
    ),
    Misconception(
        "mha_softmax_heads",
        "The softmax runs over the heads, so that heads compete.",
        ("Over which axis must weights sum to one?", "One head gives weights of exactly 1.", "softmax(dim=-1)"),
        with_and_without_care({"normalise": lambda s: s.softmax(1)}, {"normalise": lambda s: s.softmax(1),
                                                                      "hide": fill(-1e9)}),
    ),
    Misconception(
        "mha_softmax_queries",
        "The softmax runs over the queries instead of over the keys.",
        ("Over which axis must weights sum to one?", "Rows are queries, columns are keys.", "softmax(dim=-1)"),
        with_and_without_care({"normalise": lambda s: s.softmax(-2)}, {"normalise": lambda s: s.softmax(-2),
                                                                       "hide": fill(-1e9)}),
    ),
    Misconception(
        "mha_softmax_batch",
        "The softmax runs over the batch, so that samples compete.",
        ("Over which axis must weights sum to one?", "Change sample 1: the output of sample 0 must stay.",
         "softmax(dim=-1)"),
        with_and_without_care({"normalise": lambda s: s.softmax(0)}, {"normalise": lambda s: s.softmax(0),
                                                                      "hide": fill(-1e9)}),
    ),
    Misconception(
        "mha_softmax_joint_heads",
        "One softmax runs over heads and keys together.",
        ("Does each head have weights of its own?", "The rows of each head must sum to one.", "softmax(dim=-1)"),
        with_and_without_care({"normalise": _jointly}),
    ),
    Misconception(
        "mha_no_softmax",
        "The scores are used as weights: the softmax is missing.",
        ("Do your weights sum to one?", "Print weights.sum(-1).", "softmax(dim=-1)"),
        with_and_without_care({"normalise": lambda s: s}),
    ),
    Misconception(
        "mha_dropout_always",
        "Dropout is always on: two calls with the same input differ.",
        ("Do two calls agree?", "F.dropout is on unless it is told training=False.",
         "No dropout here, or nn.Dropout, which module.eval() switches off"),
        tuple({"after": lambda w, p=p: F.dropout(w, p)} for p in (0.1, 0.2, 0.5)),
        symptom=looks_like_dropout,
    ),
)  # fmt: skip


def _of_the_dot_product(m: Misconception) -> Misconception:
    variants = m.variants
    if m.id == "sdpa_mask_fill_minus_1e4":
        variants = tuple({"hide": fill(-x)} for x in (1, 10, 20, 50))  # what scores of -60 can show
    if m.id == "sdpa_mask_multiplied":  # in single precision nothing tells 0 from 1e-9
        says = "Hidden scores become 0, or practically 0, which is an ordinary score, instead of minus infinity."
        where = "Multiplying by the mask makes 0 of a hidden score; -1e-9 is practically 0, where -1e9 was meant."
        variants = (*variants, {"hide": fill(1e-9)}, {"hide": fill(-1e-9)})
        m = replace(m, says=says, hints=(m.hints[0], where, m.hints[2]))
    return replace(m, id=m.id.replace("sdpa_", "mha_"), variants=variants)


MASKS = (
    Misconception(
        "mha_mask_head_axis",
        "A mask (B, Tq, Tk) meets the heads instead of the samples: it has no axis of its own for the heads, or has it "
        "at the wrong place.",
        ("Which axes do the scores have, and which a mask (B, Tq, Tk)?",
         "With B = n_heads there is no error, only a wrong result.",
         "mask.unsqueeze(1): (B, 1, Tq, Tk)"),
        with_and_without_care(
            {"place": _per_sample(lambda m, q: m)},
            {"place": lambda mask, q: mask},
            {"place": lambda mask, q: mask.unsqueeze(0) if mask is not None and mask.dim() == 3 else mask},
        ),
    ),
    Misconception(
        "mha_mask_repeat_order",
        "The mask is tiled over the folded batch: sample 0 gets the masks of the others.",
        ("In which order are samples and heads folded together?",
         "Try two samples with different masks and two heads.",
         "mask.repeat_interleave(n_heads, dim=0), or mask.unsqueeze(1) without folding"),
        with_and_without_care({"place": _per_sample(_tile)}),
    ),
    Misconception(
        "mha_mask_first_head_only",
        "Only the first head obeys the mask.",
        ("Which heads does your mask reach?", "With two heads and a causal mask, change the last word.",
         "A mask with one axis of size 1 for the heads: (B, 1, Tq, Tk)"),
        with_and_without_care({"given": _first_head}),
    ),
    Misconception(
        "mha_mask_first_sample",
        "All samples get the mask of the first one.",
        ("Does every sample have a mask of its own?", "Try two samples with different masks.", "mask.unsqueeze(1)"),
        with_and_without_care({"place": _per_sample(lambda m, q: m[:1].unsqueeze(1))}),
    ),
    *(_of_the_dot_product(m) for m in dot_product_hiding.HIDING if m.id != "sdpa_mask_fill_1e-9"),
)  # fmt: skip
