"""Misconceptions of `MultiHeadAttention` about heads and layers."""

import torch.nn.functional as F
from torch import nn

from course_utils.checks.hiding import with_and_without_care
from course_utils.checks.model import Misconception
from course_utils.checks.multihead_recipe import layers, merge, split
from course_utils.checks.shared import no_super


def _shared(module, d_model, n_heads):
    module.W_q = module.W_k = module.W_v = nn.Linear(d_model, d_model)
    module.W_o = nn.Linear(d_model, d_model)


def _rounded(module, d_model, n_heads):
    inner = d_model // n_heads * n_heads
    for name in ("W_q", "W_k", "W_v"):
        setattr(module, name, nn.Linear(d_model, inner))
    module.W_o = nn.Linear(inner, d_model)


def _split_view(t, h):
    return t.reshape(t.shape[0], h, t.shape[1], t.shape[2] // h)


def _merge_view(out):
    B, h, T, d_head = out.shape
    return out.reshape(B, T, h * d_head)


def _deal(t, h):
    return t.view(*t.shape[:2], t.shape[-1] // h, h).permute(0, 3, 1, 2)


def _deal_back(out):
    return out.permute(0, 2, 3, 1).flatten(2)


def _without_biases(got, want):
    missing = () if got.inside is None else got.inside.missing
    return bool(missing) and all(name.endswith(".bias") for name in missing)


def _one_layer_for_three(got, want):
    missing = () if got.inside is None else got.inside.missing
    return "W_k.weight" in missing and sum(len(s) > 1 for s in got.inside.parameters.values()) <= 2 and not any(
        shape[0] > shape[1] for shape in got.inside.parameters.values() if len(shape) > 1
    )  # fmt: skip


SPLIT_HINTS = (
    "Does a head get features of one word, or pieces of several words?",
    "view only reads memory anew. Permuting the words must permute the outputs.",
)

HEADS = (
    Misconception(
        "mha_split_view",
        "The heads are split with view or reshape alone, so that a head gets pieces of different words.",
        (*SPLIT_HINTS, "x.view(B, T, h, d_head).transpose(1, 2)"),
        with_and_without_care(
            {"split": _split_view},
            {"split": _split_view, "merge": _merge_view},
            {"split": lambda t, h: t.reshape(t.shape[0], h, t.shape[2] // h, t.shape[1]).transpose(2, 3)},
            {"split": lambda t, h: t.reshape(t.shape[0], h, t.shape[2] // h, t.shape[1]).transpose(2, 3),
             "merge": _merge_view},
        ),
    ),
    Misconception(
        "mha_merge_no_transpose",
        "The heads are glued together without swapping head and time back: a word's output has pieces of others.",
        (*SPLIT_HINTS, "out.transpose(1, 2).reshape(B, T, d_model)"),
        with_and_without_care({"merge": _merge_view}),
    ),
    Misconception(
        "mha_no_contiguous",
        "view is called on a transposed tensor, which it cannot do.",
        ("What does the error recommend?", "After transpose the numbers lie in another order than view expects.",
         "out.transpose(1, 2).reshape(...), or .contiguous().view(...)"),
        ({"merge": lambda out: out.transpose(1, 2).view(out.shape[0], out.shape[2], -1)},
         {"split": lambda t, h: t.transpose(1, 2).view(t.shape[0], h, t.shape[1], t.shape[2] // h)}),
    ),
    Misconception(
        "mha_head_order_reversed",
        "The heads are put together in another order than they were split.",
        ("Which features does head 0 own?", "Follow the features of one head from the split to the end.",
         "Keep the order of the heads."),
        ({"merge": lambda out: merge(out.flip(1))},),
        convention="head i owns the features i * d_head to (i + 1) * d_head - 1, before and after.",
    ),
    Misconception(
        "mha_interleaved_heads",
        "The features are dealt out to the heads like cards instead of in blocks.",
        ("Which features does head 0 own?", "Which of the two, h or d_head, comes first in your view?",
         "view(B, T, h, d_head)"),
        ({"split": _deal, "merge": _deal_back}, {"split": _deal},
         {"merge": lambda out: out.permute(0, 2, 3, 1).flatten(2)}),
        convention="head i owns the features i * d_head to (i + 1) * d_head - 1.",
    ),
    Misconception(
        "mha_rounds_head_size",
        "Where n_heads does not divide d_model, features are dropped in silence.",
        ("What is 10 // 4, and how many features do 4 such heads have?", "Try d_model = 10 and n_heads = 4.",
         'if d_model % n_heads: raise ValueError("...")'),
        ({"divide": lambda d_model, n_heads: None, "layers": _rounded},
         {"divide": lambda d_model, n_heads: None,
          "split": lambda t, h: split(t[..., : t.shape[-1] // h * h], h),
          "output": lambda m, out: F.linear(out, m.W_o.weight[:, : out.shape[-1]], m.W_o.bias)}),
        convention="n_heads must divide d_model; anything else raises an error.",
    ),
    Misconception(
        "mha_same_features",
        "All heads look at the same features.",
        ("Which features does the second head own?", "Look at your slices.", "x.view(B, T, h, d_head)"),
        ({"split": lambda t, h: split(t, h)[:, :1].expand(-1, h, -1, -1)},),
    ),
)  # fmt: skip

PROJECTIONS = (
    Misconception(
        "mha_one_proj_for_all",
        "One layer is used for more than one of query, key and value.",
        ("What would it mean if asking and answering were always the same?",
         "Are all of W_q, W_k and W_v used in forward?",
         "self.W_q(x_q), self.W_k(x_kv), self.W_v(x_kv)"),
        ({"project": lambda m, x_q, x_kv: (m.W_q(x_q), m.W_q(x_kv), m.W_q(x_kv))},
         {"layers": _shared},
         {"project": lambda m, x_q, x_kv: (m.W_q(x_q), m.W_k(x_kv), m.W_k(x_kv))},
         {"project": lambda m, x_q, x_kv: (m.W_q(x_q), m.W_q(x_kv), m.W_v(x_kv))},
         {"project": lambda m, x_q, x_kv: (m.W_v(x_q), m.W_v(x_kv), m.W_v(x_kv))},
         {"project": lambda m, x_q, x_kv: (m.W_k(x_q), m.W_k(x_kv), m.W_k(x_kv))},
         {"project": lambda m, x_q, x_kv: (m.W_k(x_q), m.W_k(x_kv), m.W_v(x_kv))}),
        symptom=_one_layer_for_three,
    ),
    Misconception(
        "mha_values_not_projected",
        "The values are not projected: W_v is not used.",
        ("Is W_v used in forward?", "Set the weights of W_v to zero: what should happen?", "self.W_v(x_kv)"),
        ({"project": lambda m, x_q, x_kv: (m.W_q(x_q), m.W_k(x_kv), x_kv)},),
    ),
    Misconception(
        "mha_roles_swapped",
        "The layers of queries and keys are exchanged.",
        ("Which layer makes the queries?", "Compare the letters left and right of your assignments.",
         "self.W_q(x_q), self.W_k(x_kv)"),
        ({"project": lambda m, x_q, x_kv: (m.W_k(x_q), m.W_q(x_kv), m.W_v(x_kv))},
         {"project": lambda m, x_q, x_kv: (m.W_q(x_q), m.W_v(x_kv), m.W_k(x_kv))}),
    ),
    Misconception(
        "mha_no_output_layer",
        "The output layer W_o is missing: the heads are glued together and never mixed.",
        ("How do heads exchange what they found?", "Is W_o used in forward?", "return self.W_o(out)"),
        ({"output": lambda m, out: out},),
    ),
    Misconception(
        "mha_output_before_merge",
        "W_o is applied twice.",
        ("How often is W_o applied?", "Look at your last lines.", "self.W_o once, after gluing"),
        ({"output": lambda m, out: m.W_o(m.W_o(out))},),
    ),
    Misconception(
        "mha_cross_ignored",
        "x_kv is ignored: cross-attention is really self-attention.",
        ("From which sequence do keys and values come?", "Change x_kv: the output must change.",
         "self.W_k(x_kv), self.W_v(x_kv)"),
        ({"sources": lambda x_q, x_kv: (x_q, x_q)},),
    ),
    Misconception(
        "mha_cross_swapped",
        "The queries come from x_kv and the keys and values from x_q.",
        ("Who asks?", "The output must be as long as x_q.", "self.W_q(x_q), self.W_k(x_kv), self.W_v(x_kv)"),
        ({"sources": lambda x_q, x_kv: (x_q, x_q) if x_kv is None else (x_kv, x_q)},),
    ),
    Misconception(
        "mha_cross_keys_only",
        "Only the keys, or only the values, come from x_kv.",
        ("Which two of the three come from x_kv?", "Try Tq and Tk of different lengths.",
         "self.W_k(x_kv), self.W_v(x_kv)"),
        ({"project": lambda m, x_q, x_kv: (m.W_q(x_q), m.W_k(x_kv), m.W_v(x_q))},
         {"project": lambda m, x_q, x_kv: (m.W_q(x_q), m.W_k(x_q), m.W_v(x_kv))}),
    ),
    Misconception(
        "mha_query_detached",
        "Something is cut off from the graph, so a layer never learns.",
        ("Do W_q and W_k get gradients?", "Look for detach, .data or no_grad.", "Use the projections as they are."),
        ({"project": lambda m, x_q, x_kv: (m.W_q(x_q).detach(), m.W_k(x_kv), m.W_v(x_kv))},
         {"project": lambda m, x_q, x_kv: (m.W_q(x_q), m.W_k(x_kv).detach(), m.W_v(x_kv))},
         {"project": lambda m, x_q, x_kv: (m.W_q(x_q), m.W_k(x_kv), m.W_v(x_kv).detach())},
         {"project": lambda m, x_q, x_kv: (m.W_q(x_q.detach()), m.W_k(x_kv), m.W_v(x_kv))},
         {"project": lambda m, x_q, x_kv: (m.W_q(x_q), m.W_k(x_kv.detach()), m.W_v(x_kv.detach()))},
         {"after": lambda weights: weights.detach()}),
    ),
    Misconception(
        "mha_no_bias",
        "The layers have no biases.",
        ("What does nn.Linear hold besides its weight?", "Look for bias=False.", "nn.Linear(d_model, d_model)"),
        ({"layers": layers(bias=False)},),
        convention="W_q, W_k, W_v and W_o are nn.Linear with bias.",
        symptom=_without_biases,
    ),
    no_super("mha_no_super"),
    Misconception(
        "mha_residual_inside",
        "The input is added inside the layer; the block will add it again.",
        ("Who adds the residual, the layer or the block?", "With all weights zero the output must be zero.",
         "return self.W_o(out)"),
        ({"last": lambda out, x_q, weights: out + x_q},),
    ),
    Misconception(
        "mha_normalised",
        "The output is normalised inside the layer; that belongs to the block.",
        ("Who normalises, the layer or the block?", "Look for LayerNorm.", "return self.W_o(out)"),
        ({"last": lambda out, x_q, weights: F.layer_norm(out, out.shape[-1:])},
         {"last": lambda out, x_q, weights: F.layer_norm(out + x_q, out.shape[-1:])}),
    ),
    Misconception(
        "mha_returns_weights",
        "The weights are returned as well; only the output is asked for.",
        ("How many results does the docstring name?", "Look at your last line.", "return self.W_o(out)"),
        ({"last": lambda out, x_q, weights: (out, weights)}, {"last": lambda out, x_q, weights: (out, None)}),
        convention="forward returns the output only.",
    ),
    Misconception(
        "mha_attends_across_batch",
        "The first axis is treated as time, so that samples attend to each other.",
        ("Which axis is time in this course?", "Change sample 1: the output of sample 0 must stay.",
         "(B, T, d); with nn.MultiheadAttention batch_first=True"),
        ({"enter": lambda x: x.transpose(0, 1)},),
        convention="the first axis is the batch.",
    ),
)  # fmt: skip
