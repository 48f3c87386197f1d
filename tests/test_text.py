"""The text of the character models: its parts, its alphabet, its windows."""

import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from course_utils.data.text import Characters, python_manual

SMALL = Characters(("a", "b", "c"), torch.arange(90) % 3, torch.arange(10) % 3)


def test_the_manual_is_a_real_text_of_plain_characters():
    manual = python_manual()
    assert len(manual.train) + len(manual.test) > 200_000
    assert re.fullmatch(r"[\x20-\x7e\n]+", "".join(manual.alphabet))
    assert list(manual.alphabet) == sorted(set(manual.alphabet))
    assert set(torch.cat([manual.train, manual.test]).tolist()) == set(range(len(manual.alphabet)))


def test_the_parts_are_the_text_in_order_without_overlap():
    """The last topic ends the test part, the first one begins the training part."""
    from pydoc_data.topics import topics

    manual = python_manual()
    whole = re.sub(r"[^\x20-\x7e\n]", "", "\n\n".join(text for _, text in sorted(topics.items())))
    assert manual.decode(manual.train) + manual.decode(manual.test) == whole
    assert len(manual.train) == pytest.approx(0.9 * len(whole), abs=1)


def test_the_manual_is_read_once():
    assert python_manual() is python_manual()


@given(st.text(st.sampled_from(python_manual().alphabet)))
def test_encoding_is_undone_by_decoding(text):
    ids = python_manual().encode(text)
    assert ids.dtype == torch.long and ids.shape == (len(text),)
    assert python_manual().decode(ids) == text


@pytest.mark.parametrize("character", ["é", "\t", "€"])
def test_a_character_beyond_the_alphabet_is_an_error(character):
    with pytest.raises(ValueError, match=rf"^text: {re.escape(repr(character))} is not among the \d+ characters"):
        python_manual().encode(f"a{character}b")


@pytest.mark.parametrize("part, length", [("test", 1), ("test", 9), ("train", 32), ("train", 89)])
def test_windows_are_runs_of_the_text(part, length):
    windows = SMALL.windows(length, 40, part=part)
    assert windows.shape == (40, length + 1) and windows.dtype == torch.long
    assert (((windows[:, 1:] - windows[:, :-1]) % 3) == 1).all()


def test_windows_reach_both_ends_of_the_text_and_stay_in_their_part():
    numbered = Characters(tuple("abcdefghij"), torch.arange(5), torch.arange(5, 10))
    train, test = (numbered.windows(2, 200, part=part) for part in ("train", "test"))
    assert set(train.flatten().tolist()) == set(range(5)) and set(test.flatten().tolist()) == set(range(5, 10))
    assert torch.equal(numbered.windows(2, 200), test), "the test part unless asked otherwise"


def test_the_same_seed_gives_the_same_windows():
    manual = python_manual()
    state = torch.get_rng_state()
    once, again, other = (manual.windows(16, 20, seed=seed) for seed in (4, 4, 5))
    assert torch.equal(once, again) and not torch.equal(once, other)
    assert torch.equal(torch.get_rng_state(), state)


def test_batches_are_endless_windows_of_the_training_part():
    numbered = Characters(tuple("abcdefghij"), torch.arange(8), torch.arange(8, 10))
    streams = [numbered.batches(3, 6, seed=seed) for seed in (0, 0, 1)]
    first, again, other = (torch.stack([next(stream) for _ in range(5)]) for stream in streams)
    assert first.shape == (5, 6, 4) and first.max() < 8
    assert torch.equal(first, again) and not torch.equal(first, other)
    assert len({tuple(batch.flatten().tolist()) for batch in first}) == 5, "another batch each time"


@pytest.mark.parametrize("part", ["validation", "", "Train"])
def test_an_unknown_part_is_an_error(part):
    with pytest.raises(ValueError, match=f"^part: got {part!r}, must be 'train' or 'test'"):
        SMALL.windows(2, 3, part=part)


@pytest.mark.parametrize("length", [0, -1, 10, 11])
def test_windows_that_do_not_fit_are_an_error(length):
    with pytest.raises(ValueError, match=rf"^length: got {length}, must be 1 … 9, the length of the test text"):
        SMALL.windows(length, 3)
