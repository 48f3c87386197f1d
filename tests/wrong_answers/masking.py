"""Wrong answers to the masks, mean_pool and generate."""

import torch
import torch.nn.functional as F

from wrong_answers import wrong

# --- causal_mask


def _rows_columns(T):
    return torch.arange(T).view(T, 1), torch.arange(T).view(1, T)


@wrong("causal_mask", "causal_triu")
def _(T):
    row, column = _rows_columns(T)
    return row <= column


@wrong("causal_mask", "causal_strict")
def _(T):
    row, column = _rows_columns(T)
    return column < row


@wrong("causal_mask", "causal_one_ahead")
def _(T):
    row, column = _rows_columns(T)
    return column <= row + 1


@wrong("causal_mask", "causal_inverted")
def _(T):
    return torch.triu(torch.ones(T, T), diagonal=1) == 1


@wrong("causal_mask", "causal_all_true")
def _(T):
    return torch.full((T, T), True)


@wrong("causal_mask", "causal_strict_with_patch")
def _(T):
    row, column = _rows_columns(T)
    return (column < row) | (row + column == 0)


@wrong("causal_mask", "causal_additive")
def _(T):
    return torch.triu(torch.full((T, T), float("-inf")), diagonal=1)


@wrong("causal_mask", "causal_additive")
def _(T):
    return torch.tril(torch.ones(T, T))


@wrong("causal_mask", "causal_extra_axes")
def _(T):
    return torch.tril(torch.ones(1, T, T)).bool()


@wrong("causal_mask")
def _(T):
    """Only the last word and itself."""
    row, column = _rows_columns(T)
    return (row - column >= 0) & (row - column < 2)


# --- padding_mask


@wrong("padding_mask", "pad_inverted")
def _(lengths, T):
    return torch.arange(T) >= lengths[:, None]


@wrong("padding_mask", "pad_off_by_one_short")
def _(lengths, T):
    return torch.arange(1, T + 1) < lengths[:, None]


@wrong("padding_mask", "pad_off_by_one_long")
def _(lengths, T):
    return torch.arange(T) <= lengths[:, None]


@wrong("padding_mask", "pad_transposed")
def _(lengths, T):
    return torch.arange(T)[:, None] < lengths


@wrong("padding_mask", "pad_left")
def _(lengths, T):
    return torch.arange(T) >= T - lengths[:, None]


@wrong("padding_mask", "pad_no_new_axis")
def _(lengths, T):
    return lengths > torch.arange(T)


@wrong("padding_mask", "pad_longest")
def _(lengths, T):
    return torch.nn.utils.rnn.pad_sequence([torch.ones(int(n), dtype=torch.bool) for n in lengths], batch_first=True)


@wrong("padding_mask", "pad_additive")
def _(lengths, T):
    return (torch.arange(T) < lengths[:, None]).float()


@wrong("padding_mask", "pad_extra_axes")
def _(lengths, T):
    return (torch.arange(T) < lengths[:, None]).unsqueeze(1).unsqueeze(2)


@wrong("padding_mask")
def _(lengths, T):
    """Only the last real position."""
    return torch.arange(T) == lengths[:, None] - 1


# --- decoder_mask


def _causal(T):
    row, column = _rows_columns(T)
    return column <= row


@wrong("decoder_mask", "decmask_pad_on_queries")
def _(tokens, pad_id):
    real = (tokens != pad_id).unsqueeze(1).unsqueeze(3)
    return real & _causal(tokens.shape[1])


@wrong("decoder_mask", "decmask_or")
def _(tokens, pad_id):
    return (tokens != pad_id)[:, None, None] | _causal(tokens.shape[1])


@wrong("decoder_mask", "decmask_hides_pad_rows")
def _(tokens, pad_id):
    real = tokens.ne(pad_id)
    return (real[:, :, None] & real[:, None, :] & _causal(tokens.shape[1])).unsqueeze(1)


@wrong("decoder_mask", "decmask_pad_zero")
def _(tokens, pad_id):
    return (tokens.bool())[:, None, None] & _causal(tokens.shape[1])


@wrong("decoder_mask", "decmask_no_padding")
def _(tokens, pad_id):
    """From vectors: after positions were added, none of them is zero."""
    B, T = tokens.shape
    vectors = torch.ones(B, T, 4)
    return (vectors != 0).any(-1)[:, None, None] & _causal(T)


@wrong("decoder_mask", "decmask_no_causal")
def _(tokens, pad_id):
    return (tokens != pad_id)[:, None, None].expand(-1, 1, tokens.shape[1], -1)


