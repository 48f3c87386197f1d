"""Wrong answers to TransformerBlock, made from right ones with a method exchanged."""

import torch
import torch.nn.functional as F
from torch import nn

from wrong_answers import wrong


class Heads(nn.Module):
    """A right attention, as a student has it from notebook 05."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        assert d_model % n_heads == 0
        self.h = n_heads
        self.W_q, self.W_k = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.W_v, self.W_o = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)

    def forward(self, x_q, x_kv=None, mask=None):
        x_kv = x_q if x_kv is None else x_kv
        q, k, v = self.W_q(x_q), self.W_k(x_kv), self.W_v(x_kv)
        q, k, v = (t.unflatten(-1, (self.h, -1)).transpose(1, 2) for t in (q, k, v))
        if mask is not None and mask.dim() == 3:
            mask = mask.unsqueeze(1)
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, -1e9)
        return self.W_o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class Block(nn.Module):
    """A right answer."""

    def __init__(self, d_model, n_heads, d_ff, dropout=0.0):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attn = Heads(d_model, n_heads)
        self.hidden(d_model, d_ff)
        self.drop = nn.Dropout(dropout)
        self.more(d_model, dropout)

    def hidden(self, d_model, d_ff):
        self.ff1, self.ff2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def more(self, d_model, dropout):
        pass

    def ffn(self, x):
        return self.ff2(F.relu(self.ff1(x)))

    def first(self, x, mask):
        return x + self.drop(self.attn(self.ln1(x), mask=mask))

    def second(self, x):
        return x + self.drop(self.ffn(self.ln2(x)))

    def forward(self, x, mask=None):
        return self.second(self.first(x, mask))


def _block(misconception, **methods):
    """A wrong answer: the right one with some methods exchanged."""
    wrong("TransformerBlock", misconception)(type("TransformerBlock", (Block,), methods))


def _residual_is_normed(self, x, mask):
    x = self.ln1(x)
    return x + self.drop(self.attn(x, mask=mask))


def _second_residual_is_normed(self, x):
    x = self.ln2(x)
    return x + self.drop(self.ffn(x))


def _ffn_from_input(self, x, mask=None):
    attended = self.first(x, mask)
    return x + self.drop(self.ffn(self.ln2(attended)))


def _residual_inside(self, x, mask):
    return self.attn(self.ln1(x) + x, mask=mask)


def _residual_of_norm_inside(self, x, mask):
    return self.drop(self.attn(x + self.ln1(x), mask=mask))


def _raw_memory(self, x, mask):
    return x + self.drop(self.attn(self.ln1(x), x, mask))


def _always_dropped(self, x):
    return x + F.dropout(self.ffn(self.ln2(x)), 0.3)


def _keeps_p(self, d_model, dropout):
    self.p = dropout


def _always_p(self, x, mask):
    return x + F.dropout(self.attn(self.ln1(x), mask=mask), self.p)


def _layers_in_list(self, d_model, d_ff):
    self.ffs = [nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model)]


def _through_list(self, x):
    for layer in self.ffs:
        x = layer(x)
    return x


def _also_in_list(self, d_model, d_ff):
    self.ff = [nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)]


def _through_list_by_name(self, x):
    return self.ff[1](F.relu(self.ff[0](x)))


def _one_norm(self, d_model, dropout):
    self.ln2 = self.ln1


def _parallel(self, x, mask=None):
    return x + self.drop(self.attn(self.ln1(x), mask=mask)) + self.drop(self.ffn(self.ln2(x)))


def _in_place(self, x, mask):
    x += self.drop(self.attn(self.ln1(x), mask=mask))
    return x


def _sequence_first(self, x, mask):
    y = self.ln1(x).transpose(0, 1)
    return x + self.attn(y).transpose(0, 1)


def _causal_always(self, x, mask):
    causal = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
    return x + self.drop(self.attn(self.ln1(x), mask=causal))


def _detached_residual(self, x, mask):
    return x.detach() + self.drop(self.attn(self.ln1(x), mask=mask))


def _norm_at_end(self, x, mask=None):
    return self.ln2(self.second(self.first(x, mask)))


def _norm_over_batch(self, d_model, dropout):
    self.norm = lambda ln, x: (x - x.mean(0)) / (x.var(0, unbiased=False) + 1e-5).sqrt() * ln.weight + ln.bias


def _batch_normed(self, x):
    return x + self.ffn(self.norm(self.ln2, x))


def _single_head(self, d_model, dropout):
    self.attn = Heads(d_model, 1)


def _mask_required(self, x, mask):
    return self.second(self.first(x, mask))


def _forgets_super(self, d_model, n_heads, d_ff, dropout=0.0):
    self.ln1 = nn.LayerNorm(d_model)


_block("block_no_attn_residual", first=lambda self, x, mask: self.drop(self.attn(self.ln1(x), mask=mask)))
_block("block_no_ffn_residual", second=lambda self, x: self.drop(self.ffn(self.ln2(x))))
_block("block_residual_from_norm", first=_residual_is_normed)
_block("block_residual_from_norm", second=_second_residual_is_normed)
_block("block_residual_from_norm", first=_residual_is_normed, second=_second_residual_is_normed)
_block(
    "block_post_norm",
    first=lambda self, x, mask: self.ln1(x + self.drop(self.attn(x, mask=mask))),
    second=lambda self, x: self.ln2(x + self.drop(self.ffn(x))),
)
_block("block_ffn_residual_from_input", forward=_ffn_from_input)
_block("block_attn_not_normalised", first=lambda self, x, mask: x + self.drop(self.attn(x, mask=mask)))
_block("block_residual_inside", first=_residual_inside)
_block("block_residual_inside", first=_residual_of_norm_inside)
_block("block_mask_not_passed", first=lambda self, x, mask: x + self.drop(self.attn(self.ln1(x))))
_block("block_dropout_always", second=_always_dropped)
_block("block_dropout_always", more=_keeps_p, first=_always_p)
_block("block_ffn_linear", ffn=lambda self, x: self.ff2(self.ff1(x)))
_block("block_only_query_normalised", first=_raw_memory)
_block("block_ffn_first", forward=lambda self, x, mask=None: self.first(self.second(x), mask))
_block("block_ffn_in_list", hidden=_layers_in_list, ffn=_through_list)
_block("block_ffn_in_list", hidden=_also_in_list, ffn=_through_list_by_name)

_block(None, second=lambda self, x: x + self.drop(self.ffn(x)))
_block(None, more=_one_norm)
_block(None, forward=_parallel)
_block(None, first=_in_place)
_block("block_sequence_first", first=_sequence_first)
_block("block_always_causal", first=_causal_always)
_block(None, first=_detached_residual)
_block(None, forward=_norm_at_end)
_block("block_norm_axes", more=_norm_over_batch, second=_batch_normed)
_block("block_other_heads", more=_single_head)
_block(None, ffn=lambda self, x: self.ff2(F.gelu(self.ff1(x))))
_block(None, ffn=lambda self, x: F.relu(self.ff2(F.relu(self.ff1(x)))))
_block(None, ffn=lambda self, x: self.ff2(self.ff1(F.relu(x))))
_block(None, first=lambda self, x, mask: x + self.drop(self.ln1(self.attn(x, mask=mask))))
_block(None, first=lambda self, x, mask: x + self.drop(self.attn(self.ln2(x), mask=mask)))
_block(
    "block_mask_inverted", first=lambda self, x, mask: x + self.attn(self.ln1(x), mask=None if mask is None else ~mask)
)
_block("block_sum_changed", first=lambda self, x, mask: x - self.drop(self.attn(self.ln1(x), mask=mask)))
_block(None, second=lambda self, x: x)
_block(None, first=lambda self, x, mask: x)
_block("block_sum_changed", first=lambda self, x, mask: 0.5 * (x + self.attn(self.ln1(x), mask=mask)))
_block(
    "block_mask_transposed",
    first=lambda self, x, mask: x + self.attn(self.ln1(x), mask=None if mask is None else mask.mT),
)
_block(None, second=lambda self, x: F.layer_norm(x + self.ffn(self.ln2(x)), x.shape[-1:]))
_block(None, forward=_mask_required)
_block(None, __init__=_forgets_super)


class Packed(nn.Module):
    """Other names and one layer for query, key and value: properties have to find what is wrong."""

    def __init__(self, d_model, n_heads, d_ff, dropout=0.0):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("heads")
        self.h = n_heads
        self.norms = nn.ModuleList([nn.LayerNorm(d_model), nn.LayerNorm(d_model)])
        self.qkv, self.out = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)
        self.mlp = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def split(self, x):
        return x.unflatten(-1, (self.h, -1)).transpose(1, 2)

    def fit(self, mask):
        return mask[:, None] if mask is not None and mask.dim() == 3 else mask

    def attend(self, x, mask):
        q, k, v = (self.split(t) for t in self.qkv(x).chunk(3, -1))
        return self.out(F.scaled_dot_product_attention(q, k, v, self.fit(mask)).transpose(1, 2).flatten(2))

    def forward(self, x, mask=None):
        x = x + self.attend(self.norms[0](x), mask)
        return x + self.mlp(self.norms[1](x))


def _packed(**methods):
    wrong("TransformerBlock")(type("TransformerBlock", (Packed,), methods))


def _post_norm(self, x, mask=None):
    x = self.norms[0](x + self.attend(x, mask))
    return self.norms[1](x + self.mlp(x))


def _no_residual(self, x, mask=None):
    x = self.attend(self.norms[0](x), mask)
    return x + self.mlp(self.norms[1](x))


_packed(split=lambda self, x: x.reshape(x.shape[0], self.h, x.shape[1], -1))
_packed(fit=lambda self, mask: None)
_packed(fit=lambda self, mask: mask if mask is None else ~Packed.fit(self, mask))
_packed(forward=_post_norm)
_packed(forward=_no_residual)
_packed(forward=lambda self, x, mask=None: Packed.forward(self, x, mask).detach())
_packed(attend=lambda self, x, mask: self.out(self.qkv(x).chunk(3, -1)[2]))
