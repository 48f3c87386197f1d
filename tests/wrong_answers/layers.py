"""Wrong answers to layer_norm and feed_forward."""

import torch
import torch.nn.functional as F
from torch import nn

from wrong_answers import wrong

# --- layer_norm


@wrong("layer_norm", "ln_eps_outside")
def _(x, gamma, beta, eps):
    mean = x.mean(dim=-1, keepdim=True)
    std = x.std(dim=-1, keepdim=True, unbiased=False)
    return gamma * (x - mean) / (std + eps) + beta


@wrong("layer_norm", "ln_unbiased_eps_outside")
def _(x, gamma, beta, eps):
    mean = x.mean(-1, keepdim=True)
    std = x.std(-1, keepdim=True)
    return gamma * (x - mean) / (std + eps) + beta


@wrong("layer_norm", "ln_batch_axis")
def _(x, gamma, beta, eps):
    mean = x.mean(dim=0, keepdim=True)
    var = x.var(dim=0, keepdim=True, unbiased=False)
    return gamma * (x - mean) / torch.sqrt(var + eps) + beta


@wrong("layer_norm", "ln_global")
def _(x, gamma, beta, eps):
    return (x - x.mean()) / torch.sqrt(x.var(unbiased=False) + eps) * gamma + beta


@wrong("layer_norm", "ln_no_affine")
def _(x, gamma, beta, eps):
    return F.layer_norm(x, (x.shape[-1],), eps=eps)


@wrong("layer_norm", "ln_affine_first")
def _(x, gamma, beta, eps):
    y = x * gamma + beta
    return (y - y.mean(-1, keepdim=True)) / (y.var(-1, keepdim=True, correction=0) + eps) ** 0.5


@wrong("layer_norm", "ln_no_centering")
def _(x, gamma, beta, eps):
    rms = torch.sqrt((x**2).mean(-1, keepdim=True) + eps)
    return x / rms * gamma + beta


@wrong("layer_norm", "ln_variance_about_zero")
def _(x, gamma, beta, eps):
    mean = x.mean(-1, keepdim=True)
    var = (x**2).mean(-1, keepdim=True)
    return (x - mean) / torch.sqrt(var + eps) * gamma + beta


@wrong("layer_norm", "ln_stats_detached")
def _(x, gamma, beta, eps):
    with torch.no_grad():
        mean = x.mean(-1, keepdim=True)
        var = x.var(-1, keepdim=True, unbiased=False)
    return (x - mean) / torch.sqrt(var + eps) * gamma + beta


@wrong("layer_norm", "ln_stats_detached")
def _(x, gamma, beta, eps):
    mean = x.mean(-1, keepdim=True).detach()
    var = ((x - mean) ** 2).mean(-1, keepdim=True).detach()
    return gamma * ((x - mean) / (var + eps).sqrt()) + beta


@wrong("layer_norm", "ln_in_place")
def _(x, gamma, beta, eps):
    x -= x.mean(-1, keepdim=True)
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps) * gamma + beta


@wrong("layer_norm", "ln_two_pass_unstable")
def _(x, gamma, beta, eps):
    mean = x.mean(-1, keepdim=True)
    var = (x**2).mean(-1, keepdim=True) - mean**2
    return (x - mean) / torch.sqrt(var + eps) * gamma + beta


@wrong("layer_norm")
def _(x, gamma, beta, eps):
    """The unbiased variance, eps in its place."""
    return gamma * (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, keepdim=True) + eps) + beta


@wrong("layer_norm")
def _(x, gamma, beta, eps):
    """Divided by the variance."""
    return gamma * (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True, unbiased=False) + eps) + beta


@wrong("layer_norm")
def _(x, gamma, beta, eps):
    """eps is an argument of which nothing is seen."""
    return F.layer_norm(x, x.shape[-1:], gamma, beta)


@wrong("layer_norm")
def _(x, gamma, beta, eps):
    """Without keepdim: positions and features are mixed up, or it fails."""
    return (x - x.mean(-1)) / torch.sqrt(x.var(-1, unbiased=False) + eps) * gamma + beta


