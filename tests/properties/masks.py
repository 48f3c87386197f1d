"""Properties of the masks and of pooling; loops over single positions are the judge."""

import torch

from properties import Case, close, gradients, raises, states


def _pairs(T: int, may_see) -> torch.Tensor:
    return torch.tensor([[may_see(t, s) for s in range(T)] for t in range(T)], dtype=torch.bool).view(T, T)


@states("causal_mask")
def the_causal_mask_shows_itself_and_the_past(causal_mask, case: Case):
    for T in (0, 1, case.T):
        mask = causal_mask(T)
        assert mask.dtype == torch.bool and torch.equal(mask, _pairs(T, lambda t, s: s <= t))


@states("window_mask")
def the_window_shows_the_last_positions(window_mask, case: Case):
    for window in range(1, case.T + 1):
        mask = window_mask(case.T, window)
        assert mask.dtype == torch.bool and torch.equal(mask, _pairs(case.T, lambda t, s: t - window < s <= t))  # noqa: B023
        assert mask.sum(dim=1).max() == window


@states("window_mask")
def a_wide_window_is_the_causal_mask(window_mask, case: Case):
    for window in (case.T, case.T + 1, 10 * case.T):
        assert torch.equal(window_mask(case.T, window), torch.ones(case.T, case.T).tril() == 1)


@states("window_mask")
def a_window_of_nothing_is_an_error(window_mask, case: Case):
    for window in (0, -1):
        raises(lambda: window_mask(case.T, window), f"window: got {window}, must be at least 1")  # noqa: B023


@states("padding_mask")
def the_padding_mask_counts_from_the_front(padding_mask, case: Case):
    lengths = case.lengths()
    lengths[-1] = 0
    mask = padding_mask(lengths, case.T)
    assert mask.dtype == torch.bool
    assert mask.tolist() == [[t < n for t in range(case.T)] for n in lengths.tolist()]
    assert not padding_mask(lengths, case.T + 2)[:, case.T :].any()


@states("decoder_mask")
def the_decoder_mask_is_causal_and_hides_padding(decoder_mask, case: Case):
    tokens = case.integers(3, case.B, case.T)
    for pad_id in range(3):  # padding at the end, at the front and inside
        mask = decoder_mask(tokens, pad_id)
        assert mask.shape == (case.B, 1, case.T, case.T) and mask.dtype == torch.bool
        for i, row in enumerate(tokens.tolist()):
            assert torch.equal(mask[i, 0], _pairs(case.T, lambda t, s: s <= t and row[s] != pad_id))  # noqa: B023


def _pool_inputs(case: Case):
    return case.random()(case.B, case.T, case.D), case.lengths()


@states("mean_pool")
def pooling_is_the_mean_of_each_sentence(mean_pool, case: Case):
    x, lengths = _pool_inputs(case)
    pooled = mean_pool(x, lengths)
    for i, n in enumerate(lengths.tolist()):
        close(pooled[i], x[i, :n].mean(dim=0))
    close(mean_pool(x.float(), lengths), pooled.float(), 1e-5)


@states("mean_pool")
def pooling_never_sees_padding(mean_pool, case: Case):
    x, lengths = _pool_inputs(case)
    poisoned = torch.cat([x, torch.full_like(x[:, :2], torch.inf)], dim=1)
    for i, n in enumerate(lengths.tolist()):
        poisoned[i, n:] = torch.nan
    close(mean_pool(poisoned, lengths), mean_pool(x, lengths))


@states("mean_pool")
def pooling_nothing_gives_zeros(mean_pool, case: Case):
    x, lengths = _pool_inputs(case)
    lengths[0] = 0
    pooled = mean_pool(x.requires_grad_(), lengths)
    assert not pooled[0].any() and pooled.isfinite().all()
    (slope,) = gradients(pooled, [x], torch.ones_like(pooled))
    for i, n in enumerate(lengths.tolist()):
        close(slope[i, :n], torch.full((n, case.D), 1 / max(n, 1), dtype=torch.float64))
        assert not slope[i, n:].any()
