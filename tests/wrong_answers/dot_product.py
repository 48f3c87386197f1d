"""Wrong answers to scaled_dot_product_attention."""

import math

import torch
import torch.nn.functional as F

from wrong_answers import wrong

EXERCISE = "scaled_dot_product_attention"


def _finish(scores, v, mask=None, dim=-1):
    """The rest of a right answer."""
    if mask is not None:
        scores = torch.where(mask, scores, torch.finfo(scores.dtype).min)
    w = torch.softmax(scores, dim)
    return torch.matmul(w, v), w


def _dot(q, k):
    return torch.einsum("...id,...jd->...ij", q, k)


def _scaled(q, k):
    return _dot(q, k) * k.size(-1) ** -0.5


@wrong(EXERCISE, "sdpa_scale_d")
def _(q, k, v, mask=None):
    return _finish(_dot(q, k) / q.size(-1), v, mask)


@wrong(EXERCISE, "sdpa_scale_multiplied")
def _(q, k, v, mask=None):
    return _finish(_dot(q, k) * math.sqrt(q.size(-1)), v, mask)


@wrong(EXERCISE, "sdpa_scale_seq_len")
def _(q, k, v, mask=None):
    return _finish(_dot(q, k) / math.sqrt(k.size(-2)), v, mask)


@wrong(EXERCISE, "sdpa_scale_seq_len")
def _(q, k, v, mask=None):
    return _finish(_dot(q, k) / math.sqrt(q.shape[1]), v, mask)


@wrong(EXERCISE, "sdpa_scale_output")
def _(q, k, v, mask=None):
    out, w = _finish(_dot(q, k), v, mask)
    return out / math.sqrt(q.shape[-1]), w


@wrong(EXERCISE, "sdpa_floor_division")
def _(q, k, v, mask=None):
    return _finish(_dot(q, k) // math.sqrt(q.shape[-1]), v, mask)


@wrong(EXERCISE, "sdpa_softmax_batch")
def _(q, k, v, mask=None):
    return _finish(_scaled(q, k), v, mask, dim=0)


@wrong(EXERCISE, "sdpa_softmax_batch")
def _(q, k, v, mask=None):
    s = _scaled(q, k)
    if mask is not None:
        s = s.masked_fill(~mask, -float("inf"))
    w = F.softmax(s, dim=0)
    return w @ v, w


@wrong(EXERCISE, "sdpa_mask_inverted")
def _(q, k, v, mask=None):
    s = _scaled(q, k)
    if mask is not None:
        s = s.masked_fill(mask, -1e9)
    return _finish(s, v)


@wrong(EXERCISE, "sdpa_mask_inverted")
def _(q, k, v, mask=None):
    s = _scaled(q, k)
    if mask is not None:
        s = s.masked_fill(mask == 1, float("-inf"))
    return _finish(s, v)


@wrong(EXERCISE, "sdpa_mask_inverted")
def _(q, k, v, mask=None):
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=None if mask is None else ~mask)
    _, w = _finish(_scaled(q, k), v, None if mask is None else ~mask)
    return out, w


@wrong(EXERCISE, "sdpa_mask_fill_1e-9")
def _(q, k, v, mask=None):
    s = _scaled(q, k)
    if mask is not None:
        s = s.masked_fill(mask == 0, 1e-9)
    return _finish(s, v)


@wrong(EXERCISE, "sdpa_mask_fill_1e-9")
def _(q, k, v, mask=None):
    s = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if mask is not None:
        s = s.masked_fill(~mask, -1e-9)
    w = s.softmax(-1)
    return w @ v, w


@wrong(EXERCISE, "sdpa_mask_fill_plus_inf")
def _(q, k, v, mask=None):
    s = _scaled(q, k)
    if mask is not None:
        s = s.masked_fill(~mask, float("inf"))
    return _finish(s, v)


@wrong(EXERCISE, "sdpa_mask_fill_minus_1e4")
def _(q, k, v, mask=None):
    s = _scaled(q, k)
    if mask is not None:
        s = s.masked_fill(~mask, -1e4)
    return _finish(s, v)


@wrong(EXERCISE, "sdpa_mask_fill_minus_1e4")
def _(q, k, v, mask=None):
    s = _scaled(q, k)
    if mask is not None:
        s = s + (1.0 - mask.float()) * -10000.0
    return _finish(s, v)


