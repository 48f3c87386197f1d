"""Which submissions are alike beyond what the exercise itself makes alike.

Names are exchangeable, comments and layout do not count. What the course hands out, what its own solution says, and
what many students write is taken away first: two right one-liners are alike because they are right. What is left are
runs of tokens that few share; only a long text of them is reported. It is a reason to look, never a proof.
"""

import builtins
import io
import keyword
import re
import tokenize
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

RUN = 9  # tokens of code that are compared at a time
WORDS = 6  # words of a written answer
ENOUGH = 80  # runs that two must share: about ten lines that few others write so
SHARE = 0.6  # of the smaller one's uncommon runs
COMMON = 0.1  # of the class: what more students than this write is common
FEW = 5  # students, at the least, who may share a run before it is common
LONGEST = 20_000  # characters that are read of one text
KEPT = set(keyword.kwlist) | set(dir(builtins)) | {"torch", "nn", "F", "math", "self", "np", "numpy"}


@dataclass(frozen=True)
class Alike:
    """Two students whose texts share more than chance: share of the smaller one's uncommon runs, and where."""

    first: str
    second: str
    share: float
    runs: int
    part: str


def tokens(source: str) -> list[str]:
    """The code as a list of tokens in which the student's own names are all the same."""
    found: list[str] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(source[:LONGEST]).readline):
            if token.type == tokenize.NAME:
                after_dot = bool(found) and found[-1] == "."
                found.append(token.string if token.string in KEPT or after_dot else "name")
            elif token.type == tokenize.STRING:
                found.append("text")
            elif token.type in (tokenize.NUMBER, tokenize.OP):
                found.append(token.string)
    except (tokenize.TokenError, SyntaxError, ValueError):
        pass  # what could be read is compared
    return found


def words(text: str) -> list[str]:
    """The words of a written answer."""
    return re.findall(r"\w+", text[:LONGEST].casefold())


def runs(parts: list[str], length: int) -> set[tuple[str, ...]]:
    """All runs of so many neighbours."""
    return {tuple(parts[i : i + length]) for i in range(len(parts) - length + 1)}


def alike(
    texts: dict[str, dict[str, str]], given: Iterable[str] = (), written: bool = False, most: int = 20
) -> list[Alike]:
    """The pairs of students whose texts are alike, the most alike first.

    texts: for each student the text of each part. given: texts of the course, which do not count.
    written: the texts are prose instead of code. most: pairs that are returned.
    """
    split, length = (words, WORDS) if written else (tokens, RUN)
    known = {run for text in given for run in runs(split(text), length)}
    found = {
        student: {part: runs(split(text), length) - known for part, text in parts.items()}
        for student, parts in texts.items()
    }
    owners: dict[tuple[str, ...], list[str]] = {}
    for student, parts in found.items():
        for run in set().union(*parts.values()) if parts else ():
            owners.setdefault(run, []).append(student)
    limit = max(FEW, COMMON * len(texts))
    uncommon = {run: who for run, who in owners.items() if len(who) <= limit}
    size = Counter(student for who in uncommon.values() for student in who)
    shared = Counter(pair for who in uncommon.values() for pair in combinations(sorted(who), 2))
    pairs = []
    for (first, second), count in shared.items():
        share = count / min(size[first], size[second])
        if count >= ENOUGH and share >= SHARE:
            parts = {part: len(r & found[second].get(part, set())) for part, r in found[first].items()}
            pairs.append(Alike(first, second, share, count, max(parts, key=lambda part: parts[part])))
    return sorted(pairs, key=lambda p: (-p.share, -p.runs, p.first, p.second))[:most]
