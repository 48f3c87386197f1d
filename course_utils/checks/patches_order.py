"""Misconceptions of `patchify` about the order of patches and of the numbers in them."""

from course_utils.checks.model import Misconception, Steps
from course_utils.checks.patches_recipe import accept, cut_by_reshape, forced, refuse, refuse_by_assert


def _arranged(*orders) -> tuple[Steps, ...]:
    return tuple({"arrange": lambda grid, order=order: grid.permute(order)} for order in orders)


def _finished(*ways) -> tuple[Steps, ...]:
    return tuple({"finish": way} for way in ways)


def _channels_first(patches, images, p):
    """All patches of channel 0, then all of channel 1, and so on."""
    return patches.unflatten(2, (-1, p * p)).transpose(1, 2).flatten(1, 2)


def _channels_second(patches, images, p):
    """The channels of a patch one after the other, each as a patch."""
    return patches.unflatten(2, (-1, p * p)).flatten(1, 2)


BATCH_HINTS = ("To which image does the first half of your result belong?", "Give two images, one all 0, one all 1.")

ORDER = (
    Misconception(
        "patch_column_major",
        "The patches are listed column by column instead of row by row.",
        ("Where does patch 1 lie in the image?", "Number the pixels and print the first number of every patch.",
         "the row of patches before the column: permute(0, 2, 4, ...), or the loop over rows outside"),
        _arranged((0, 3, 2, 1, 4, 5)),
        convention="patches go row by row: patch 1 is to the right of patch 0.",
    ),
    Misconception(
        "patch_order_reversed",
        "The patches are listed from the end: from below, or from the right.",
        ("Where does patch 0 lie in the image?", "Look for flip, or for a loop that counts down.",
         "from the top left to the bottom right"),
        ({"arrange": lambda grid: grid.permute(0, 2, 3, 1, 4, 5).flip(1)},
         {"arrange": lambda grid: grid.permute(0, 2, 3, 1, 4, 5).flip(2)},
         {"finish": lambda patches, images, p: patches.flip(1)}),
        convention="patches go row by row, from the top left.",
    ),
    Misconception(
        "patch_channel_last",
        "The channel does not come first within a patch: its pixels are flattened as (row, column, channel), say.",
        ("Which of the three varies slowest within a patch?",
         "Give an image whose channels are constant, 1, 2 and 3, and print a patch.",
         "permute(0, 2, 4, 1, 3, 5): of the last three axes the channel comes first"),
        _arranged((0, 2, 3, 4, 5, 1), (0, 2, 3, 4, 1, 5), (0, 2, 3, 5, 4, 1)),
        convention="a patch is flattened as (channel, row, column).",
    ),
    Misconception(
        "patch_transposed_inside",
        "Every patch is transposed: rows and columns have changed places within it.",
        ("Which pixel comes second in a patch, the one to the right or the one below?",
         "Number the pixels and print patch 0.",
         "unfold the height first, then the width; or row before column in permute"),
        _arranged((0, 2, 3, 1, 5, 4)),
        convention="a patch is flattened as (channel, row, column).",
    ),
    Misconception(
        "patch_unfold_mixes_channels",
        "The channels were left in front of the patches: a patch gets pieces of one channel from several squares.",
        ("Which axis comes after the batch when you flatten?",
         "After unfold the shape is (B, C, rows, columns, p, p). An image with one channel does not show the mistake.",
         "move the channels behind the patches first: permute(0, 2, 3, 1, 4, 5)"),
        ({"arrange": lambda grid: grid, "flatten": forced},
         {"refuse": accept, "arrange": lambda grid: grid, "flatten": forced}),
    ),
    Misconception(
        "patch_channels_apart",
        "Each channel is cut into patches of its own: there are C times as many patches, each with p · p numbers only.",
        ("How many patches has an image of 4 x 6 with three channels if p = 2?",
         "Which axes do you join: those that count patches, or those within a patch?",
         "(B, N, C·p·p): the channels of a patch belong into one row"),
        tuple({"refuse": check, "finish": way} for check in (refuse, accept)
              for way in (_channels_first, _channels_second)),
        convention="a patch has all channels: it is flattened as (channel, row, column).",
    ),
    Misconception(
        "patch_unfold_not_transposed",
        "F.unfold puts the patches last, as (B, C·p·p, N); its axes were not exchanged.",
        ("Which axis of the result counts patches?", "Print the shape that F.unfold gives.", ".transpose(1, 2)"),
        ({"refuse": accept, "finish": lambda patches, images, p: patches.transpose(1, 2)},
         {"refuse": accept, "finish": lambda patches, images, p: patches.transpose(1, 2).reshape(patches.shape)},
         *_finished(lambda patches, images, p: patches.transpose(1, 2),
                    lambda patches, images, p: patches.transpose(1, 2).reshape(patches.shape))),
        convention="the result is (batch, patch, pixel).",
    ),
    Misconception(
        "patch_channels_as_rows",
        "The axes of the image are taken for other ones: (B, H, W, C) where it is (B, C, H, W).",
        ("Which layout does PyTorch use for images?", "Print the shape of images.", "B, C, H, W = images.shape"),
        ({"enter": lambda images: images.permute(0, 3, 1, 2)},
         {"enter": lambda images: images.permute(0, 3, 1, 2), "refuse": refuse_by_assert},
         {"enter": lambda images: images.permute(0, 3, 1, 2), "refuse": accept, "cut": cut_by_reshape},
         {"enter": lambda images: images.permute(0, 3, 1, 2), "arrange": lambda grid: grid.permute(0, 2, 3, 4, 5, 1)},
         {"enter": lambda images: images.permute(0, 3, 1, 2), "refuse": accept, "cut": cut_by_reshape,
          "arrange": lambda grid: grid.permute(0, 2, 3, 4, 5, 1)},
         {"enter": lambda images: images.permute(0, 2, 3, 1)},
         {"enter": lambda images: images.permute(0, 2, 3, 1), "refuse": accept, "cut": cut_by_reshape}),
        convention="images are (B, C, H, W).",
    ),
    Misconception(
        "patch_batch_mixed",
        "The batch does not come first when the numbers are put together: a row has patches of several images.",
        (*BATCH_HINTS, "the batch stays axis 0 in permute; torch.stack(patches, dim=1)"),
        ({"finish": lambda patches, images, p: patches.transpose(0, 1).reshape(patches.shape)},
         {"finish": lambda patches, images, p: patches.transpose(0, 1)},
         {"refuse": accept, "finish": lambda patches, images, p: patches.transpose(0, 1)}),
        convention="the result is (batch, patch, pixel).",
    ),
    Misconception(
        "patch_batch_lost",
        "The batch is gone: the patches of all images stand in one list, or only one image was cut.",
        (*BATCH_HINTS, "reshape(B, (H // p) * (W // p), C * p * p)"),
        (*_finished(lambda patches, images, p: patches.flatten(0, 1), lambda patches, images, p: patches[0],
                    lambda patches, images, p: patches[:1]),
         {"enter": lambda images: images[:1].expand(images.shape)}),
        convention="the result is (batch, patch, pixel).",
    ),
    Misconception(
        "patch_not_flattened",
        "The patches are cut, but not flattened: the result has axes too many.",
        ("How many numbers has a patch, and in how many axes?", "Print the shape of your result.",
         ".reshape(B, (H // p) * (W // p), C * p * p)"),
        ({"flatten": lambda grid, shape, p: grid}, {"flatten": lambda grid, shape, p: grid.flatten(1, 2)},
         {"flatten": lambda grid, shape, p: grid.flatten(3)},
         {"flatten": lambda grid, shape, p: grid.flatten(4).flatten(1, 2)}),
        convention="the result is (batch, patch, pixel).",
    ),
    Misconception(
        "patch_channels_lost",
        "A patch holds one number for each pixel instead of one for each channel of each pixel.",
        ("How many numbers has a patch of a colour image?", "Look for an index or a mean over the channels.",
         "C * p * p numbers in each patch"),
        ({"enter": lambda images: images.mean(1, keepdim=True)}, {"enter": lambda images: images[:, :1]},
         {"finish": lambda patches, images, p: patches.unflatten(2, (-1, p * p)).mean(2)}),
    ),
    Misconception(
        "patch_detached",
        "The patches are cut off from the graph: no gradient flows back to the pixels.",
        ("Can one ask which pixels mattered?", "Look for detach, .data, numpy or torch.tensor(...).",
         "Stay with operations on the tensor itself."),
        _finished(lambda patches, images, p: patches.detach()),
    ),
)  # fmt: skip
