"""Wrong answers to TokenEmbedding and MultiHeadAttention, made from right ones with a method exchanged."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from wrong_answers import wrong

# --- TokenEmbedding


def _table(n, d):
    angles = torch.arange(n)[:, None] / 10000 ** (torch.arange(0, d, 2) / d)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :d]


class Embedding(nn.Module):
    """A right answer."""

    def __init__(self, vocab, d_model, max_len=64):
        super().__init__()
        self.emb = nn.Embedding(vocab, d_model)
        self.d = d_model
        self.keep(self.make(max_len, d_model))

    def make(self, max_len, d_model):
        return _table(max_len, d_model)

    def keep(self, table):
        self.register_buffer("pe", table)

    def forward(self, idx):
        return self.sum(self.emb(idx), self.pe[: idx.size(1)].unsqueeze(0))

    def sum(self, words, rows):
        return words * math.sqrt(self.d) + rows


def _embedding(misconception, **methods):
    """A wrong answer: the right one with some methods exchanged."""
    wrong("TokenEmbedding", misconception)(type("TokenEmbedding", (Embedding,), methods))


def _twice_as_long(self, words, rows):
    return torch.cat((words * self.d**0.5, rows.repeat(len(words), 1, 1)), -1)


def _one_row(self, idx):
    return self.sum(self.emb(idx), self.pe[idx.size(1) - 1])


def _along_batch(self, idx):
    return self.sum(self.emb(idx), self.pe[: idx.size(0)].view(-1, 1, self.d))


def _halves(self, n, d):
    angles = torch.arange(n)[:, None] / 10000 ** (torch.arange(0, d, 2) / d)
    return torch.cat([angles.sin(), angles.cos()], -1)[:, :d]


def _no_odd(self, n, d):
    angles = torch.arange(n)[:, None] / 10000 ** (torch.arange(0, d, 2) / d)
    table = torch.zeros(n, d)
    table[:, 0::2] = angles.sin()
    table[:, 1::2] = angles.cos()
    return table


def _as_parameter(self, table):
    self.pe = nn.Parameter(table.clone())


def _learned(self, table):
    self.pe = nn.Parameter(torch.randn(table.shape) * 0.02)


def _forgets_super(self, vocab, d_model, max_len=64):
    self.emb = nn.Embedding(vocab, d_model)


def _divide(self, words, rows):
    return words / math.sqrt(self.d) + rows


_embedding("emb_divided", sum=_divide)
_embedding("emb_not_scaled", sum=lambda self, words, rows: words + rows)
_embedding("emb_scale_after_sum", sum=lambda self, words, rows: math.sqrt(self.d) * (words + rows))
_embedding("emb_no_positions", sum=lambda self, words, rows: words * self.d**0.5)
_embedding("emb_multiplied", sum=lambda self, words, rows: words * self.d**0.5 * rows)
_embedding("emb_concatenated", sum=_twice_as_long)
_embedding("emb_dropout_always", sum=lambda self, words, rows: F.dropout(words * self.d**0.5 + rows, 0.1))
_embedding("emb_detached", sum=lambda self, words, rows: words.data * self.d**0.5 + rows)
_embedding("emb_single_row", forward=_one_row)
_embedding("emb_positions_along_batch", forward=_along_batch)
_embedding("emb_whole_table", forward=lambda self, idx: self.sum(self.emb(idx), self.pe))
_embedding("emb_positions_by_token", forward=lambda self, idx: self.sum(self.emb(idx), F.embedding(idx, self.pe)))
_embedding("emb_wrong_table", make=_halves)
_embedding("emb_wrong_table", make=_no_odd)
_embedding("emb_max_len_fixed", make=lambda self, max_len, d_model: _table(64, d_model))
_embedding("emb_starts_at_1", make=lambda self, max_len, d_model: _table(max_len + 1, d_model)[1:])
_embedding("emb_positions_trained", keep=_as_parameter)
_embedding("emb_positions_trained", keep=_learned)
_embedding("emb_no_super", __init__=_forgets_super)
_embedding(None, sum=lambda self, words, rows: words * math.sqrt(self.d) + rows.flip(1))


@wrong("TokenEmbedding")
class OtherNameWithoutPositions(nn.Module):
    """Nothing can be copied, and the properties do not hold."""

    def __init__(self, vocab, d_model, max_len=64):
        super().__init__()
        self.embedding = nn.Embedding(vocab, d_model)

    def forward(self, idx):
        return self.embedding(idx) * self.embedding.embedding_dim**0.5


# --- MultiHeadAttention


class Heads(nn.Module):
    """A right answer."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        self.check(d_model, n_heads)
        self.d_model, self.h, self.dh = d_model, n_heads, d_model // n_heads
        self.layers()

    def check(self, d_model, n_heads):
        assert d_model % n_heads == 0

    def layers(self):
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.Linear(self.d_model, self.d_model) for _ in range(4))

    def split(self, x):
        return x.reshape(*x.shape[:2], self.h, self.dh).permute(0, 2, 1, 3)

    def merge(self, x):
        return x.permute(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], self.d_model)

    def project(self, x, y):
        return self.W_q(x), self.W_k(y), self.W_v(y)

    def size(self):
        return self.dh

    def fit(self, mask, s):
        return mask[:, None] if mask.dim() == 3 else mask

    def hide(self, s, mask):
        return torch.where(mask, s, torch.finfo(s.dtype).min)

    def soften(self, s):
        return s.softmax(-1)

    def leave(self, out, x, w):
        return self.W_o(self.merge(out))

    def attend(self, x_q, x_kv, mask):
        q, k, v = (self.split(t) for t in self.project(x_q, x_kv))
        s = torch.einsum("bhid,bhjd->bhij", q, k) * self.size() ** -0.5
        if mask is not None:
            s = self.hide(s, self.fit(mask, s))
        w = self.soften(s)
        return self.leave(w @ v, x_q, w)

    def forward(self, x_q, x_kv=None, mask=None):
        return self.attend(x_q, x_q if x_kv is None else x_kv, mask)


