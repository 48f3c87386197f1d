"""Misconceptions of `scaled_dot_product_attention`, about scale, products and softmax."""

import math

import torch
import torch.nn.functional as F

from course_utils.checks.hiding import fill, with_and_without_care
from course_utils.checks.model import Misconception
from course_utils.checks.shared import identical


def _divide_in_place(q):
    q /= math.sqrt(q.shape[-1])
    return q


def _hand_softmax(scores):
    e = scores.exp()
    return e / e.sum(-1, keepdim=True)


def _looks_like_dropout(got, want):
    """Two calls differ, and not because the weights are another random distribution."""
    second = None if got.second is None else got.second.value
    if not all(isinstance(value, tuple) and len(value) > 1 for value in (got.value, second)):
        return False
    (out, weights, *_), (other, other_weights, *_) = got.value, second
    if not all(torch.is_tensor(t) for t in (out, weights, other, other_weights)) or out.shape != other.shape:
        return False
    if weights.shape != other_weights.shape:
        return False
    if identical(weights, other_weights):
        return not identical(out, other)
    return not torch.allclose(weights.sum(-1), torch.ones(()))


SCALE = (
    Misconception(
        "sdpa_scale_d",
        "The scores are divided by d instead of by the square root of d.",
        ("How fast does a sum of d random products grow with d?",
         "With d = 64 your weights are far too even.",
         "/ math.sqrt(q.shape[-1])"),
        ({"scale": lambda s, q, k, v: s / q.shape[-1]},),
    ),
    Misconception(
        "sdpa_scale_multiplied",
        "The scores are multiplied by the square root of d instead of divided.",
        ("Is scaling to calm the softmax or to sharpen it?",
         "With d = 64 your weights are one-hot.",
         "/ math.sqrt(d), not *"),
        ({"scale": lambda s, q, k, v: s * q.shape[-1] ** 0.5},),
    ),
    Misconception(
        "sdpa_scale_seq_len",
        "The square root of a sequence length is used instead of the feature size.",
        ("Over which size does a dot product sum?",
         "Which axis of q do you read the size from?",
         "q.shape[-1], not q.shape[-2] or q.shape[1]"),
        ({"scale": lambda s, q, k, v: s / k.shape[-2] ** 0.5},
         {"scale": lambda s, q, k, v: s / q.shape[-2] ** 0.5},
         {"scale": lambda s, q, k, v: s / q.shape[1] ** 0.5},
         {"scale": lambda s, q, k, v: s / k.shape[1] ** 0.5}),
    ),
    Misconception(
        "sdpa_no_scale",
        "The scores are not scaled.",
        ("How large are your scores when d is large?", "Compare your code with the formula: something divides.",
         "/ math.sqrt(q.shape[-1])"),
        ({"scale": lambda s, q, k, v: s},),
    ),
    Misconception(
        "sdpa_scale_value_size",
        "The scale uses the size of the values instead of the size of the keys.",
        ("Over which size does a dot product sum?", "q and k have d features, v has dv.", "q.shape[-1]"),
        ({"scale": lambda s, q, k, v: s / v.shape[-1] ** 0.5},),
    ),
    Misconception(
        "sdpa_scale_output",
        "The output is divided by the square root of d instead of the scores.",
        ("If all values are 1, what must the output be?",
         "The scale belongs inside the softmax.",
         "softmax(q @ k^T / sqrt(d)) @ v"),
        ({"scale": lambda s, q, k, v: s, "mix": lambda w, k, v: w @ v / k.shape[-1] ** 0.5},
         {"scale": lambda s, q, k, v: s, "after": lambda w: w, "mix": lambda w, k, v: w / k.shape[-1] ** 0.5 @ v}),
    ),
    Misconception(
        "sdpa_floor_division",
        "Integer division (//) rounds the scores down to whole numbers.",
        ("One slash or two?", "Scores that differ by less than 1 get equal weights in your code.", "/ math.sqrt(d)"),
        ({"scale": lambda s, q, k, v: s // q.shape[-1] ** 0.5},
         {"scale": lambda s, q, k, v: s / (q.shape[-1] ** 0.5 // 1)}),
    ),
    Misconception(
        "sdpa_scales_q_in_place",
        "q is divided in place: the caller's tensor changes, and is scaled again the next time.",
        ("What does q look like after the call?", "Look for /= and *= on an argument.", "q = q / math.sqrt(d)"),
        ({"prepare_q": _divide_in_place, "scale": lambda s, q, k, v: s},),
        symptom=lambda got, want: "q" in got.changed,
    ),
    Misconception(
        "sdpa_sqrt_of_int",
        "torch.sqrt is called on a plain number, which it does not take.",
        ("What type is q.shape[-1]?", "torch.sqrt wants a tensor.", "math.sqrt(d), or d ** 0.5"),
        ({"scale": lambda s, q, k, v: s / torch.sqrt(q.shape[-1])},),
        symptom=lambda got, want: got.error is not None and "sqrt()" in got.error.message,
    ),
)  # fmt: skip

PRODUCTS = (
    Misconception(
        "sdpa_softmax_batch",
        "The softmax runs over the batch, so samples compete with each other.",
        ("Does your result for one sentence depend on its neighbours?", "Print weights.sum(-1).", "softmax(dim=-1)"),
        with_and_without_care(
            {"normalise": lambda s: s.softmax(0)},
            {"normalise": lambda s: s.softmax(0 if s.dim() == 3 else 1)},
            {"normalise": lambda s: s.softmax(0), "hide": fill(-1e9)},
            {"normalise": lambda s: s.softmax(0).nan_to_num(0.0)},
        ),
    ),
    Misconception(
        "sdpa_softmax_queries",
        "The softmax runs over the queries instead of over the keys.",
        ("Over which axis do the weights of one query sum to one?", "Print weights.sum(-1).", "softmax(dim=-1)"),
        with_and_without_care(
            {"normalise": lambda s: s.softmax(-2)},
            {"normalise": lambda s: s.softmax(1)},
            {"normalise": lambda s: s.softmax(-2), "hide": fill(-1e9)},
            {"normalise": lambda s: s.softmax(1), "hide": fill(-1e9)},
            {"normalise": lambda s: s.softmax(-2).nan_to_num(0.0)},
            {"normalise": lambda s: s.softmax(1).nan_to_num(0.0)},
        ),
    ),
    Misconception(
        "sdpa_returns_keys",
        "The weights multiply the keys instead of the values.",
        ("Which tensor carries the content?", "Is v used in your code?", "weights @ v"),
        ({"mix": lambda w, k, v: w @ k},),
    ),
    Misconception(
        "sdpa_scores_transposed",
        "The product is k @ q^T instead of q @ k^T: its rows belong to keys.",
        ("Whose row is row i of your scores?", "Try more keys than queries.", "q @ k.transpose(-2, -1)"),
        with_and_without_care({"score": lambda q, k: k @ q.transpose(-2, -1)}),
    ),
    Misconception(
        "sdpa_weights_transposed",
        "The output is made with the transposed weights.",
        ("With v the identity matrix, what must the output be?", "out[i] is the sum over keys j of w[i, j] v[j].",
         "weights @ v"),
        ({"mix": lambda w, k, v: w.transpose(-2, -1) @ v},),
    ),
    Misconception(
        "sdpa_transpose_12",
        "k.transpose(1, 2) is right with three axes, and wrong once there is an axis for heads.",
        ("Which axes do 1 and 2 name in a tensor (B, h, T, d)?", "Count axes from the end.", "k.transpose(-2, -1)"),
        ({"score": lambda q, k: q @ k.transpose(1, 2)}, {"score": lambda q, k: q @ k.permute(0, 2, 1)},
         {"score": lambda q, k: torch.bmm(q, k.transpose(1, 2))}),
    ),
    Misconception(
        "sdpa_reshape_not_transpose",
        "The keys are reshaped to (d, T) instead of transposed, which scrambles their numbers.",
        ("Does reshape swap axes?", "Print a small k before and after.", "k.transpose(-2, -1)"),
        ({"score": lambda q, k: q @ k.reshape(*k.shape[:-2], k.shape[-1], k.shape[-2])},
         {"score": lambda q, k: q @ k.view(*k.shape[:-2], k.shape[-1], k.shape[-2])}),
    ),
    Misconception(
        "sdpa_exp_overflow",
        "The softmax is written by hand without subtracting the maximum; large scores overflow.",
        ("What is exp(200) in float32?", "Try scores in the hundreds.",
         "Subtract scores.max(-1, keepdim=True).values first, or use softmax."),
        ({"normalise": _hand_softmax},
         {"normalise": _hand_softmax, "settle": lambda w, m: w},
         {"normalise": lambda s: s.exp() / (s.exp().sum(-1, keepdim=True) + 1e-9)},
         {"hide": lambda s, m: s, "normalise": lambda s: s.exp(),
          "settle": lambda w, m: (w := w if m is None else w * m) / w.sum(-1, keepdim=True)},
         {"normalise": _hand_softmax, "hide": fill(-1e9), "settle": lambda w, m: w},
         {"normalise": _hand_softmax, "settle": lambda w, m: w.nan_to_num(0.0)}),
    ),
    Misconception(
        "sdpa_weights_detached",
        "The weights are cut off from the graph, so queries and keys never learn.",
        ("Does q get a gradient?", "Look for detach, .data or no_grad.", "Use the weights as they are: weights @ v"),
        ({"passed_on": lambda w: w.detach()}, {"after": lambda w: w.detach()}),
    ),
    Misconception(
        "sdpa_dropout_always",
        "Dropout is always on: two calls with the same input differ.",
        ("Do two calls agree?", "F.dropout is on unless it is told training=False.",
         "No dropout here, or F.dropout(..., training=False)"),
        tuple({"after": lambda w, p=p: F.dropout(w, p)} for p in (0.1, 0.2, 0.5))
        + tuple({"passed_on": lambda w, p=p: F.dropout(w, p)} for p in (0.1, 0.2, 0.5)),
        symptom=_looks_like_dropout,
    ),
    Misconception(
        "sdpa_cosine",
        "q and k are brought to length 1 first: that is the cosine, not the dot product.",
        ("Should a longer query give sharper weights?", "Scale q by 10 and look at the weights.",
         "Plain dot product, then the scale."),
        ({"score": lambda q, k: F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1)},
         {"score": lambda q, k: F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1),
          "scale": lambda s, q, k, v: s}),
    ),
    Misconception(
        "sdpa_results_exchanged",
        "The two results are returned in the other order.",
        ("Which result comes first in the docstring?", "Look at your last line.", "return out, weights"),
        ({"finish": lambda out, weights, scores: (weights, out)},),
    ),
    Misconception(
        "sdpa_output_only",
        "Only the output is returned; the weights are asked for as well.",
        ("How many results does the docstring name?", "Look at your last line.", "return out, weights"),
        ({"finish": lambda out, weights, scores: out},),
    ),
    Misconception(
        "sdpa_returns_scores",
        "The scores are returned in place of the weights.",
        ("Do the rows of your second result sum to one?", "Which variable do you return?", "return out, weights"),
        ({"finish": lambda out, weights, scores: (out, scores)},),
    ),
    Misconception(
        "sdpa_no_softmax",
        "The scores are used as weights: the softmax is missing.",
        ("Do your weights sum to one?", "Print weights.sum(-1).", "softmax(dim=-1)"),
        with_and_without_care({"normalise": lambda s: s}),
    ),
)  # fmt: skip
