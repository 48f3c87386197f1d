"""Deep stacks, variants of the block, and what can be seen inside of trained blocks."""

import math
from functools import partial

import pytest
import torch
from torch import nn

from course_utils import experiments
from course_utils.data.batches import make_batch
from course_utils.data.dates import date_corpus
from course_utils.data.text import python_manual
from course_utils.encoder_decoder import PostNormBlock, TransformerTranslator
from course_utils.multihead import FusedMultiHeadAttention, MultiHeadAttention
from course_utils.training import n_parameters
from course_utils.transformer import LanguageModel, TransformerBlock

TEXT = python_manual()


def test_an_unknown_variant_is_an_error_that_lists_the_known_ones():
    with pytest.raises(ValueError, match="variant: got 'sandwich', must be one of 'pre-norm', 'post-norm'"):
        experiments.deep_model(TEXT, 2, "sandwich")


def test_a_deep_model_is_the_same_for_the_same_seed():
    one, same, other = (experiments.deep_model(TEXT, 2, seed=s).blocks[1].ff1.weight for s in (3, 3, 4))
    assert torch.equal(one, same) and not torch.equal(one, other)
    assert experiments.deep_model(TEXT, 2).blocks[0].ff1.bias.abs().max() == 0


def test_without_residual_positions_become_alike_and_with_it_they_do_not():
    for seed in range(3):
        alone = experiments.likeness(experiments.deep_model(TEXT, 12, "neither", seed=seed), TEXT)
        beside = experiments.likeness(experiments.deep_model(TEXT, 12, "pre-norm", seed=seed), TEXT)
        assert len(alone) == len(beside) == 12
        assert alone[-1] > 0.99 and beside[-1] < 0.95


def test_gradients_reach_the_first_block_only_with_a_residual():
    for seed in range(3):
        kept = experiments.gradient_norms(experiments.deep_model(TEXT, 24, "pre-norm", seed=seed), TEXT)
        lost = experiments.gradient_norms(experiments.deep_model(TEXT, 24, "neither", seed=seed), TEXT)
        assert kept[0] > 0.1 * kept[-1] and lost[0] < 1e-5


def test_the_stream_carries_gradients_only_with_a_residual():
    for seed in range(3):
        kept = experiments.stream_gradients(experiments.deep_model(TEXT, 24, "pre-norm", seed=seed), TEXT)
        lost = experiments.stream_gradients(experiments.deep_model(TEXT, 24, "neither", seed=seed), TEXT)
        assert len(kept) == len(lost) == 24
        assert kept[0] >= kept[-1] and lost[0] < 1e-3 * lost[-1]


def test_looking_leaves_no_gradient_and_no_hook_behind():
    model = experiments.deep_model(TEXT, 2)
    experiments.gradient_norms(model, TEXT)
    experiments.likeness(model, TEXT)
    experiments.stream_gradients(model, TEXT)
    assert all(p.grad is None or p.grad.abs().sum() == 0 for p in model.parameters())
    assert all(not block._forward_hooks for block in model.blocks)


def test_a_run_that_diverges_has_no_number():
    model = experiments.deep_model(TEXT, 2)
    nn.init.constant_(model.emb.weight, float("inf"))
    nats, history = experiments.train_deep(model, TEXT, steps=5)
    assert math.isnan(nats) and history.diverged


def test_a_warm_up_starts_with_small_steps():
    """The first of a hundred steps of warm-up moves the weights a hundredth as far."""
    moved = {}
    for warmup in (0, 100):
        model = experiments.deep_model(TEXT, 2)
        before = model.blocks[0].ff1.weight.detach().clone()
        experiments.train_deep(model, TEXT, warmup=warmup, steps=1)
        moved[warmup] = (model.blocks[0].ff1.weight - before).abs().mean().item()
    assert moved[100] == pytest.approx(moved[0] / 100, rel=0.05)


def test_every_variant_trains_and_is_scored(monkeypatch):
    monkeypatch.setenv("COURSE_SMOKE", "1")
    for name, make_block in experiments.BLOCKS.items():
        model, nats = experiments.train_blocks(make_block, TEXT, d=8, label=name)
        assert 0 < nats < 10, name
        load = experiments.expert_load(model, TEXT)
        assert len(load) == (2 if "experts" in name else 0)
        assert all(sum(layer) == pytest.approx(1) for layer in load)


def test_the_gated_network_has_the_parameters_of_the_plain_one():
    plain, gated = (
        n_parameters(LanguageModel(9, 48, 1, make_block=experiments.BLOCKS[name]))
        for name in ("ReLU, 4 times", "SwiGLU, 8/3 times")
    )
    assert gated == pytest.approx(plain, rel=0.02)


