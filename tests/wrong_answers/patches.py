"""Wrong answers to patchify and vit_pool."""

import torch.nn.functional as F

from wrong_answers import wrong

# --- patchify


def _fits(images, p):
    if images.shape[2] % p or images.shape[3] % p:
        raise ValueError("p must divide the height and the width")


def _patches(misconception=None, check=_fits):
    """A wrong answer that refuses what cannot be divided."""

    def collect(cut):
        def patchify(images, p):
            check(images, p)
            return cut(images, p, *images.shape)

        patchify.__name__, patchify.__doc__ = cut.__name__.strip("_").title(), cut.__doc__
        return wrong("patchify", misconception)(patchify)

    return collect


@_patches("patch_view")
def _view(images, p, B, C, H, W):
    return images.view(B, (H // p) * (W // p), C * p * p)


@_patches("patch_view")
def _reshape_grid(images, p, B, C, H, W):
    return images.reshape(B, C, H // p, W // p, p, p).permute(0, 2, 3, 1, 4, 5).reshape(B, -1, C * p * p)


@_patches("patch_column_major")
def _columns_first(images, p, B, C, H, W):
    x = images.reshape(B, C, H // p, p, W // p, p)
    return x.permute(0, 4, 2, 1, 3, 5).reshape(B, -1, C * p * p)


@_patches("patch_channel_last")
def _channels_last(images, p, B, C, H, W):
    x = images.reshape(B, C, H // p, p, W // p, p)
    return x.permute(0, 2, 4, 3, 5, 1).reshape(B, -1, p * p * C)


@_patches("patch_unfold_mixes_channels")
def _unfold_twice(images, p, B, C, H, W):
    return images.unfold(2, p, p).unfold(3, p, p).reshape(B, -1, C * p * p)


@_patches("patch_hw_swapped")
def _sizes_swapped(images, p, B, C, H, W):
    x = images.reshape(B, C, W // p, p, H // p, p)
    return x.permute(0, 2, 4, 1, 3, 5).reshape(B, -1, C * p * p)


@wrong("patchify", "patch_hw_swapped")
def _(images, p):
    B, C, W, H = images.shape
    assert H % p == 0 and W % p == 0
    x = images.reshape(B, C, H // p, p, W // p, p)
    return x.permute(0, 2, 4, 1, 3, 5).flatten(1, 2).flatten(2)


@_patches("patch_dilated")
def _every_nth_pixel(images, p, B, C, H, W):
    x = images.reshape(B, C, p, H // p, p, W // p)
    return x.permute(0, 3, 5, 1, 2, 4).reshape(B, -1, C * p * p)


@wrong("patchify", "patch_channels_as_rows")
def _(images, p):
    B, H, W, C = images.shape
    x = images.reshape(B, H // p, p, W // p, p, C)
    return x.permute(0, 1, 3, 5, 2, 4).reshape(B, -1, C * p * p)


@_patches()
def _pixels_turned(images, p, B, C, H, W):
    """Rows and columns exchanged within each patch."""
    x = images.reshape(B, C, H // p, p, W // p, p)
    return x.permute(0, 2, 4, 1, 5, 3).reshape(B, -1, C * p * p)


@_patches()
def _in_columns(images, p, B, C, H, W):
    """The patches are the last axis."""
    return F.unfold(images, p, stride=p)


@_patches()
def _columns_reshaped(images, p, B, C, H, W):
    """reshape in place of the transpose."""
    return F.unfold(images, p, stride=p).reshape(B, -1, C * p * p)


@_patches()
def _overlapping(images, p, B, C, H, W):
    """No stride."""
    return F.unfold(images, p).transpose(1, 2)


@_patches()
def _not_flattened(images, p, B, C, H, W):
    """Patches are still images."""
    return images.unfold(2, p, p).unfold(3, p, p).permute(0, 2, 3, 1, 4, 5).flatten(1, 2)


@_patches()
def _a_grid(images, p, B, C, H, W):
    """Rows and columns of patches are two axes."""
    return images.unfold(2, p, p).unfold(3, p, p).permute(0, 2, 3, 1, 4, 5).flatten(3)


@_patches("patch_channels_apart")
def _channels_apart(images, p, B, C, H, W):
    """One patch for each channel."""
    return images.unfold(2, p, p).unfold(3, p, p).reshape(B, -1, p * p)


@_patches()
def _mean_channel(images, p, B, C, H, W):
    """Grey."""
    return F.unfold(images.mean(1, keepdim=True), p, stride=p).transpose(1, 2)


@_patches()
def _number_of_patches(images, p, B, C, H, W):
    """p is taken for the number of patches along a side."""
    h, w = H // p, W // p
    return images.reshape(B, C, p, h, p, w).permute(0, 2, 4, 1, 3, 5).reshape(B, p * p, C * h * w)


@_patches(check=lambda images, p: None)
def _cropped(images, p, B, C, H, W):
    """What does not fit is left out, without a word."""
    return F.unfold(images, p, stride=p).transpose(1, 2)


@_patches(check=lambda images, p: None)
def _padded(images, p, B, C, H, W):
    """What does not fit is filled up, without a word."""
    images = F.pad(images, (0, -W % p, 0, -H % p))
    return F.unfold(images, p, stride=p).transpose(1, 2)


# --- vit_pool


@wrong("vit_pool", "vpool_last")
def _(tokens):
    return tokens[:, -1]


@wrong("vit_pool", "vpool_first_patch")
def _(tokens):
    return tokens[:, 1, :]


@wrong("vit_pool", "vpool_mean_all")
def _(tokens):
    return tokens.mean(dim=1)


@wrong("vit_pool", "vpool_feature")
def _(tokens):
    return tokens[:, :, 0]


@wrong("vit_pool")
def _(tokens):
    """The mean over the patches."""
    return tokens[:, 1:].mean(1)


@wrong("vit_pool")
def _(tokens):
    """The largest."""
    return tokens.max(dim=1).values


@wrong("vit_pool")
def _(tokens):
    """The sum."""
    return tokens.sum(1)


@wrong("vit_pool")
def _(tokens):
    """The first image in place of the first token."""
    return tokens[0]


@wrong("vit_pool")
def _(tokens):
    """The axis stays."""
    return tokens[:, :1]


@wrong("vit_pool")
def _(tokens):
    """Everything in one row."""
    return tokens.flatten(1)


@wrong("vit_pool")
def _(tokens):
    """Normalised as well."""
    return F.normalize(tokens[:, 0], dim=-1)


@wrong("vit_pool")
def _(tokens):
    """Detached."""
    return tokens[:, 0].detach()


@wrong("vit_pool")
def _(tokens):
    """The first token of the first image, for everybody."""
    return tokens[0, 0].expand(len(tokens), -1)


@wrong("vit_pool")
def _(tokens):
    """The class token, but added to the mean of the patches."""
    return tokens[:, 0] + tokens[:, 1:].mean(1)


@wrong("vit_pool")
def _(tokens):
    """The mean over features."""
    return tokens.mean(-1)
