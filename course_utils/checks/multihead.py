"""Cases of `MultiHeadAttention`: with weights copied in, and by properties where that is not possible."""

import torch

from course_utils import multihead as reference
from course_utils.checks.model import Case, Draw, Exercise, Output, Recipe
from course_utils.checks.multihead_inputs import bare, causal, made, one_sample_each
from course_utils.checks.multihead_layers import HEADS, PROJECTIONS
from course_utils.checks.multihead_properties import PROPERTIES
from course_utils.checks.multihead_recipe import RIGHT, assemble
from course_utils.checks.multihead_scores import MASKS, SCORES
from course_utils.checks.values import Construction

WEIGHTS = ("W_q.weight", "W_k.weight", "W_v.weight", "W_o.weight")


def _low_scores(draw: Draw) -> dict:
    """With `_opposite` biases, visible scores are near -60; hidden words have huge scores and values."""
    mask = torch.arange(6) < torch.tensor([4, 2, 5, 6]).view(4, 1, 1, 1)
    x_kv = 0.3 * draw.normal(4, 6, 8)
    x_kv[..., 0] = 1000.0 * ~mask[:, 0, 0]
    return {"x_q": 0.3 * draw.normal(4, 3, 8), "x_kv": x_kv, "mask": mask.expand(4, 1, 3, 6).clone()}


def _opposite(draw: Draw) -> Construction:
    described = made(8, 2)(draw)
    # Queries and keys far from zero and opposite (d_head = 4), but for feature 0, which only hidden words have.
    described.weights["W_q.bias"].add_(5.5)
    described.weights["W_k.bias"].sub_(5.5)
    described.weights["W_k.weight"][:, 0] = 0.2
    return described


def _one_empty(draw: Draw) -> dict:
    mask = torch.ones(2, 3, 3, dtype=torch.bool)
    mask[1, 1], mask[0, :, 2] = False, False
    return {"x_q": draw.normal(2, 3, 4), "x_kv": None, "mask": mask}


CASES = (
    Case("self-attention, four heads", "every head attends on features of its own; heads are put back in order", 2,
         lambda d: {"x_q": d.normal(2, 5, 8)}, make=made(8, 4)),
    Case("cross-attention", "queries from x_q, keys and values from x_kv", 1,
         lambda d: {"x_q": d.normal(2, 3, 10), "x_kv": d.normal(2, 6, 10)}, make=made(10, 2)),
    Case("a causal mask (Tq, Tk)", "no head sees a later word", 1,
         lambda d: {"x_q": d.normal(3, 5, 6), "x_kv": None, "mask": causal(5)}, make=made(6, 2)),
    Case("a mask for each sample (B, Tq, Tk)", "the mask of a sample is used in all of its heads", 1,
         one_sample_each, make=made(12, 3)),
    Case("a mask (B, 1, Tq, Tk) and low scores", "a hidden word has no influence, however low the visible scores are",
         1, _low_scores, make=_opposite),
    Case("one head", "a single head has all features", 1, lambda d: {"x_q": d.normal(1, 4, 5)}, make=made(5, 1)),
    Case("a word that may see nothing", "a fully hidden row gives finite numbers", 1, _one_empty, make=made(4, 2),
         loose=lambda a: (~a["mask"].any(-1, keepdim=True),)),
    Case("gradients, and arguments are kept", "gradients reach all four matrices and both inputs; nothing is written "
         "to; no randomness", 1,
         lambda d: {"x_q": d.normal(2, 3, 6), "x_kv": d.normal(2, 4, 6), "mask": torch.arange(4).expand(3, 4) < 3},
         make=made(6, 3), gradients_of=("x_q", "x_kv", *WEIGHTS), repeat=True, keeps_inputs=True),
    Case("d_model = 10 with 4 heads", "heads share the features evenly: where that is impossible, an error is raised",
         1, lambda d: {"x_q": d.normal(2, 3, 10)}, make=bare(10, 4), must_raise=True),
)  # fmt: skip


MULTI_HEAD_ATTENTION = Exercise(
    name="MultiHeadAttention",
    notebook="05",
    reference=reference.MultiHeadAttention,
    outputs=(Output("output", ("query", "feature")),),
    cases=CASES,
    properties=PROPERTIES,
    recipe=Recipe(assemble, RIGHT),
    misconceptions=(*HEADS, *PROJECTIONS, *SCORES, *MASKS),
    hints=(
        "Which features belong to head 0? And which axes must stand last, so that every head attends by itself?",
        "Project, view(B, T, h, d_head), swap T and h, attend with the root of d_head, swap back, glue, W_o.",
        "q = self.W_q(x_q).view(B, Tq, h, d_head).transpose(1, 2), k and v alike; a mask (B, Tq, Tk) needs "
        "mask.unsqueeze(1); self.W_o(out.transpose(1, 2).reshape(B, Tq, d_model))",
    ),
)
