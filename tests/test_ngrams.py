"""n-grams: probabilities that sum to one, and the same as a plain dictionary gives."""

import math
from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.ngrams import NGram

texts = st.integers(2, 5).flatmap(
    lambda vocab: st.tuples(st.just(vocab), st.lists(st.integers(0, vocab - 1), min_size=4, max_size=60))
)
orders = st.integers(1, 4)


def plain(text: list[int], vocab: int, n: int, context: tuple[int, ...], symbol: int) -> float:
    """Witten and Bell's formula on dictionaries, one symbol; n counts down to the uniform distribution."""
    if n == 0:
        return 1 / vocab
    context = context[len(context) - min(n - 1, len(context)) :]
    k = len(context)
    counts = Counter(text[i + k] for i in range(len(text) - k) if tuple(text[i : i + k]) == context)
    shorter = plain(text, vocab, k, context[1:], symbol)
    if not counts:
        return shorter
    return (counts[symbol] + len(counts) * shorter) / (counts.total() + len(counts))


def probability(model: NGram, window: list[int]) -> float:
    """Of the last symbol, from the surprise at all symbols of the window less that at the others."""
    whole = model.nats(torch.tensor([window])) * (len(window) - 1)
    others = model.nats(torch.tensor([window[:-1]])) * (len(window) - 2) if len(window) > 2 else 0.0
    return math.exp(others - whole)


@given(texts, orders, st.data())
@settings(max_examples=40)
def test_it_is_the_formula_on_dictionaries(text, n, data):
    vocab, ids = text
    model = NGram(torch.tensor(ids), vocab, n)
    windows = data.draw(st.lists(st.lists(st.integers(0, vocab - 1), min_size=5, max_size=5), min_size=1, max_size=3))
    surprises = [
        -math.log(plain(ids, vocab, min(n, t + 1), tuple(row[:t]), row[t])) for row in windows for t in range(1, 5)
    ]
    assert model.nats(torch.tensor(windows)) == pytest.approx(sum(surprises) / len(surprises), abs=1e-9)


@given(texts, orders, st.data())
@settings(max_examples=40)
def test_the_probabilities_after_any_context_sum_to_one(text, n, data):
    vocab, ids = text
    model = NGram(torch.tensor(ids), vocab, n)
    context = data.draw(st.lists(st.integers(0, vocab - 1), min_size=1, max_size=5))
    shares = [probability(model, [*context, symbol]) for symbol in range(vocab)]
    assert sum(shares) == pytest.approx(1.0, abs=1e-9)
    assert min(shares) > 0, "nothing is impossible"


@given(texts)
def test_one_symbol_alone_is_its_smoothed_frequency(text):
    vocab, ids = text
    model, kinds = NGram(torch.tensor(ids), vocab, 1), len(set(ids))
    for symbol in range(vocab):
        expected = (ids.count(symbol) + kinds / vocab) / (len(ids) + kinds)
        assert probability(model, [0, symbol]) == pytest.approx(expected)


def test_only_the_last_symbols_count():
    model = NGram(torch.randint(4, (500,), generator=torch.Generator().manual_seed(0)), 4, 3)
    shares = [probability(model, [*before, 2, 3, 0]) for before in ([], [0], [3, 0], [1, 1, 1])]
    assert shares == pytest.approx([shares[0]] * 4, abs=1e-9)
    assert probability(model, [0, 3, 0]) != pytest.approx(shares[0], abs=1e-9)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_text_of_one_symbol_is_soon_certain(n):
    model = NGram(torch.full((1000,), 2), 4, n)
    assert model.nats(torch.full((3, 9), 2)) < 0.01
    assert model.nats(torch.full((3, 9), 1)) > 5


@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_a_context_that_was_never_seen_is_no_problem(n):
    text = torch.tensor([0, 1] * 50)
    assert math.isfinite(
        NGram(text, 50, n).nats(torch.randint(50, (20, 12), generator=torch.Generator().manual_seed(0)))
    )


@pytest.mark.parametrize("n", [1, 2, 3])
def test_noise_costs_the_logarithm_of_the_vocabulary(n):
    text = torch.randint(6, (30_000,), generator=torch.Generator().manual_seed(0))
    windows = torch.randint(6, (300, 20), generator=torch.Generator().manual_seed(1))
    assert NGram(text, 6, n).nats(windows) == pytest.approx(math.log(6), abs=0.03)


def test_more_context_helps_where_the_text_has_a_rule():
    """Each symbol is the sum of the two before it: a bigram knows nothing, a trigram nearly everything."""
    ids = [1, 1]
    while len(ids) < 3000:
        ids.append((ids[-1] + ids[-2]) % 7 if len(ids) % 50 else len(ids) // 50 % 7)
    text = torch.tensor(ids)
    windows = text[torch.arange(0, 2500, 50).unsqueeze(1) + torch.arange(3, 20)]
    one, two, three = (NGram(text, 7, n).nats(windows) for n in (1, 2, 3))
    assert three < 0.4 * min(one, two)


@pytest.mark.parametrize("n", [0, -1])
def test_n_below_one_is_an_error(n):
    with pytest.raises(ValueError, match=rf"^n: got {n}, must be at least 1"):
        NGram(torch.tensor([0, 1]), 2, n)


def test_too_many_different_ngrams_are_an_error():
    assert NGram(torch.tensor([0, 1] * 20), 96, 9).n == 9
    with pytest.raises(ValueError, match=r"^vocab, n: 96 symbols and n = 10"):
        NGram(torch.tensor([0, 1] * 20), 96, 10)


@pytest.mark.parametrize("length, n", [(0, 1), (2, 3), (3, 5)])
def test_a_text_shorter_than_n_is_an_error_that_says_so(length, n):
    with pytest.raises(ValueError, match=rf"^ids: got {length} symbols.* {n}"):
        NGram(torch.zeros(length, dtype=torch.long), 2, n)


@pytest.mark.parametrize("wrong", [-1, 3, 7])
def test_a_symbol_beyond_the_vocabulary_is_an_error(wrong):
    """As a digit in base 3 it would count as another n-gram."""
    with pytest.raises(ValueError, match=rf"^ids: got {wrong}.* 2"):
        NGram(torch.tensor([0, 1, wrong, 2]), 3, 2)
    with pytest.raises(ValueError, match=rf"^windows: got {wrong}.* 2"):
        NGram(torch.tensor([0, 1, 2]), 3, 2).nats(torch.tensor([[0, wrong]]))