@wrong("layer_norm")
def _(x, gamma, beta, eps):
    """Mean and variance over the positions of a sentence."""
    mean, var = x.mean(-2, keepdim=True), x.var(-2, keepdim=True, unbiased=False)
    return (x - mean) / torch.sqrt(var + eps) * gamma + beta


@wrong("layer_norm")
def _(x, gamma, beta, eps):
    """gamma shifted by one."""
    return (1 + gamma) * F.layer_norm(x, x.shape[-1:], eps=eps) + beta


@wrong("layer_norm")
def _(x, gamma, beta, eps):
    """A fresh module, whose weights are 1 and 0."""
    return nn.LayerNorm(x.shape[-1], eps=eps)(x)


@wrong("layer_norm")
def _(x, gamma, beta, eps):
    """One mean for each sentence."""
    axes = tuple(range(1, x.dim())) or (0,)
    mean, var = x.mean(axes, keepdim=True), x.var(axes, keepdim=True, unbiased=False)
    return (x - mean) / torch.sqrt(var + eps) * gamma + beta


@wrong("layer_norm")
def _(x, gamma, beta, eps):
    """Brackets: only the mean is divided."""
    return gamma * x - x.mean(-1, keepdim=True) / torch.sqrt(x.var(-1, keepdim=True, unbiased=False) + eps) + beta


# --- feed_forward


@wrong("feed_forward", "ffn_activation_last")
def _(x, W1, b1, W2, b2):
    return F.relu((x @ W1 + b1) @ W2 + b2)


@wrong("feed_forward", "ffn_activation_both")
def _(x, W1, b1, W2, b2):
    h = torch.relu(x @ W1 + b1)
    return torch.relu(h @ W2 + b2)


@wrong("feed_forward", "ffn_gelu")
def _(x, W1, b1, W2, b2):
    return F.gelu(x @ W1 + b1) @ W2 + b2


@wrong("feed_forward", "ffn_gelu")
def _(x, W1, b1, W2, b2):
    return nn.GELU(approximate="tanh")(x @ W1 + b1) @ W2 + b2


@wrong("feed_forward", "ffn_missing_bias")
def _(x, W1, b1, W2, b2):
    return F.relu(x @ W1 + b1) @ W2


@wrong("feed_forward")
def _(x, W1, b1, W2, b2):
    """The first bias after the ReLU."""
    return (F.relu(x @ W1) + b1) @ W2 + b2


@wrong("feed_forward")
def _(x, W1, b1, W2, b2):
    """The first bias is missing."""
    return F.relu(x @ W1) @ W2 + b2


@wrong("feed_forward")
def _(x, W1, b1, W2, b2):
    """No activation."""
    return (x @ W1 + b1) @ W2 + b2


@wrong("feed_forward")
def _(x, W1, b1, W2, b2):
    """The residual belongs to the block."""
    return x + F.relu(x @ W1 + b1) @ W2 + b2


@wrong("feed_forward")
def _(x, W1, b1, W2, b2):
    """The ReLU on the input."""
    return (F.relu(x) @ W1 + b1) @ W2 + b2


@wrong("feed_forward")
def _(x, W1, b1, W2, b2):
    """F.linear with the matrices as they are."""
    return F.linear(F.relu(F.linear(x, W1, b1)), W2, b2)


@wrong("feed_forward")
def _(x, W1, b1, W2, b2):
    """Leaky."""
    return F.leaky_relu(x @ W1 + b1) @ W2 + b2


@wrong("feed_forward")
def _(x, W1, b1, W2, b2):
    """Modules with weights of their own."""
    return nn.Sequential(nn.Linear(*W1.shape), nn.ReLU(), nn.Linear(*W2.shape))(x)


@wrong("feed_forward")
def _(x, W1, b1, W2, b2):
    """The ReLU in place, on the input as well."""
    return torch.relu_(x) @ W1 @ W2 + b2
