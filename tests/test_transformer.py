"""The Transformer block is that of torch; the language model is causal, honest, and the same with a cache."""

import copy
import math

import pytest
import torch
from properties import close
from properties.multihead import torch_twin
from torch import nn

from course_utils.masks import causal_mask, decoder_mask, window_mask
from course_utils.multihead import FusedMultiHeadAttention, KeyValueCache, MultiHeadAttention
from course_utils.transformer import (
    AlibiAttention,
    LanguageModel,
    RotaryAttention,
    TransformerBlock,
    honest_nats,
    next_symbol_loss,
)

KINDS = LanguageModel.POSITIONS
V, BLOCK = 11, 12


def small(positions: str = "learned", **options) -> LanguageModel:
    torch.manual_seed(3)
    return LanguageModel(V, 16, n_layers=2, n_heads=2, block_size=BLOCK, positions=positions, **options).double()


def symbols(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(V, shape, generator=torch.Generator().manual_seed(seed))


def encoder_layer(block: TransformerBlock, d_ff: int) -> nn.TransformerEncoderLayer:
    """torch's pre-norm layer with the weights of ours."""
    d_model, n_heads = block.ln1.normalized_shape[0], block.attn.n_heads
    options = {"dropout": 0.0, "activation": "relu", "norm_first": True, "batch_first": True}
    layer = nn.TransformerEncoderLayer(d_model, n_heads, d_ff, **options).to(block.ln1.weight)
    layer.self_attn = torch_twin(block.attn)
    pairs = ((layer.linear1, block.ff1), (layer.linear2, block.ff2), (layer.norm1, block.ln1), (layer.norm2, block.ln2))
    for theirs, ours in pairs:
        theirs.load_state_dict(ours.state_dict())
    return layer


@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 1e-5), (torch.float64, 1e-12)])
@pytest.mark.parametrize("attention", [MultiHeadAttention, FusedMultiHeadAttention])
@pytest.mark.parametrize("mask", [None, causal_mask(6), window_mask(6, 2)], ids=["no mask", "causal", "window"])
def test_the_block_is_that_of_torch(attention, mask, dtype, tolerance):
    torch.manual_seed(0)
    block = TransformerBlock(8, 2, 20, attention=attention).to(dtype)
    for p in block.parameters():
        nn.init.normal_(p, std=0.4)  # the norms too: as made, they are ones and zeros
    layer, x = encoder_layer(block, 20), torch.randn(3, 6, 8, dtype=dtype, requires_grad=True)
    out, expected = block(x, mask), layer(x, src_mask=None if mask is None else ~mask)
    close(out, expected, tolerance)
    direction = torch.randn_like(out)
    for parameter, other in ((x, x), (block.ff1.weight, layer.linear1.weight), (block.ln1.weight, layer.norm1.weight)):
        mine = torch.autograd.grad((out * direction).sum(), parameter, retain_graph=True)[0]
        close(mine, torch.autograd.grad((expected * direction).sum(), other, retain_graph=True)[0], 10 * tolerance)


def test_dropout_acts_on_what_is_added_and_only_in_training():
    torch.manual_seed(0)
    block, x = TransformerBlock(8, 2, 16, dropout=1.0), torch.randn(2, 5, 8)
    assert torch.equal(block(x), x), "everything added is dropped"
    without = TransformerBlock(8, 2, 16)
    without.load_state_dict(block.state_dict())
    assert torch.equal(block.eval()(x), without(x))
    assert not torch.allclose(without(x), x)


def test_a_block_takes_an_attention_that_knows_no_caches():
    class Own(nn.Module):
        def __init__(self, d_model, n_heads):
            super().__init__()
            self.sizes = (d_model, n_heads)

        def forward(self, x_q, x_kv=None, mask=None):
            return torch.zeros_like(x_q)

    block = TransformerBlock(8, 2, 16, attention=Own)
    assert block.attn.sizes == (8, 2)
    assert block(torch.randn(2, 3, 8), causal_mask(3)).shape == (2, 3, 8)


@pytest.mark.parametrize("kind", [RotaryAttention, AlibiAttention])
def test_attention_with_positions_looks_at_the_distance_only(kind):
    """Two more tokens in front, hidden by a window: the others do not notice."""
    torch.manual_seed(1)
    attend, x = kind(8, 2).double(), torch.randn(2, 9, 8, dtype=torch.float64)
    later = attend(x, mask=window_mask(9, 3))[:, 4:]
    close(attend(x[:, 2:], mask=window_mask(7, 3))[:, 2:], later)
    order = torch.tensor([1, 0, *range(2, 9)])
    assert not torch.allclose(attend(x[:, order])[:, order], attend(x)), "but at the order they do look"


