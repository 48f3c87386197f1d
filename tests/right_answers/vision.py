"""Right answers to the exercises of notebook 07."""

import torch
import torch.nn.functional as F
from torch import nn

from right_answers import right

# --- patchify


@right("patchify")
def _(images, p):
    """reshape and permute, an error of their own."""
    B, C, H, W = images.shape
    if H % p != 0 or W % p != 0:
        raise ValueError(f"{p} does not divide {H} and {W}")
    x = images.reshape(B, C, H // p, p, W // p, p)
    return x.permute(0, 2, 4, 1, 3, 5).reshape(B, -1, C * p * p)


@right("patchify")
def _(images, p):
    """The library's im2col, whose patches lie in columns."""
    assert images.size(2) % p == 0 and images.size(3) % p == 0, "p must divide height and width"
    return F.unfold(images, kernel_size=p, stride=p).transpose(1, 2)


@right("patchify")
def _(images, p):
    """unfold twice, channels moved behind the grid."""
    B, C, H, W = images.shape
    if H % p or W % p:
        raise RuntimeError(f"an image of {H} x {W} cannot be cut into squares of {p}")
    patches = images.unfold(2, p, p).unfold(3, p, p)
    return patches.permute(0, 2, 3, 1, 4, 5).contiguous().view(B, -1, C * p * p)


@right("patchify")
def _(images, p):
    """Patch by patch."""
    _, _, H, W = images.shape
    if H % p + W % p:
        raise ValueError("sizes do not fit")
    rows = [
        images[:, :, top : top + p, left : left + p].flatten(1) for top in range(0, H, p) for left in range(0, W, p)
    ]
    return torch.stack(rows, dim=1)


@right("patchify")
def _(images, p):
    """einsum to move the axes; sizes that do not fit are found by unflatten."""
    x = images.unflatten(3, (images.shape[3] // p, p)).unflatten(2, (images.shape[2] // p, p))
    return torch.einsum("bchpwq->bhwcpq", x).flatten(3).flatten(1, 2)


@right("patchify")
def _(images, p):
    """pixel_unshuffle, which checks the sizes itself."""
    return F.pixel_unshuffle(images, p).flatten(2).mT


@right("patchify")
def _(images, p):
    """A convolution whose kernels each pick one pixel."""
    C = images.shape[1]
    if any(size % p for size in images.shape[2:]):
        raise ValueError
    pick = torch.eye(C * p * p, dtype=images.dtype).view(-1, C, p, p)
    return F.conv2d(images, pick, stride=p).flatten(2).transpose(1, 2)


# --- ViTEmbedding


def _sizes(img_size):
    return img_size if isinstance(img_size, tuple | list) else (img_size, img_size)


@right("ViTEmbedding")
class UnfoldedEmbedding(nn.Module):
    """F.unfold, expand, parameters that start at zero."""

    def __init__(self, img_size, patch, in_ch, d_model):
        super().__init__()
        if isinstance(img_size, int):
            img_size = (img_size, img_size)
        self.patch = patch
        n = (img_size[0] // patch) * (img_size[1] // patch)
        self.proj = nn.Linear(in_ch * patch**2, d_model)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, d_model))
        self.pos_embed = nn.Parameter(torch.zeros(1, n + 1, d_model))

    def forward(self, images):
        x = self.proj(F.unfold(images, self.patch, stride=self.patch).transpose(1, 2))
        x = torch.cat((self.cls_token.expand(x.size(0), -1, -1), x), dim=1)
        return x + self.pos_embed


@right("ViTEmbedding")
class RepeatedToken(nn.Module):
    """repeat in place of expand: the gradients are the same. Dropout that is off in evaluation."""

    def __init__(self, img_size, patch, in_ch, d_model, dropout=0.1):
        super().__init__()
        height, width = _sizes(img_size)
        if height % patch or width % patch:
            raise ValueError(f"patches of {patch} do not tile {height} x {width}")
        self.p, self.grid = patch, (height // patch, width // patch)
        self.proj = nn.Linear(in_ch * patch * patch, d_model)
        self.cls_token = nn.Parameter(torch.randn(1, 1, d_model))
        self.pos_embed = nn.Parameter(torch.randn(1, 1 + self.grid[0] * self.grid[1], d_model))
        self.drop = nn.Dropout(dropout)

    def forward(self, images):
        B, C, _, _ = images.shape
        rows, columns = self.grid
        x = images.view(B, C, rows, self.p, columns, self.p).permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)
        cls = self.cls_token.repeat(B, 1, 1)
        return self.drop(torch.cat([cls, self.proj(x)], dim=1) + self.pos_embed)


@right("ViTEmbedding")
class FilledEmbedding(nn.Module):
    """A tensor made beforehand and filled token by token; positions added to each part before."""

    def __init__(self, img_size, patch, in_ch, d_model):
        super().__init__()
        height, width = _sizes(img_size)
        self.patch, self.d = patch, d_model
        self.corners = [(i, j) for i in range(0, height, patch) for j in range(0, width, patch)]
        self.proj = nn.Linear(in_ch * patch * patch, d_model)
        self.cls_token = nn.Parameter(torch.empty(1, 1, d_model))
        self.pos_embed = nn.Parameter(torch.empty(1, 1 + len(self.corners), d_model))
        nn.init.trunc_normal_(self.cls_token, std=0.02)
        nn.init.trunc_normal_(self.pos_embed, std=0.02)

    def forward(self, images):
        out = images.new_zeros(len(images), 1 + len(self.corners), self.d)
        out[:, 0] = self.cls_token[0, 0] + self.pos_embed[0, 0]
        for n, (i, j) in enumerate(self.corners, start=1):
            pixels = images[:, :, i : i + self.patch, j : j + self.patch].reshape(len(images), -1)
            out[:, n] = self.proj(pixels) + self.pos_embed[0, n]
        return out


@right("ViTEmbedding")
class ConvEmbedding(nn.Module):
    """A convolution with a stride, with copy_from."""

    def __init__(self, img_size, patch, in_ch, d_model):
        super().__init__()
        height, width = _sizes(img_size)
        self.proj = nn.Conv2d(in_ch, d_model, kernel_size=patch, stride=patch)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, d_model))
        self.pos_embed = nn.Parameter(torch.zeros(1, (height // patch) * (width // patch) + 1, d_model))

    @torch.no_grad()
    def copy_from(self, reference):
        self.proj.weight.copy_(reference.proj.weight.view_as(self.proj.weight))
        self.proj.bias.copy_(reference.proj.bias)
        self.cls_token.copy_(reference.cls_token)
        self.pos_embed.copy_(reference.pos_embed)

    def forward(self, images):
        x = self.proj(images).flatten(2).transpose(1, 2)
        return torch.cat([self.cls_token.expand(len(x), -1, -1), x], dim=1) + self.pos_embed


@right("ViTEmbedding")
class PositionTable(nn.Module):
    """Positions and the class token in embeddings, einsum for the pixels, with copy_from."""

    def __init__(self, img_size, patch, in_ch, d_model):
        super().__init__()
        height, width = _sizes(img_size)
        self.patch = patch
        self.pixels = nn.Parameter(torch.randn(d_model, in_ch, patch, patch) * 0.1)
        self.shift = nn.Parameter(torch.zeros(d_model))
        self.cls = nn.Embedding(1, d_model)
        self.pos = nn.Embedding(1 + height * width // patch**2, d_model)

    def copy_from(self, reference):
        self.pixels.data = reference.proj.weight.data.view(self.pixels.shape).clone()
        self.shift.data = reference.proj.bias.data.clone()
        self.cls.weight.data = reference.cls_token.data[0].clone()
        self.pos.weight.data = reference.pos_embed.data[0].clone()

    def forward(self, images):
        p = self.patch
        patches = images.unfold(2, p, p).unfold(3, p, p)
        x = torch.einsum("bchwpq,dcpq->bhwd", patches, self.pixels).flatten(1, 2) + self.shift
        first = self.cls(torch.zeros(len(images), 1, dtype=torch.long))
        return torch.hstack([first, x]) + self.pos(torch.arange(x.shape[1] + 1))


@right("ViTEmbedding")
class ConvWithoutCopy(nn.Module):
    """A convolution under another name: only properties can be checked."""

    def __init__(self, img_size, patch, in_ch, d_model):
        super().__init__()
        height, width = _sizes(img_size)
        self.conv = nn.Conv2d(in_ch, d_model, patch, patch)
        self.cls_token = nn.Parameter(torch.randn(1, 1, d_model) * 0.02)
        self.pos_embed = nn.Parameter(torch.randn(1, 1 + (height // patch) * (width // patch), d_model) * 0.02)

    def forward(self, images):
        x = self.conv(images).flatten(2).mT
        return torch.cat([self.cls_token.repeat(len(x), 1, 1), x], 1) + self.pos_embed


# --- vit_pool


@right("vit_pool")
def _(tokens):
    """The usual index."""
    return tokens[:, 0]


@right("vit_pool")
def _(tokens):
    """All three axes, on a copy."""
    return tokens[:, 0, :].clone()


@right("vit_pool")
def _(tokens):
    """narrow and squeeze of that axis alone."""
    return tokens.narrow(1, 0, 1).squeeze(1)


@right("vit_pool")
def _(tokens):
    """Weights of 1 and 0."""
    weights = torch.zeros(tokens.shape[1], dtype=tokens.dtype)
    weights[0] = 1
    return torch.einsum("n,bnd->bd", weights, tokens)


@right("vit_pool")
def _(tokens):
    """Image by image."""
    return torch.stack([image[0] for image in tokens])


@right("vit_pool")
def _(tokens):
    """Taken apart: the first, and the rest that is not wanted."""
    first, *_ = tokens.unbind(dim=1)
    return first


@right("vit_pool")
def _(tokens):
    """Indexed by a tensor, in double precision."""
    return tokens.double().index_select(1, torch.tensor([0])).view(len(tokens), -1)
