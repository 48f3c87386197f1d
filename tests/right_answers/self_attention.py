"""Right answers to the functions of notebook 03."""

import math

import torch
import torch.nn.functional as F

from right_answers import right

# --- self_attention


@right("self_attention")
def _(x, W_q, W_k, W_v, mask=None):
    """einsum throughout, the smallest number of the dtype."""
    q = torch.einsum("...ti,id->...td", x, W_q)
    k = torch.einsum("...ti,id->...td", x, W_k)
    v = torch.einsum("...ti,id->...td", x, W_v)
    scores = torch.einsum("...qd,...kd->...qk", q, k) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = torch.where(mask, scores, torch.finfo(scores.dtype).min)
    weights = F.softmax(scores, -1)
    return torch.einsum("...qk,...kv->...qv", weights, v), weights


@right("self_attention")
def _(x, W_q, W_k, W_v, mask=None):
    """F.linear with transposed matrices, one matrix for all three, scaled in place, an additive mask."""
    q, k, v = F.linear(x, torch.cat([W_q, W_k, W_v], dim=1).T).split([W_q.shape[1], W_k.shape[1], W_v.shape[1]], -1)
    q = q.clone()
    q /= q.shape[-1] ** 0.5
    s = q @ k.mT
    if mask is not None:
        s = s + torch.zeros(mask.shape, dtype=x.dtype).masked_fill(~mask, -math.inf)
    w = s.softmax(-1).nan_to_num()
    return w @ v, w


@right("self_attention")
def _(x, W_q, W_k, W_v, mask=None):
    """Both matrices multiplied first; -1e9."""
    scores = x @ (W_q @ W_k.T) @ x.transpose(-1, -2) / math.sqrt(W_q.shape[1])
    if mask is not None:
        scores = scores.masked_fill(mask == False, -1e9)  # noqa: E712
    e = (scores - scores.amax(-1, keepdim=True)).exp()
    weights = e / e.sum(-1, keepdim=True)
    return weights @ x @ W_v, weights


@right("self_attention")
def _(x, W_q, W_k, W_v, mask=None):
    """The library for the output, row by row for the weights."""
    q, k, v = x @ W_q, x @ W_k, x @ W_v
    rows = []
    for i in range(q.shape[-2]):
        s = (q[..., i : i + 1, :] * k).sum(-1) * q.shape[-1] ** -0.5
        if mask is not None:
            m = mask.expand(*q.shape[:-1], k.shape[-2])[..., i, :]
            s = s.masked_fill(~m, -1e30)
        rows.append(s.softmax(-1))
    weights = torch.stack(rows, -2)
    return weights.matmul(v), weights


# --- sinusoidal_positions


@right("sinusoidal_positions")
def _(T, d):
    """exp and log, in single precision."""
    table = torch.zeros(T, d)
    position = torch.arange(T, dtype=torch.float).unsqueeze(1)
    div = torch.exp(torch.arange(0, d, 2).float() * (-math.log(10000.0) / d))
    table[:, 0::2] = torch.sin(position * div)
    table[:, 1::2] = torch.cos(position * div[: d // 2])
    return table


@right("sinusoidal_positions")
def _(T, d):
    """Number by number."""
    table = torch.empty(T, d)
    for t in range(T):
        for j in range(d):
            angle = t / 10000 ** (2 * (j // 2) / d)
            table[t, j] = math.cos(angle) if j % 2 else math.sin(angle)
    return table


@right("sinusoidal_positions")
def _(T, d):
    """A cosine is a sine a quarter further; double precision is kept."""
    j = torch.arange(d)
    angles = torch.arange(T, dtype=torch.float64)[:, None] / 10000 ** ((j - j % 2) / d)
    return torch.sin(angles + (j % 2) * math.pi / 2)


@right("sinusoidal_positions")
def _(T, d):
    """Stacked and cut."""
    inv = 1.0 / (10000 ** (torch.arange(0, d, 2) / d))
    angles = torch.outer(torch.arange(T), inv)
    return torch.stack((angles.sin(), angles.cos()), dim=2).reshape(T, -1)[:, :d].contiguous()


# --- apply_rope


@right("apply_rope")
def _(x):
    """Complex numbers."""
    T, d = x.shape[-2:]
    theta = 10000.0 ** (-torch.arange(0, d, 2) / d)
    turn = torch.polar(torch.ones(T, d // 2), torch.outer(torch.arange(T), theta)).to(torch.complex64)
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2).contiguous())
    return torch.view_as_real(pairs * turn).flatten(-2).to(x.dtype)


@right("apply_rope")
def _(x):
    """x * cos + rotated * sin, with repeat_interleave."""
    T, d = x.size(-2), x.size(-1)
    angles = torch.arange(T)[:, None] / 10000 ** (torch.arange(0, d, 2) / d)
    cos, sin = angles.cos().repeat_interleave(2, -1), angles.sin().repeat_interleave(2, -1)
    rotated = torch.empty_like(x)
    rotated[..., 0::2] = -x[..., 1::2]
    rotated[..., 1::2] = x[..., 0::2]
    return x * cos + rotated * sin


@right("apply_rope")
def _(x):
    """One 2 x 2 matrix for each position and pair."""
    T, d = x.shape[-2:]
    a = torch.arange(T, dtype=x.dtype).view(-1, 1) * 10000 ** (-torch.arange(0, d, 2, dtype=x.dtype) / d)
    R = torch.stack([torch.stack([a.cos(), -a.sin()], -1), torch.stack([a.sin(), a.cos()], -1)], -2)
    return torch.einsum("tpij,...tpj->...tpi", R, x.unflatten(-1, (d // 2, 2))).flatten(-2)


@right("apply_rope")
def _(x):
    """Pair by pair into a copy."""
    y = x.clone()
    t = torch.arange(x.shape[-2], dtype=torch.float64)
    for i in range(0, x.shape[-1], 2):
        angle = t * 10000 ** (-i / x.shape[-1])
        c, s = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        y[..., i] = x[..., i] * c - x[..., i + 1] * s
        y[..., i + 1] = x[..., i] * s + x[..., i + 1] * c
    return y