def test_rotary_and_alibi_attention_hide_what_the_mask_hides():
    tokens = symbols(3, 6)
    mask = decoder_mask(tokens, pad_id=int(tokens[0, 0]))
    for kind in (RotaryAttention, AlibiAttention):
        torch.manual_seed(0)
        attend, x = kind(8, 2), torch.randn(3, 6, 8)
        poisoned = torch.where((tokens == tokens[0, 0]).unsqueeze(-1), 100.0, x)
        out = attend(x, mask=mask)
        assert out.isfinite().all(), "the first row of the first sentence sees nothing"
        read = tokens != tokens[0, 0]
        close(attend(poisoned, mask=mask)[read], out[read], 1e-5)


@pytest.mark.parametrize("positions", KINDS)
def test_the_future_does_not_change_the_past(positions):
    model, idx = small(positions), symbols(2, BLOCK)
    before = model(idx)
    for t in range(BLOCK - 1):
        changed = idx.clone()
        changed[:, t + 1 :] = (changed[:, t + 1 :] + 1 + t % 5) % V
        after = model(changed)
        close(after[:, : t + 1], before[:, : t + 1], 1e-6)
        assert (after[:, t + 1] - before[:, t + 1]).abs().max() > 1e-3


@pytest.mark.parametrize("positions", KINDS)
def test_without_a_mask_the_future_leaks(positions):
    model, idx = small(positions, mask=None), symbols(2, BLOCK)
    changed = idx.clone()
    changed[:, -1] = (changed[:, -1] + 1) % V
    assert ((model(changed) - model(idx)).abs().amax(dim=(0, 2)) > 1e-6).all()


@pytest.mark.parametrize("positions", KINDS)
def test_a_window_limits_what_a_layer_can_reach(positions):
    """Two layers of windows of 3 reach back 4 positions."""
    model, idx = small(positions, mask=lambda T: window_mask(T, 3)), symbols(2, BLOCK)
    changed = idx.clone()
    changed[:, 2] = (changed[:, 2] + 1) % V
    moved = (model(changed) - model(idx)).abs().amax(dim=(0, 2)) > 1e-9
    assert moved.tolist() == [2 <= t <= 6 for t in range(BLOCK)]


@pytest.mark.parametrize("positions", KINDS)
def test_only_without_positions_is_the_order_of_the_past_unknown(positions):
    model, idx = small(positions, mask=None), symbols(1, 6)
    order = torch.tensor([3, 1, 0, 4, 2, 5])
    same = torch.allclose(model(idx[:, order])[:, -1], model(idx)[:, -1], atol=1e-9)
    assert same == (positions == "none")


@pytest.mark.parametrize("pieces", [[12], [1] * 12, [5, 7], [3, 1, 1, 4, 3]], ids=str)
@pytest.mark.parametrize("positions", KINDS)
def test_reading_in_pieces_is_reading_at_once(positions, pieces):
    for options in ({}, {"mask": lambda T: window_mask(T, 4)}):
        model, idx = small(positions, **options), symbols(2, BLOCK)
        caches = model.new_caches()
        logits = [model(piece, caches) for piece in idx.split(pieces, dim=1)]
        close(torch.cat(logits, dim=1), model(idx), 1e-9)
        assert [len(cache) for cache in caches] == [BLOCK, BLOCK]


def test_every_reading_gets_caches_of_its_own():
    model = small()
    first, second = model.new_caches(), model.new_caches()
    assert len({id(cache) for cache in first + second}) == 4
    model(symbols(1, 3), first)
    assert [len(cache) for cache in second] == [0, 0]
    assert len(KeyValueCache()) == 0


@pytest.mark.parametrize("positions", KINDS)
def test_only_learned_positions_end_at_block_size(positions):
    model, longer = small(positions), symbols(2, BLOCK + 3)
    if positions == "learned":
        with pytest.raises(ValueError, match=rf"positions up to {BLOCK + 3}, but only {BLOCK} were learned"):
            model(longer)
        caches = model.new_caches()
        model(longer[:, :BLOCK], caches)
        with pytest.raises(ValueError, match=rf"positions up to {BLOCK + 1}, but only {BLOCK} were learned"):
            model(longer[:, BLOCK : BLOCK + 1], caches)
    else:
        assert model(longer).shape == (2, BLOCK + 3, V)