def _heads(misconception, **methods):
    """A wrong answer: the right one with some methods exchanged."""
    wrong("MultiHeadAttention", misconception)(type("MultiHeadAttention", (Heads,), methods))


def _view_split(self, x):
    B, T, _ = x.shape
    return x.view(B, self.h, T, self.dh)


def _view_merge(self, x):
    return x.contiguous().view(x.shape[0], x.shape[2], self.d_model)


def _tiled(self, mask, s):
    B, h, Tq, Tk = s.shape
    if mask.dim() == 2:
        return mask
    mask = mask.squeeze(1) if mask.dim() == 4 else mask
    return torch.cat([mask] * h).view(B, h, Tq, Tk)


def _hide_first_head(self, s, mask):
    s = s.clone()
    mask = mask.expand(s.shape[0], 1, *s.shape[2:])[:, 0]
    s[:, 0] = torch.where(mask, s[:, 0], -1e9)
    return s


def _over_heads_and_keys(self, s):
    B, h, Tq, Tk = s.shape
    return s.permute(0, 2, 1, 3).flatten(2).softmax(-1).view(B, Tq, h, Tk).permute(0, 2, 1, 3)


def _sequence_first(self, x_q, x_kv=None, mask=None):
    x_kv = x_q if x_kv is None else x_kv
    return self.attend(x_q.transpose(0, 1), x_kv.transpose(0, 1), mask).transpose(0, 1)


def _no_biases(self):
    for name in ("W_q", "W_k", "W_v", "W_o"):
        setattr(self, name, nn.Linear(self.d_model, self.d_model, bias=False))


def _rounded(self):
    self.d_model, outside = self.dh * self.h, self.d_model
    self.W_q, self.W_k, self.W_v = (nn.Linear(outside, self.d_model) for _ in range(3))
    self.W_o = nn.Linear(self.d_model, outside)


def _one_layer(self):
    self.W, self.W_o = nn.Linear(self.d_model, self.d_model), nn.Linear(self.d_model, self.d_model)


def _causal(self, x_q, x_kv, mask):
    triangle = torch.ones(x_q.shape[1], x_kv.shape[1]).tril().bool()
    return Heads.attend(self, x_q, x_kv, triangle if mask is None else triangle & self.fit(mask, None))


def _swapped(self, x_q, x_kv=None, mask=None):
    return self.attend(x_q if x_kv is None else x_kv, x_q, mask)


def _forgets(self, d_model, n_heads):
    self.W_q = nn.Linear(d_model, d_model)


