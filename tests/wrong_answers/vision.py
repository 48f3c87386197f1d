"""Wrong answers to ViTEmbedding, made from right ones with a method exchanged."""

import torch
import torch.nn.functional as F
from torch import nn

from wrong_answers import wrong


class Embedding(nn.Module):
    """A right answer."""

    def __init__(self, img_size, patch, in_ch, d_model):
        super().__init__()
        height, width = (img_size, img_size) if isinstance(img_size, int) else img_size
        self.p, self.d = patch, d_model
        self.proj = nn.Linear(in_ch * patch * patch, d_model)
        self.make_cls(d_model)
        self.make_pos(self.count(height, width, patch), d_model)

    def count(self, height, width, p):
        return (height // p) * (width // p)

    def make_cls(self, d):
        self.cls_token = nn.Parameter(torch.randn(1, 1, d) * 0.02)

    def make_pos(self, n, d):
        self.pos_embed = nn.Parameter(torch.randn(1, 1 + n, d) * 0.02)

    def patches(self, images):
        return self.proj(F.unfold(images, self.p, stride=self.p).transpose(1, 2))

    def token(self, B):
        return self.cls_token.expand(B, -1, -1)

    def join(self, token, x):
        return torch.cat([token, x], dim=1)

    def place(self, x):
        return x + self.pos_embed

    def forward(self, images):
        return self.place(self.join(self.token(len(images)), self.patches(images)))


def _vit(misconception, **methods):
    """A wrong answer: the right one with some methods exchanged."""
    wrong("ViTEmbedding", misconception)(type("ViTEmbedding", (Embedding,), methods))


def _cls_unplaced(self, images):
    x = self.patches(images) + self.pos_embed[:, 1:]
    return self.join(self.token(len(x)), x)


def _pos_for_patches_only(self, n, d):
    self.pos_embed = nn.Parameter(torch.zeros(1, n, d))


def _placed_before(self, images):
    return self.join(self.token(len(images)), self.patches(images) + self.pos_embed)


def _shifted(self, images):
    x = self.patches(images) + self.pos_embed[:, :-1]
    return self.join(self.token(len(x)) + self.pos_embed[:, -1:], x)


def _one_vector(self, n, d):
    self.pos_embed = nn.Parameter(torch.randn(1, 1, d))


def _plain_cls(self, d):
    self.d = d


def _batch_cls(self, d, batch_size=4):
    self.cls_token = nn.Parameter(torch.randn(batch_size, 1, d))


def _batch_pos(self, n, d, batch_size=4):
    self.pos_embed = nn.Parameter(torch.randn(batch_size, n + 1, d))


def _overwrites(self, token, x):
    x = x.clone()
    x[:, :1] = token
    return x


def _buffer_pos(self, n, d):
    self.register_buffer("pos_embed", torch.randn(1, 1 + n, d) * 0.02)


def _frozen_cls(self, d):
    self.cls_token = nn.Parameter(torch.zeros(1, 1, d), requires_grad=False)


def _view_patches(self, images):
    return self.proj(images.reshape(len(images), -1, self.proj.in_features))


def _channels_last_patches(self, images):
    x = images.unfold(2, self.p, self.p).unfold(3, self.p, self.p)
    return self.proj(x.permute(0, 2, 3, 4, 5, 1).flatten(3).flatten(1, 2))


def _column_major_patches(self, images):
    x = images.unfold(2, self.p, self.p).unfold(3, self.p, self.p)
    return self.proj(x.permute(0, 3, 2, 1, 4, 5).flatten(3).flatten(1, 2))


def _batch_shared(self, token, x):
    return torch.cat([token, x.mean(0, keepdim=True).expand_as(x)], dim=1)


def _forgets_super(self, img_size, patch, in_ch, d_model):
    self.proj = nn.Linear(in_ch * patch * patch, d_model)


def _square_size(self, img_size, patch, in_ch, d_model):
    nn.Module.__init__(self)
    self.p, self.d = patch, d_model
    self.proj = nn.Linear(in_ch * patch * patch, d_model)
    self.make_cls(d_model)
    self.make_pos((img_size // patch) ** 2, d_model)


_vit("vit_pos_before_cls", forward=_cls_unplaced)
_vit("vit_pos_before_cls", forward=_placed_before, make_pos=_pos_for_patches_only)
_vit("vit_pos_shifted", forward=_shifted)
_vit("vit_no_pos", place=lambda self, x: x)
_vit("vit_pos_one_vector", make_pos=_one_vector)
_vit("vit_cls_not_parameter", make_cls=_plain_cls, token=lambda self, B: torch.zeros(B, 1, self.d))
_vit("vit_cls_random", make_cls=_plain_cls, token=lambda self, B: torch.randn(B, 1, self.d))
_vit("vit_cls_random", token=lambda self, B: torch.randn(1, 1, self.d).expand(B, -1, -1))
_vit("vit_square_only", count=lambda self, height, width, p: (height // p) ** 2)
_vit("vit_cls_replaces_patch", join=_overwrites, place=lambda self, x: x + self.pos_embed[:, : x.shape[1]])
_vit(
    "vit_cls_replaces_patch",
    join=lambda self, token, x: torch.cat([token, x[:, 1:]], 1),
    make_pos=_pos_for_patches_only,
)
_vit("vit_batch_sized_params", make_cls=_batch_cls, token=lambda self, B: self.cls_token)
_vit("vit_batch_sized_params", make_cls=_batch_cls, make_pos=_batch_pos, token=lambda self, B: self.cls_token)

_vit(None, __init__=_square_size)
_vit(None, join=lambda self, token, x: torch.cat([x, token], 1))
_vit(None, place=lambda self, x: x * self.pos_embed)
_vit(None, place=lambda self, x: torch.cat([x, self.pos_embed.expand(len(x), -1, -1)], dim=-1))
_vit(None, place=lambda self, x: F.dropout(x + self.pos_embed, 0.1))
_vit(None, place=lambda self, x: F.layer_norm(x + self.pos_embed, x.shape[-1:]))
_vit(None, place=lambda self, x: x * self.d**0.5 + self.pos_embed)
_vit("vit_pos_reversed", place=lambda self, x: x + self.pos_embed.flip(1))
_vit(None, place=lambda self, x: x + self.pos_embed[:, :1])
_vit(None, place=lambda self, x: x + self.pos_embed.detach())
_vit(None, make_pos=_buffer_pos)
_vit(None, make_cls=_frozen_cls)
_vit(None, token=lambda self, B: self.cls_token.data.expand(B, -1, -1))
_vit(None, token=lambda self, B: torch.zeros_like(self.cls_token).expand(B, -1, -1))
_vit(None, patches=_view_patches)
_vit(None, patches=_channels_last_patches)
_vit(None, patches=_column_major_patches)
_vit(None, patches=lambda self, images: Embedding.patches(self, images).relu())
_vit(None, patches=lambda self, images: Embedding.patches(self, images.transpose(2, 3)))
_vit("vit_batch_averaged", join=_batch_shared)
_vit(None, forward=lambda self, images: self.patches(images) + self.pos_embed[:, 1:])
_vit(None, forward=lambda self, images: Embedding.forward(self, images)[:, 0])
_vit(None, __init__=_forgets_super)


class Conv(nn.Module):
    """A convolution under another name: properties have to find what is wrong."""

    def __init__(self, img_size, patch, in_ch, d_model):
        super().__init__()
        height, width = (img_size, img_size) if isinstance(img_size, int) else img_size
        self.conv = nn.Conv2d(in_ch, d_model, patch, patch)
        self.cls_token = nn.Parameter(torch.randn(1, 1, d_model) * 0.02)
        self.pos_embed = nn.Parameter(torch.randn(1, 1 + (height // patch) * (width // patch), d_model) * 0.02)

    def tokens(self, images):
        return self.conv(images).flatten(2).transpose(1, 2)

    def forward(self, images):
        x = self.tokens(images)
        return torch.cat([self.cls_token.expand(len(x), -1, -1), x], dim=1) + self.pos_embed


def _conv(**methods):
    wrong("ViTEmbedding")(type("ViTEmbedding", (Conv,), methods))


def _conv_unplaced(self, images):
    x = self.tokens(images)
    return torch.cat([self.cls_token.expand(len(x), -1, -1), x], dim=1)


def _conv_cls_unplaced(self, images):
    x = self.tokens(images) + self.pos_embed[:, 1:]
    return torch.cat([self.cls_token.expand(len(x), -1, -1), x], dim=1)


_conv(forward=_conv_unplaced)
_conv(forward=_conv_cls_unplaced)
_conv(forward=lambda self, images: Conv.forward(self, images).detach())
_conv(tokens=lambda self, images: self.conv(images).reshape(len(images), -1, self.cls_token.shape[-1]))
_conv(tokens=lambda self, images: self.conv(images).transpose(2, 3).flatten(2).transpose(1, 2))
