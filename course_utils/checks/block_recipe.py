"""The recipe of `TransformerBlock`: a right answer in steps."""

import torch.nn.functional as F
from torch import nn

from course_utils.multihead import FusedMultiHeadAttention


def assemble(s):
    """The module from its steps."""

    class TransformerBlock(nn.Module):
        def __init__(self, d_model, n_heads, d_ff, dropout=0.0):
            s.begin(super())
            self.ln1, self.ln2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
            self.attn = s.attention(d_model, n_heads)
            s.layers(self, d_model, d_ff)
            self.drop = s.dropout(dropout)

        def forward(self, x, mask=None):
            mask = s.mask(mask)
            normed = s.norm1(self, x)
            middle = s.join1(self, x, normed, s.drop1(self, s.attend(self, normed, x, mask)))
            normed = s.norm2(self, middle, x)
            added = s.drop2(self, s.feed(self, normed, mask))
            return s.last(s.join2(self, x, middle, normed, added))

    return TransformerBlock


def layers(module, d_model, d_ff):
    module.ff1, module.ff2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)


def attend(module, normed, x, mask):
    return module.attn(normed, mask=mask)


def feed(module, normed, mask):
    return module.ff2(F.relu(module.ff1(normed)))


def drop(module, added):
    return module.drop(added)


RIGHT = {
    "begin": lambda parent: parent.__init__(),
    "attention": FusedMultiHeadAttention,
    "layers": layers,
    "dropout": nn.Dropout,
    "mask": lambda mask: mask,
    "norm1": lambda m, x: m.ln1(x),
    "attend": attend,
    "drop1": drop,
    "join1": lambda m, x, normed, added: x + added,
    "norm2": lambda m, middle, x: m.ln2(middle),
    "feed": feed,
    "drop2": drop,
    "join2": lambda m, x, middle, normed, added: middle + added,
    "last": lambda out: out,
}
