"""Right answers to the exercises of notebook 02."""

import math

import torch
import torch.nn.functional as F

from right_answers import right

# --- additive_attention


@right("additive_attention")
def _(query, keys, W_q, W_k, v, mask=None):
    """einsum and torch.where with the smallest number of the dtype."""
    hidden = torch.einsum("bd,da->ba", query, W_q)[:, None] + torch.einsum("btd,da->bta", keys, W_k)
    scores = torch.einsum("bta,a->bt", hidden.tanh(), v)
    if mask is not None:
        scores = torch.where(mask, scores, torch.finfo(scores.dtype).min)
    weights = F.softmax(scores, dim=-1)
    return torch.einsum("bt,btd->bd", weights, keys), weights


@right("additive_attention")
def _(query, keys, W_q, W_k, v, mask=None):
    """An additive mask of 0 and minus infinity, NaN repaired afterwards, bmm."""
    T = keys.shape[1]
    q = query.unsqueeze(1).repeat(1, T, 1)
    scores = torch.tanh(q @ W_q + keys @ W_k) @ v.unsqueeze(-1)
    scores = scores.squeeze(-1)
    if mask is not None:
        scores = scores + torch.zeros(mask.shape).masked_fill(~mask, float("-inf"))
    weights = torch.softmax(scores, 1).nan_to_num(0.0)
    return torch.bmm(weights.unsqueeze(1), keys).squeeze(1), weights


@right("additive_attention")
def _(query, keys, W_q, W_k, v, mask=None):
    """Loops; hidden keys are left out altogether."""
    contexts, all_weights = [], []
    for i in range(len(query)):
        seen = torch.ones(keys.shape[1], dtype=torch.bool) if mask is None else mask[i]
        weights = torch.zeros(keys.shape[1], dtype=keys.dtype)
        if seen.any():
            scores = torch.stack([torch.tanh(query[i] @ W_q + key @ W_k) @ v for key in keys[i][seen]])
            weights = weights.masked_scatter(seen, scores.softmax(0))
        contexts.append(weights @ keys[i])
        all_weights.append(weights)
    return torch.stack(contexts), torch.stack(all_weights)


@right("additive_attention")
def _(query, keys, W_q, W_k, v, mask=None):
    """repeat_interleave, -1e9."""
    B, T, D = keys.shape
    q = query.repeat_interleave(T, dim=0).view(B, T, D)
    s = (torch.tanh(q @ W_q + keys @ W_k) * v).sum(-1)
    if mask is not None:
        s = s.masked_fill(mask == 0, -1e9)
    w = s.softmax(-1)
    return (w[..., None] * keys).sum(1), w


# --- decode_step


@right("decode_step")
def _(y_emb, h, enc_out, enc_mask, p):
    """bmm and hstack."""
    scores = torch.bmm(enc_out, h.unsqueeze(-1)).squeeze(-1).masked_fill(~enc_mask, float("-inf"))
    weights = scores.softmax(-1)
    c = torch.bmm(weights.unsqueeze(1), enc_out).squeeze(1)
    new = torch.tanh(torch.hstack([y_emb, c]) @ p["W_x"] + h @ p["W_h"] + p["b"])
    return torch.hstack([new, c]) @ p["W_o"] + p["b_o"], new, weights


@right("decode_step")
def _(y_emb, h, enc_out, enc_mask, p):
    """Matrices cut in two instead of concatenated inputs."""
    D, H = y_emb.shape[1], h.shape[1]
    w = torch.where(enc_mask, (enc_out * h[:, None]).sum(-1), -1e30).softmax(1)
    c = (w[:, :, None] * enc_out).sum(1)
    s = (y_emb @ p["W_x"][:D] + c @ p["W_x"][D:] + h @ p["W_h"] + p["b"]).tanh()
    return s @ p["W_o"][:H] + c @ p["W_o"][H:] + p["b_o"], s, w


