"""Recurrent networks, written out one step at a time.

Weights are arguments, used as `x @ W` with `W` of shape (in, out). B sentences in a batch, T positions,
D input features, H hidden features.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor


def rnn_step(
    x: Float[Tensor, "B D"],
    h: Float[Tensor, "B H"],
    W_xh: Float[Tensor, "D H"],
    W_hh: Float[Tensor, "H H"],
    b: Float[Tensor, " H"],
) -> Float[Tensor, "B H"]:
    """One step of a plain RNN: the next state from the input and the state before.

    Source: Elman 1990, "Finding structure in time".
    """
    return torch.tanh(x @ W_xh + h @ W_hh + b)


def gru_step(
    x: Float[Tensor, "B D"],
    h: Float[Tensor, "B H"],
    W: Float[Tensor, "3 D H"],
    U: Float[Tensor, "3 H H"],
    b: Float[Tensor, "3 H"],
) -> Float[Tensor, "B H"]:
    """One step of a gated recurrent unit. W, U, b hold reset gate, update gate, candidate in that order.

    The update gate z says how much of the old state stays: (1 - z) * candidate + z * h.
    Source: Cho et al. 2014, "Learning phrase representations using RNN encoder-decoder", section 2.3.
    """
    r = torch.sigmoid(x @ W[0] + h @ U[0] + b[0])
    z = torch.sigmoid(x @ W[1] + h @ U[1] + b[1])
    n = torch.tanh(x @ W[2] + (r * h) @ U[2] + b[2])
    return (1 - z) * n + z * h


def lstm_step(
    x: Float[Tensor, "B D"],
    h: Float[Tensor, "B H"],
    c: Float[Tensor, "B H"],
    W: Float[Tensor, "4 D H"],
    U: Float[Tensor, "4 H H"],
    b: Float[Tensor, "4 H"],
) -> tuple[Float[Tensor, "B H"], Float[Tensor, "B H"]]:
    """One step of an LSTM: the next state h and the next cell c. Order input, forget, candidate, output gate.

    The cell is a highway: it is multiplied by the forget gate and added to, never squashed.
    Source: Gers, Schmidhuber and Cummins 2000, "Learning to forget".
    """
    i = torch.sigmoid(x @ W[0] + h @ U[0] + b[0])
    f = torch.sigmoid(x @ W[1] + h @ U[1] + b[1])
    g = torch.tanh(x @ W[2] + h @ U[2] + b[2])
    o = torch.sigmoid(x @ W[3] + h @ U[3] + b[3])
    c_next = f * c + i * g
    return o * torch.tanh(c_next), c_next


def seq2seq_encode(
    emb: Float[Tensor, "B T D"],
    lengths: Int[Tensor, " B"],
    W_xh: Float[Tensor, "D H"],
    W_hh: Float[Tensor, "H H"],
    b: Float[Tensor, " H"],
) -> tuple[Float[Tensor, "B T H"], Float[Tensor, "B H"]]:
    """Run a plain RNN over a padded batch, from a zero state.

    emb: embedded words; sentence i has lengths[i] real words, the rest of its row is padding.
    Returns the outputs (zero on padding) and the state after each sentence's last real word.
    Source: Sutskever, Vinyals and Le 2014, "Sequence to sequence learning with neural networks", section 2.
    """
    h = emb.new_zeros(emb.shape[0], W_hh.shape[0])
    outputs = []
    for t in range(emb.shape[1]):
        real = (t < lengths).unsqueeze(-1)
        h = torch.where(real, rnn_step(emb[:, t], h, W_xh, W_hh, b), h)
        outputs.append(torch.where(real, h, 0.0))
    return torch.stack(outputs, dim=1), h
