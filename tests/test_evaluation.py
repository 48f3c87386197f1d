"""Exact match, token accuracy and alignment, on models whose scores are known."""

import pytest
import torch
from torch import nn

from course_utils.data.dates import Pair, date_corpus
from course_utils.evaluation import Scores, alignment_accuracy, translation_scores
from course_utils.experiments import train_translator
from course_utils.seq2seq import AttentionTranslator, FixedContextTranslator, translate


@pytest.fixture(scope="module")
def corpus():
    return date_corpus(n_train=400, n_test=30, max_dates=2, max_test_dates=2)


class Oracle(nn.Module):
    """Knows the target; `spoil` may change what it is going to say."""

    def __init__(self, corpus, spoil=lambda said, batch: said):
        super().__init__()
        self.corpus, self.spoil = corpus, spoil

    def forward(self, batch):
        said = self.spoil(batch.target.clone(), batch)
        return nn.functional.one_hot(said, len(self.corpus.target_vocab)).double()


class AligningOracle(Oracle):
    """Knows the gold alignment as well; where there is none it looks at the first word."""

    def __init__(self, corpus, shift=0):
        super().__init__(corpus)
        self.gold = {
            tuple(corpus.target_vocab.encode(pair.target)): pair for pairs in corpus.test.values() for pair in pairs
        }
        self.shift = shift

    def forward_with_weights(self, batch):
        weights = torch.zeros(*batch.target.shape, batch.source.shape[1])
        for i, row in enumerate(batch.target.tolist()):
            pair = self.gold[tuple(word for word in row if word > 2)]
            for t, gold in enumerate(pair.alignment):
                weights[i, t, ((gold or 0) + self.shift) % batch.source.shape[1]] = 1
        return self(batch), weights


def test_an_oracle_has_full_scores(corpus):
    scores = translation_scores(Oracle(corpus), corpus)
    assert scores == Scores({1: 1.0, 2: 1.0}, {1: 1.0, 2: 1.0}, None)


def test_padding_is_neither_right_nor_wrong(corpus):
    def spoil_padding(said, batch):
        said[~batch.target_mask] = 5
        return said

    scores = translation_scores(Oracle(corpus, spoil_padding), corpus)
    assert scores.exact_match == scores.token_accuracy == {1: 1.0, 2: 1.0}


def test_one_wrong_word_costs_the_sentence_and_one_word(corpus):
    def spoil_half(said, batch):
        said[::2, 1] = 0
        return said

    scores = translation_scores(Oracle(corpus, spoil_half), corpus)
    for n, pairs in corpus.test.items():
        words = sum(len(pair.target) + 1 for pair in pairs)
        assert scores.exact_match[n] == 0.5
        assert scores.token_accuracy[n] == pytest.approx(1 - 15 / words)


def test_a_missing_end_of_sentence_is_a_mistake(corpus):
    def never_ends(said, batch):
        said[said == 2] = 5
        return said

    assert translation_scores(Oracle(corpus, never_ends), corpus).exact_match == {1: 0.0, 2: 0.0}


def test_a_model_that_looks_at_the_gold_words_is_aligned(corpus):
    scores = translation_scores(AligningOracle(corpus), corpus)
    assert scores.alignment == {1: 1.0, 2: 1.0}
    assert scores.mean_alignment(2) == 1.0
    assert scores.exact_match == {1: 1.0, 2: 1.0}
    assert translation_scores(AligningOracle(corpus, shift=1), corpus).alignment == {1: 0.0, 2: 0.0}


def test_alignment_counts_words_with_a_gold_word_only():
    pairs = [Pair(("a", "b"), ("x", "y", "z"), (1, None, 0), 1), Pair(("a",), ("x",), (0,), 1)]
    weights = torch.zeros(2, 3, 2)
    weights[0, 0, 1] = weights[0, 2, 1] = weights[1, 0, 0] = 1.0  # right, wrong, right
    assert alignment_accuracy(weights, pairs) == pytest.approx(2 / 3)


def test_the_mean_alignment_is_over_the_lengths_asked_for():
    scores = Scores({}, {}, {1: 1.0, 2: 0.5, 3: 0.0})
    assert scores.mean_alignment(up_to=2) == 0.75
    assert scores.mean_alignment(up_to=3) == 0.5


def test_without_attention_there_is_no_alignment():
    with pytest.raises(ValueError, match="alignment: this model has no attention weights"):
        Scores({1: 1.0}, {1: 1.0}, None).mean_alignment(1)


def test_no_length_to_average_over_is_an_error_that_names_the_argument():
    with pytest.raises(ValueError, match="up_to: "):
        Scores({}, {}, {3: 1.0}).mean_alignment(up_to=2)


@pytest.mark.parametrize("kind", [FixedContextTranslator, AttentionTranslator])
def test_teacher_forcing_gives_the_exact_match_of_greedy_decoding(kind, corpus):
    torch.manual_seed(1)
    model = kind(len(corpus.source_vocab), len(corpus.target_vocab), d_emb=16, d=32)
    model.train()
    untrained = translation_scores(model, corpus)
    assert not model.training, "scores are taken in eval mode"
    assert untrained.exact_match == {1: 0.0, 2: 0.0}
    train_translator(model, corpus, steps=300, lr=2e-2, batch_size=16)
    scores = translation_scores(model, corpus)
    for n, pairs in corpus.test.items():
        said = translate(model, [pair.source for pair in pairs], corpus)
        right = [words == list(pair.target) for words, pair in zip(said, pairs, strict=True)]
        assert scores.exact_match[n] == pytest.approx(sum(right) / len(right))
    assert scores.exact_match[1] > 0, "a model that gets nothing right would prove nothing"
    assert scores.token_accuracy[1] > untrained.token_accuracy[1]