@right("decode_step")
def _(y_emb, h, enc_out, enc_mask, p):
    """The library's attention with scale 1."""
    mask = enc_mask[:, None, :]
    c = F.scaled_dot_product_attention(h[:, None], enc_out, enc_out, attn_mask=mask, scale=1.0)[:, 0]
    scores = torch.einsum("bh,bth->bt", h, enc_out).masked_fill(~enc_mask, torch.finfo(h.dtype).min)
    s = torch.tanh(F.linear(torch.cat([y_emb, c], -1), p["W_x"].T, p["b"]) + h.matmul(p["W_h"]))
    return F.linear(torch.cat([s, c], -1), p["W_o"].T, p["b_o"]), s, torch.softmax(scores, -1)


# --- scaled_dot_product_attention

EXERCISE = "scaled_dot_product_attention"


@right(EXERCISE)
def _(q, k, v, mask=None):
    """einsum and finfo.min."""
    scores = torch.einsum("...qd,...kd->...qk", q, k) * q.shape[-1] ** -0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = scores.softmax(-1)
    return torch.einsum("...qk,...kd->...qd", weights, v), weights


@right(EXERCISE)
def _(q, k, v, mask=None):
    """The library for the output, weights computed for looking at, without a graph."""
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    with torch.no_grad():
        s = q @ k.mT / math.sqrt(q.size(-1))
        if mask is not None:
            s = s.masked_fill(mask.logical_not(), float("-inf"))
        weights = torch.nan_to_num(s.softmax(-1))
    return torch.nan_to_num(out), weights


@right(EXERCISE)
def _(q, k, v, mask=None):
    """Both sides scaled by d ** -0.25, additive mask, NaN replaced by where."""
    d = q.size(-1)
    scores = (q * d**-0.25) @ (k * d**-0.25).transpose(-1, -2)
    if mask is not None:
        scores = scores + torch.where(mask, 0.0, float("-inf"))
    weights = torch.softmax(scores, dim=-1)
    weights = torch.where(weights.isnan(), torch.zeros_like(weights), weights)
    return weights @ v, weights


@right(EXERCISE)
def _(q, k, v, mask=None):
    """Only the query scaled; softmax by hand with the maximum subtracted; -1e9."""
    q = q / torch.sqrt(torch.tensor(q.shape[-1]))
    scores = torch.matmul(q, torch.swapaxes(k, -1, -2))
    if mask is not None:
        scores = torch.where(mask, scores, torch.tensor(-1e9, dtype=scores.dtype))
    e = torch.exp(scores - scores.max(dim=-1, keepdim=True).values)
    weights = e / e.sum(-1, keepdim=True)
    return weights.matmul(v), weights


@right(EXERCISE)
def _(q, k, v, mask=None):
    """Query by query, in double precision, with in-place changes on own copies."""
    q, k, v = q.double(), k.double(), v.double()
    q = q.clone()
    q /= math.sqrt(q.shape[-1])
    if mask is not None:
        mask = mask.expand(*q.shape[:-1], k.shape[-2])
    outs, rows = [], []
    for i in range(q.shape[-2]):
        s = (k * q[..., i : i + 1, :]).sum(-1)
        if mask is not None:
            s[~mask[..., i, :]] = -1e300
        w = s.softmax(-1)
        rows.append(w)
        outs.append((w.unsqueeze(-1) * v).sum(-2))
    return torch.stack(outs, dim=-2), torch.stack(rows, dim=-2)


@right(EXERCISE)
def _(q, k, v, mask=None):
    """Dropout that is off, a list as the result."""
    s = torch.baddbmm(
        torch.zeros(1), q.flatten(0, -3), k.flatten(0, -3).transpose(1, 2), alpha=1 / math.sqrt(q.shape[-1])
    ).view(*q.shape[:-1], k.shape[-2])
    if mask is not None:
        s = s.masked_fill(~mask, -math.inf)
        s = s.masked_fill(~mask.any(-1, keepdim=True), 0.0)
    w = F.dropout(s.softmax(-1), 0.5, training=False)
    return [w @ v, w]
