"""Cases of `patchify`."""

import torch

from course_utils import vision as reference
from course_utils.checks.model import Case, Draw, Exercise, Output, Recipe
from course_utils.checks.patches_mistakes import MISCONCEPTIONS
from course_utils.checks.patches_recipe import RIGHT, assemble
from course_utils.checks.shared import DOUBLE_NOTE, in_double


def _images(draw: Draw, p: int, *shape: int) -> dict:
    return {"images": draw.normal(*shape), "p": p}


def _photographs(draw: Draw) -> dict:
    """As they come from a file: pixel after pixel in memory, the channels of a pixel side by side."""
    return {"images": draw.normal(2, 4, 6, 4).permute(0, 3, 1, 2), "p": 2}


# In double precision, so that dropping what is left over and filling it up can be told apart.
def _not_divided(draw: Draw, H: int, W: int) -> dict:
    """Sizes at which the pixels alone would do for whole patches, 48 = 3 * 16."""
    return in_double(_images(draw, 4, 3, 2, H, W))


CASES = (
    Case("wide images in colour", "squares of p x p pixels, row by row, each as (channel, row, column)", 3,
         lambda d: _images(d, 2, 2, 3, 6, 10)),
    Case("an image of numbered pixels", "patch 0 is the top left square, patch 1 is to the right of it", 1,
         lambda d: {"images": torch.arange(54.0).view(1, 1, 6, 9), "p": 3}),
    Case("tall images", "height and width may differ", 1, lambda d: _images(d, 3, 4, 3, 9, 6)),
    Case("patches of one pixel", "p = 1: every pixel is a patch, and holds its channels", 1,
         lambda d: _images(d, 1, 3, 2, 3, 5)),
    Case("channels last in memory", "what counts is the shape, not how the numbers lie in memory", 1, _photographs),
    Case("gradients, and images are kept", "gradients flow back to the pixels; nothing is written to", 1,
         lambda d: _images(d, 2, 3, 2, 2, 8), gradients_of=("images",), repeat=True, keeps_inputs=True),
    Case("a height of 6 with p = 4", "p has to divide the height: where it does not, an error is raised", 1,
         lambda d: _not_divided(d, 6, 8), must_raise=True),
    Case("a width of 6 with p = 4", "p has to divide the width: where it does not, an error is raised", 1,
         lambda d: _not_divided(d, 8, 6), must_raise=True),
    Case("double precision", "works in float64", 0, lambda d: in_double(_images(d, 2, 2, 3, 4, 6)), note=DOUBLE_NOTE),
)  # fmt: skip

PATCHIFY = Exercise(
    name="patchify",
    notebook="07",
    reference=reference.patchify,
    outputs=(Output("patches", ("patch", "pixel")),),
    cases=CASES,
    recipe=Recipe(assemble, RIGHT),
    misconceptions=MISCONCEPTIONS,
    hints=(
        "On paper, number the pixels of an image of 4 x 6: which numbers belong to patch 0 if p = 2, which to patch 1?",
        "Cut the height into (H // p, p), the width into (W // p, p). Which of the six axes count patches? They come "
        "first, those that count pixels last.",
        "if H % p or W % p: raise ValueError(...); images.reshape(B, C, H // p, p, W // p, p).permute(0, 2, 4, 1, 3, 5)"
        ".reshape(B, (H // p) * (W // p), C * p * p)",
    ),
)
