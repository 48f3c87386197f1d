"""Translation models of notebooks 01 and 02: the same encoder and decoder, without and with attention.

Both are built from torch's LSTM, which is the fastest recurrent layer on a CPU. B sentences, Ts source and Tt target
positions, V target words, d the size of a state (and of the context vector).
"""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from .attention import additive_attention
from .data.batches import Batch, pad
from .data.dates import Corpus
from .data.vocab import Vocab
from .decoding import greedy_decode, shift_right

# The states of the source words (B, Ts, d), the summary (B, d), and the mask of real words (None if all are).
Memory = tuple[Float[Tensor, "B Ts d"], Float[Tensor, "B d"], Bool[Tensor, "B Ts"] | None]


class Encoder(nn.Module):
    """Embedding and a bidirectional LSTM; each direction has d/2 features."""

    def __init__(self, vocab_size: int, d_emb: int, d: int):
        super().__init__()
        if d % 2:
            raise ValueError(f"d: got {d}, must be even: each of the two directions has d/2 features")
        self.emb = nn.Embedding(vocab_size, d_emb)
        self.lstm = nn.LSTM(d_emb, d // 2, batch_first=True, bidirectional=True)

    def forward(
        self, source: Int[Tensor, "B Ts"], lengths: Int[Tensor, " B"]
    ) -> tuple[Float[Tensor, "B Ts d"], Float[Tensor, "B d"]]:
        """The state at every source word (zero on padding), and one vector for the whole sentence."""
        emb = self.emb(source)
        if bool((lengths == source.shape[1]).all()):
            states, (h, _) = self.lstm(emb)
        else:
            packed = pack_padded_sequence(emb, lengths, batch_first=True, enforce_sorted=False)
            packed_states, (h, _) = self.lstm(packed)
            states, _ = pad_packed_sequence(packed_states, batch_first=True, total_length=source.shape[1])
        # h is (direction, B, d/2): forward after the last word, backward after the first.
        return states, torch.cat([h[0], h[1]], dim=-1)


class FixedContextTranslator(nn.Module):
    """Encoder-decoder whose decoder sees the source only through one context vector of d numbers.

    The context starts the decoder's state and is read again at every step. Sources: Cho et al. 2014, section 2.2;
    Sutskever, Vinyals and Le 2014.
    """

    def __init__(
        self,
        source_size: int,
        target_size: int,
        d_emb: int = 32,
        d: int = 64,
        shift: Callable[[Tensor, int], Tensor] = shift_right,
    ):
        super().__init__()
        self.shift = shift
        self.encoder = Encoder(source_size, d_emb, d)
        self.emb = nn.Embedding(target_size, d_emb)
        self.start = nn.Linear(d, d)
        self.lstm = nn.LSTM(d_emb + d, d, batch_first=True)
        self.out = nn.Linear(2 * d, target_size)

    def encode(self, batch: Batch) -> Float[Tensor, "B d"]:
        """All that the decoder will ever know of each source sentence."""
        return self.encoder(batch.source, batch.source_lengths)[1]

    def decode(self, words: Int[Tensor, "B Tt"], context: Float[Tensor, "B d"]) -> Float[Tensor, "B Tt V"]:
        """Logits of the next word after each prefix of `words`."""
        contexts = context.unsqueeze(1).expand(-1, words.shape[1], -1)
        h = torch.tanh(self.start(context)).unsqueeze(0)
        states, _ = self.lstm(torch.cat([self.emb(words), contexts], dim=-1), (h, torch.zeros_like(h)))
        return self.out(torch.cat([states, contexts], dim=-1))

    def forward(self, batch: Batch) -> Float[Tensor, "B Tt V"]:
        """Logits for every target word, with teacher forcing."""
        return self.decode(self.shift(batch.target, Vocab.bos_id), self.encode(batch))


class AttentionTranslator(nn.Module):
    """The same encoder and decoder, but a context vector of its own for every target word.

    At each step the decoder's state asks, the encoder's states answer, and the decoder reads the context together
    with the previous word. `start` is where the decoder begins: "last" the encoder's summary, "linear" a linear map
    of it, "zeros" nothing at all. Source: Bahdanau, Cho and Bengio 2015.
    """

    STARTS = ("last", "linear", "zeros")

    def __init__(
        self,
        source_size: int,
        target_size: int,
        d_emb: int = 32,
        d: int = 64,
        *,
        attention: Callable[..., tuple[Tensor, Tensor]] = additive_attention,
        shift: Callable[[Tensor, int], Tensor] = shift_right,
        start: str = "linear",
    ):
        super().__init__()
        if start not in self.STARTS:
            raise ValueError(f"start: got {start!r}, must be one of {', '.join(map(repr, self.STARTS))}")
        self.attention, self.shift, self.start_from = attention, shift, start
        self.encoder = Encoder(source_size, d_emb, d)
        self.emb = nn.Embedding(target_size, d_emb)
        self.start = nn.Linear(d, d) if start == "linear" else None
        self.cell = nn.LSTMCell(d_emb + d, d)
        self.out = nn.Linear(2 * d, target_size)
        self.W_q = nn.Parameter(torch.empty(d, d))
        self.W_k = nn.Parameter(torch.empty(d, d))
        self.v = nn.Parameter(torch.empty(d))
        for weight in (self.W_q, self.W_k, self.v):
            nn.init.normal_(weight, std=d**-0.5)

    def encode(self, batch: Batch) -> Memory:
        """What the decoder may read: the state of every source word, the summary, and which words are real."""
        keys, summary = self.encoder(batch.source, batch.source_lengths)
        return keys, summary, None if batch.all_full else batch.source_mask

    def decode_with_weights(
        self, words: Int[Tensor, "B Tt"], memory: Memory
    ) -> tuple[Float[Tensor, "B Tt V"], Float[Tensor, "B Tt Ts"]]:
        """Logits of the next word after each prefix of `words`, and the attention weights behind each of them."""
        keys, summary, mask = memory
        if self.start is not None:
            h = torch.tanh(self.start(summary))
        else:
            h = summary if self.start_from == "last" else torch.zeros_like(summary)
        c = torch.zeros_like(h)
        emb = self.emb(words)
        read, weights = [], []
        for t in range(words.shape[1]):
            context, w = self.attention(h, keys, self.W_q, self.W_k, self.v, mask)
            h, c = self.cell(torch.cat([emb[:, t], context], dim=-1), (h, c))
            read.append(torch.cat([h, context], dim=-1))
            weights.append(w)
        return self.out(torch.stack(read, dim=1)), torch.stack(weights, dim=1)

    def decode(self, words: Int[Tensor, "B Tt"], memory: Memory) -> Float[Tensor, "B Tt V"]:
        """Logits of the next word after each prefix of `words`."""
        return self.decode_with_weights(words, memory)[0]

    def forward_with_weights(self, batch: Batch) -> tuple[Float[Tensor, "B Tt V"], Float[Tensor, "B Tt Ts"]]:
        """Logits for every target word, with teacher forcing, and the attention weights."""
        return self.decode_with_weights(self.shift(batch.target, Vocab.bos_id), self.encode(batch))

    def forward(self, batch: Batch) -> Float[Tensor, "B Tt V"]:
        """Logits for every target word, with teacher forcing."""
        return self.forward_with_weights(batch)[0]


class GivenSource:
    """A translation model with its source sentences filled in: a language model of the target, idx → logits.

    This is how a sequence-to-sequence model is handed to `greedy_decode`.
    """

    block_size = 1000  # longer than any sentence: a recurrent decoder has no limit of its own

    def __init__(self, model: FixedContextTranslator | AttentionTranslator, batch: Batch):
        self.model, self.memory = model, model.encode(batch)

    def __call__(self, idx: Int[Tensor, "B T"]) -> Float[Tensor, "B T V"]:
        return self.model.decode(idx, self.memory)


@torch.no_grad()
def translate(
    model: FixedContextTranslator | AttentionTranslator,
    sentences: Sequence[Sequence[str]],
    corpus: Corpus,
    *,
    max_words: int = 40,
    decode: Callable[..., Tensor] = greedy_decode,
) -> list[list[str]]:
    """Translate sentences, given as lists of words, with the model's own words as its input.

    Raises ValueError for no sentence and for words that are not in the source vocabulary.
    """
    if isinstance(sentences, str):
        raise ValueError(f"sentences: got one string; pass lists of words, as in [{sentences.split()!r}]")
    source, lengths = pad([[*corpus.source_vocab.encode(words), Vocab.eos_id] for words in sentences])
    batch = Batch(source, lengths, source[:, :0])
    begin = torch.full((len(sentences), 1), Vocab.bos_id)
    ids = decode(GivenSource(model, batch), begin, max_words, Vocab.eos_id)
    return [corpus.target_vocab.decode(row) for row in ids.tolist()]
