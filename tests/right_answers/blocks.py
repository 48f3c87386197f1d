"""Right answers to TransformerBlock."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from course_utils.multihead import MultiHeadAttention
from right_answers import right
from right_answers.modules import EinsumHeads, LoopedHeads


@right("TransformerBlock")
class CourseBlock(nn.Module):
    """The attention of notebook 05, x overwritten by each sum, nothing cloned."""

    def __init__(self, d_model, n_heads, d_ff, dropout=0.0):
        super().__init__()
        self.ln1 = nn.LayerNorm(d_model)
        self.ln2 = nn.LayerNorm(d_model)
        self.attn = MultiHeadAttention(d_model, n_heads)
        self.ff1 = nn.Linear(d_model, d_ff)
        self.ff2 = nn.Linear(d_ff, d_model)
        self.drop = nn.Dropout(dropout)

    def forward(self, x, mask=None):
        x = x + self.drop(self.attn(self.ln1(x), mask=mask))
        x = x + self.drop(self.ff2(torch.relu(self.ff1(self.ln2(x)))))
        return x


@right("TransformerBlock")
class CloningBlock(nn.Module):
    """The residual as a clone, sums in place on it, an attention with einsum and an additive mask."""

    def __init__(self, d_model, n_heads, d_ff, dropout=0.0):
        super().__init__()
        self.attn = EinsumHeads(d_model, n_heads)
        self.ln2, self.ln1 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.ff2, self.ff1 = nn.Linear(d_ff, d_model), nn.Linear(d_model, d_ff)
        self.drop = nn.Dropout(dropout)
        for p in self.parameters():
            nn.init.normal_(p, std=0.2)

    def forward(self, x, mask=None):
        residual = x.clone()
        normed = self.ln1(x)
        residual += self.drop(self.attn(normed, normed, mask))
        hidden = self.ff1(self.ln2(residual)).clamp(min=0)
        return residual + self.drop(self.ff2(hidden))


class OwnNorm(nn.Module):
    """A layer norm with the names of the library's."""

    def __init__(self, d, eps=1e-5):
        super().__init__()
        self.weight, self.bias, self.eps = nn.Parameter(torch.ones(d)), nn.Parameter(torch.zeros(d)), eps

    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        return centred / (centred.square().mean(-1, keepdim=True) + self.eps).sqrt() * self.weight + self.bias


@right("TransformerBlock")
class OwnNormBlock(nn.Module):
    """Norms written by themselves, heads in a loop, sub-layers as methods, dropout in the hidden layer as well."""

    def __init__(self, d_model, n_heads, d_ff, dropout=0.0):
        super().__init__()
        self.ln1, self.ln2 = OwnNorm(d_model), OwnNorm(d_model)
        self.attn = LoopedHeads(d_model, n_heads)
        self.ff1, self.ff2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.drop = nn.Dropout(dropout)

    def attend(self, x, mask):
        return self.attn(self.ln1(x), None, mask)

    def think(self, x):
        return self.ff2(self.drop(F.relu(self.ff1(self.ln2(x)))))

    def forward(self, x, mask=None):
        attended = torch.add(x, self.drop(self.attend(x, mask)))
        return torch.add(attended, self.drop(self.think(attended)))


@right("TransformerBlock")
class FusedBlock(nn.Module):
    """The fused operator inside; the names of the statement, though attention has no class of its own."""

    def __init__(self, d_model, n_heads, d_ff, dropout=0.0):
        super().__init__()
        assert d_model % n_heads == 0
        self.n_heads, self.p = n_heads, dropout
        self.ln1, self.ln2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attn = nn.ModuleDict({f"W_{name}": nn.Linear(d_model, d_model) for name in "qkvo"})
        self.ff1, self.ff2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.drop = nn.Dropout(dropout)

    def forward(self, x, mask=None):
        y = self.ln1(x)
        q, k, v = (self.attn[f"W_{n}"](y).unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for n in "qkv")
        mask = mask.unsqueeze(1) if mask is not None and mask.ndim == 3 else mask
        p = self.p if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=p).nan_to_num(0.0)
        x = x + self.drop(self.attn["W_o"](y.transpose(1, 2).flatten(2)))
        return x + F.dropout(self.ff2(F.relu(self.ff1(self.ln2(x)))), self.p, self.training)


