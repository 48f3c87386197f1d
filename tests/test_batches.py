"""Sentences of different length in one tensor."""

from itertools import islice

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from course_utils.data.batches import make_batch, pad, training_batches
from course_utils.data.dates import Pair, date_corpus
from course_utils.data.vocab import Vocab

rows = st.lists(st.lists(st.integers(3, 50), max_size=6), min_size=1, max_size=5)


@pytest.fixture(scope="module")
def corpus():
    return date_corpus(n_train=200, n_test=5, max_dates=3, max_test_dates=3)


@given(rows, st.integers(-5, 2))
def test_pad_keeps_rows_and_fills_up_on_the_right(rows, pad_id):
    padded, lengths = pad(rows, pad_id)
    assert lengths.tolist() == [len(row) for row in rows]
    assert padded.dtype == torch.long
    assert padded.shape == (len(rows), max(1, *lengths.tolist(), 1))
    for row, filled in zip(rows, padded.tolist(), strict=True):
        assert filled == row + [pad_id] * (padded.shape[1] - len(row))


def test_a_batch_holds_its_sentences_each_with_its_end(corpus):
    pairs = [corpus.test[3][0], corpus.test[1][0], corpus.test[2][1]]
    batch = make_batch(pairs, corpus)
    for i, pair in enumerate(pairs):
        source, target = batch.source[i][batch.source_mask[i]], batch.target[i][batch.target_mask[i]]
        assert source[-1] == target[-1] == Vocab.eos_id
        assert corpus.source_vocab.decode(source) == list(pair.source)
        assert corpus.target_vocab.decode(target) == list(pair.target)
        assert batch.source_lengths[i] == len(pair.source) + 1
        assert not batch.source[i][~batch.source_mask[i]].any(), "padding is id 0"
    assert batch.source_mask.sum(dim=1).equal(batch.source_lengths)


def test_an_empty_batch_is_an_error(corpus):
    with pytest.raises(ValueError, match=r"^rows: got an empty batch"):
        pad([])
    with pytest.raises(ValueError, match=r"^pairs: got an empty batch"):
        make_batch([], corpus)


def test_a_word_of_another_corpus_is_an_error_that_names_it(corpus):
    with pytest.raises(ValueError, match="'Donnerstag,' is not among"):
        make_batch([Pair(("Donnerstag,",), (), (), 1)], corpus)


def test_a_batch_without_sentences_is_an_error(corpus):
    with pytest.raises(ValueError, match=r"^batch_size: got 0, must be at least 1"):
        next(training_batches(corpus, 0))


def same(one, two) -> bool:
    return one.source.equal(two.source) and one.target.equal(two.target)


def test_the_same_seed_gives_the_same_batches_whatever_torch_does_in_between(corpus):
    one, two = training_batches(corpus, 4, seed=3), training_batches(corpus, 4, seed=3)
    for batch in islice(one, 8):
        torch.rand(1)
        assert same(batch, next(two))
    assert not all(map(same, islice(one, 8), training_batches(corpus, 4, seed=4)))


def test_the_sentences_of_a_batch_have_the_same_number_of_dates(corpus):
    dates_of = {pair.source: pair.n_dates for pair in corpus.train}
    seen = set()
    for batch in islice(training_batches(corpus, 6, seed=0), 30):
        assert batch.source.shape[0] == 6
        (n,) = {dates_of[tuple(corpus.source_vocab.decode(row))] for row in batch.source.tolist()}
        seen.add(n)
    assert seen == {1, 2, 3}
