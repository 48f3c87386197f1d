"""Misconceptions of `patchify` about which pixels make a patch, and about sizes that do not fit."""

import torch
import torch.nn.functional as F

from course_utils.checks.model import Misconception, Steps
from course_utils.checks.patches_order import ORDER
from course_utils.checks.patches_recipe import accept, cut, forced, refuse, reshaped


def _sizes(images, p):
    """B, C, the number of patches, and the numbers in each."""
    B, C, H, W = images.shape
    return B, C, (H // p) * (W // p), C * p * p


def _wholes(*functions) -> tuple[Steps, ...]:
    return tuple({"whole": function} for function in functions)


def _strips(read, patches=True, numbers=True):
    """The image in another shape; patches, numbers: which of the two sizes is given, and not left to -1."""

    def run(images, p):
        B, _, N, size = _sizes(images, p)
        return read(images, (B, N if patches else -1, size if numbers else -1))

    return run


def _strips_of_channels(images, p):
    B, C, N, size = _sizes(images, p)
    return images.reshape(B, C, N, p * p).transpose(1, 2).reshape(B, N, size)


def _strips_of_pixels(images, p):
    B, _, N, size = _sizes(images, p)
    return images.permute(0, 2, 3, 1).reshape(B, N, size)


def _swapped_sizes(images, p):
    B, C, W, H = images.shape
    return reshaped(B, C, H // p, W // p, p)(images)


def _squares(rows, columns, flat=lambda patch: patch.flatten(1)):
    """Square after square in two loops; rows and columns: which of the sizes (2: H, 3: W) they count."""

    def run(images, p):
        found = []
        for i in range(images.shape[rows] // p):
            for j in range(images.shape[columns] // p):
                found.append(flat(images[:, :, i * p : (i + 1) * p, j * p : (j + 1) * p]))
        return torch.stack(found, dim=1)

    return run


def _flat_by_reshape(patch):
    return patch.reshape(len(patch), -1)


def _one_size(axis):
    def cut_square(images, p):
        B, C, n = *images.shape[:2], images.shape[axis] // p
        return reshaped(B, C, n, n, p)(images)

    def flatten_square(grid, shape, p):
        return grid.reshape(shape[0], (shape[axis] // p) ** 2, shape[1] * p * p)

    return {"refuse": accept, "cut": cut_square}, {"flatten": flatten_square}


def _parts(images, p):
    """p parts of the height and of the width: (B, C, part, row, part, column)."""
    return images.unflatten(2, (p, -1)).unflatten(4, (p, -1))


def _padded(images, p, mode="constant"):
    H, W = images.shape[2:]
    return cut(F.pad(images, (0, -W % p, 0, -H % p), mode), p)


def _unknown(rows=True):
    def cut_with_unknown(images, p):
        B, C, H, W = images.shape
        return reshaped(B, C, -1 if rows else H // p, W // p if rows else -1, p)(images)

    return cut_with_unknown


def _unknown_inside(images, p):
    B, C, H, W = images.shape
    return reshaped(B, C, H // p, W // p, p, -1, p)(images)


def _only_height(H, W, p):
    refuse(H, H, p)


def _only_width(H, W, p):
    refuse(W, W, p)


def _pixels_only(H, W, p):
    refuse(H * W, H * W, p * p)


def _both(H, W, p):
    if H % p and W % p:
        raise ValueError


SQUARES_HINTS = (
    "Which pixels of an image of 4 x 6 belong to patch 0 if p = 2?",
    "Number the pixels, torch.arange(24.).view(1, 1, 4, 6), and print patch 0.",
)
RIGHT_LINE = "images.reshape(B, C, H // p, p, W // p, p).permute(0, 2, 4, 1, 3, 5)"
REFUSE_LINE = "if H % p or W % p: raise ValueError(...), before anything is cut"

SQUARES = (
    Misconception(
        "patch_view",
        "The image is only read anew with view or reshape: a patch is a strip of pixel rows, not a square.",
        (*SQUARES_HINTS, RIGHT_LINE),
        _wholes(*(_strips(read, *given) for read in (torch.Tensor.reshape, torch.Tensor.view)
                  for given in ((True, False), (False, True), (True, True))),
                _strips_of_channels, _strips_of_pixels),
    ),
    Misconception(
        "patch_axes_confused",
        "Axes that count patches and axes that count pixels are mixed up: pixels of several squares share a patch.",
        ("Which of the six axes count patches, and which count pixels?",
         "reshape and unfold leave the axes in different orders. Write a name above each.",
         RIGHT_LINE),
        tuple({"arrange": lambda grid, order=order: grid.permute(order), "flatten": forced}
              for order in ((0, 2, 4, 1, 3, 5), (0, 2, 1, 3, 4, 5), (0, 2, 1, 4, 3, 5),
                            (0, 2, 4, 3, 1, 5))),
    ),
    Misconception(
        "patch_dilated",
        "A patch takes pixels that lie apart instead of a square: block and pixel have changed places.",
        ("How far apart are the pixels of a patch?",
         "Which comes first when the height is cut, the number of blocks or the size of a block?",
         "H // p blocks of p pixels: reshape(B, C, H // p, p, W // p, p)"),
        ({"cut": lambda images, p: _parts(images, p).permute(0, 1, 3, 5, 2, 4)},
         {"cut": lambda images, p: _parts(images, p).permute(0, 1, 2, 4, 3, 5), "flatten": forced},
         {"arrange": lambda grid: grid.permute(0, 4, 5, 1, 2, 3), "flatten": forced},
         {"arrange": lambda grid: grid.permute(0, 4, 5, 1, 2, 3)}),
    ),
    Misconception(
        "patch_p_counts_patches",
        "p is taken for the number of patches along a side, not for the size of a patch.",
        ("Is p a number of patches or of pixels?", "How many patches does an image of 6 x 10 have if p = 2?",
         "H // p rows of patches, each patch p pixels high"),
        ({"cut": lambda images, p: _parts(images, p).permute(0, 1, 2, 4, 3, 5)},),
    ),
    Misconception(
        "patch_overlapping",
        "The patches overlap: the next one does not start p pixels further.",
        ("How far is it from one patch to the next?", "Look for the step (stride) of your unfold or of your range.",
         "unfold(2, p, p), range(0, H, p), or stride=p"),
        ({"cut": lambda images, p: images.unfold(2, p, 1).unfold(3, p, 1)},
         {"refuse": accept, "cut": lambda images, p: images.unfold(2, p, 1).unfold(3, p, 1)},
         {"cut": lambda images, p: images.unfold(2, p, max(1, p // 2)).unfold(3, p, max(1, p // 2))}),
    ),
    Misconception(
        "patch_hw_swapped",
        "Height and width have changed places; images that are square do not show it.",
        ("Which axis of (B, C, H, W) is the height?", "Try an image of 4 x 8.", "B, C, H, W = images.shape"),
        ({"cut": _swapped_sizes},
         {"enter": lambda images: images.transpose(2, 3)},
         *_wholes(_squares(3, 2), _squares(3, 2, _flat_by_reshape))),
    ),
    Misconception(
        "patch_square_only",
        "One side of the image is used for both: only square images have as many rows of patches as columns.",
        ("How many rows of patches has an image of 4 x 8, and how many columns?", "Try an image of 4 x 8.",
         "H // p rows and W // p columns"),
        (*_one_size(2), *_one_size(3),
         *_wholes(_squares(2, 2), _squares(3, 3), _squares(2, 2, _flat_by_reshape), _squares(3, 3, _flat_by_reshape))),
    ),
)  # fmt: skip

REMAINDER = (
    Misconception(
        "patch_remainder_dropped",
        "Where p does not divide the height or the width, the pixels that are left over are dropped in silence.",
        ("What becomes of the last two rows of an image of 6 x 8 if p = 4?",
         "unfold and // drop them without a word.", REFUSE_LINE),
        tuple({"refuse": way} for way in (accept, _only_height, _only_width, _pixels_only, _both)),
        convention="p must divide the height and the width; anything else raises an error.",
    ),
    Misconception(
        "patch_remainder_padded",
        "Where p does not divide the height or the width, the image is filled up with pixels that nobody gave.",
        ("What should happen with an image of 6 x 8 if p = 4?", "Look for pad.", REFUSE_LINE),
        ({"refuse": accept, "cut": _padded},
         {"refuse": accept, "cut": lambda images, p: _padded(images, p, "replicate")},
         {"refuse": _only_height, "cut": _padded}, {"refuse": _only_width, "cut": _padded}),
        convention="p must divide the height and the width; anything else raises an error.",
    ),
    Misconception(
        "patch_remainder_mixed",
        "Where p does not divide the height or the width, reshape finds some other shape, and pixels change rows.",
        ("What does -1 in a reshape stand for if p does not divide the image?", "Try an image of 8 x 6 with p = 4.",
         REFUSE_LINE),
        ({"refuse": accept, "cut": _unknown()}, {"refuse": accept, "cut": _unknown(rows=False)},
         {"refuse": accept, "cut": _unknown_inside}),
        convention="p must divide the height and the width; anything else raises an error.",
    ),
)  # fmt: skip

MISCONCEPTIONS = (*SQUARES, *ORDER, *REMAINDER)
