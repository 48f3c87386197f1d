"""What attention is compared with, and the small models of the comparisons. d is the number of features."""

import math
from collections.abc import Callable
from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from .attention import scaled_dot_product_attention
from .decoding import shift_right
from .recurrent import seq2seq_encode


class Recurrent(nn.Module):
    """torch's RNN, GRU or LSTM as a layer (B, T, d) → (B, T, d).

    forget_bias is added to the forget gates of an LSTM: with 1 it starts as a highway that is half open.
    Source: Jozefowicz, Zaremba and Sutskever 2015, "An empirical exploration of recurrent network architectures".
    """

    KINDS: ClassVar = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}

    def __init__(self, kind: str, d: int, forget_bias: float = 0.0):
        super().__init__()
        if kind not in self.KINDS:
            raise ValueError(f"kind: got {kind!r}, must be one of {', '.join(map(repr, self.KINDS))}")
        self.layer = self.KINDS[kind](d, d, batch_first=True)
        if forget_bias and kind == "lstm":
            with torch.no_grad():  # torch's order of gates is input, forget, cell, output
                self.layer.bias_ih_l0[d : 2 * d] += forget_bias

    def forward(self, x: Float[Tensor, "B T d"]) -> Float[Tensor, "B T d"]:
        return self.layer(x)[0]


class DilatedCNN(nn.Module):
    """Causal convolutions of two taps with dilations 1, 2, 4, …, each around a residual connection.

    n layers see 2^n positions back. Source: van den Oord et al. 2016, "WaveNet", section 2.1.
    """

    def __init__(self, d: int, n_layers: int = 8):
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv1d(d, d, 2, dilation=2**i) for i in range(n_layers))

    def forward(self, x: Float[Tensor, "B T d"]) -> Float[Tensor, "B T d"]:
        x = x.transpose(1, 2)
        for conv in self.convs:
            x = x + F.relu(conv(F.pad(x, (conv.dilation[0], 0))))
        return x.transpose(1, 2)


class CausalAttention(nn.Module):
    """One causal attention head with sinusoidal positions around a residual connection."""

    def __init__(self, d: int, max_len: int = 4096):
        super().__init__()
        self.qkv = nn.Linear(d, 3 * d)
        self.out = nn.Linear(d, d)
        angles = torch.arange(max_len).unsqueeze(1) * torch.exp(-math.log(1e4) * torch.arange(0, d, 2) / d)
        self.register_buffer("positions", torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :d])

    def forward(self, x: Float[Tensor, "B T d"]) -> Float[Tensor, "B T d"]:
        T = x.shape[1]
        q, k, v = self.qkv(x + self.positions[:T]).chunk(3, dim=-1)
        mask = torch.ones(T, T, dtype=torch.bool, device=x.device).tril()
        return x + self.out(scaled_dot_product_attention(q, k, v, mask)[0])


class LastState(nn.Module):
    """Symbols in, one answer out: embed, run a layer, classify from its last position (many-to-one)."""

    def __init__(self, layer: nn.Module, n_symbols: int, d: int):
        super().__init__()
        self.emb, self.layer, self.out = nn.Embedding(n_symbols, d), layer, nn.Linear(d, n_symbols)

    def forward(self, idx: Int[Tensor, "B T"]) -> Float[Tensor, "B V"]:
        return self.out(self.layer(self.emb(idx))[:, -1])


class CopyModel(nn.Module):
    """Read a sequence into one vector of d numbers, write it out again.

    The encoder is the plain RNN of `encode` (see course_utils.recurrent.seq2seq_encode), so that a reader's own can
    be put in; the decoder is torch's GRU, wide enough never to be the narrow place, and starts from the vector.
    """

    def __init__(
        self,
        n_symbols: int,
        d: int,
        encode: Callable[..., tuple[Tensor, Tensor]] = seq2seq_encode,
        d_emb: int = 16,
        d_decoder: int = 64,
    ):
        super().__init__()
        self.encode, self.n_symbols = encode, n_symbols
        self.emb = nn.Embedding(n_symbols + 1, d_emb)  # one more: the start token
        self.W_xh = nn.Parameter(torch.randn(d_emb, d) * d_emb**-0.5)
        self.W_hh = nn.Parameter(nn.init.orthogonal_(torch.empty(d, d)))
        self.b = nn.Parameter(torch.zeros(d))
        self.start = nn.Linear(d, d_decoder)
        self.gru = nn.GRU(d_emb, d_decoder, batch_first=True)
        self.out = nn.Linear(d_decoder, n_symbols)

    def forward(self, x: Int[Tensor, "B T"]) -> Float[Tensor, "B T V"]:
        """Logits of the copy, with teacher forcing."""
        lengths = torch.full((x.shape[0],), x.shape[1])
        _, context = self.encode(self.emb(x), lengths, self.W_xh, self.W_hh, self.b)
        states, _ = self.gru(self.emb(shift_right(x, self.n_symbols)), self.start(context).unsqueeze(0))
        return self.out(states)


class Lookup(nn.Module):
    """One attention head that looks a word up in a small dictionary of (key word, value word) pairs.

    Each pair is one data vector [key word; value word]; W_K and W_V project it to keys and values of d features, W_Q
    projects the word asked for. tied: the keys serve as values, too. scaled=False takes the division by √d back.
    Query and key entries start with variance 1, as in Vaswani et al. 2017, footnote 4.
    """

    def __init__(
        self,
        n_words: int,
        d: int,
        *,
        tied: bool = False,
        scaled: bool = True,
        attention: Callable[..., tuple[Tensor, Tensor]] = scaled_dot_product_attention,
        d_emb: int = 64,
    ):
        super().__init__()
        self.attention, self.scaled = attention, scaled
        self.emb = nn.Embedding(n_words, d_emb)
        self.W_Q = nn.Parameter(torch.randn(d_emb, d) * d_emb**-0.5)
        self.W_K = nn.Parameter(torch.randn(2 * d_emb, d) * (2 * d_emb) ** -0.5)
        self.W_V = None if tied else nn.Parameter(torch.randn(2 * d_emb, d) * (2 * d_emb) ** -0.5)
        self.out = nn.Linear(d, n_words)

    def project(self, keys: Tensor, values: Tensor, asked: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries (B, 1, d), keys (B, n, d) and values (B, n, d) of a batch."""
        data = torch.cat([self.emb(keys), self.emb(values)], dim=-1)
        q = (self.emb(asked) @ self.W_Q).unsqueeze(1)
        k = data @ self.W_K
        v = k if self.W_V is None else data @ self.W_V
        return (q if self.scaled else q * math.sqrt(q.shape[-1])), k, v

    def forward(self, keys: Tensor, values: Tensor, asked: Tensor) -> Float[Tensor, "B V"]:
        """Logits of the value word; keys and values (B, n), asked (B)."""
        return self.out(self.attention(*self.project(keys, values, asked))[0].squeeze(1))
