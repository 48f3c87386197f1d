"""Right answers to the classes of notebooks 03 and 05."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from right_answers import right


def _table(n, d):
    angles = torch.arange(n)[:, None] / 10000 ** (torch.arange(0, d, 2) / d)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :d]


# --- TokenEmbedding


@right("TokenEmbedding")
class PlainEmbedding(nn.Module):
    """A buffer with a batch axis, saved with the model."""

    def __init__(self, vocab, d_model, max_len=64):
        super().__init__()
        self.emb = nn.Embedding(vocab, d_model, padding_idx=0)
        self.scale = math.sqrt(d_model)
        self.register_buffer("pe", _table(max_len, d_model)[None])

    def forward(self, idx):
        return self.scale * self.emb(idx) + self.pe[:, : idx.size(1)]


@right("TokenEmbedding")
class FrozenEmbedding(nn.Module):
    """A parameter that is not trained, dropout that is off in evaluation, F.embedding for both."""

    def __init__(self, vocab, d_model, max_len=64, dropout=0.1):
        super().__init__()
        self.emb = nn.Embedding(vocab, d_model)
        self.register_buffer("where", torch.arange(max_len))
        self.pe = nn.Parameter(_table(max_len, d_model), requires_grad=False)
        self.drop = nn.Dropout(dropout)

    def forward(self, tokens):
        B, T = tokens.shape
        places = self.where[:T].repeat(B, 1)
        return self.drop(self.emb(tokens) * self.emb.embedding_dim**0.5 + F.embedding(places, self.pe))


@right("TokenEmbedding")
class OneHotEmbedding(nn.Module):
    """A linear layer on one-hot words, with copy_from."""

    def __init__(self, vocab, d_model, max_len=64):
        super().__init__()
        self.lin = nn.Linear(vocab, d_model, bias=False)
        self.register_buffer("table", _table(max_len, d_model), persistent=False)

    def copy_from(self, reference):
        self.lin.weight.copy_(reference.emb.weight.T)

    def forward(self, idx):
        words = self.lin(F.one_hot(idx, self.lin.in_features).float())
        return words * math.sqrt(words.shape[-1]) + self.table[: words.shape[1]].expand_as(words)


@right("TokenEmbedding")
class OtherNameEmbedding(nn.Module):
    """Another name for the embedding: only properties can be checked."""

    def __init__(self, vocab, d_model, max_len=64):
        super().__init__()
        self.embedding = nn.Embedding(vocab, d_model)
        self.register_buffer("table", _table(max_len, d_model))

    def forward(self, idx):
        return self.embedding(idx) * math.sqrt(self.table.shape[1]) + self.table[: idx.shape[1]]


# --- MultiHeadAttention


@right("MultiHeadAttention")
class EinsumHeads(nn.Module):
    """einsum, no transposes; additive mask; NaN repaired."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        assert d_model % n_heads == 0
        self.h, self.dh = n_heads, d_model // n_heads
        self.W_q = nn.Linear(d_model, d_model)
        self.W_k = nn.Linear(d_model, d_model)
        self.W_v = nn.Linear(d_model, d_model)
        self.W_o = nn.Linear(d_model, d_model)

    def forward(self, x_q, x_kv=None, mask=None):
        if x_kv is None:
            x_kv = x_q
        q = self.W_q(x_q).unflatten(-1, (self.h, self.dh))
        k = self.W_k(x_kv).unflatten(-1, (self.h, self.dh))
        v = self.W_v(x_kv).unflatten(-1, (self.h, self.dh))
        s = torch.einsum("bqhd,bkhd->bhqk", q, k) / self.dh**0.5
        if mask is not None:
            if mask.dim() == 3:
                mask = mask[:, None]
            s = s + torch.zeros_like(mask, dtype=s.dtype).masked_fill(~mask, float("-inf"))
        w = s.softmax(-1).nan_to_num(0.0)
        return self.W_o(torch.einsum("bhqk,bkhd->bqhd", w, v).flatten(2))


