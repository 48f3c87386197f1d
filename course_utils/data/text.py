"""One real text for the character models: Python's own manual, which ships with every Python."""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor


@dataclass(frozen=True)
class Characters:
    """A text as numbers: the alphabet, and the ids of its first nine tenths (train) and last tenth (test)."""

    alphabet: tuple[str, ...]
    train: Tensor
    test: Tensor

    def encode(self, text: str) -> Tensor:
        """Ids (T) of a text. Raises ValueError for a character that is not in the alphabet."""
        ids = {character: i for i, character in enumerate(self.alphabet)}
        try:
            return torch.tensor([ids[character] for character in text], dtype=torch.long)
        except KeyError as missing:
            raise ValueError(
                f"text: {missing.args[0]!r} is not among the {len(ids)} characters of this alphabet"
            ) from None

    def decode(self, ids: Tensor) -> str:
        """The text of a row of ids."""
        return "".join(self.alphabet[int(i)] for i in ids)

    def windows(self, length: int, n: int, seed: int = 0, part: str = "test") -> Tensor:
        """n random windows (n, length + 1) of the test or training part: inputs [:, :-1], targets [:, 1:].

        Raises ValueError for a part that is neither, and for windows longer than the text.
        """
        if part not in ("train", "test"):
            raise ValueError(f"part: got {part!r}, must be 'train' or 'test'")
        ids = self.train if part == "train" else self.test
        if not 1 <= length < len(ids):
            raise ValueError(f"length: got {length}, must be 1 … {len(ids) - 1}, the length of the {part} text")
        starts = torch.randint(len(ids) - length, (n, 1), generator=torch.Generator().manual_seed(seed))
        return ids[starts + torch.arange(length + 1)]

    def batches(self, length: int, batch_size: int = 32, seed: int = 0) -> Iterator[Tensor]:
        """Endless random windows (B, length + 1) of the training part."""
        seeds = random.Random(seed)
        while True:
            yield self.windows(length, batch_size, seeds.getrandbits(62), "train")


@cache
def python_manual() -> Characters:
    """The help texts of Python's language reference, plain ASCII; they differ a little between versions of Python."""
    from pydoc_data.topics import topics

    text = re.sub(r"[^\x20-\x7e\n]", "", "\n\n".join(topics[name] for name in sorted(topics)))
    alphabet = tuple(sorted(set(text)))
    ids = {character: i for i, character in enumerate(alphabet)}
    numbers = torch.tensor([ids[character] for character in text])
    cut = len(numbers) * 9 // 10
    return Characters(alphabet, numbers[:cut], numbers[cut:])
