"""Cases of `TransformerBlock`: with weights copied in, and by properties where that is not possible."""

import torch

from course_utils import transformer as reference
from course_utils.checks.block_attention import ATTENTION
from course_utils.checks.block_mistakes import LINE_1, LINE_2, NORMS, ORDER, RESIDUALS
from course_utils.checks.block_parts import DROPOUT, PARTS
from course_utils.checks.block_properties import PROPERTIES, causal, made, two_calls_differ
from course_utils.checks.block_recipe import RIGHT, assemble
from course_utils.checks.model import Case, Draw, Exercise, Output, Recipe

ALMOST_ALL = 0.999999  # not 1, where a dropout written by hand divides by zero
WEIGHTS = (
    *(f"attn.W_{name}.weight" for name in "qkvo"),
    *("ln1.weight", "ln1.bias", "ln2.weight", "ln2.bias", "ff1.weight", "ff1.bias", "ff2.weight", "ff2.bias"),
)


def _hidden_words(draw: Draw) -> dict:
    """Each sentence has a mask of its own."""
    mask = torch.ones(3, 5, 5, dtype=torch.bool)
    mask[0, :, 3:], mask[1, :, :2], mask[2, :4, 4] = False, False, False
    return {"x": draw.normal(3, 5, 12), "mask": mask}


def _large(draw: Draw) -> dict:
    mask = torch.arange(4) < torch.tensor([2, 4]).view(2, 1, 1, 1)
    return {"x": 30 * draw.normal(2, 4, 6) + 50, "mask": mask.expand(2, 1, 4, 4).clone()}


CASES = (
    Case("two sentences, no mask", "attention, then the feed-forward network, each on a normalised copy, each added "
         "to x", 2, lambda d: {"x": d.normal(2, 5, 8)}, make=made(d_model=8, n_heads=4, d_ff=11)),
    Case("a causal mask (T, T)", "no word sees a later word", 1,
         lambda d: {"x": d.normal(3, 4, 6), "mask": causal(4)}, make=made(d_model=6, n_heads=2, d_ff=9)),
    Case("a mask for each sentence (B, T, T)", "the mask reaches the attention", 1, _hidden_words,
         make=made(d_model=12, n_heads=3, d_ff=7)),
    Case("a large input, and a mask (B, 1, T, T)", "what the sub-layers read is normalised, x itself is not", 1, _large,
         make=made(d_model=6, n_heads=3, d_ff=8)),
    Case("a single word", "B = T = 1", 1, lambda d: {"x": d.normal(1, 1, 5)}, make=made(d_model=5, n_heads=1, d_ff=3)),
    Case("dropout in evaluation mode", "nothing is dropped", 1, lambda d: {"x": d.normal(2, 3, 6)},
         make=made(d_model=6, n_heads=2, d_ff=10, dropout=0.3), repeat=True),
    Case("dropout close to 1 in train mode", "nearly all that the sub-layers add is dropped, and x comes out", 1,
         lambda d: {"x": d.normal(2, 3, 4)},
         make=made(d_model=4, n_heads=2, d_ff=5, dropout=ALMOST_ALL, training=True)),
    Case("dropout in train mode", "two calls differ", 1, lambda d: {"x": d.normal(3, 4, 6)},
         make=made(d_model=6, n_heads=3, d_ff=7, dropout=0.4, training=True), repeat=True, compare=two_calls_differ),
    Case("gradients, and arguments are kept", "gradients reach all weights and x; nothing is written to", 1,
         lambda d: {"x": d.normal(2, 3, 6), "mask": causal(3)}, make=made(d_model=6, n_heads=3, d_ff=8),
         gradients_of=("x", *WEIGHTS), repeat=True, keeps_inputs=True),
)  # fmt: skip


TRANSFORMER_BLOCK = Exercise(
    name="TransformerBlock",
    notebook="06",
    reference=reference.TransformerBlock,
    outputs=(Output("the output", ("time", "feature")),),
    cases=CASES,
    properties=PROPERTIES,
    recipe=Recipe(assemble, RIGHT),
    misconceptions=(*RESIDUALS, *NORMS, *ORDER, *ATTENTION, *PARTS, *DROPOUT),
    hints=(
        "Two sub-layers. What does each of them read, and to what is its result added?",
        "First line: x plus what attention says of ln1(x), with the mask. Second line: x plus ff2(relu(ff1(ln2(x)))).",
        f"{LINE_1}; {LINE_2}; return x",
    ),
)