@right("MultiHeadAttention")
class LibraryHeads(nn.Module):
    """The library's operator; contiguous and view."""

    def __init__(self, d_model, n_heads, dropout=0.2):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError("n_heads must divide d_model")
        self.n_heads = n_heads
        self.W_q, self.W_k, self.W_v, self.W_o = [nn.Linear(d_model, d_model) for _ in range(4)]
        self.dropout = nn.Dropout(dropout)

    def forward(self, x_q, x_kv=None, mask=None):
        x_kv = x_q if x_kv is None else x_kv
        B, Tq, d = x_q.size()
        q, k, v = (
            lin(x).view(B, -1, self.n_heads, d // self.n_heads).transpose(1, 2)
            for lin, x in ((self.W_q, x_q), (self.W_k, x_kv), (self.W_v, x_kv))
        )
        if mask is not None and mask.dim() == 3:
            mask = mask.unsqueeze(1)
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        out = self.dropout(torch.nan_to_num(out))
        return self.W_o(out.transpose(1, 2).contiguous().view(B, Tq, d))


@right("MultiHeadAttention")
class LoopedHeads(nn.Module):
    """Head after head, slices of features, -1e9; an indivisible size is found by unflatten."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads, self.dh = n_heads, d_model // n_heads
        torch.empty(d_model).view(n_heads, self.dh)
        for name in "qkvo":
            self.add_module(f"W_{name}", nn.Linear(d_model, d_model))

    def forward(self, x_q, x_kv=None, mask=None):
        memory = x_q if x_kv is None else x_kv
        if mask is not None and mask.dim() == 4:
            mask = mask.squeeze(1)
        outs = []
        for i in range(self.n_heads):
            own = slice(i * self.dh, (i + 1) * self.dh)
            q, k, v = self.W_q(x_q)[..., own], self.W_k(memory)[..., own], self.W_v(memory)[..., own]
            s = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(self.dh)
            if mask is not None:
                s = s.masked_fill(mask == 0, -1e9)
            outs.append(s.softmax(-1) @ v)
        return self.W_o(torch.cat(outs, -1))


@right("MultiHeadAttention")
class PackedHeads(nn.Module):
    """One layer for query, key and value, with copy_from; samples and heads folded together."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise AssertionError
        self.n_heads = n_heads
        self.qkv, self.out = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)

    def copy_from(self, reference):
        layers = reference.W_q, reference.W_k, reference.W_v
        self.qkv.weight.data = torch.cat([layer.weight.data for layer in layers]).clone()
        self.qkv.bias.data = torch.cat([layer.bias.data for layer in layers]).clone()
        self.out.load_state_dict(reference.W_o.state_dict())

    def forward(self, x_q, x_kv=None, mask=None):
        B, Tq, d = x_q.shape
        h, dh = self.n_heads, d // self.n_heads
        x_kv = x_q if x_kv is None else x_kv
        q, k, v = self.qkv(x_q)[..., :d], *self.qkv(x_kv)[..., d:].chunk(2, -1)
        q, k, v = (t.reshape(B, -1, h, dh).transpose(1, 2).reshape(B * h, -1, dh) for t in (q, k, v))
        s = q @ k.mT / dh**0.5
        if mask is not None:
            mask = mask.squeeze(1) if mask.dim() == 4 else mask
            mask = mask.expand(B, Tq, k.shape[1]).repeat_interleave(h, dim=0)
            s = s.masked_fill(~mask, torch.finfo(s.dtype).min)
        out = (s.softmax(-1) @ v).view(B, h, Tq, dh).permute(0, 2, 1, 3).reshape(B, Tq, d)
        return self.out(out)


@right("MultiHeadAttention")
class WrappedHeads(nn.Module):
    """The library's module, whose masks say True = hidden, with copy_from."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        self.inner = nn.MultiheadAttention(d_model, n_heads, batch_first=True)

    @torch.no_grad()
    def copy_from(self, reference):
        layers = reference.W_q, reference.W_k, reference.W_v
        self.inner.in_proj_weight.copy_(torch.cat([layer.weight for layer in layers]))
        self.inner.in_proj_bias.copy_(torch.cat([layer.bias for layer in layers]))
        self.inner.out_proj.weight.copy_(reference.W_o.weight)
        self.inner.out_proj.bias.copy_(reference.W_o.bias)

    def forward(self, x_q, x_kv=None, mask=None):
        x_kv = x_q if x_kv is None else x_kv
        if mask is not None:
            mask = ~mask.view(-1, *mask.shape[-2:]) if mask.dim() > 2 else ~mask
            if mask.dim() == 3:
                mask = mask.repeat_interleave(self.inner.num_heads, dim=0)
        out = self.inner(x_q, x_kv, x_kv, attn_mask=mask, need_weights=False)[0]
        return out.nan_to_num(0.0)


@right("MultiHeadAttention")
class PackedWithoutCopy(nn.Module):
    """One layer for query, key and value: nothing can be copied, only properties can be checked."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError(f"{d_model} features cannot be shared by {n_heads} heads")
        self.n_heads = n_heads
        self.qkv, self.proj = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)

    def forward(self, x_q, x_kv=None, mask=None):
        x_kv = x_q if x_kv is None else x_kv
        q = self.qkv(x_q).chunk(3, -1)[0]
        _, k, v = self.qkv(x_kv).chunk(3, -1)
        q, k, v = (t.unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for t in (q, k, v))
        mask = mask[:, None] if mask is not None and mask.dim() == 3 else mask
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.proj(out.transpose(1, 2).flatten(2))
