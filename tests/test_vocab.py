"""Words to numbers and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_utils.data.vocab import BOS, EOS, PAD, Vocab

words = st.lists(st.text(min_size=1).filter(lambda word: word not in {PAD, BOS, EOS}), min_size=1)


@given(words)
def test_decode_gives_back_what_was_encoded(sentence):
    vocab = Vocab(sentence)
    assert vocab.decode(vocab.encode(sentence)) == sentence
    assert len(vocab) == len(set(sentence)) + 3


@given(words)
def test_ids_do_not_depend_on_the_order_or_number_of_words(sentence):
    assert Vocab(sentence).words == Vocab([*reversed(sentence), *sentence, PAD]).words


def test_the_first_three_ids_are_the_special_ones():
    vocab = Vocab(["b", "a"])
    assert [vocab.words[i] for i in (vocab.pad_id, vocab.bos_id, vocab.eos_id)] == [PAD, BOS, EOS]


def test_decode_stops_at_the_end_and_skips_padding_and_start():
    vocab = Vocab(["a", "b"])
    a, b = vocab.encode(["a", "b"])
    assert vocab.decode([vocab.bos_id, a, vocab.pad_id, b, vocab.eos_id, a]) == ["a", "b"]


def test_an_unknown_word_is_named_with_words_that_are_near():
    vocab = Vocab(["Monday,", "Tuesday,", "5,"])
    with pytest.raises(ValueError, match=r"^words: 'Munday,' is not among the 6 words .*near it: 'Monday,'"):
        vocab.encode(["Tuesday,", "Munday,"])


def test_a_string_in_place_of_words_is_an_error_that_shows_the_words():
    with pytest.raises(ValueError, match=r"words: got the string 'a b'.*\['a', 'b'\]"):
        Vocab(["a", "b"]).encode("a b")


@pytest.mark.parametrize("index", [-1, 4])
def test_an_id_outside_is_named_with_the_range(index):
    with pytest.raises(ValueError, match=rf"ids: {index} is outside 0 … 3"):
        Vocab(["a"]).decode([index])
