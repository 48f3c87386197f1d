"""Blocks with parts left out or replaced: each equals the block it should equal, and differs where it should."""

import pytest
import torch
from torch import nn

from course_utils.block_variants import BlockVariant, FeedForward, MixtureOfExperts, ModernBlock, RMSNorm, SwiGLU
from course_utils.encoder_decoder import PostNormBlock
from course_utils.masks import causal_mask
from course_utils.training import n_parameters
from course_utils.transformer import TransformerBlock


def randomise(module):
    with torch.no_grad():
        for p in module.parameters():
            p.copy_(torch.randn_like(p) * 0.3)


@pytest.mark.parametrize(("norm", "named"), [("pre", TransformerBlock), ("post", PostNormBlock)])
@torch.no_grad()
def test_the_variants_that_have_a_name_are_these_blocks(norm, named):
    torch.manual_seed(0)
    ours, theirs = BlockVariant(12, 3, 20, norm=norm), named(12, 3, 20)
    randomise(ours)
    theirs.load_state_dict(ours.state_dict())
    x, mask = torch.randn(2, 5, 12), causal_mask(5)
    torch.testing.assert_close(ours(x, mask), theirs(x, mask))


@pytest.mark.parametrize("norm", BlockVariant.NORMS)
@torch.no_grad()
def test_a_residual_carries_the_input_when_the_sublayers_are_silent(norm):
    torch.manual_seed(0)
    x = torch.randn(2, 5, 12)
    for residual in (True, False):
        block = BlockVariant(12, 3, 20, norm=norm, residual=residual)
        for layer in (block.attn.W_o, block.ff2):
            nn.init.zeros_(layer.weight), nn.init.zeros_(layer.bias)
        unit = nn.functional.layer_norm(x, (12,))
        wanted = (unit if norm == "post" else x) if residual else torch.zeros_like(x)
        torch.testing.assert_close(block(x), wanted, atol=1e-4, rtol=1e-4)


def test_without_norm_there_are_no_weights_for_it():
    norms = n_parameters(BlockVariant(12, 3, 20)) - n_parameters(BlockVariant(12, 3, 20, norm="none"))
    assert norms == 2 * 2 * 12


def test_unknown_choices_are_errors_that_list_the_known_ones():
    with pytest.raises(ValueError, match="norm: got 'middle', must be one of 'pre', 'post', 'none'"):
        BlockVariant(12, 3, 20, norm="middle")
    with pytest.raises(ValueError, match="activation: got 'tanh', must be one of 'relu', 'gelu', 'none'"):
        FeedForward(4, 8, "tanh")
    with pytest.raises(ValueError, match="n_experts: got 0, must be at least 1"):
        MixtureOfExperts(4, 8, 0)


@torch.no_grad()
def test_rms_norm_is_torchs():
    torch.manual_seed(0)
    ours, theirs = RMSNorm(7), nn.RMSNorm(7, eps=1e-5)
    randomise(ours)
    theirs.weight.copy_(ours.gamma)
    x = torch.randn(3, 2, 7) * 5 + 2
    torch.testing.assert_close(ours(x), theirs(x))


@torch.no_grad()
def test_swiglu_shuts_and_opens_with_its_gate():
    torch.manual_seed(0)
    layer, x = SwiGLU(6, 10), torch.rand(4, 6) + 0.5
    layer.gate.weight.fill_(-50.0)  # SiLU of a very negative number is zero
    torch.testing.assert_close(layer(x), torch.zeros(4, 6))
    layer.gate.weight.fill_(0).fill_diagonal_(0)
    layer.gate.weight[:, 0] = 100.0  # SiLU of a large number is the number: the middle is 100 x_0 · up(x)
    torch.testing.assert_close(layer(x), layer.down(100 * x[:, :1] * layer.up(x)))


@torch.no_grad()
def test_modern_blocks_are_the_plain_one_with_plain_parts():
    torch.manual_seed(0)
    ours, plain = ModernBlock(12, 3, 20), TransformerBlock(12, 3, 20)
    randomise(ours)
    weights = {name.replace("ffn.", ""): value for name, value in ours.state_dict().items()}
    plain.load_state_dict(weights)
    x, mask = torch.randn(2, 5, 12), causal_mask(5)
    torch.testing.assert_close(ours(x, mask), plain(x, mask))


def mixture(n_experts=3):
    torch.manual_seed(1)
    layer = MixtureOfExperts(6, 10, n_experts)
    randomise(layer)
    return layer


@torch.no_grad()
def test_each_position_goes_through_the_expert_of_its_choice():
    layer, x = mixture(), torch.randn(2, 9, 6)
    out = layer(x)
    weights, chosen = layer.choose(x.reshape(-1, 6))
    for i, position in enumerate(x.reshape(-1, 6)):
        e = int(weights[i].argmax())
        assert e == int(chosen[i])
        torch.testing.assert_close(out.reshape(-1, 6)[i], weights[i, e] * layer.experts[e](position))
    counted = torch.bincount(chosen, minlength=3) / 18
    torch.testing.assert_close(layer.load, counted)
    assert len(set(chosen.tolist())) > 1, "the test would not see a router that never changes"


@torch.no_grad()
def test_a_position_does_not_hear_of_the_others():
    layer, x = mixture(), torch.randn(1, 5, 6)
    moved = x.clone()
    moved[0, 2] += 1
    change = (layer(moved) - layer(x)).abs().amax(dim=-1)[0]
    assert change[2] > 1e-3 and change[[0, 1, 3, 4]].max() < 1e-6


def test_the_balance_loss_is_one_for_an_even_load_and_n_for_a_single_expert():
    layer = MixtureOfExperts(4, 8, 4)
    with torch.no_grad():
        layer.router.weight.copy_(torch.eye(4) * 50)
    layer(torch.eye(4))
    assert layer.balance_loss.item() == pytest.approx(1)
    layer(torch.eye(4)[:1].expand(4, 4))
    assert layer.balance_loss.item() == pytest.approx(4)


def test_router_and_chosen_experts_learn():
    layer, x = mixture(), torch.randn(30, 6)
    layer(x).pow(2).sum().backward()
    assert layer.router.weight.grad.abs().sum() > 0
    for share, expert in zip(layer.load.tolist(), layer.experts, strict=True):
        learned = expert.ff1.weight.grad is not None and bool(expert.ff1.weight.grad.abs().sum() > 0)
        assert learned == (share > 0)
    layer.zero_grad()
    layer(x)
    layer.balance_loss.backward()
    assert layer.router.weight.grad.abs().sum() > 0, "the auxiliary loss must reach the router"
