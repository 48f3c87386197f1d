"""The translation task: the sentences are those of CLDR, and the gold alignment says the same fact twice."""

import datetime as dt
import re

import pytest
from babel import dates as babel_dates
from babel import lists
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.data.dates import FIRST_DAY, LAST_DAY, date_corpus, date_pair, is_held_out
from course_utils.data.vocab import Vocab

LANGUAGES = ["ar", "cs", "de", "es", "eu", "fil", "fr", "he", "hu", "it", "ko", "lt", "pt", "ru", "vi"]
# Languages where each word says at most one fact and each fact is one word: there the alignment can be turned round.
ONE_WORD_A_FACT = ["de", "es", "fil", "hu", "it", "ru"]

some_days = st.lists(st.dates(FIRST_DAY, LAST_DAY), min_size=1, max_size=5)
languages = st.sampled_from(LANGUAGES)


def full(day: dt.date, locale: str) -> str:
    return babel_dates.format_date(day, "full", locale=locale)


def fields(locale: str) -> list[str]:
    """The field patterns of a full date, such as EEEE, MMMM, d and y."""
    return re.findall(r"E+|M+|d+|y+", re.sub("'[^']*'", "", babel_dates.get_date_format("full", locale).pattern))


def english_facts(words: tuple[str, ...]) -> list[tuple[int, str] | None]:
    """What each English word says, told from the word alone; every English date begins with its weekday."""
    weekdays = set(babel_dates.get_day_names(locale="en").values())
    months = set(babel_dates.get_month_names(locale="en").values())
    facts, date = [], -1
    for word in words:
        bare = word.strip(",")
        field = "E" if bare in weekdays else "M" if bare in months else None
        if bare.isdigit():
            field = "y" if len(bare) == 4 else "d"
        date += field == "E"
        facts.append((date, field) if field else None)
    return facts


@settings(max_examples=60)
@given(days=some_days, language=languages)
def test_a_sentence_is_what_babel_writes_split_at_spaces(days, language):
    pair = date_pair(days, language)
    for words, locale in ((pair.source, "en"), (pair.target, language)):
        assert list(words) == lists.format_list([full(day, locale) for day in days], locale=locale).split()
    assert pair.n_dates == len(days)
    assert len(pair.alignment) == len(pair.target)


@settings(max_examples=60)
@given(days=some_days, language=languages)
def test_aligned_words_say_the_same_field_of_the_same_date(days, language):
    pair = date_pair(days, language)
    facts = english_facts(pair.source)
    patterns = {pattern[0]: pattern for pattern in fields(language)}
    for word, gold in zip(pair.target, pair.alignment, strict=True):
        if gold is None:
            continue
        date, field = facts[gold]
        said = babel_dates.format_date(days[date], patterns[field], locale=language).split()
        assert any(part in word for part in said), (word, pair.source[gold])


@settings(max_examples=60)
@given(days=some_days, language=languages)
def test_every_fact_is_aligned_and_no_glue_is(days, language):
    pair = date_pair(days, language)
    facts = english_facts(pair.source)
    assert {gold for gold in pair.alignment if gold is not None} == {i for i, fact in enumerate(facts) if fact}
    unaligned = [word for word, gold in zip(pair.target, pair.alignment, strict=True) if gold is None]
    assert not any(re.search(r"\d", word) for word in unaligned)
    # What belongs to no fact does not depend on the days.
    other = date_pair([day.replace(year=2000, month=1 + day.month % 12, day=1) for day in days], language)
    assert unaligned == [word for word, gold in zip(other.target, other.alignment, strict=True) if gold is None]


@settings(max_examples=40)
@given(days=some_days, language=st.sampled_from(ONE_WORD_A_FACT))
def test_the_alignment_of_the_other_direction_is_the_inverse(days, language):
    there, back = date_pair(days, language), date_pair(days, "en", language)
    assert back.source == there.target and back.target == there.source
    forward = {(t, s) for t, s in enumerate(there.alignment) if s is not None}
    assert forward == {(t, s) for s, t in enumerate(back.alignment) if t is not None}


def test_the_order_of_words_differs_between_english_and_hungarian():
    pair = date_pair([dt.date(2026, 3, 5), dt.date(2026, 6, 1)], "hu")
    aligned = [gold for gold in pair.alignment if gold is not None]
    assert aligned != sorted(aligned)


@pytest.fixture(scope="module")
def corpus():
    return date_corpus(n_train=300, n_test=20, max_dates=3, max_test_dates=5)


def years(words) -> int:
    return sum(bool(re.fullmatch(r"\d{4},?", word)) for word in words)


