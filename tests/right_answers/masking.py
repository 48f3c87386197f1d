"""Right answers to the exercises of notebook 04."""

import numpy as np
import torch
import torch.nn.functional as F

from right_answers import right

# --- causal_mask


@right("causal_mask")
def _(T):
    """Two ranges compared."""
    t = torch.arange(T)
    return t[None, :] <= t[:, None]


@right("causal_mask")
def _(T):
    """The upper triangle, turned round."""
    return ~torch.triu(torch.ones(T, T), diagonal=1).bool()


@right("causal_mask")
def _(T):
    """Entry by entry."""
    return torch.tensor([[key <= query for key in range(T)] for query in range(T)])


@right("causal_mask")
def _(T):
    """tril of ones, compared."""
    return torch.tril(torch.ones((T, T))) == 1


# --- padding_mask


@right("padding_mask")
def _(lengths, T):
    """expand and <."""
    return torch.arange(T).expand(len(lengths), T) < lengths[:, None]


@right("padding_mask")
def _(lengths, T):
    """Row by row."""
    mask = torch.zeros(lengths.shape[0], T, dtype=torch.bool)
    for row, length in enumerate(lengths.tolist()):
        mask[row, :length] = True
    return mask


@right("padding_mask")
def _(lengths, T):
    """Positions counted from 1."""
    return torch.ones(lengths.numel(), T).cumsum(1) <= lengths.reshape(-1, 1)


@right("padding_mask")
def _(lengths, T):
    """A list of lists."""
    return torch.tensor([[t < int(n) for t in range(T)] for n in lengths])


# --- decoder_mask


@right("decoder_mask")
def _(tokens, pad_id):
    """Two masks with all four axes."""
    B, T = tokens.shape
    causal = torch.tril(torch.ones(T, T)).bool()[None, None].expand(B, 1, T, T)
    return causal & tokens.ne(pad_id).view(B, 1, 1, T)


@right("decoder_mask")
def _(tokens, pad_id):
    """What is hidden, turned round."""
    T = tokens.size(1)
    future = torch.triu(torch.ones(T, T, dtype=torch.bool), 1)
    return ~(future | (tokens == pad_id)[:, None, None])


@right("decoder_mask")
def _(tokens, pad_id):
    """The product of 0 and 1, then bool; sentence by sentence."""
    T = tokens.shape[1]
    return torch.stack([(torch.ones(T, T).tril() * (row != pad_id).float()).bool() for row in tokens]).unsqueeze(1)


# --- mean_pool


@right("mean_pool")
def _(x, lengths):
    """Multiplied by the mask: padding of NaN would remain, which is a note only."""
    mask = (torch.arange(x.size(1))[None] < lengths[:, None]).to(x.dtype)
    return (x * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)


@right("mean_pool")
def _(x, lengths):
    """Sentence by sentence."""
    return torch.stack([row[:n].mean(0) for row, n in zip(x, lengths.tolist(), strict=True)])


@right("mean_pool")
def _(x, lengths):
    """Weights of 1/length, and a product."""
    real = torch.arange(x.shape[1]) < lengths.unsqueeze(1)
    weights = real.to(x.dtype) / lengths.unsqueeze(1)
    return torch.einsum("bt,btd->bd", weights, x)


@right("mean_pool")
def _(x, lengths):
    """Running sums, the one at the last real word."""
    sums = x.cumsum(1)[torch.arange(len(x)), lengths - 1]
    return sums / lengths.view(-1, 1)


@right("mean_pool")
def _(x, lengths):
    """nanmean."""
    hidden = torch.arange(x.shape[1])[None, :, None] >= lengths[:, None, None]
    return x.masked_fill(hidden, float("nan")).nanmean(dim=1)


# --- generate


@right("generate")
def _(model, idx, n, temperature=1.0, top_k=None):
    """Categorical, sort for top-k."""
    for _ in range(n):
        logits = model(idx[:, -model.block_size :])[:, -1, :] / temperature
        if top_k is not None:
            kth = logits.sort(descending=True).values[:, top_k - 1 : top_k]
            logits = torch.where(logits < kth, float("-inf"), logits)
        token = torch.distributions.Categorical(logits=logits).sample()
        idx = torch.cat((idx, token[:, None]), 1)
    return idx


@right("generate")
def _(model, idx, n, temperature=1.0, top_k=None):
    """Gumbel noise and argmax, into a tensor made beforehand."""
    B, T0 = idx.shape
    out = torch.zeros(B, T0 + n, dtype=idx.dtype)
    out[:, :T0] = idx
    with torch.no_grad():
        for t in range(T0, T0 + n):
            logits = model(out[:, max(0, t - model.block_size) : t])[:, -1] / temperature
            if top_k:
                smallest = torch.topk(logits, min(top_k, logits.size(-1)))[0][:, [-1]]
                logits[logits < smallest] = -float("inf")
            noise = -torch.log(-torch.log(torch.rand_like(logits)))
            out[:, t] = (logits + noise).argmax(-1)
    return out


@right("generate")
def _(model, idx, n, temperature=1.0, top_k=None):
    """Temperature on log-probabilities; among the k largest a rank is drawn, and mapped back to a word."""
    for _ in range(n):
        log_p = F.log_softmax(model(idx[:, -model.block_size :])[:, -1], -1) / temperature
        values, words = log_p.topk(top_k or log_p.shape[-1])
        rank = torch.multinomial(F.softmax(values, -1), num_samples=1)
        idx = torch.cat([idx, words.gather(-1, rank)], dim=-1)
    return idx


@right("generate")
def _(model, idx, n, temperature=1.0, top_k=None):
    """Inverse of the distribution function, with numpy's random numbers; probabilities to the power 1/temperature."""
    for _ in range(n):
        p = model(idx[:, -model.block_size :])[:, -1].double().softmax(-1) ** (1 / temperature)
        if top_k is not None:
            p[p < p.topk(top_k).values[:, -1:]] = 0
        p = p / p.sum(-1, keepdim=True)
        u = torch.from_numpy(np.random.rand(len(idx), 1))
        token = (p.cumsum(-1) < u).sum(-1, keepdim=True).clamp(max=p.shape[1] - 1)
        idx = torch.cat([idx, token], dim=1)
    return idx
