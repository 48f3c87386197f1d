"""Right answers to the functions of notebook 06."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from right_answers import right

# --- layer_norm


@right("layer_norm")
def _(x, gamma, beta, eps):
    """The library."""
    return F.layer_norm(x, x.shape[-1:], gamma, beta, eps)


@right("layer_norm")
def _(x, gamma, beta, eps):
    """The usual lines, with the biased variance."""
    mean = x.mean(-1, keepdim=True)
    var = x.var(-1, unbiased=False, keepdim=True)
    return gamma * (x - mean) / torch.sqrt(var + eps) + beta


@right("layer_norm")
def _(x, gamma, beta, eps):
    """einsum for the sums, rsqrt, one fused multiplication and addition."""
    d = x.shape[-1]
    centred = x - torch.einsum("...d->...", x).unsqueeze(-1) / d
    variance = torch.einsum("...d,...d->...", centred, centred).unsqueeze(-1) / d
    return torch.addcmul(beta, gamma, centred * torch.rsqrt(variance + eps))


@right("layer_norm")
def _(x, gamma, beta, eps):
    """Vector by vector, in double precision, which the result keeps."""
    rows = []
    for row in x.reshape(-1, x.shape[-1]).double():
        centre = row - row.sum() / len(row)
        rows.append(centre / ((centre @ centre) / len(row) + eps) ** 0.5)
    return torch.stack(rows).view(x.shape) * gamma.double() + beta.double()


@right("layer_norm")
def _(x, gamma, beta, eps):
    """A module of their own around the library's, which has no weights here."""

    class LayerNorm(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.LayerNorm(x.size(-1), eps=eps, elementwise_affine=False)

        def forward(self, x):
            return self.inner(x) * gamma + beta

    return LayerNorm()(x)


@right("layer_norm")
def _(x, gamma, beta, eps):
    """var_mean, in place on an own copy."""
    var, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
    out = x.clone()
    out -= mean
    out /= (var + eps).sqrt()
    return out * gamma + beta


@right("layer_norm")
def _(x, gamma, beta, eps):
    """One group of channels is a layer."""
    return F.group_norm(x.reshape(-1, x.shape[-1]), 1, gamma, beta, eps).reshape(x.shape)


@right("layer_norm")
def _(x, gamma, beta, eps):
    """The features in front, so that the result is not contiguous."""
    y = x.movedim(-1, 0)
    y = y - y.mean(0)
    y = y / (y.square().mean(0) + eps).sqrt()
    return y.movedim(0, -1) * gamma + beta


@right("layer_norm")
def _(x, gamma, beta, eps):
    """The biased standard deviation, squared again for eps."""
    std = torch.std(x, dim=-1, unbiased=False, keepdim=True)
    return (x - x.mean(dim=-1, keepdim=True)) / (std**2 + eps).sqrt() * gamma + beta


# --- feed_forward


@right("feed_forward")
def _(x, W1, b1, W2, b2):
    """The library's functions."""
    return F.linear(F.relu(F.linear(x, W1.T, b1)), W2.T, b2)


@right("feed_forward")
def _(x, W1, b1, W2, b2):
    """einsum and clamp."""
    hidden = torch.einsum("...d,df->...f", x, W1) + b1
    return torch.einsum("...f,fd->...d", hidden.clamp(min=0), W2) + b2


@right("feed_forward")
def _(x, W1, b1, W2, b2):
    """Position by position, with addmm and where."""
    outs = []
    for row in x.reshape(-1, 1, x.shape[-1]):
        h = torch.addmm(b1, row, W1)
        outs.append(torch.addmm(b2, torch.where(h > 0, h, 0.0), W2))
    return torch.cat(outs).view(*x.shape[:-1], W2.shape[1])


@right("feed_forward")
def _(x, W1, b1, W2, b2):
    """In place on own tensors, in double precision."""
    h = x.double() @ W1.double()
    h += b1
    return nn.ReLU(inplace=True)(h).matmul(W2.double()).add_(b2)


@right("feed_forward")
def _(x, W1, b1, W2, b2):
    """The largest of 0 and h, hidden unit by hidden unit."""
    out = b2.expand(*x.shape[:-1], -1)
    for j in range(W1.shape[1]):
        h = (x * W1[:, j]).sum(-1, keepdim=True) + b1[j]
        out = out + torch.maximum(h, torch.zeros_like(h)) * W2[j]
    return out


@right("feed_forward")
def _(x, W1, b1, W2, b2):
    """The biases as one more feature that is always 1."""
    one = torch.ones_like(x[..., :1])
    h = (torch.cat([x, one], -1) @ torch.cat([W1, b1[None]])).relu()
    return torch.cat([h, one], -1) @ torch.cat([W2, b2[None]])


# --- dropout


@right("dropout")
def _(x, p, training):
    """The library."""
    return F.dropout(x, p, training)


@right("dropout")
def _(x, p, training):
    """The usual lines."""
    if not training:
        return x
    mask = (torch.rand(x.shape) > p).float()
    return mask * x / (1 - p)


@right("dropout")
def _(x, p, training):
    """bernoulli, the chance of surviving by name."""
    if training and p > 0:
        keep = 1.0 - p
        x = x * torch.bernoulli(torch.full_like(x, keep)) / keep
    return x


@right("dropout")
def _(x, p, training):
    """The library's module."""
    layer = nn.Dropout(p)
    layer.train(training)
    return layer(x)


@right("dropout")
def _(x, p, training):
    """masked_fill on a copy, also in evaluation."""
    out = x.clone()
    if training:
        out = out.masked_fill(torch.rand_like(x) < p, 0.0)
        out = out.mul(1 / (1 - p))
    return out


@right("dropout")
def _(x, p, training):
    """numpy's random numbers."""
    if not training:
        return x
    kept = torch.from_numpy(np.random.binomial(1, 1 - p, size=tuple(x.shape)))
    return torch.where(kept == 1, x / (1 - p), 0.0)


@right("dropout")
def _(x, p, training):
    """Entry by entry, in a generator of its own."""
    if not training:
        return x
    source = torch.Generator().manual_seed(int(torch.randint(2**31, (1,))))
    factors = [float(torch.rand(1, generator=source) >= p) / (1 - p) for _ in range(x.numel())]
    return x * torch.tensor(factors, dtype=x.dtype).view(x.shape)


# --- noam_lr


@right("noam_lr")
def _(step, d_model, warmup):
    """As in the paper."""
    step = max(step, 1)
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


@right("noam_lr")
def _(step, d_model, warmup):
    """Two branches and square roots."""
    step = step or 1
    if step < warmup:
        return step / (math.sqrt(d_model) * warmup * math.sqrt(warmup))
    return 1 / math.sqrt(d_model * step)


@right("noam_lr")
def _(step, d_model, warmup):
    """The top of the curve times a factor; numpy, as a float."""
    step = np.maximum(step, 1)
    return float(np.power(d_model * warmup, -0.5) * np.minimum(np.sqrt(warmup / step), step / warmup))


@right("noam_lr")
def _(step, d_model, warmup):
    """Tensors, read out at the end."""
    s = torch.tensor(float(step)).clamp(min=1)
    return (torch.minimum(s.rsqrt(), s * warmup**-1.5) * d_model**-0.5).item()


@right("noam_lr")
def _(step, d_model, warmup):
    """Logarithms."""
    s = 1 if step == 0 else step
    return math.exp(min(-0.5 * math.log(s), math.log(s) - 1.5 * math.log(warmup)) - 0.5 * math.log(d_model))
