"""The recipe of `patchify`: a right answer in steps."""


def assemble(s):
    """patchify from its steps."""

    def run(images, p):
        seen = s.enter(images)
        s.refuse(*seen.shape[2:], p)
        grid = s.arrange(s.cut(seen, p))
        return s.finish(s.flatten(grid, seen.shape, p), images, p)

    return run


def refuse(H, W, p):
    """Raise an error for sizes that p does not divide."""
    if H % p or W % p:
        raise ValueError("p does not divide the image")


def refuse_by_assert(H, W, p):
    """The same with another type of error."""
    assert H % p == 0
    assert W % p == 0


def accept(H, W, p):
    """Any size."""


def cut(images, p):
    """(B, C, rows of patches, columns of patches, row in the patch, column in the patch)."""
    return images.unfold(2, p, p).unfold(3, p, p)


def reshaped(B, C, rows, columns, p, *inner):
    """The same by reshape, with numbers of rows and columns of one's own."""
    in_row, in_column = inner or (p, p)
    return lambda images: images.reshape(B, C, rows, in_row, columns, in_column).permute(0, 1, 2, 4, 3, 5)


def cut_by_reshape(images, p):
    """The same as `cut`, but for sizes that p does not divide."""
    B, C, H, W = images.shape
    return reshaped(B, C, H // p, W // p, p)(images)


RIGHT = {
    "enter": lambda images: images,
    "refuse": refuse,
    "cut": cut,
    "arrange": lambda grid: grid.permute(0, 2, 3, 1, 4, 5),
    "flatten": lambda grid, shape, p: grid.flatten(3).flatten(1, 2),
    "finish": lambda patches, images, p: patches,
}


def forced(grid, shape, p):
    """Numbers in whatever order, in the shape that was asked for."""
    B, C, H, W = shape
    return grid.reshape(B, (H // p) * (W // p), C * p * p)
