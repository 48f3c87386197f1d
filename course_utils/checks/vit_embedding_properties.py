"""Properties of `ViTEmbedding` that hold for any weights, for answers into which none can be copied."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from course_utils.checks.compare import close, same_form, same_values
from course_utils.checks.model import Case, Draw
from course_utils.checks.modules import construction
from course_utils.checks.values import Call, Construction, Inside, Outcome

WEIGHTS = ("proj.weight", "proj.bias", "cls_token", "pos_embed")


def trained(inside: Inside) -> int:
    """How many numbers a module trains."""
    return sum(math.prod(shape) for name, shape in inside.parameters.items() if name not in inside.frozen)


def what_is_trained(call: Call, got: Outcome, want: Outcome) -> str:
    """As many numbers as there should be, and a gradient for each."""
    mine, right = trained(got.inside), trained(want.inside)
    if mine != right:
        made = ", ".join(f"{name}={value}" for name, value in call.construction.arguments.items())
        return (
            f"Your module trains {mine} numbers; with {made} the projection with its bias, the class token and the "
            f"positions have {right}."
        )
    if got.gradient_error is not None or want.gradient_error is not None:
        return "" if got.gradient_error and want.gradient_error else "No gradient could be computed."
    if set(got.idle) != set(want.idle):
        names = ", ".join(f"`{name}`" for name in got.idle)
        return f"No gradient reaches {names}: it would never learn."
    if got.inside.loaded and not same_values(got.value, want.value):
        return ""  # what is wrong with the numbers, other cases tell
    # These gradients do not depend on the weights: they may be compared where none were copied, too.
    for name, gradient in got.gradients.items():
        wanted = want.gradients.get(name)
        # A convolution's weight has another shape; that a gradient reaches it was seen above.
        if same_form(gradient, wanted) and not same_values(gradient, wanted):
            return f"The gradient that reaches `{name}` is not right: a part is missing, or changed on its way."
    return ""


def made(img_size: int | tuple[int, int], patch: int, in_ch: int, d_model: int) -> Callable[[Draw], Construction]:
    """A module with random weights copied in."""
    arguments = {"img_size": img_size, "patch": patch, "in_ch": in_ch, "d_model": d_model}
    return lambda draw: construction("ViTEmbedding", draw, **arguments)


def _images(*shape: int):
    return lambda draw: {"images": draw.normal(*shape)}


def _learns(call: Call, got: Outcome, want: Outcome) -> str:
    """`what_is_trained`, and whether two calls agree."""
    return what_is_trained(call, got, want) or ("" if _repeats(got) else "Two calls with the same images differ.")


def _repeats(got: Outcome) -> bool:
    second = got.second
    return second is None or (same_form(second.value, got.value) and _same(second.value, got.value))


def _same(a: Tensor, b: Tensor) -> bool:
    return bool(close(a, b).all())


def _class_token_first(call: Call, got: Outcome, want: Outcome) -> str:
    first = got.value[:, 0]
    if not _same(first, first[:1].expand_as(first)):
        return "Token 0 is not the same for all images of a batch: the class token comes first, and is shared."
    if not _same(got.more[0][:, 0], first):
        return "Token 0 changes with the images: the class token comes first, and has nothing of a patch yet."
    return ""


def _other_images(arguments: dict) -> tuple[dict, ...]:
    return ({"images": arguments["images"].flip(0) * 2 + 1},)


_PLACES = ((0, 0), (0, 2), (1, 1), (1, 3))  # rows and columns of patches in a grid of 2 x 4


def _changed_squares(arguments: dict) -> tuple[dict, ...]:
    """One square of the second image is changed, in each call another one."""
    changed = []
    for row, column in _PLACES:
        images = arguments["images"].clone()
        images[1, :, 3 * row : 3 * row + 3, 3 * column : 3 * column + 3] += 3.0
        changed.append({"images": images})
    return tuple(changed)


def _own_patch(call: Call, got: Outcome, want: Outcome) -> str:
    for (row, column), other in zip(_PLACES, got.more, strict=True):
        moved = ((other - got.value).abs() > 1e-5).any(-1)
        expected = torch.zeros_like(moved)
        expected[1, 1 + 4 * row + column] = True
        if not torch.equal(moved, expected):
            tokens = ", ".join(str(i) for i in moved.any(0).nonzero().flatten().tolist()) or "none"
            return (
                f"When only the patch in row {row}, column {column} of image 1 changes, its token must change and no "
                f"other; in your module the tokens that change are: {tokens}."
            )
    return ""


def _scaled(arguments: dict) -> tuple[dict, ...]:
    return ({"images": 2 * arguments["images"]}, {"images": 0 * arguments["images"]})


def _tiled(draw: Draw) -> dict:
    """Images whose patches are all the same."""
    return {"images": draw.normal(2, 1, 2, 2).repeat(1, 1, 3, 3)}


def _affine(call: Call, got: Outcome, want: Outcome) -> str:
    twice, nothing = got.more
    of_pixels = got.value - nothing
    if not _same(twice - got.value, of_pixels):
        return (
            "When all pixels double, the part of a token that comes from its patch does not: something is not linear."
        )
    if not _same(of_pixels[:, 1:], of_pixels[:, 1:2].expand_as(of_pixels[:, 1:])):
        return "Of equal patches, not the same is left at every place when what an image of zeros gives is subtracted."
    return ""


PROPERTIES = (
    Case("what is trained", "the projection, the class token and the positions get gradients, and nothing else is "
         "trained; nothing is written to; no randomness", 3, _images(4, 3, 4, 6), make=made((4, 6), 2, 3, 10),
         more=lambda a: ({"images": 0 * a["images"]},), gradients_of=WEIGHTS, repeat=True, keeps_inputs=True,
         compare=_learns),
    Case("the class token", "token 0 is shared by all images", 2, _images(3, 2, 6, 4), make=made((6, 4), 2, 2, 5),
         more=_other_images, compare=_class_token_first),
    Case("every patch has its token", "patches go row by row, one token each", 3, _images(2, 2, 6, 12),
         make=made((6, 12), 3, 2, 8), more=_changed_squares, compare=_own_patch),
    Case("img_size is a number, equal patches", "a number stands for square images; the projection is linear, and "
         "positions are added", 2, _tiled, make=made(6, 2, 1, 7), more=_scaled, compare=_affine),
)  # fmt: skip
