"""Stacks of blocks beside torch's own, and the Transformer as a translator."""

import pytest
import torch
from properties.multihead import torch_twin
from torch import nn

from course_utils import experiments
from course_utils.data.batches import make_batch, training_batches
from course_utils.data.dates import date_corpus
from course_utils.encoder_decoder import DecoderBlock, PostNormBlock, TransformerTranslator, build_encoder
from course_utils.masks import causal_mask
from course_utils.multihead import FusedMultiHeadAttention, MultiHeadAttention
from course_utils.training import seed_everything
from course_utils.transformer import TransformerBlock


def randomise(module):
    for p in module.parameters():
        p.copy_(torch.randn_like(p) * 0.3)


@pytest.mark.parametrize(("block", "norm_first"), [(TransformerBlock, True), (PostNormBlock, False)])
@torch.no_grad()
def test_encoder_blocks_are_torchs(block, norm_first):
    torch.manual_seed(0)
    ours = block(12, 3, 20)
    theirs = nn.TransformerEncoderLayer(12, 3, 20, dropout=0.0, batch_first=True, norm_first=norm_first).eval()
    randomise(ours)
    theirs.self_attn = torch_twin(ours.attn)
    for mine, other in (("ln1", "norm1"), ("ln2", "norm2"), ("ff1", "linear1"), ("ff2", "linear2")):
        getattr(theirs, other).load_state_dict(getattr(ours, mine).state_dict())
    x, mask = torch.randn(2, 5, 12), causal_mask(5)
    torch.testing.assert_close(ours(x), theirs(x), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(ours(x, mask), theirs(x, src_mask=~mask), atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_the_decoder_block_is_torchs():
    torch.manual_seed(0)
    ours = DecoderBlock(12, 3, 20)
    theirs = nn.TransformerDecoderLayer(12, 3, 20, dropout=0.0, batch_first=True, norm_first=True).eval()
    randomise(ours)
    theirs.self_attn = torch_twin(ours.attn)
    theirs.multihead_attn = torch_twin(ours.cross)
    pairs = (("ln1", "norm1"), ("ln2", "norm2"), ("ln3", "norm3"), ("ff1", "linear1"), ("ff2", "linear2"))
    for mine, other in pairs:
        getattr(theirs, other).load_state_dict(getattr(ours, mine).state_dict())
    x, memory, mask = torch.randn(2, 5, 12), torch.randn(2, 7, 12), causal_mask(5)
    real = torch.tensor([[True] * 7, [True] * 4 + [False] * 3])
    wanted = theirs(x, memory, tgt_mask=~mask, memory_key_padding_mask=~real)
    torch.testing.assert_close(ours(x, memory, mask, real[:, None, None, :]), wanted, atol=1e-5, rtol=1e-5)


def test_an_encoder_has_layers_of_its_own():
    encoder = build_encoder(lambda: TransformerBlock(8, 2, 16), 3)
    one = sum(p.numel() for p in TransformerBlock(8, 2, 16).parameters())
    assert sum(p.numel() for p in encoder.parameters()) == 3 * one
    first, second = encoder.layers[0].ff1.weight, encoder.layers[1].ff1.weight
    assert not torch.equal(first, second)
    with pytest.raises(ValueError, match="n_layers: got 0"):
        build_encoder(lambda: TransformerBlock(8, 2, 16), 0)


@pytest.fixture(scope="module")
def corpus():
    return date_corpus(n_train=300, max_dates=2, max_test_dates=2, n_test=20)


def make(corpus, attention=MultiHeadAttention):
    seed_everything(0)
    return TransformerTranslator(len(corpus.source_vocab), len(corpus.target_vocab), 16, 2, attention=attention).eval()


@torch.no_grad()
def test_the_translator_does_not_see_later_words_and_not_the_padding(corpus):
    model = make(corpus)
    batch = next(training_batches(corpus, 4))
    memory = model.encode(batch)
    words = batch.target.clone()
    before = model.decode(words, memory)
    words[:, -1] = 3 + (words[:, -1] % 5)
    torch.testing.assert_close(model.decode(words, memory)[:, :-1], before[:, :-1], atol=1e-6, rtol=0)
    short, long = corpus.test[1][0], corpus.test[2][0]
    alone, together = (model(make_batch(pairs, corpus)) for pairs in ([short], [short, long]))
    torch.testing.assert_close(together[0, : alone.shape[1]], alone[0], atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_cross_attention_weights_are_one_distribution_for_each_word(corpus):
    logits, weights = make(corpus).forward_with_weights(make_batch(corpus.test[2][:3], corpus))
    assert weights.shape[:2] == logits.shape[:2]
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(weights.shape[:2]))


@torch.no_grad()
def test_the_attention_that_is_given_is_used(corpus):
    plain, fused = make(corpus), make(corpus, FusedMultiHeadAttention)
    assert isinstance(fused.decoder.layers[0].attn, FusedMultiHeadAttention)
    assert not isinstance(fused.decoder.layers[0].cross, FusedMultiHeadAttention), "whose weights nobody could see"
    fused.load_state_dict(plain.state_dict())
    batch = make_batch(corpus.test[2][:3], corpus)
    torch.testing.assert_close(plain(batch), fused(batch), atol=1e-5, rtol=1e-5)


class Mine(nn.Module):
    """An encoder block of a reader's own, whose stack takes x and nothing else."""

    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.block = TransformerBlock(d_model, n_heads, d_ff)

    def forward(self, x, mask=None):
        assert mask is not None, "the padding of the source must be hidden"
        assert mask.shape == (len(x), 1, x.shape[1], x.shape[1]), "a shape that every attention must take"
        return self.block(x, mask)


@torch.no_grad()
def test_blocks_and_stack_of_a_reader_are_used_and_get_the_mask(corpus):
    class Stack(nn.Module):
        def __init__(self, layers):
            super().__init__()
            self.layers = nn.ModuleList(layers)

        def forward(self, x, mask=None):
            for layer in self.layers:
                x = layer(x, mask)
            return x

    def stack(make_layer, n_layers):
        return Stack([make_layer() for _ in range(n_layers)])

    seed_everything(0)
    model = TransformerTranslator(
        len(corpus.source_vocab), len(corpus.target_vocab), 16, 2, 2, make_block=Mine, stack=stack
    ).eval()
    short, long = corpus.test[1][0], corpus.test[2][0]
    alone, beside = make_batch([short], corpus), make_batch([short, long], corpus)
    n = alone.target.shape[1]
    torch.testing.assert_close(model(alone)[0], model(beside)[0, :n], atol=1e-5, rtol=1e-5)


class Refusing(Mine):
    """Takes causal masks alone."""

    def forward(self, x, mask=None):
        if mask is not None:
            mask = mask.view(x.shape[1], x.shape[1])
        return self.block(x, mask)


class FirstMaskForAll(Mine):
    """Makes a causal mask of what it is given: that of the first sentence."""

    def forward(self, x, mask=None):
        return self.block(x, None if mask is None else mask.reshape(-1, *mask.shape[-2:])[0])


def test_blocks_that_take_a_mask_for_each_sentence_are_used(capsys):
    for block in (TransformerBlock, PostNormBlock, lambda *sizes: TransformerBlock(*sizes, dropout=0.9)):
        torch.manual_seed(1)
        before = torch.get_rng_state()
        assert experiments.encoder_block(block) is block
        assert torch.equal(before, torch.get_rng_state())
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("block, why", [(Refusing, "RuntimeError: shape"), (FirstMaskForAll, "notices what is hidden")])
def test_a_block_that_cannot_hide_padding_is_replaced_and_told_why(block, why, corpus, capsys):
    make_block = experiments.encoder_block(block)
    assert make_block is TransformerBlock
    line = capsys.readouterr().out
    assert line.startswith(f"Your {block.__name__} is not used in the encoder") and why in line
    assert "(B, 1, T, T)" in line and line.count("\n") == 1
    model = TransformerTranslator(len(corpus.source_vocab), len(corpus.target_vocab), 16, 2, make_block=make_block)
    assert model(next(training_batches(corpus, 4))).isfinite().all()