@wrong(EXERCISE, "sdpa_mask_times_inf")
def _(q, k, v, mask=None):
    s = _scaled(q, k)
    if mask is not None:
        s = s + (1 - mask.float()) * float("-inf")
    return _finish(s, v)


@wrong(EXERCISE, "sdpa_mask_added_as_01")
def _(q, k, v, mask=None):
    s = _scaled(q, k)
    if mask is not None:
        s = s + mask
    return _finish(s, v)


@wrong(EXERCISE, "sdpa_mask_multiplied")
def _(q, k, v, mask=None):
    s = _scaled(q, k)
    if mask is not None:
        s = torch.mul(s, mask)
    return _finish(s, v)


@wrong(EXERCISE, "sdpa_mask_ignored")
def _(q, k, v, mask=None):
    return F.scaled_dot_product_attention(q, k, v), torch.softmax(_scaled(q, k), -1)


@wrong(EXERCISE, "sdpa_mask_transposed")
def _(q, k, v, mask=None):
    if mask is not None:
        mask = mask.transpose(-1, -2)
    return _finish(_scaled(q, k), v, mask)


@wrong(EXERCISE, "sdpa_mask_transposed")
def _(q, k, v, mask=None):
    s = _scaled(q, k)
    if mask is not None:
        s = s.masked_fill(~mask.mT, -1e9)
    return _finish(s, v)


@wrong(EXERCISE, "sdpa_fully_masked_nan")
def _(q, k, v, mask=None):
    s = _scaled(q, k)
    if mask is not None:
        s[~mask.expand_as(s)] = -torch.inf
    return _finish(s, v)


@wrong(EXERCISE, "sdpa_fully_masked_nan")
def _(q, k, v, mask=None):
    bias = 0 if mask is None else torch.zeros(mask.shape).masked_fill(~mask, -math.inf)
    return _finish(_scaled(q, k) + bias, v)


@wrong(EXERCISE, "sdpa_returns_keys")
def _(q, k, v, mask=None):
    return _finish(_scaled(q, k), k, mask)


@wrong(EXERCISE, "sdpa_scores_transposed")
def _(q, k, v, mask=None):
    return _finish(_scaled(k, q), v, mask)


@wrong(EXERCISE, "sdpa_weights_transposed")
def _(q, k, v, mask=None):
    _, w = _finish(_scaled(q, k), v, mask)
    return w.mT @ v, w


@wrong(EXERCISE, "sdpa_transpose_12")
def _(q, k, v, mask=None):
    s = torch.matmul(q, k.transpose(1, 2)) / math.sqrt(q.shape[-1])
    return _finish(s, v, mask)


@wrong(EXERCISE, "sdpa_reshape_not_transpose")
def _(q, k, v, mask=None):
    *lead, T, d = k.shape
    return _finish(q @ k.reshape(*lead, d, T) / math.sqrt(d), v, mask)


@wrong(EXERCISE, "sdpa_exp_overflow")
def _(q, k, v, mask=None):
    e = torch.exp(_scaled(q, k))
    if mask is not None:
        e = e * mask
    w = e / e.sum(dim=-1, keepdim=True)
    return w @ v, w


@wrong(EXERCISE, "sdpa_exp_overflow")
def _(q, k, v, mask=None):
    s = _scaled(q, k)
    if mask is not None:
        s = s.masked_fill(~mask, -1e9)
    e = torch.exp(s)
    w = e / e.sum(dim=-1, keepdim=True)
    return w @ v, w


@wrong(EXERCISE, "sdpa_weights_detached")
def _(q, k, v, mask=None):
    _, w = _finish(_scaled(q, k), v, mask)
    w = w.detach()
    return w @ v, w


@wrong(EXERCISE, "sdpa_weights_detached")
def _(q, k, v, mask=None):
    with torch.no_grad():
        _, w = _finish(_scaled(q, k), v, mask)
    return w @ v, w


@wrong(EXERCISE, "sdpa_scales_q_in_place")
def _(q, k, v, mask=None):
    q /= math.sqrt(q.size(-1))
    return _finish(_dot(q, k), v, mask)


@wrong(EXERCISE, "sdpa_scales_q_in_place")
def _(q, k, v, mask=None):
    return _finish(_dot(q.mul_(q.size(-1) ** -0.5), k), v, mask)


