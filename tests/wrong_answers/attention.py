"""Wrong answers to additive_attention and decode_step."""

import torch
import torch.nn.functional as F

from wrong_answers import wrong

# --- additive_attention


def _scores(query, keys, W_q, W_k, v):
    B, T, D = keys.shape
    q = query.reshape(B, 1, D).expand(B, T, D)
    return torch.tanh(torch.matmul(q, W_q) + torch.matmul(keys, W_k)).matmul(v)


def _attend(scores, keys, mask, low=float("-inf")):
    if mask is not None:
        scores = torch.where(mask, scores, torch.full_like(scores, low))
    weights = F.softmax(scores, dim=1)
    weights = torch.nan_to_num(weights)
    return torch.bmm(weights[:, None, :], keys)[:, 0], weights


@wrong("additive_attention", "add_no_tanh")
def _(query, keys, W_q, W_k, v, mask=None):
    hidden = torch.matmul(query, W_q)[:, None] + torch.matmul(keys, W_k)
    return _attend((hidden * v).sum(-1), keys, mask)


@wrong("additive_attention", "add_tanh_outside")
def _(query, keys, W_q, W_k, v, mask=None):
    hidden = torch.matmul(query, W_q)[:, None] + torch.matmul(keys, W_k)
    return _attend(torch.tanh((hidden * v).sum(-1)), keys, mask)


@wrong("additive_attention", "add_tanh_on_parts")
def _(query, keys, W_q, W_k, v, mask=None):
    hidden = torch.tanh(query @ W_q)[:, None, :] + torch.tanh(keys @ W_k)
    return _attend(torch.einsum("bta,a->bt", hidden, v), keys, mask)


@wrong("additive_attention", "add_tanh_on_parts")
def _(query, keys, W_q, W_k, v, mask=None):
    asked, answered = query.matmul(W_q).tanh(), keys.matmul(W_k).tanh()
    return _attend(asked.matmul(v).unsqueeze(1) + answered.matmul(v), keys, mask, low=-1e9)


@wrong("additive_attention", "add_mask_after_softmax")
def _(query, keys, W_q, W_k, v, mask=None):
    w = F.softmax(_scores(query, keys, W_q, W_k, v), dim=-1)
    if mask is not None:
        w = w * mask.float()
    return torch.einsum("bt,btd->bd", w, keys), w


@wrong("additive_attention", "add_mask_zero_score")
def _(query, keys, W_q, W_k, v, mask=None):
    return _attend(_scores(query, keys, W_q, W_k, v), keys, mask, low=0.0)


@wrong("additive_attention", "add_mask_zero_score")
def _(query, keys, W_q, W_k, v, mask=None):
    s = _scores(query, keys, W_q, W_k, v)
    if mask is not None:
        s = s * mask
    return _attend(s, keys, None)


@wrong("additive_attention", "add_mask_inverted")
def _(query, keys, W_q, W_k, v, mask=None):
    s = _scores(query, keys, W_q, W_k, v)
    if mask is not None:
        s = s.masked_fill(mask, -1e9)
    return _attend(s, keys, None)


@wrong("additive_attention", "add_mask_inverted")
def _(query, keys, W_q, W_k, v, mask=None):
    return _attend(_scores(query, keys, W_q, W_k, v), keys, None if mask is None else torch.logical_not(mask))


@wrong("additive_attention", "add_mask_minus_ten")
def _(query, keys, W_q, W_k, v, mask=None):
    return _attend(_scores(query, keys, W_q, W_k, v), keys, mask, low=-10)


@wrong("additive_attention", "add_mask_minus_ten")
def _(query, keys, W_q, W_k, v, mask=None):
    return _attend(_scores(query, keys, W_q, W_k, v), keys, mask, low=-100.0)


@wrong("additive_attention", "add_repeat_mixes_batch")
def _(query, keys, W_q, W_k, v, mask=None):
    B, T, D = keys.shape
    rep = query.repeat(T, 1).view(B, T, D)
    hidden = torch.tanh(rep @ W_q + keys @ W_k)
    return _attend(hidden @ v, keys, mask)


@wrong("additive_attention", "add_context_of_projected_keys")
def _(query, keys, W_q, W_k, v, mask=None):
    proj = keys @ W_k
    hidden = torch.tanh((query @ W_q).unsqueeze(1) + proj)
    return _attend(hidden @ v, proj, mask)


@wrong("additive_attention", "add_projections_swapped")
def _(query, keys, W_q, W_k, v, mask=None):
    return _attend(_scores(query, keys, W_k, W_q, v), keys, mask)


@wrong("additive_attention", "add_query_residual")
def _(query, keys, W_q, W_k, v, mask=None):
    c, w = _attend(_scores(query, keys, W_q, W_k, v), keys, mask)
    return c + query, w


@wrong("additive_attention")
def _(query, keys, W_q, W_k, v, mask=None):
    return _attend(_scores(query, keys, W_q, W_k, v) / v.numel() ** 0.5, keys, mask)


@wrong("additive_attention")
def _(query, keys, W_q, W_k, v, mask=None):
    c, _ = _attend(_scores(query, keys, W_q, W_k, v), keys, mask)
    return c


