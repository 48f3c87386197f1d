"""A translation task made of real language: sentences that list long dates, from Unicode's CLDR through Babel.

"Thursday, March 5, 2026 and Monday, June 1, 2026" becomes, in Hungarian, "2026. március 5., csütörtök és
2026. június 1., hétfő": the same facts in another order, so an alignment is worth looking at. Every word is made
from a known field of a known date, so the gold alignment comes for free. Endless, exact and offline.
"""

import datetime as dt
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from babel import Locale, UnknownLocaleError, dates, lists

from .. import mode
from .vocab import Vocab

FIRST_DAY, LAST_DAY = dt.date(2000, 1, 1), dt.date(2029, 12, 31)
# A CLDR date pattern is quoted text, runs of one field letter, and text between them.
PATTERN = re.compile(r"'(?P<quoted>[^']*)'|(?P<field>E+|M+|d+|y+)|(?P<text>[^EMdy']+)")


@dataclass(frozen=True)
class Pair:
    """A sentence, its translation, and for each target word the index of the source word it says (or None)."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    alignment: tuple[int | None, ...]
    n_dates: int


@dataclass(frozen=True)
class Corpus:
    """Training pairs, test pairs by number of dates, and the two vocabularies."""

    source_vocab: Vocab
    target_vocab: Vocab
    train: list[Pair]
    test: dict[int, list[Pair]]


# What a word says: the number of the date in the sentence, and E weekday, M month, d day or y year.
Fact = tuple[int, str]


@cache
def _date_pieces(day: dt.date, locale: str) -> list[tuple[str, str | None]]:
    """One full date as pieces of text, each with the field that it says; None for the glue between fields."""
    pieces = []
    for part in PATTERN.finditer(dates.get_date_format("full", locale=locale).pattern):
        field = part["field"]
        text = dates.format_date(day, field, locale=locale) if field else (part["quoted"] or part["text"] or "")
        pieces.append((text, field[0] if field else None))
    return pieces


def _sentence(days: Sequence[dt.date], locale: str) -> tuple[list[str], list[Fact | None]]:
    """The words (split at spaces) of a list of dates, and the fact that each word says."""
    # Placeholders without letters survive format_list untouched and mark where each date goes.
    pattern = lists.format_list([f"\x01{i}\x02" for i in range(len(days))], locale=locale)
    words: list[str] = []
    says: list[Fact | None] = []
    open_word = False
    for i, piece in enumerate(re.split(r"\x01(\d+)\x02", pattern)):
        is_date = i % 2 == 1  # split alternates: glue, number of a date, glue, …
        for text, field in _date_pieces(days[int(piece)], locale) if is_date else [(piece, None)]:
            fact = (int(piece), field) if field else None
            for chunk in re.findall(r"\s+|\S+", text):
                if chunk.isspace():
                    open_word = False
                elif open_word:  # "5" and "," are one word: "5,"
                    words[-1] += chunk
                    says[-1] = says[-1] or fact
                else:
                    words.append(chunk)
                    says.append(fact)
                    open_word = True
    return words, says


def _checked(argument: str, locale: str) -> str:
    """Raise ValueError unless CLDR knows the locale and writes its dates with plain year, month, day, weekday."""
    try:
        Locale.parse(locale)
    except (UnknownLocaleError, ValueError, TypeError) as error:
        raise ValueError(
            f"{argument}: {locale!r} is not a language code that CLDR knows, such as 'en', 'hu' or 'fil'"
        ) from error
    day = dt.date(2026, 3, 5)
    if "".join(text for text, _ in _date_pieces(day, locale)) != dates.format_date(day, "full", locale=locale):
        raise ValueError(f"{argument}: dates in {locale!r} use fields other than year, month, day and weekday")
    # Every weekday, and in a list, which may glue the last word of one date to the first of the next.
    week = [day + dt.timedelta(n) for n in range(7)]
    said = {fact for fact in _sentence(week, locale)[1] if fact is not None}
    if said != {(i, field) for i in range(7) for field in "EMdy"}:
        raise ValueError(
            f"{argument}: dates in {locale!r} cannot be aligned word by word: they are written without spaces, "
            "or a word says two fields at once, or a field is missing"
        )
    return locale


def date_pair(days: Sequence[dt.date], target: str = "hu", source: str = "en") -> Pair:
    """The sentence that lists these days in both languages, with its gold alignment.

    Raises ValueError for an empty list of days or a language that CLDR does not know.
    """
    if len(days) == 0:
        raise ValueError("days: got no day; a sentence needs at least one")
    return _pair(days, _checked("target", target), _checked("source", source))


def _pair(days: Sequence[dt.date], target: str, source: str) -> Pair:
    source_words, source_says = _sentence(days, source)
    target_words, target_says = _sentence(days, target)
    where: dict[tuple[int, str], int] = {}
    for position, said in enumerate(source_says):
        if said is not None:
            where.setdefault(said, position)
    alignment = tuple(None if said is None else where.get(said) for said in target_says)
    return Pair(tuple(source_words), tuple(target_words), alignment, len(days))


def is_held_out(day: dt.date) -> bool:
    """Every tenth day of the calendar never occurs in training. (Ten and seven share no factor: all weekdays do.)"""
    return day.toordinal() % 10 == 3


@cache
def _calendar() -> tuple[list[dt.date], list[dt.date]]:
    days = [dt.date.fromordinal(n) for n in range(FIRST_DAY.toordinal(), LAST_DAY.toordinal() + 1)]
    return [d for d in days if not is_held_out(d)], [d for d in days if is_held_out(d)]


def _vocab(locale: str) -> Vocab:
    """Every word that the calendar and the list patterns of this language can produce."""
    every_word: set[str] = set()
    one_year = [dt.date(2024, 1, 1) + dt.timedelta(n) for n in range(366)]
    for day in one_year + [dt.date(year, 1, 1) for year in range(FIRST_DAY.year, LAST_DAY.year + 1)]:
        # A date's last word carries what the list puts behind it ("2026," in the middle, "2026" at the end).
        for n in (1, 2, 3, 4):
            every_word.update(_sentence([day] * n, locale)[0])
    return Vocab(every_word)


def date_corpus(
    target: str = "hu",
    source: str = "en",
    *,
    n_train: int = 8000,
    max_dates: int = 6,
    max_test_dates: int = 8,
    n_test: int = 200,
    seed: int = 0,
) -> Corpus:
    """Pairs of 1 … max_dates dates to train on; n_test pairs for each of 1 … max_test_dates dates to test on.

    The test pairs are the same for every seed and use only days that training never shows.
    Raises ValueError for numbers below one and for languages that CLDR does not know.
    """
    for name, value in (
        ("n_train", n_train),
        ("max_dates", max_dates),
        ("max_test_dates", max_test_dates),
        ("n_test", n_test),
    ):
        if value < 1:
            raise ValueError(f"{name}: got {value}, must be at least 1")
    _checked("source", source), _checked("target", target)
    train_days, test_days = _calendar()
    rng, test_rng = random.Random(f"train {seed}"), random.Random("test")
    n_train, n_test = mode.size(n_train, 200), mode.size(n_test, 10)
    train = [_pair(rng.choices(train_days, k=rng.randint(1, max_dates)), target, source) for _ in range(n_train)]
    test = {
        n: [_pair(test_rng.choices(test_days, k=n), target, source) for _ in range(n_test)]
        for n in range(1, max_test_dates + 1)
    }
    return Corpus(_vocab(source), _vocab(target), train, test)
