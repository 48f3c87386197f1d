"""Words to numbers and back."""

import difflib
from collections.abc import Iterable, Sequence

PAD, BOS, EOS = "<pad>", "<bos>", "<eos>"


class Vocab:
    """A closed list of words. Ids 0, 1 and 2 are padding, start of sentence and end of sentence."""

    pad_id, bos_id, eos_id = 0, 1, 2

    def __init__(self, words: Iterable[str]):
        self.words = [PAD, BOS, EOS, *sorted(set(words) - {PAD, BOS, EOS})]
        self._ids = {word: i for i, word in enumerate(self.words)}

    def __len__(self) -> int:
        return len(self.words)

    def encode(self, words: Sequence[str]) -> list[int]:
        """Ids of the words. Raises ValueError for a word that is not in the vocabulary."""
        if isinstance(words, str):
            raise ValueError(f"words: got the string {words!r}; split it into words first: {words.split()!r}")
        try:
            return [self._ids[word] for word in words]
        except KeyError as missing:
            word = missing.args[0]
            near = difflib.get_close_matches(str(word), self.words, n=3) or self.words[3:6]
            raise ValueError(
                f"words: {word!r} is not among the {len(self)} words of this vocabulary; "
                f"near it: {', '.join(map(repr, near))}. `vocab.words` lists them all."
            ) from None

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Words of the ids, up to the first end of sentence, without padding and start.

        Raises ValueError for an id outside 0 … len(vocab) - 1.
        """
        words = []
        for i in ids:
            index = int(i)
            if not 0 <= index < len(self):
                raise ValueError(f"ids: {index} is outside 0 … {len(self) - 1}, the ids of this vocabulary")
            if index == self.eos_id:
                break
            if index not in (self.pad_id, self.bos_id):
                words.append(self.words[index])
        return words
