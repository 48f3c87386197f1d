"""Cases of `ViTEmbedding`: with weights copied in, and by properties where that is not possible."""

from course_utils import vision as reference
from course_utils.checks.model import Case, Draw, Exercise, Output, Recipe
from course_utils.checks.vit_embedding_mistakes import MISCONCEPTIONS
from course_utils.checks.vit_embedding_properties import PROPERTIES, WEIGHTS, made, what_is_trained
from course_utils.checks.vit_embedding_recipe import RIGHT, assemble


def _images(*shape: int):
    return lambda draw: {"images": draw.normal(*shape)}


def _photographs(draw: Draw) -> dict:
    """As they come from a file: pixel after pixel in memory, the channels of a pixel side by side."""
    return {"images": draw.normal(3, 4, 10, 2).permute(0, 3, 1, 2)}


CASES = (
    Case("wide images in colour", "class token, then projected patches, plus a position each", 3,
         _images(4, 3, 4, 6), make=made((4, 6), 2, 3, 10)),
    Case("img_size is a number", "a number stands for square images", 1, _images(2, 2, 6, 6), make=made(6, 2, 2, 7)),
    Case("tall images, larger patches", "height and width may differ", 2, _images(5, 1, 9, 6),
         make=made((9, 6), 3, 1, 4)),
    Case("one image", "the batch may have any size", 1, _images(1, 3, 2, 10), make=made((2, 10), 2, 3, 5)),
    Case("what is trained", "the projection, the class token and the positions get gradients, and nothing else is "
         "trained", 2, _images(3, 2, 4, 10), make=made((4, 10), 2, 2, 6), gradients_of=WEIGHTS,
         compare=what_is_trained),
    Case("channels last in memory, images are kept", "nothing is written to; no randomness", 1, _photographs,
         make=made((4, 10), 2, 2, 9), repeat=True, keeps_inputs=True),
)  # fmt: skip

VIT_EMBEDDING = Exercise(
    name="ViTEmbedding",
    notebook="07",
    reference=reference.ViTEmbedding,
    outputs=(Output("tokens", ("token", "feature")),),
    cases=CASES,
    properties=PROPERTIES,
    recipe=Recipe(assemble, RIGHT),
    misconceptions=MISCONCEPTIONS,
    hints=(
        "How many tokens has an image with N patches, and how many rows has the table of positions then?",
        "self.proj = nn.Linear(in_ch * patch * patch, d_model); class token and positions are nn.Parameter of shape "
        "(1, 1, d_model) and (1, 1 + N, d_model). A class token for every image of the batch: expand.",
        "x = self.proj(patches); x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], dim=1); "
        "return x + self.pos_embed",
    ),
)