def days_of(pair) -> set[dt.date]:
    """The days of an English sentence, read back."""
    words = [word.strip(",") for word in pair.source]
    facts, days = english_facts(pair.source), {}
    for word, fact in zip(words, facts, strict=True):
        if fact:
            days.setdefault(fact[0], {})[fact[1]] = word
    months = {name: number for number, name in babel_dates.get_month_names(locale="en").items()}
    return {dt.date(int(d["y"]), months[d["M"]], int(d["d"])) for d in days.values()}


def test_training_and_test_days_do_not_meet(corpus):
    shown = set().union(*map(days_of, corpus.train))
    tested = set().union(*(days_of(pair) for pairs in corpus.test.values() for pair in pairs))
    assert shown and tested
    assert not any(map(is_held_out, shown))
    assert all(map(is_held_out, tested))


def test_held_out_days_cover_every_weekday_and_month():
    held_out = [
        d for n in range(FIRST_DAY.toordinal(), LAST_DAY.toordinal() + 1) if is_held_out(d := dt.date.fromordinal(n))
    ]
    assert {d.weekday() for d in held_out} == set(range(7))
    assert {(d.month, d.day) for d in held_out} >= {(month, day) for month in range(1, 13) for day in range(1, 29)}


def test_the_number_of_dates_is_as_asked(corpus):
    assert {pair.n_dates for pair in corpus.train} == {1, 2, 3}
    assert list(corpus.test) == [1, 2, 3, 4, 5]
    assert len(corpus.train) == 300 and all(len(pairs) == 20 for pairs in corpus.test.values())
    for n, pairs in corpus.test.items():
        assert all(pair.n_dates == n == years(pair.source) for pair in pairs)


def test_a_seed_changes_the_training_set_and_never_the_test_set(corpus):
    options = {"n_train": 300, "n_test": 20, "max_dates": 3, "max_test_dates": 5}
    other, same = date_corpus(seed=1, **options), date_corpus(seed=0, **options)
    assert other.test == corpus.test and other.train != corpus.train
    assert same.train == corpus.train
    assert other.source_vocab.words == corpus.source_vocab.words


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_vocabulary_covers_every_sentence(language):
    corpus = date_corpus(language, n_train=40, n_test=10)
    for pair in [*corpus.train, *(pair for pairs in corpus.test.values() for pair in pairs)]:
        for vocab, words in ((corpus.source_vocab, pair.source), (corpus.target_vocab, pair.target)):
            assert vocab.decode([*vocab.encode(words), Vocab.eos_id]) == list(words)


def test_the_vocabulary_has_no_word_that_cannot_occur():
    corpus = date_corpus(n_train=4000, n_test=100)
    seen = {word for pairs in (corpus.train, *corpus.test.values()) for pair in pairs for word in pair.source}
    assert set(corpus.source_vocab.words[3:]) == seen


@pytest.mark.parametrize("days", [[], ()])
def test_no_day_is_an_error(days):
    with pytest.raises(ValueError, match=r"^days: got no day"):
        date_pair(days)


@pytest.mark.parametrize("argument", ["target", "source"])
@pytest.mark.parametrize("locale", ["klingon", "", "hu-HU", None, 3])
def test_an_unknown_language_is_an_error_that_names_the_argument(argument, locale):
    with pytest.raises(ValueError, match=f"^{argument}: {re.escape(repr(locale))} is not a language code"):
        date_pair([FIRST_DAY], **{argument: locale})
    with pytest.raises(ValueError, match=f"^{argument}: {re.escape(repr(locale))} is not a language code"):
        date_corpus(n_train=1, n_test=1, **{argument: locale})


@pytest.mark.parametrize("locale, reason", [("ja", "without spaces"), ("zh", "without spaces"), ("th", "fields other")])
def test_a_language_without_words_to_align_is_an_error(locale, reason):
    with pytest.raises(ValueError, match=f"^target: dates in '{locale}' .*{reason}"):
        date_pair([FIRST_DAY], locale)


@pytest.mark.parametrize("locale", ["blo", "ii", "trw"])
def test_a_language_whose_words_say_two_facts_is_an_error(locale):
    # Month and year, or the weekday of one date and the year of the next, in one word: no alignment word by word.
    with pytest.raises(ValueError, match=f"^target: dates in '{locale}'"):
        date_pair([FIRST_DAY, LAST_DAY], locale)


@pytest.mark.parametrize("argument", ["n_train", "max_dates", "max_test_dates", "n_test"])
@pytest.mark.parametrize("value", [0, -1])
def test_a_size_below_one_is_an_error_that_names_the_argument(argument, value):
    with pytest.raises(ValueError, match=f"^{argument}: got {value}, must be at least 1"):
        date_corpus(**{"n_train": 1, "n_test": 1, argument: value})