@wrong("decoder_mask", "decmask_pad_inverted")
def _(tokens, pad_id):
    return tokens.eq(pad_id)[:, None, None] & _causal(tokens.shape[1])


@wrong("decoder_mask", "decmask_inverted")
def _(tokens, pad_id):
    return tokens.eq(pad_id)[:, None, None] | ~_causal(tokens.shape[1])


@wrong("decoder_mask", "decmask_triu")
def _(tokens, pad_id):
    return (tokens != pad_id)[:, None, None] & _causal(tokens.shape[1]).T


@wrong("decoder_mask", "decmask_no_head_axis")
def _(tokens, pad_id):
    return (tokens != pad_id)[:, None] & _causal(tokens.shape[1])


@wrong("decoder_mask", "decmask_additive")
def _(tokens, pad_id):
    keep = (tokens != pad_id)[:, None, None] & _causal(tokens.shape[1])
    return torch.where(keep, 0.0, float("-inf"))


@wrong("decoder_mask")
def _(tokens, pad_id):
    """From the first padding on everything is hidden."""
    return ((tokens == pad_id).cumsum(1) == 0)[:, None, None] & _causal(tokens.shape[1])


# --- mean_pool


@wrong("mean_pool", "pool_includes_padding")
def _(x, lengths):
    return x.mean(dim=1)


@wrong("mean_pool", "pool_includes_padding")
def _(x, lengths):
    return x.sum(1) / lengths[:, None]


@wrong("mean_pool", "pool_divides_by_T")
def _(x, lengths):
    real = torch.arange(x.shape[1]) < lengths[:, None]
    return (x * real[..., None]).mean(1)


@wrong("mean_pool", "pool_sum")
def _(x, lengths):
    return torch.stack([row[:n].sum(0) for row, n in zip(x, lengths, strict=True)])


@wrong("mean_pool", "pool_lengths_no_axis")
def _(x, lengths):
    real = torch.arange(x.shape[1]) < lengths[:, None]
    return torch.where(real[..., None], x, 0).sum(1) / lengths


@wrong("mean_pool", "pool_off_by_one")
def _(x, lengths):
    return torch.stack([row[: n + 1].mean(0) for row, n in zip(x, lengths, strict=True)])


@wrong("mean_pool", "pool_first_or_last")
def _(x, lengths):
    return torch.stack([row[n - 1] for row, n in zip(x, lengths, strict=True)])


@wrong("mean_pool", "pool_max")
def _(x, lengths):
    return torch.stack([row[:n].max(0).values for row, n in zip(x, lengths, strict=True)])


@wrong("mean_pool", "pool_x_overwritten")
def _(x, lengths):
    for row, n in zip(x, lengths, strict=True):
        row[n:] = 0
    return x.sum(1) / lengths[:, None]


@wrong("mean_pool", "pool_wrong_axis")
def _(x, lengths):
    return x.mean(dim=-1)


@wrong("mean_pool", "pool_over_sentences")
def _(x, lengths):
    """The mean over all real words of the batch."""
    real = torch.arange(x.shape[1]) < lengths[:, None]
    return x[real].mean(0).expand(len(x), -1)


# --- generate


def _sample(model, idx, n, choose, crop=True):
    """The loop of a right answer."""
    for _ in range(n):
        logits = model(idx[:, -model.block_size :] if crop else idx)[:, -1]
        idx = torch.cat([idx, choose(logits)], 1)
    return idx


def _top(logits, k):
    if k is None:
        return logits
    return torch.where(logits < torch.topk(logits, k)[0][:, -1:], -torch.inf, logits)


def _pick(logits):
    return torch.multinomial(F.softmax(logits, -1), 1)


@wrong("generate", "sample_temp_ignored")
def _(model, idx, n, temperature=1.0, top_k=None):
    return _sample(model, idx, n, lambda z: torch.distributions.Categorical(logits=_top(z, top_k)).sample()[:, None])


@wrong("generate", "sample_temp_on_probs")
def _(model, idx, n, temperature=1.0, top_k=None):
    def choose(z):
        p = F.softmax(_top(z, top_k), -1) / temperature
        return torch.multinomial(p / p.sum(-1, keepdim=True), 1)

    return _sample(model, idx, n, choose)


@wrong("generate", "sample_temp_squared")
def _(model, idx, n, temperature=1.0, top_k=None):
    return _sample(model, idx, n, lambda z: _pick(_top(z / temperature, top_k) / temperature))


@wrong("generate", "sample_temp_multiplied")
def _(model, idx, n, temperature=1.0, top_k=None):
    return _sample(model, idx, n, lambda z: _pick(_top(z * temperature, top_k)))


