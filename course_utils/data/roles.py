"""Who bites whom? Sentences in which word order alone says who does something and to whom it is done.

"the old dog bites the small cat": the biter is the dog, the bitten the cat. Every noun can be either, so a model
without positions can only toss a coin. Test sentences pair nouns that training never pairs.
"""

import random
from dataclasses import dataclass

import torch
from torch import Tensor

NOUNS = """
    dog man cat boy girl woman horse bird wolf fox lion bear king queen nurse thief judge child farmer sailor baker
    mouse goose snake tiger monkey doctor pilot poet priest soldier student teacher tailor uncle aunt mother father
    sister brother
""".split()
VERBS = "bites chases sees follows helps calls finds fears greets carries".split()
ADJECTIVES = "old young big small brave quiet happy tired".split()
PAD, CLS = "<pad>", "<cls>"
WORDS = (PAD, CLS, "the", *NOUNS, *VERBS, *ADJECTIVES)
LENGTH = 8  # <cls> the (adjective) noun verb the (adjective) noun
_IDS = {word: i for i, word in enumerate(WORDS)}


@dataclass(frozen=True)
class RoleData:
    """Word ids (N, 8), padded with 0, and the noun numbers (N, 2) of biter and bitten."""

    tokens: Tensor
    roles: Tensor

    def __len__(self) -> int:
        return len(self.tokens)


def encode(sentence: str) -> Tensor:
    """Ids (8) of a sentence such as "the old dog bites the cat". Raises ValueError for a word it does not know."""
    words = [CLS, *sentence.split()]
    unknown = [word for word in words if word not in _IDS]
    if unknown:
        raise ValueError(
            f"sentence: {unknown[0]!r} is not among the {len(WORDS)} words; see roles.NOUNS, VERBS, ADJECTIVES"
        )
    if len(words) > LENGTH:
        raise ValueError(f"sentence: got {len(words) - 1} words, at most {LENGTH - 1} fit")
    return torch.tensor([_IDS[word] for word in words] + [0] * (LENGTH - len(words)))


def decode(tokens: Tensor) -> list[str]:
    """The words of a row of ids, without padding."""
    return [WORDS[int(i)] for i in tokens if int(i) != 0]


def _sentence(biter: int, bitten: int, rng: random.Random) -> str:
    def noun_phrase(noun: int) -> str:
        adjective = f"{rng.choice(ADJECTIVES)} " if rng.random() < 0.5 else ""
        return f"the {adjective}{NOUNS[noun]}"

    return f"{noun_phrase(biter)} {rng.choice(VERBS)} {noun_phrase(bitten)}"


def role_data(n_train: int = 6000, n_test: int = 2000, seed: int = 0) -> tuple[RoleData, RoleData]:
    """Training and test sentences; a fifth of all pairs of nouns occurs, in both orders, in the test only.

    Raises ValueError for numbers below one.
    """
    for name, value in (("n_train", n_train), ("n_test", n_test)):
        if value < 1:
            raise ValueError(f"{name}: got {value}, must be at least 1")
    rng = random.Random(seed)
    pairs = [(a, b) for a in range(len(NOUNS)) for b in range(a)]
    rng.shuffle(pairs)
    held_out, known = pairs[: len(pairs) // 5], pairs[len(pairs) // 5 :]
    return _draw(known, n_train, rng), _draw(held_out, n_test, rng)


def _draw(pairs: list[tuple[int, int]], n: int, rng: random.Random) -> RoleData:
    drawn = [rng.sample(rng.choice(pairs), k=2) for _ in range(n)]
    tokens = torch.stack([encode(_sentence(biter, bitten, rng)) for biter, bitten in drawn])
    return RoleData(tokens, torch.tensor(drawn))