def test_held_out_nats_is_the_mean_over_all_predictions():
    model = LanguageModel(len(TEXT.alphabet), 8, 1, 2, 32)
    nn.init.zeros_(model.emb.weight)  # every score is zero: a uniform guess
    assert experiments.held_out_nats(model, TEXT) == pytest.approx(math.log(len(TEXT.alphabet)), abs=1e-5)


@pytest.mark.parametrize(("block", "norm_first"), [(TransformerBlock, True), (PostNormBlock, False)])
@torch.no_grad()
def test_torchs_layer_with_the_weights_of_a_block_is_that_block(block, norm_first):
    torch.manual_seed(0)
    ours, x = block(12, 3, 20), torch.randn(2, 5, 12)
    for p in ours.parameters():
        p.copy_(torch.randn_like(p) * 0.3)
    theirs = experiments.torch_encoder_layer(ours, 3, norm_first=norm_first)
    torch.testing.assert_close(theirs(x), ours(x), atol=1e-5, rtol=1e-5)
    other = experiments.torch_encoder_layer(ours, 3, norm_first=not norm_first)
    assert (other(x) - ours(x)).abs().max() > 0.1
    assert experiments.torch_encoder_layer(nn.Linear(3, 3), 3, norm_first=True) is None


@torch.no_grad()
def test_a_module_of_a_readers_own_adopts_the_weights_of_a_reference():
    class Copies(FusedMultiHeadAttention):
        def copy_from(self, reference):
            self.load_state_dict(reference.state_dict())
            self.asked = True

    torch.manual_seed(0)
    reference, x = TransformerBlock(12, 3, 20), torch.randn(2, 5, 12)
    for attention in (FusedMultiHeadAttention, MultiHeadAttention, Copies):
        mine = TransformerBlock(12, 3, 20, attention=attention)
        assert experiments.adopt(mine, reference)
        torch.testing.assert_close(mine(x), reference(x), atol=1e-5, rtol=1e-5)
        assert hasattr(mine.attn, "asked") == (attention is Copies)
    assert not experiments.adopt(TransformerBlock(12, 3, 20, attention=Packed), reference)
    assert not experiments.adopt(TransformerBlock(12, 3, 24), reference)


class Packed(nn.Module):
    """Attention that keeps its numbers in its own way."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        self.inside = nn.MultiheadAttention(d_model, n_heads, batch_first=True)

    def forward(self, x_q, x_kv=None, mask=None):
        x_kv = x_q if x_kv is None else x_kv
        if mask is not None:
            mask = ~mask.expand(len(x_q), self.inside.num_heads, x_q.shape[1], x_kv.shape[1]).flatten(0, 1)
        return self.inside(x_q, x_kv, x_kv, attn_mask=mask)[0]


def test_an_attention_that_is_called_in_another_way_is_left_alone():
    class Inner(MultiHeadAttention):
        def forward(self, x, mask):
            return super().forward(x, mask=mask)

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.mine, self.standard = Inner(8, 2), FusedMultiHeadAttention(8, 2)

    shown = experiments.showing_weights(Outer(), 2)
    assert type(shown.mine) is Inner and type(shown.standard) is MultiHeadAttention


@pytest.mark.parametrize("attention", [FusedMultiHeadAttention, Packed])
@torch.no_grad()
def test_the_maps_of_a_translator(attention):
    corpus = date_corpus(n_train=20, max_dates=1, max_test_dates=1, n_test=2)
    torch.manual_seed(0)
    model = TransformerTranslator(
        len(corpus.source_vocab),
        len(corpus.target_vocab),
        16,
        2,
        attention=attention,
        make_block=partial(TransformerBlock, attention=attention),
    ).eval()
    pair = corpus.test[1][0]
    shown = experiments.showing_weights(model, 2)
    batch = make_batch([pair], corpus)
    torch.testing.assert_close(shown(batch), model(batch), atol=1e-5, rtol=1e-5)
    found = {where: (w, q, k) for where, w, q, k in experiments.translator_maps(model, corpus, pair, 2)}
    names = {"cross-attention"}
    if attention is FusedMultiHeadAttention:  # whose numbers have the course's names
        names |= {"encoder self-attention", "decoder self-attention"}
    assert set(found) == names
    for weights, queries, keys in found.values():
        assert weights.shape == (len(queries), len(keys))
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones(len(queries)))
    if "decoder self-attention" in found:
        assert found["decoder self-attention"][0].triu(1).abs().max() == 0, "no look ahead"
        assert found["encoder self-attention"][0].triu(1).abs().max() > 0, "both ways"
    assert not any(isinstance(m, MultiHeadAttention) for m in model.encoder.modules() if attention is Packed)
