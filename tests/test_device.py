"""The device is chosen once, and nothing that a model makes on the way stays behind on another one."""

import pytest
import torch
from torch import nn

from course_utils import baselines, image_baselines, role_models
from course_utils.block_variants import BlockVariant, FeedForward, MixtureOfExperts, ModernBlock, RMSNorm, SwiGLU
from course_utils.data.batches import make_batch
from course_utils.data.dates import date_corpus
from course_utils.device import choose_device, to_device
from course_utils.encoder_decoder import PostNormBlock, TransformerTranslator
from course_utils.masks import causal_mask, decoder_mask, padding_mask, window_mask
from course_utils.multihead import FusedMultiHeadAttention, MultiHeadAttention, blockwise_attention
from course_utils.positions import TokenEmbedding
from course_utils.seq2seq import AttentionTranslator, FixedContextTranslator
from course_utils.training import train
from course_utils.transformer import LanguageModel, TiedLM, TransformerBlock
from course_utils.vision import VisionTransformer

META = torch.device("meta")


def test_the_argument_beats_the_environment_and_that_beats_the_machine(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.delenv("COURSE_DEVICE", raising=False)
    assert choose_device().type == "cuda"
    monkeypatch.setenv("COURSE_DEVICE", "mps")
    assert choose_device().type == "mps"
    assert choose_device("cpu").type == "cpu"
    assert choose_device("cuda:1") == torch.device("cuda:1")
    with pytest.raises(ValueError, match=r"device: 'cuda:2' was asked for, but this machine's last card is cuda:1"):
        choose_device("cuda:2")


def test_without_a_card_it_is_the_cpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    monkeypatch.setenv("COURSE_DEVICE", " Auto ")
    assert choose_device().type == "cpu"
    with pytest.raises(ValueError, match=r"device: 'cuda' was asked for, but this machine has cpu"):
        choose_device("cuda")
    monkeypatch.setenv("COURSE_DEVICE", "gpu")
    for wrong in ("gpu", "cuda:x", "cuda:", "cpu0"):
        monkeypatch.setenv("COURSE_DEVICE", wrong)
        told = rf"COURSE_DEVICE: got '{wrong}', must be auto or one of cpu, cuda, mps; this machine has cpu"
        with pytest.raises(ValueError, match=told):
            choose_device()
    monkeypatch.setenv("COURSE_DEVICE", "mps")
    with pytest.raises(ValueError, match=r"COURSE_DEVICE: 'mps' was asked for, but this machine has cpu"):
        choose_device()
    monkeypatch.setenv("COURSE_DEVICE", " ")
    assert choose_device().type == "cpu"


@pytest.fixture(scope="module")
def batch():
    corpus = date_corpus(n_train=20, max_dates=2, max_test_dates=2, n_test=2)
    return corpus, make_batch([*corpus.test[1], *corpus.test[2]], corpus)


def test_batches_of_every_kind_move(batch):
    pair = {"x": (torch.ones(2), [torch.zeros(1)]), "n": 3}
    moved = to_device(pair, META)
    assert moved["x"][0].device == moved["x"][1][0].device == META and moved["n"] == 3
    there = to_device(batch[1], META)
    assert there.source.device == there.target.device == there.source_mask.device == there.target_mask.device == META
    assert there.source_lengths.device.type == "cpu" and not there.all_full


def models():
    """Every model of the course that can be called on the meta device, with what it is fed there."""
    words = torch.zeros(2, 7, dtype=torch.long, device=META)
    x = torch.zeros(2, 7, 16, device=META)
    picture = torch.zeros(2, 1, 8, 8, device=META)
    mask = causal_mask(7, META)
    yield from (
        (f"LanguageModel, {p}", LanguageModel(9, 16, 2, 2, 16, positions=p), (words,)) for p in LanguageModel.POSITIONS
    )
    yield "TiedLM", TiedLM(9, 16), (words,)
    yield "TokenEmbedding", TokenEmbedding(9, 16), (words,)
    for block in (TransformerBlock, PostNormBlock):
        yield block.__name__, block(16, 2, 32), (x, mask)
    for norm in BlockVariant.NORMS:
        yield f"BlockVariant, {norm}", BlockVariant(16, 2, 32, norm=norm), (x, mask)
    yield "ModernBlock", ModernBlock(16, 2, 32, make_norm=RMSNorm, make_ffn=SwiGLU), (x, mask)
    yield "FeedForward", FeedForward(16, 32), (x,)
    for kind in (MultiHeadAttention, FusedMultiHeadAttention):
        yield kind.__name__, kind(16, 2), (x, x, mask)
    for kind in ("none", "learned", "sinusoidal"):
        tokens = torch.zeros(2, 8, dtype=torch.long, device=META)
        yield f"SingleHeadReader, {kind}", role_models.SingleHeadReader(positions=kind), (tokens,)
    yield "MultiHeadReader", role_models.MultiHeadReader(n_heads=2), (tokens,)
    yield "VisionTransformer", VisionTransformer(8, 2), (picture,)
    yield "CNN", image_baselines.SmallCNN(8), (picture,)
    yield "MLP", image_baselines.SmallMLP(8), (picture,)
    yield "DilatedCNN", baselines.DilatedCNN(16), (x,)
    yield "CausalAttention", baselines.CausalAttention(16), (x,)


@pytest.mark.parametrize(("model", "inputs"), [pytest.param(m, i, id=n) for n, m, i in models()])
def test_models_make_nothing_on_another_device(model: nn.Module, inputs):
    assert model.to(META)(*inputs).device == META


@pytest.mark.parametrize("kind", [TransformerTranslator, FixedContextTranslator, AttentionTranslator])
def test_translators_make_nothing_on_another_device(batch, kind):
    corpus, _ = batch
    full = make_batch(corpus.test[1][:1] * 2, corpus)  # torch packs padded sentences on real devices only
    model = kind(len(corpus.source_vocab), len(corpus.target_vocab)).to(META)
    assert model(to_device(full, META)).device == META


def test_the_transformer_takes_padded_sentences_along(batch):
    corpus, padded = batch
    model = TransformerTranslator(len(corpus.source_vocab), len(corpus.target_vocab)).to(META)
    logits, weights = model.forward_with_weights(to_device(padded, META))
    assert logits.device == weights.device == META


def test_masks_are_made_where_they_are_needed():
    assert causal_mask(4, META).device == window_mask(4, 2, META).device == META
    assert padding_mask(torch.tensor([1, 2], device=META), 4).device == META
    assert decoder_mask(torch.zeros(2, 4, dtype=torch.long, device=META), 0).device == META
    q = torch.zeros(2, 10, 4, device=META)
    assert blockwise_attention(q, q, q, block=4, causal=True).device == META


def test_experts_are_chosen_where_the_positions_are():
    """Which positions an expert gets depends on numbers, and on the meta device there are none: look at one expert."""
    experts = MixtureOfExperts(8, 16, n_experts=1).to(META)
    weights, chosen = experts.choose(torch.zeros(5, 8, device=META))
    assert weights.device == chosen.device == META


def test_training_leaves_the_model_on_the_cpu_and_measures_there():
    seen = []
    model = nn.Linear(3, 2)

    def batches():
        while True:
            yield (torch.ones(4, 3), torch.zeros(4, 2))

    def loss_of(model, batch):
        seen.append(batch[0].device.type)
        return (model(batch[0]) - batch[1]).pow(2).mean()

    train(model, loss_of, batches(), 3, device="cpu", measure=lambda m: seen.append(m.weight.device.type))
    assert set(seen) == {"cpu"} and model.weight.device.type == "cpu" and not model.training
