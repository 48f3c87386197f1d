"""The recipe of `ViTEmbedding`: a right answer in steps."""

import torch
from torch import nn

from course_utils.checks import patches_recipe
from course_utils.checks.model import Recipe

PATCHIFY = Recipe(patches_recipe.assemble, patches_recipe.RIGHT)


def assemble(s):
    """The module from its steps."""

    class ViTEmbedding(nn.Module):
        def __init__(self, img_size, patch, in_ch, d_model):
            s.begin(super())
            height, width = s.size(img_size)
            self.patch, self.patches = patch, s.count(height, width, patch)
            s.projection(self, in_ch, patch, d_model)
            s.token(self, d_model)
            s.table(self, self.patches, d_model)

        def forward(self, images):
            x = s.project(self, s.cut(images, self.patch))
            return s.finish(s.join(s.every(self, x), x, s.rows(self)))

    return ViTEmbedding


def _size(img_size):
    return (img_size, img_size) if isinstance(img_size, int) else img_size


def _projection(module, in_ch, patch, d_model):
    module.proj = nn.Linear(in_ch * patch * patch, d_model)


def far(*shape):
    """Numbers to start from that nobody would take: where weights cannot be copied, no answer looks alike by chance."""
    return 7 + torch.rand(shape)


def token(*shape, keep=nn.Parameter, start=torch.zeros):
    """A class token of this shape, with d_model behind it; keep: what is made of the tensor."""

    def make(module, d_model):
        module.cls_token = keep(start(*(shape or (1, 1)), d_model))

    return make


def table(count=lambda patches: 1 + patches, batch=1, keep=nn.Parameter, start=torch.zeros):
    """A table of positions; count: its rows, from the number of patches."""

    def make(module, patches, d_model):
        module.pos_embed = keep(start(batch, count(patches), d_model))

    return make


RIGHT = {
    "begin": lambda parent: parent.__init__(),
    "size": _size,
    "count": lambda height, width, patch: (height // patch) * (width // patch),
    "projection": _projection,
    "token": token(),
    "table": table(),
    "cut": PATCHIFY.make(),
    "project": lambda module, patches: module.proj(patches),
    "every": lambda module, x: module.cls_token.expand(len(x), -1, -1),
    "rows": lambda module: module.pos_embed,
    "join": lambda cls, x, rows: torch.cat([cls, x], dim=1) + rows,
    "finish": lambda result: result,
}
