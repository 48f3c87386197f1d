"""The two translators: what they see, what they must not see, and that they learn."""

import math

import pytest
import torch

from course_utils.attention import additive_attention, masked_softmax
from course_utils.data.batches import Batch, make_batch, training_batches
from course_utils.data.dates import date_corpus
from course_utils.data.vocab import Vocab
from course_utils.decoding import greedy_decode, shift_right
from course_utils.experiments import train_translator
from course_utils.seq2seq import AttentionTranslator, Encoder, FixedContextTranslator, GivenSource, translate

KINDS = [FixedContextTranslator, AttentionTranslator]


@pytest.fixture(scope="module")
def corpus():
    return date_corpus(n_train=300, n_test=20, max_dates=2, max_test_dates=3)


@pytest.fixture(scope="module")
def batch(corpus):
    """Sentences of different length on both sides."""
    return make_batch([corpus.test[n][i] for i, n in enumerate((2, 1, 3, 1))], corpus)


def make(kind, corpus, **options):
    torch.manual_seed(0)
    return kind(len(corpus.source_vocab), len(corpus.target_vocab), d_emb=6, d=8, **options).eval()


def alone(batch, i):
    """Sentence i in a batch of its own, without padding."""
    n, m = int(batch.source_lengths[i]), int(batch.target_mask[i].sum())
    return Batch(batch.source[i : i + 1, :n], batch.source_lengths[i : i + 1], batch.target[i : i + 1, :m])


@pytest.mark.parametrize("kind", KINDS)
def test_there_are_logits_for_every_target_word(kind, corpus, batch):
    logits = make(kind, corpus)(batch)
    assert logits.shape == (*batch.target.shape, len(corpus.target_vocab))
    assert logits.isfinite().all()


@pytest.mark.parametrize("kind", KINDS)
def test_teacher_forcing_is_decoding_of_the_shifted_target(kind, corpus, batch):
    model = make(kind, corpus)
    fed = shift_right(batch.target, Vocab.bos_id)
    memory = model.encode(batch)
    logits = model(batch)
    torch.testing.assert_close(model.decode(fed, memory), logits)
    for n in (1, 4):
        torch.testing.assert_close(model.decode(fed[:, :n], memory), logits[:, :n])


@pytest.mark.parametrize("kind", KINDS)
def test_a_later_target_word_changes_no_earlier_logits(kind, corpus, batch):
    model = make(kind, corpus)
    at = 3
    target = batch.target.clone()
    target[:, at] = 3 + (target[:, at] - 2) % (len(corpus.target_vocab) - 3)
    before, after = model(batch), model(Batch(batch.source, batch.source_lengths, target))
    torch.testing.assert_close(after[:, : at + 1], before[:, : at + 1], rtol=0, atol=0)
    assert (after[:, at + 1] - before[:, at + 1]).abs().amax(dim=-1).gt(1e-6).all(), "the next word must see it"