_heads("mha_split_view", split=_view_split)
_heads("mha_split_view", split=_view_split, merge=_view_merge)
_heads("mha_merge_no_transpose", merge=_view_merge)
_heads("mha_scale_d_model", size=lambda self: self.d_model)
_heads("mha_no_scale", size=lambda self: 1)
_heads("mha_scale_wrong", size=lambda self: self.dh**2)
_heads("mha_one_proj_for_all", project=lambda self, x, y: (self.W_q(x), self.W_q(y), self.W_q(y)))
_heads("mha_one_proj_for_all", layers=_one_layer, project=lambda self, x, y: (self.W(x), self.W(y), self.W(y)))
_heads("mha_cross_ignored", project=lambda self, x, y: (self.W_q(x), self.W_k(x), self.W_v(x)))
_heads("mha_cross_swapped", forward=_swapped)
_heads("mha_mask_head_axis", fit=lambda self, mask, s: mask[None] if mask.dim() == 3 else mask)
_heads("mha_mask_repeat_order", fit=_tiled)
_heads("mha_mask_first_head_only", hide=_hide_first_head)
_heads("mha_mask_ignored", hide=lambda self, s, mask: s)
_heads("mha_mask_inverted", hide=lambda self, s, mask: s.masked_fill(mask, -1e9))
_heads("mha_mask_transposed", fit=lambda self, mask, s: Heads.fit(self, mask, s).mT)
_heads("mha_mask_multiplied", hide=lambda self, s, mask: torch.where(mask, s, 1e-9))
_heads("mha_mask_multiplied", hide=lambda self, s, mask: s * mask.float())
_heads("mha_fully_masked_nan", hide=lambda self, s, mask: torch.where(mask, s, -torch.inf))
_heads("mha_softmax_heads", soften=lambda self, s: F.softmax(s, dim=1))
_heads("mha_softmax_queries", soften=lambda self, s: F.softmax(s, dim=2))
_heads("mha_softmax_joint_heads", soften=_over_heads_and_keys)
_heads("mha_dropout_always", soften=lambda self, s: F.dropout(s.softmax(-1), 0.1))
_heads("mha_residual_inside", leave=lambda self, out, x, w: x + self.W_o(self.merge(out)))
_heads("mha_no_output_layer", leave=lambda self, out, x, w: self.merge(out))
_heads("mha_returns_weights", leave=lambda self, out, x, w: (self.W_o(self.merge(out)), w))
_heads("mha_attends_across_batch", forward=_sequence_first)
_heads("mha_head_order_reversed", leave=lambda self, out, x, w: self.W_o(self.merge(out[:, list(range(self.h))[::-1]])))
_heads(
    "mha_interleaved_heads",
    split=lambda self, x: x.reshape(*x.shape[:2], self.dh, self.h).permute(0, 3, 1, 2),
    merge=lambda self, x: x.permute(0, 2, 3, 1).reshape(x.shape[0], x.shape[2], self.d_model),
)
_heads("mha_no_contiguous", merge=lambda self, x: x.permute(0, 2, 1, 3).view(x.shape[0], x.shape[2], self.d_model))
_heads("mha_rounds_head_size", check=lambda self, d_model, n_heads: None, layers=_rounded)
_heads("mha_query_detached", project=lambda self, x, y: (self.W_q(x).data, self.W_k(y), self.W_v(y)))
_heads("mha_causal_always", attend=_causal)
_heads("mha_no_bias", layers=_no_biases)
_heads("mha_values_not_projected", project=lambda self, x, y: (self.W_q(x), self.W_k(y), y))
_heads("mha_no_super", __init__=_forgets)
_heads(None, soften=lambda self, s: torch.sigmoid(s))
_heads(None, leave=lambda self, out, x, w: self.W_o(self.merge(out)).relu())


class Packed(nn.Module):
    """Query, key and value from one layer: nothing can be copied, so properties have to find what is wrong."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError
        self.h = n_heads
        self.qkv, self.out = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)

    def split(self, x):
        return x.unflatten(-1, (self.h, -1)).transpose(1, 2)

    def merge(self, x):
        return x.transpose(1, 2).flatten(2)

    def fit(self, mask):
        return mask[:, None] if mask is not None and mask.dim() == 3 else mask

    def forward(self, x_q, x_kv=None, mask=None):
        q = self.qkv(x_q).chunk(3, -1)[0]
        _, k, v = self.qkv(x_q if x_kv is None else x_kv).chunk(3, -1)
        q, k, v = self.split(q), self.split(k), self.split(v)
        return self.out(self.merge(F.scaled_dot_product_attention(q, k, v, self.fit(mask))))


def _packed(**methods):
    wrong("MultiHeadAttention")(type("MultiHeadAttention", (Packed,), methods))


def _packed_view(self, x):
    return x.reshape(x.shape[0], self.h, x.shape[1], -1)


_packed(split=_packed_view)
_packed(split=_packed_view, merge=lambda self, x: x.reshape(x.shape[0], x.shape[2], -1))
_packed(merge=lambda self, x: x.reshape(x.shape[0], x.shape[2], -1))
_packed(fit=lambda self, mask: None)
_packed(fit=lambda self, mask: mask[None] if mask is not None and mask.dim() == 3 else mask)
_packed(fit=lambda self, mask: mask if mask is None else ~Packed.fit(self, mask))
_packed(forward=lambda self, x_q, x_kv=None, mask=None: Packed.forward(self, x_q, None, None))
_packed(forward=lambda self, x_q, x_kv=None, mask=None: Packed.forward(self, x_q.detach(), x_kv, mask).detach())
