"""Properties of the Transformer as a translator; it is put together once more from torch's layers."""

import copy
import math

import torch
from torch import Tensor, nn

from course_utils.data.batches import Batch
from course_utils.data.vocab import Vocab
from course_utils.encoder_decoder import PostNormBlock
from course_utils.multihead import FusedMultiHeadAttention, MultiHeadAttention
from course_utils.positions import sinusoidal_positions
from course_utils.transformer import TransformerBlock
from properties import Case, close, states
from properties.blocks import causal, layer_twin, randomise

V_SOURCE, V_TARGET = 9, 7


def _batch(case: Case) -> Batch:
    """Sentences of several lengths, with padding at the end of both sides."""
    lengths = case.lengths()
    source = 3 + case.integers(V_SOURCE - 3, case.B, case.T)
    target = 3 + Case(seed=case.seed + 7).integers(V_TARGET - 3, case.B, case.T + 2)
    for i, n in enumerate(lengths.tolist()):
        source[i, n:] = Vocab.pad_id
        target[i, n + 2 :] = Vocab.pad_id
    return Batch(source, lengths, target)


def _model(kind: type[nn.Module], case: Case, **options) -> nn.Module:
    return randomise(kind(V_SOURCE, V_TARGET, 4 * case.H, case.H, 2, **options), case.seed)


def _embed(emb: nn.Embedding, idx: Tensor) -> Tensor:
    d_model = emb.embedding_dim
    return math.sqrt(d_model) * emb.weight[idx] + sinusoidal_positions(idx.shape[1], d_model).double()


def _blocks(model: nn.Module) -> list[nn.Module]:
    """Those of the encoder, however they are packed."""
    return [module for module in model.encoder.modules() if isinstance(module, TransformerBlock)]


def _states(model: nn.Module, batch: Batch, norm_first: bool = True) -> Tensor:
    """What torch's encoder makes of the source."""
    x = _embed(model.source_emb, batch.source)
    for block in _blocks(model):
        twin = layer_twin(block, nn.TransformerEncoderLayer, norm_first)
        x = twin(x, src_key_padding_mask=~batch.source_mask)
    return model.encoder_norm(x)


def _logits(model: nn.Module, words: Tensor, states: Tensor, batch: Batch) -> Tensor:
    """What torch's decoder makes of it."""
    x = _embed(model.target_emb, words)
    for block in model.decoder.layers:
        twin = layer_twin(block, nn.TransformerDecoderLayer, norm_first=True)
        hidden = {"tgt_mask": ~causal(words.shape[1]), "memory_key_padding_mask": ~batch.source_mask}
        x = twin(x, states, **hidden)
    return model.out(model.decoder_norm(x))


@states("TransformerTranslator")
@torch.no_grad()
def a_translator_is_an_encoder_and_a_decoder_of_torch(TransformerTranslator, case: Case):
    model, batch = _model(TransformerTranslator, case), _batch(case)
    memory = model.encode(batch)
    expected = _states(model, batch)
    real = batch.source_mask
    close(memory[0][real], expected[real])
    assert torch.equal(memory[1], real[:, None, None])
    shifted = torch.cat([torch.full_like(batch.target[:, :1], Vocab.bos_id), batch.target[:, :-1]], dim=1)
    close(model(batch), _logits(model, shifted, expected, batch))
    close(model.decode(batch.target, memory), _logits(model, batch.target, expected, batch))


@states("TransformerTranslator")
@torch.no_grad()
def a_translator_shows_the_heads_of_its_last_block_on_average(TransformerTranslator, case: Case):
    model, batch = _model(TransformerTranslator, case), _batch(case)
    logits, weights = model.forward_with_weights(batch)
    assert torch.equal(logits, model(batch))
    heads = model.decoder.layers[-1].cross.weights
    close(weights, sum(heads[:, i] for i in range(case.H)) / case.H)
    assert not weights.masked_fill(batch.source_mask[:, None], 0.0).any()


@states("TransformerTranslator")
@torch.no_grad()
def a_translator_is_made_of_the_parts_it_is_given(TransformerTranslator, case: Case):
    batch = _batch(case)
    plain = _model(TransformerTranslator, case)
    assert {type(block) for block in _blocks(plain)} == {TransformerBlock}
    other = _model(TransformerTranslator, case, make_block=PostNormBlock, attention=FusedMultiHeadAttention)
    assert {type(block) for block in _blocks(other)} == {PostNormBlock}
    assert {type(block.attn) for block in other.decoder.layers} == {FusedMultiHeadAttention}
    assert {type(block.attn) for block in plain.decoder.layers} == {MultiHeadAttention}
    for block in (*other.decoder.layers, *plain.decoder.layers):
        assert type(block.cross) is MultiHeadAttention
    real = batch.source_mask
    close(other.encode(batch)[0][real], _states(other, batch, norm_first=False)[real])
    same = _model(TransformerTranslator, case, shift=lambda target, bos_id: (target + bos_id) % V_TARGET)
    moved = (batch.target + Vocab.bos_id) % V_TARGET
    close(same(batch), _logits(same, moved, _states(same, batch), batch))


@states("TransformerTranslator")
@torch.no_grad()
def a_translator_stacks_its_encoder_as_it_is_told(TransformerTranslator, case: Case):
    stacked = []

    def reversed_stack(make_layer, n_layers):
        stacked.append(n_layers)
        layers = [make_layer() for _ in range(n_layers)]
        return nn.Sequential(*reversed(layers))

    model, batch = _model(TransformerTranslator, case, stack=reversed_stack), _batch(case)
    assert stacked == [2]
    real = batch.source_mask
    close(model.encode(batch)[0][real], _states(model, batch)[real])


@states("TransformerTranslator")
@torch.no_grad()
def a_copy_hides_padding_like_the_original(TransformerTranslator, case: Case):
    """A stack that deep-copies one layer, and a deep copy of the whole model."""

    def copying_stack(make_layer, n_layers):
        layer = make_layer()
        return nn.Sequential(*(copy.deepcopy(layer) for _ in range(n_layers)))

    model, batch = _model(TransformerTranslator, case, stack=copying_stack), _batch(case)
    twin = copy.deepcopy(model)
    for one in (model, twin):
        close(one.encode(batch)[0][batch.source_mask], _states(one, batch)[batch.source_mask])


@states("TransformerTranslator")
def a_fresh_translator_has_words_as_large_as_positions(TransformerTranslator, case: Case):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(case.seed)
        model = TransformerTranslator(200, 100, 16, 2)
    assert (len(_blocks(model)), len(model.decoder.layers)) == (1, 1)
    assert model.source_emb.weight.shape == (200, 16) and model.target_emb.weight.shape == (100, 16)
    for emb in (model.source_emb, model.target_emb):
        assert 0.85 < emb.weight.std() * 4 < 1.15
    for block in (*_blocks(model), *model.decoder.layers):
        assert (block.ff1.out_features, block.attn.n_heads) == (32, 2)