@right("TransformerBlock")
class PackedBlock(nn.Module):
    """One layer for query, key and value, the feed-forward network as a Sequential, with copy_from."""

    def __init__(self, d_model, n_heads, d_ff, dropout=0.0):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("n_heads must divide d_model")
        self.h = n_heads
        self.norms = nn.ModuleList([nn.LayerNorm(d_model), nn.LayerNorm(d_model)])
        self.qkv, self.out = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)
        self.ffn = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model), nn.Dropout(dropout))
        self.drop = nn.Dropout(dropout)

    @torch.no_grad()
    def copy_from(self, reference):
        for mine, theirs in zip(self.norms, (reference.ln1, reference.ln2), strict=True):
            mine.load_state_dict(theirs.state_dict())
        parts = reference.attn.W_q, reference.attn.W_k, reference.attn.W_v
        self.qkv.weight.copy_(torch.cat([part.weight for part in parts]))
        self.qkv.bias.copy_(torch.cat([part.bias for part in parts]))
        self.out.load_state_dict(reference.attn.W_o.state_dict())
        self.ffn[0].load_state_dict(reference.ff1.state_dict())
        self.ffn[2].load_state_dict(reference.ff2.state_dict())

    def attend(self, x, mask):
        B, T, d = x.shape
        dh = d // self.h
        q, k, v = self.qkv(x).reshape(B, T, 3, self.h, dh).permute(2, 0, 3, 1, 4)
        scores = (q * dh**-0.25) @ (k * dh**-0.25).mT
        if mask is not None:
            scores = scores.masked_fill(~(mask if mask.dim() != 3 else mask[:, None]), torch.finfo(x.dtype).min)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(B, T, d))

    def forward(self, x, mask=None):
        x = x + self.drop(self.attend(self.norms[0](x), mask))
        return x + self.ffn(self.norms[1](x))


@right("TransformerBlock")
class LibraryHeadsBlock(nn.Module):
    """nn.MultiheadAttention inside, whose masks say True = hidden, with copy_from."""

    def __init__(self, d_model, n_heads, d_ff, dropout=0.0):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attn = nn.MultiheadAttention(d_model, n_heads, dropout=dropout, batch_first=True)
        self.ff1, self.ff2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.drop = nn.Dropout(dropout)

    def copy_from(self, reference):
        for name in ("ln1", "ln2", "ff1", "ff2"):
            getattr(self, name).load_state_dict(getattr(reference, name).state_dict())
        theirs = reference.attn
        parts = theirs.W_q, theirs.W_k, theirs.W_v
        with torch.no_grad():
            self.attn.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
            self.attn.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
        self.attn.out_proj.load_state_dict(theirs.W_o.state_dict())

    def forward(self, x, mask=None):
        if mask is not None:
            hidden = ~mask.expand(len(x), self.attn.num_heads, -1, -1) if mask.dim() == 4 else ~mask
            mask = hidden.flatten(0, 1) if hidden.dim() == 4 else hidden
            if mask.dim() == 3 and len(mask) == len(x) and self.attn.num_heads > 1:
                mask = mask.repeat_interleave(self.attn.num_heads, 0)
        y = self.ln1(x)
        x = x + self.drop(self.attn(y, y, y, attn_mask=mask, need_weights=False)[0].nan_to_num(0.0))
        return x + self.drop(self.ff2(F.relu(self.ff1(self.ln2(x)))))


@right("TransformerBlock")
class LibraryBlock(nn.Module):
    """The library's whole layer, with copy_from."""

    def __init__(self, d_model, n_heads, d_ff, dropout=0.0):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(
            d_model, n_heads, d_ff, dropout, activation="relu", batch_first=True, norm_first=True
        )

    @torch.no_grad()
    def copy_from(self, reference):
        inner, theirs = self.layer, reference.attn
        inner.self_attn.in_proj_weight.copy_(torch.cat([theirs.W_q.weight, theirs.W_k.weight, theirs.W_v.weight]))
        inner.self_attn.in_proj_bias.copy_(torch.cat([theirs.W_q.bias, theirs.W_k.bias, theirs.W_v.bias]))
        inner.self_attn.out_proj.load_state_dict(theirs.W_o.state_dict())
        pairs = (inner.norm1, "ln1"), (inner.norm2, "ln2"), (inner.linear1, "ff1"), (inner.linear2, "ff2")
        for mine, name in pairs:
            mine.load_state_dict(getattr(reference, name).state_dict())

    def forward(self, x, mask=None):
        if mask is not None:
            heads = self.layer.self_attn.num_heads
            mask = mask.view(-1, *mask.shape[-2:]).expand(len(x), -1, -1).repeat_interleave(heads, dim=0)
            mask = torch.zeros(mask.shape).masked_fill(~mask, -1e9)
        return self.layer(x, src_mask=mask)


@right("TransformerBlock")
class PackedBlockWithoutCopy(nn.Module):
    """Other names and a packed layer: only properties can be checked."""

    def __init__(self, d_model, n_heads, d_ff, dropout=0.0):
        super().__init__()
        assert d_model % n_heads == 0, "n_heads must divide d_model"
        self.n_heads = n_heads
        self.norm_1, self.norm_2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.c_attn, self.c_proj = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)
        self.mlp = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, mask=None):
        q, k, v = self.c_attn(self.norm_1(x)).chunk(3, dim=-1)
        q, k, v = (t.unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for t in (q, k, v))
        if mask is not None and mask.dim() == 3:
            mask = mask[:, None]
        y = F.scaled_dot_product_attention(q / math.sqrt(q.shape[-1]), k, v, attn_mask=mask, scale=1.0)
        x = x + self.dropout(self.c_proj(y.transpose(1, 2).flatten(2)))
        return x + self.dropout(self.mlp(self.norm_2(x)))