@wrong("additive_attention")
def _(query, keys, W_q, W_k, v, mask=None):
    s = _scores(query, keys, W_q, W_k, v)
    w = torch.sigmoid(s)
    return _attend(w, keys, mask)


@wrong("additive_attention")
def _(query, keys, W_q, W_k, v, mask=None):
    s = _scores(query, keys, W_q, W_k, v)
    if mask is not None:
        keys[~mask] = 0
    return _attend(s, keys, mask)


# --- decode_step


def _look(query, enc_out, enc_mask, low=float("-inf"), dim=-1):
    energy = torch.bmm(enc_out, query.unsqueeze(2)).squeeze(2)
    if enc_mask is not None:
        energy = energy.masked_fill(enc_mask.logical_not(), low)
    alpha = torch.softmax(energy, dim)
    return alpha, (alpha.unsqueeze(2) * enc_out).sum(1)


def _step(y, h, c, p):
    return torch.tanh(torch.hstack((y, c)).matmul(p["W_x"]) + h.matmul(p["W_h"]) + p["b"])


def _predict(s, c, p):
    return torch.hstack((s, c)).matmul(p["W_o"]) + p["b_o"]


@wrong("decode_step", "dec_no_source_mask")
def _(y_emb, h, enc_out, enc_mask, p):
    a, c = _look(h, enc_out, None)
    s = _step(y_emb, h, c, p)
    return _predict(s, c, p), s, a


@wrong("decode_step", "dec_returns_old_state")
def _(y_emb, h, enc_out, enc_mask, p):
    a, c = _look(h, enc_out, enc_mask)
    s = _step(y_emb, h, c, p)
    return _predict(s, c, p), h, a


@wrong("decode_step", "dec_query_from_encoder")
def _(y_emb, h, enc_out, enc_mask, p):
    a, c = _look(enc_out[:, -1, :], enc_out, enc_mask)
    s = _step(y_emb, h, c, p)
    return _predict(s, c, p), s, a


@wrong("decode_step", "dec_query_from_encoder")
def _(y_emb, h, enc_out, enc_mask, p):
    last = enc_mask.sum(1) - 1
    q = torch.stack([enc_out[i, last[i]] for i in range(len(h))])
    a, c = _look(q, enc_out, enc_mask)
    s = _step(y_emb, h, c, p)
    return _predict(s, c, p), s, a


@wrong("decode_step", "dec_softmax_over_batch")
def _(y_emb, h, enc_out, enc_mask, p):
    a, c = _look(h, enc_out, enc_mask, dim=0)
    s = _step(y_emb, h, c, p)
    return _predict(s, c, p), s, a


@wrong("decode_step", "dec_softmax_over_batch")
def _(y_emb, h, enc_out, enc_mask, p):
    a, c = _look(h, enc_out, enc_mask, low=-1e9, dim=0)
    s = _step(y_emb, h, c, p)
    return _predict(s, c, p), s, a


@wrong("decode_step", "dec_concat_order")
def _(y_emb, h, enc_out, enc_mask, p):
    a, c = _look(h, enc_out, enc_mask)
    s = torch.tanh(torch.cat((c, y_emb), dim=1) @ p["W_x"] + h @ p["W_h"] + p["b"])
    return _predict(s, c, p), s, a


@wrong("decode_step")
def _(y_emb, h, enc_out, enc_mask, p):
    a, c = _look(h, enc_out, enc_mask)
    s = _step(y_emb, h, c, p)
    return torch.cat([c, s], 1) @ p["W_o"] + p["b_o"], s, a


@wrong("decode_step", "dec_query_is_new_state")
def _(y_emb, h, enc_out, enc_mask, p):
    _, c = _look(h, enc_out, enc_mask)
    s = _step(y_emb, h, c, p)
    a, c = _look(s, enc_out, enc_mask, low=-1e9)
    return _predict(s, c, p), s, a


@wrong("decode_step", "dec_query_is_new_state")
def _(y_emb, h, enc_out, enc_mask, p):
    before = torch.tanh(y_emb @ p["W_x"][: y_emb.shape[1]] + h @ p["W_h"] + p["b"])
    a, c = _look(before, enc_out, enc_mask)
    s = _step(y_emb, h, c, p)
    return _predict(s, c, p), s, a


@wrong("decode_step", "dec_query_is_new_state")
def _(y_emb, h, enc_out, enc_mask, p):
    zero = torch.zeros_like(h)
    s = _step(y_emb, h, zero, p)
    a, c = _look(s, enc_out, enc_mask)
    return _predict(s, c, p), s, a


@wrong("decode_step")
def _(y_emb, h, enc_out, enc_mask, p):
    a, c = _look(h, enc_out, enc_mask)
    s = _step(y_emb, h, c, p)
    return _predict(s, c, p).softmax(-1), s, a


@wrong("decode_step")
def _(y_emb, h, enc_out, enc_mask, p):
    p["b"] = p["b"] + 0
    a, c = _look(h, enc_out, enc_mask)
    s = _step(y_emb, h, c, p)
    p["b_o"] += 1
    return _predict(s, c, p) - 1, s, a


@wrong("decode_step")
def _(y_emb, h, enc_out, enc_mask, p):
    a, c = _look(h / h.shape[1] ** 0.5, enc_out, enc_mask)
    s = _step(y_emb, h, c, p)
    return _predict(s, c, p), s, a
