"""Translation models of notebooks 01 and 02: the same encoder and decoder, without and with attention.

Both are built from torch's LSTM, which is the fastest recurrent layer on a CPU. B sentences, Ts source and Tt target
positions, V target words, d the size of a state (and of the context vector).
"""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from .attention import additive_attention
from .data.batches import Batch
from .data.vocab import Vocab
from .decoding import shift_right


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
            packed = pack_padded_sequence(emb, lengths.cpu(), batch_first=True, enforce_sorted=False)
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

    def forward(self, batch: Batch) -> Float[Tensor, "B Tt V"]:
        """Logits for every target word, with teacher forcing."""
        _, context = self.encoder(batch.source, batch.source_lengths)
        return self.decode(self.shift(batch.target, Vocab.bos_id), context)

    def decode(self, words: Int[Tensor, "B Tt"], context: Float[Tensor, "B d"]) -> Float[Tensor, "B Tt V"]:
        """Logits after each prefix of `words`."""
        contexts = context.unsqueeze(1).expand(-1, words.shape[1], -1)
        h = torch.tanh(self.start(context)).unsqueeze(0)
        states, _ = self.lstm(torch.cat([self.emb(words), contexts], dim=-1), (h, torch.zeros_like(h)))
        return self.out(torch.cat([states, contexts], dim=-1))


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

    def forward(self, batch: Batch) -> Float[Tensor, "B Tt V"]:
        """Logits for every target word, with teacher forcing."""
        return self.forward_with_weights(batch)[0]

    def forward_with_weights(self, batch: Batch) -> tuple[Float[Tensor, "B Tt V"], Float[Tensor, "B Tt Ts"]]:
        """Logits and the attention weights behind each of them."""
        keys, summary = self.encoder(batch.source, batch.source_lengths)
        mask = None if bool(batch.source_mask.all()) else batch.source_mask
        if self.start is not None:
            h = torch.tanh(self.start(summary))
        else:
            h = summary if self.start_from == "last" else torch.zeros_like(summary)
        c = torch.zeros_like(h)
        words = self.emb(self.shift(batch.target, Vocab.bos_id))
        read, weights = [], []
        for t in range(words.shape[1]):
            context, w = self.attention(h, keys, self.W_q, self.W_k, self.v, mask)
            h, c = self.cell(torch.cat([words[:, t], context], dim=-1), (h, c))
            read.append(torch.cat([h, context], dim=-1))
            weights.append(w)
        return self.out(torch.stack(read, dim=1)), torch.stack(weights, dim=1)