@wrong("generate", "sample_greedy")
def _(model, idx, n, temperature=1.0, top_k=None):
    return _sample(model, idx, n, lambda z: (z / temperature).argmax(-1, keepdim=True))


@wrong("generate", "sample_topk_off_by_one")
def _(model, idx, n, temperature=1.0, top_k=None):
    return _sample(model, idx, n, lambda z: _pick(_top(z / temperature, top_k and top_k + 1)))


@wrong("generate", "sample_topk_off_by_one")
def _(model, idx, n, temperature=1.0, top_k=None):
    def choose(z):
        z = z / temperature
        if top_k is not None:
            z = torch.where(z > z.topk(top_k).values[:, -1:], z, -torch.inf)
        return _pick(z)

    return _sample(model, idx, n, choose)


@wrong("generate", "sample_topk_ignored")
def _(model, idx, n, temperature=1.0, top_k=None):
    return _sample(model, idx, n, lambda z: _pick(z / temperature))


@wrong("generate", "sample_topk_zero")
def _(model, idx, n, temperature=1.0, top_k=None):
    def choose(z):
        z = z / temperature
        if top_k is not None:
            z[z < z.topk(top_k).values[:, -1:]] = 0
        return _pick(z)

    return _sample(model, idx, n, choose)


@wrong("generate", "sample_topk_rank_not_word")
def _(model, idx, n, temperature=1.0, top_k=None):
    return _sample(model, idx, n, lambda z: _pick((z / temperature).topk(top_k or z.shape[1]).values))


@wrong("generate", "sample_no_crop")
def _(model, idx, n, temperature=1.0, top_k=None):
    return _sample(model, idx, n, lambda z: _pick(_top(z / temperature, top_k)), crop=False)


@wrong("generate", "sample_crop_front")
def _(model, idx, n, temperature=1.0, top_k=None):
    for _ in range(n):
        token = _pick(_top(model(idx[:, : model.block_size])[:, -1] / temperature, top_k))
        idx = torch.hstack([idx, token])
    return idx


@wrong("generate", "sample_one_for_all")
def _(model, idx, n, temperature=1.0, top_k=None):
    return _sample(model, idx, n, lambda z: _pick(_top(z / temperature, top_k))[0].item() + 0 * idx[:, :1])


@wrong("generate", "sample_fixed_seed")
def _(model, idx, n, temperature=1.0, top_k=None):
    torch.manual_seed(7)
    return _sample(model, idx, n, lambda z: _pick(_top(z / temperature, top_k)))


@wrong("generate", "sample_fixed_seed")
def _(model, idx, n, temperature=1.0, top_k=None):
    def choose(z):
        p = F.softmax(_top(z / temperature, top_k), -1)
        return torch.multinomial(p, 1, generator=torch.Generator().manual_seed(3))

    return _sample(model, idx, n, choose)


@wrong("generate", "sample_softmax_twice")
def _(model, idx, n, temperature=1.0, top_k=None):
    def choose(z):
        return torch.distributions.Categorical(logits=F.softmax(_top(z / temperature, top_k), -1)).sample()[:, None]

    return _sample(model, idx, n, choose)


@wrong("generate", "sample_returns_new_only")
def _(model, idx, n, temperature=1.0, top_k=None):
    return _sample(model, idx, n, lambda z: _pick(_top(z / temperature, top_k)))[:, idx.shape[1] :]


@wrong("generate", "sample_not_fed_back")
def _(model, idx, n, temperature=1.0, top_k=None):
    z = _top(model(idx[:, -model.block_size :])[:, -1] / temperature, top_k)
    return torch.cat([idx, torch.distributions.Categorical(logits=z).sample((n,)).T], 1)


@wrong("generate", "sample_one_too_many")
def _(model, idx, n, temperature=1.0, top_k=None):
    return _sample(model, idx, n + 1, lambda z: _pick(_top(z / temperature, top_k)))


@wrong("generate", "sample_uniform")
def _(model, idx, n, temperature=1.0, top_k=None):
    def choose(z):
        z = _top(z / temperature, top_k)
        return torch.multinomial(z.isfinite().float(), 1)

    return _sample(model, idx, n, choose)


@wrong("generate")
def _(model, idx, n, temperature=1.0, top_k=None):
    """Every second row repeats the row before it."""

    def choose(z):
        token = _pick(_top(z / temperature, top_k))
        token[1::2] = token[0::2][: len(token[1::2])]
        return token

    return _sample(model, idx, n, choose)