@pytest.mark.parametrize("kind", KINDS)
def test_a_sentence_gets_the_same_logits_alone_and_in_a_batch(kind, corpus, batch):
    model = make(kind, corpus)
    together = model(batch)
    for i in range(len(batch.source)):
        own = model(alone(batch, i))
        torch.testing.assert_close(own[0], together[i, : own.shape[1]], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_the_words_of_the_source_matter(kind, corpus, batch):
    model = make(kind, corpus)
    for at in (0, 2):
        source = batch.source.clone()
        source[:, at] = 3 + (source[:, at] - 2) % (len(corpus.source_vocab) - 3)
        changed = model(Batch(source, batch.source_lengths, batch.target)) - model(batch)
        assert changed.abs().amax(dim=(1, 2)).gt(1e-6).all()


def test_the_encoder_gives_zeros_on_padding_and_reads_both_ways(corpus, batch):
    torch.manual_seed(0)
    encoder = Encoder(len(corpus.source_vocab), 6, 8)
    states, summary = encoder(batch.source, batch.source_lengths)
    assert not states[~batch.source_mask].any() and states[batch.source_mask].any(dim=-1).all()
    last = batch.source_lengths - 1
    for i in range(len(batch.source)):
        forward, backward = states[i, last[i], :4], states[i, 0, 4:]
        torch.testing.assert_close(summary[i], torch.cat([forward, backward]))


def test_an_odd_width_is_an_error():
    with pytest.raises(ValueError, match="d: got 7, must be even"):
        FixedContextTranslator(5, 5, d=7)


def test_the_fixed_translator_knows_nothing_but_its_context(corpus, batch):
    model = make(FixedContextTranslator, corpus)
    context = model.encode(batch)
    assert context.shape == (len(batch.source), 8)
    words = shift_right(batch.target, Vocab.bos_id)
    one, two = model.decode(words, context), model.decode(words, context.flip(0))
    assert not torch.allclose(one, two)
    torch.testing.assert_close(two.flip(0)[0], model.decode(words.flip(0), context)[0])


def test_the_weights_are_shares_of_real_source_words(corpus, batch):
    logits, weights = make(AttentionTranslator, corpus).forward_with_weights(batch)
    assert weights.shape == (*batch.target.shape, batch.source.shape[1])
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(batch.target.shape))
    hidden = ~batch.source_mask.unsqueeze(1).expand_as(weights)
    assert hidden.any() and not weights[hidden].any()
    torch.testing.assert_close(logits, make(AttentionTranslator, corpus)(batch))


def test_another_attention_function_is_really_used(corpus, batch):
    asked = []

    def first_word_only(query, keys, W_q, W_k, v, mask):
        asked.append((query.shape, keys.shape, W_q.shape, W_k.shape, v.shape, mask))
        weights = torch.zeros(keys.shape[:2])
        weights[:, 0] = 1
        return keys[:, 0], weights

    model = make(AttentionTranslator, corpus, attention=first_word_only)
    logits, weights = model.forward_with_weights(batch)
    assert len(asked) == batch.target.shape[1], "one question for every target word"
    B, Ts = batch.source.shape
    assert asked[0][:-1] == ((B, 8), (B, Ts, 8), (8, 8), (8, 8), (8,))
    assert asked[0][-1].equal(batch.source_mask)
    assert weights[:, :, 0].eq(1).all()
    assert not torch.allclose(logits, make(AttentionTranslator, corpus)(batch))


def test_a_dot_product_can_take_the_place_of_the_additive_score(corpus, batch):
    def dot(query, keys, W_q, W_k, v, mask):
        weights = masked_softmax(torch.einsum("bd,btd->bt", query @ W_q, keys @ W_k), mask)
        return torch.einsum("bt,btd->bd", weights, keys), weights

    _, weights = make(AttentionTranslator, corpus, attention=dot).forward_with_weights(batch)
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(batch.target.shape))


def test_a_batch_without_padding_needs_no_mask(corpus, batch):
    masks = []

    def spy(*arguments):
        masks.append(arguments[-1])
        return additive_attention(*arguments)

    make(AttentionTranslator, corpus, attention=spy)(alone(batch, 0))
    assert all(mask is None for mask in masks)


def test_another_shift_is_really_used(corpus, batch):
    for kind in KINDS:
        lazy = make(kind, corpus, shift=torch.full_like)  # the start token everywhere
        torch.testing.assert_close(lazy(batch)[0, 0], make(kind, corpus)(batch)[0, 0])
        assert not torch.allclose(lazy(batch), make(kind, corpus)(batch))


def test_where_the_decoder_starts(corpus, batch):
    """The first question comes from the summary, from a linear map of it, or from nothing."""
    questions = {}
    for start in AttentionTranslator.STARTS:

        def spy(query, *rest, start=start):
            questions.setdefault(start, query)
            return additive_attention(query, *rest)

        model = make(AttentionTranslator, corpus, start=start, attention=spy)
        model(batch)
        summary = model.encode(batch)[1]
        if start == "last":
            assert questions[start].equal(summary)
        if start == "linear":
            torch.testing.assert_close(questions[start], torch.tanh(model.start(summary)))
        assert (model.start is not None) == (start == "linear")
    assert not questions["zeros"].any()


