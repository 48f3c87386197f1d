"""Tasks whose right answer is known exactly."""

from itertools import islice

import pytest
import torch

from course_utils.data.toy import copy_batches, copy_test, lookup_batches, recall_batches


def test_copy_batches_have_every_length_and_every_symbol():
    batches = list(islice(copy_batches(n_symbols=4, max_length=3, batch_size=5), 40))
    assert {batch.shape for batch in batches} == {(5, 1), (5, 2), (5, 3)}
    assert {int(symbol) for batch in batches for symbol in batch.flatten()} == {0, 1, 2, 3}


def test_copy_test_has_each_length_and_none_of_the_training_draws():
    test = copy_test(n_symbols=10, max_length=12, n_test=7)
    assert {n: x.shape for n, x in test.items()} == {n: (7, n) for n in range(1, 13)}
    trained_on = {tuple(row) for batch in islice(copy_batches(10, 12), 50) for row in batch.tolist()}
    assert not trained_on & {tuple(row) for row in test[12].tolist()}


@pytest.mark.parametrize("distance", [0, 1, 7])
def test_recall_asks_for_the_first_symbol(distance):
    x, y = next(recall_batches(distance, n_symbols=3, batch_size=50))
    assert x.shape == (50, distance + 1)
    assert y.equal(x[:, 0])
    assert x.unique().tolist() == [0, 1, 2]


def test_lookup_asks_for_a_key_that_is_there_once_and_answers_with_its_value():
    for keys, values, asked, answer in islice(lookup_batches(n_words=6, n_pairs=4, batch_size=30), 5):
        assert keys.shape == values.shape == (30, 4)
        assert all(len(set(row)) == 4 for row in keys.tolist())
        found = keys == asked.unsqueeze(1)
        assert found.sum(dim=1).eq(1).all()
        assert values[found].equal(answer)
        assert keys.min() >= 0 and keys.max() < 6


@pytest.mark.parametrize("make", [copy_batches, lambda seed: recall_batches(3, seed=seed), lookup_batches])
def test_the_same_seed_gives_the_same_batches(make):
    def flat(seed):
        batch = next(make(seed=seed))
        return torch.cat([part.flatten() for part in (batch if isinstance(batch, tuple) else (batch,))]).tolist()

    assert flat(5) == flat(5) != flat(6)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: copy_batches(n_symbols=0), "n_symbols: got 0"),
        (lambda: copy_batches(max_length=0), "max_length: got 0"),
        (lambda: copy_batches(batch_size=-1), "batch_size: got -1"),
        (lambda: recall_batches(-1), "distance: got -1"),
        (lambda: lookup_batches(4, 5), "n_pairs: got 5; 4 words allow 1 … 4"),
        (lambda: lookup_batches(4, 0), "n_pairs: got 0"),
    ],
)
def test_impossible_sizes_are_errors_that_name_the_argument(make, message):
    with pytest.raises(ValueError, match=message):
        next(make())