@pytest.mark.parametrize("positions", KINDS)
def test_honest_nats_of_a_causal_model_are_its_loss(positions):
    model, windows = small(positions), symbols(5, BLOCK + 1)
    assert honest_nats(model, windows) == pytest.approx(next_symbol_loss(model, windows).item(), abs=1e-9)


def test_honest_nats_find_out_a_model_that_peeks():
    class Peeking(nn.Module):
        """Says the next symbol when it is there, and nothing otherwise."""

        def forward(self, idx):
            following = torch.cat([idx[:, 1:], torch.zeros_like(idx[:, :1])], dim=1)
            logits = 50.0 * nn.functional.one_hot(following, V)
            logits[:, -1] = 0.0
            return logits

    windows = symbols(4, 9)
    assert honest_nats(Peeking(), windows) == pytest.approx(math.log(V))
    assert next_symbol_loss(Peeking(), windows).item() == pytest.approx(math.log(V) / 8, abs=1e-6)


def test_next_symbol_loss_is_the_mean_surprise_at_each_next_symbol():
    model, windows = small(), symbols(3, 5)
    shares = model(windows[:, :4]).softmax(dim=-1).detach()
    surprises = [-math.log(shares[i, t, windows[i, t + 1]]) for i in range(3) for t in range(4)]
    assert next_symbol_loss(model, windows).item() == pytest.approx(sum(surprises) / 12)


def test_the_scores_share_their_weights_with_the_embedding():
    model = small()
    assert model.head.weight is model.emb.weight and model.head.bias is None
    assert sum(p.numel() for p in model.parameters() if p.shape == (V, 16)) == V * 16
    moved = copy.deepcopy(model).float()
    assert moved.head.weight is moved.emb.weight


def test_an_unknown_kind_of_positions_is_an_error_that_lists_the_kinds():
    with pytest.raises(ValueError, match=r"^positions: got 'rotary', must be one of 'learned', .*'rope'"):
        LanguageModel(V, positions="rotary")


@pytest.mark.parametrize("positions", KINDS)
def test_a_fresh_model_is_undecided(positions):
    torch.manual_seed(0)
    loss = next_symbol_loss(LanguageModel(V, positions=positions), symbols(20, 33))
    assert loss.item() == pytest.approx(math.log(V), abs=0.5)


@pytest.mark.parametrize("positions", ["rope", "alibi"])
def test_another_attention_does_not_silently_replace_the_one_that_knows_positions(positions):
    with pytest.raises(ValueError, match=rf"^attention: .*positions.*{positions}"):
        LanguageModel(V, positions=positions, attention=MultiHeadAttention)


@pytest.mark.parametrize("positions", ["learned", "sinusoidal", "none"])
def test_another_attention_gives_the_same_model(positions):
    fused, own = small(positions), small(positions, attention=MultiHeadAttention)
    assert isinstance(own.blocks[0].attn, MultiHeadAttention)
    own.load_state_dict(fused.state_dict())
    close(own(symbols(2, 7)), fused(symbols(2, 7)))
    assert own.blocks[1].attn.weights.shape == (2, 2, 7, 7)


@pytest.mark.parametrize("positions", KINDS)
def test_a_model_works_on_another_device(positions):
    model = small(positions).to("meta")
    idx = torch.empty(2, 5, dtype=torch.long, device="meta")
    caches = model.new_caches()
    assert model(idx).device.type == model(idx, caches).device.type == model(idx[:, :1], caches).device.type == "meta"


@torch.no_grad()
def test_blocks_of_a_reader_stand_in_the_model():
    class Mine(TransformerBlock):
        """No cache, no keyword beyond the course's signature."""

        def forward(self, x, mask=None):
            assert mask is not None
            return super().forward(x, mask)

    torch.manual_seed(0)
    model = LanguageModel(9, 16, 3, 2, make_block=Mine)
    assert [type(block) for block in model.blocks] == [Mine] * 3 and model.blocks[0].ff1.out_features == 64
    plain = LanguageModel(9, 16, 3, 2)
    plain.load_state_dict(model.state_dict())
    idx = torch.randint(9, (2, 7))
    torch.testing.assert_close(model(idx), plain(idx))
    bare = LanguageModel(9, 16, 1, 2, final_norm=False)
    assert isinstance(bare.norm, torch.nn.Identity)


@pytest.mark.parametrize("also", [{"attention": MultiHeadAttention}, {"positions": "rope"}])
def test_two_ways_to_choose_the_attention_are_an_error(also):
    with pytest.raises(ValueError, match="make_block: blocks made by it have their own attention"):
        LanguageModel(9, 16, make_block=TransformerBlock, **also)