@wrong(EXERCISE, "sdpa_dropout_always")
def _(q, k, v, mask=None):
    _, w = _finish(_scaled(q, k), v, mask)
    w = F.dropout(w, p=0.3)
    return w @ v, w


@wrong(EXERCISE, "sdpa_dropout_always")
def _(q, k, v, mask=None):
    _, w = _finish(_scaled(q, k), v, mask)
    return F.scaled_dot_product_attention(q, k, v, mask, dropout_p=0.1), w


@wrong(EXERCISE, "sdpa_cosine")
def _(q, k, v, mask=None):
    q = q / q.norm(dim=-1, keepdim=True)
    k = k / k.norm(dim=-1, keepdim=True)
    return _finish(_scaled(q, k), v, mask)


@wrong(EXERCISE, "sdpa_cosine")
def _(q, k, v, mask=None):
    return _finish(F.cosine_similarity(q.unsqueeze(-2), k.unsqueeze(-3), dim=-1), v, mask)


@wrong(EXERCISE, "sdpa_causal_always")
def _(q, k, v, mask=None):
    s = _scaled(q, k)
    future = torch.triu(torch.ones_like(s), diagonal=1).bool()
    s = s.masked_fill(future, -1e9)
    return _finish(s, v, mask)


@wrong(EXERCISE, "sdpa_if_mask_tensor")
def _(q, k, v, mask=None):
    s = _scaled(q, k)
    if mask:
        s = s.masked_fill(~mask, -1e9)
    return _finish(s, v)


@wrong(EXERCISE, "sdpa_if_mask_tensor")
def _(q, k, v, mask=None):
    s = _scaled(q, k)
    if mask != None and mask == True:  # noqa: E711, E712
        s = s.masked_fill(~mask, -1e9)
    return _finish(s, v)


@wrong(EXERCISE, "sdpa_sqrt_of_int")
def _(q, k, v, mask=None):
    return _finish(torch.matmul(q, k.mT) / torch.sqrt(k.size(-1)), v, mask)


# Two mistakes at once: both must be named.
@wrong(EXERCISE, "sdpa_no_scale")
def _(q, k, v, mask=None):
    s = _dot(q, k)
    if mask is not None:
        s = s.masked_fill(~mask, float("-inf"))
    return _finish(s, v)


@wrong(EXERCISE, "sdpa_mask_added_as_01")
def _(q, k, v, mask=None):
    s = _dot(q, k) / q.shape[-1]
    if mask is not None:
        s = s + mask.float()
    return _finish(s, v)


@wrong(EXERCISE)
def _(q, k, v, mask=None):
    return _finish(_scaled(q, k), v, mask, dim=-2)


@wrong(EXERCISE)
def _(q, k, v, mask=None):
    out, w = _finish(_scaled(q, k), v, mask)
    return out, w.mean(0)


@wrong(EXERCISE)
def _(q, k, v, mask=None):
    return _finish(_scaled(q, k), v, mask)[0]


@wrong(EXERCISE)
def _(q, k, v, mask=None):
    out, w = _finish(_scaled(q, k), v, mask)
    return out.detach().numpy(), w.detach().numpy()


@wrong(EXERCISE)
def _(q, k, v, mask=None):
    out, w = _finish(_scaled(q, k), v, mask)
    return out + q.mean(), w


@wrong(EXERCISE)
def _(q, k, v, mask=None):
    return _finish(torch.bmm(q, k.transpose(1, 2)) / math.sqrt(q.shape[-1]), v, mask)


@wrong(EXERCISE)
def _(q, k, v, mask=None):
    w = F.gumbel_softmax(_scaled(q, k), dim=-1)
    return w @ v, w


@wrong(EXERCISE)
def _(q, k, v, mask=None):
    w = _scaled(q, k)
    w = torch.relu(w)
    return _finish(w, v, mask)


@wrong(EXERCISE)
def _(q, k, v):
    return _finish(_scaled(q, k), v)


@wrong(EXERCISE)
def _(q, k, v, mask=None):
    if mask is not None:
        v = v.masked_fill(~mask.any(-2).unsqueeze(-1), 0.0)
    return _finish(_scaled(q, k), v)


@wrong("scaled_dot_product_attention", "sdpa_softmax_queries")
def _(q, k, v, mask=None):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = torch.where(mask, scores, -torch.inf)
    weights = scores.softmax(dim=-2).nan_to_num(0.0)
    return weights @ v, weights