def test_an_unknown_start_is_an_error_with_the_choices():
    with pytest.raises(ValueError, match="start: got 'first', must be one of 'last', 'linear', 'zeros'"):
        AttentionTranslator(5, 5, start="first")


@pytest.mark.parametrize("kind", KINDS)
def test_a_translation_model_is_a_language_model_of_its_target(kind, corpus, batch):
    model = make(kind, corpus)
    given_source = GivenSource(model, batch)
    assert given_source.block_size >= 1000
    begin = torch.full((len(batch.source), 1), Vocab.bos_id)
    ids = greedy_decode(given_source, begin, 5, Vocab.eos_id)
    logits = model.decode(ids[:, :-1], model.encode(batch))
    ended = (ids[:, :-1] == Vocab.eos_id).cumsum(dim=1) > 0
    assert (logits.argmax(dim=-1) == ids[:, 1:])[~ended].all()


@pytest.mark.parametrize("kind", KINDS)
def test_an_untrained_model_translates_into_words(kind, corpus):
    model = make(kind, corpus)
    sentences = [pair.source for pair in corpus.test[2][:2]] + [corpus.test[1][0].source]
    said = translate(model, sentences, corpus, max_words=7)
    assert len(said) == 3 and all(len(words) <= 7 for words in said)
    assert all(word in corpus.target_vocab.words[3:] for words in said for word in words)
    assert [translate(model, [one], corpus, max_words=7)[0] for one in sentences] == said, "alone or in a batch"


def test_translate_uses_the_decoder_it_is_given(corpus):
    def say_march(model, idx, n, eos_id):
        assert idx.shape == (1, 1) and n == 9 and eos_id == Vocab.eos_id
        assert model(idx).shape == (1, 1, len(corpus.target_vocab))
        return torch.tensor([[Vocab.bos_id, *corpus.target_vocab.encode(["március"]), Vocab.eos_id, 5]])

    model = make(AttentionTranslator, corpus)
    assert translate(model, [corpus.test[1][0].source], corpus, max_words=9, decode=say_march) == [["március"]]


def test_translate_says_what_is_wrong(corpus):
    model = make(AttentionTranslator, corpus)
    with pytest.raises(ValueError, match="empty batch"):
        translate(model, [], corpus)
    with pytest.raises(ValueError, match="'Someday,' is not among"):
        translate(model, [["Someday,"]], corpus)


@pytest.mark.parametrize("kind", KINDS)
def test_a_short_run_learns_to_read_the_source(kind):
    corpus = date_corpus(n_train=500, n_test=5, max_dates=1, max_test_dates=1)
    torch.manual_seed(0)
    model = kind(len(corpus.source_vocab), len(corpus.target_vocab), d_emb=16, d=32)
    history = train_translator(model, corpus, steps=100, lr=3e-2, batch_size=16)
    # Without the source, a perfect decoder would still guess: year, month, day, weekday, and a sure end.
    blind = (math.log(30) + math.log(12) + math.log(31) + math.log(7)) / 5
    assert history.losses[0] > 1.5 * blind
    assert history.final_loss < 0.75 * blind
    assert not model.training


def test_two_models_are_trained_on_the_same_examples(corpus):
    seen = {}
    for kind in KINDS:
        fed = seen[kind] = []

        def shift(target, bos_id, fed=fed):
            fed.append(target)
            return shift_right(target, bos_id)

        train_translator(make(kind, corpus, shift=shift), corpus, steps=3, batch_size=4, seed=5)
    expected = [next_batch.target for next_batch, _ in zip(training_batches(corpus, 4, 5), range(3), strict=False)]
    for fed in seen.values():
        assert all(one.equal(two) for one, two in zip(fed, expected, strict=True))
