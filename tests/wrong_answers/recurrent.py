"""Wrong answers to rnn_step, gru_step and seq2seq_encode."""

import torch
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from wrong_answers import wrong

# --- rnn_step


@wrong("rnn_step", "rnn_no_tanh")
def _(x, h, W_xh, W_hh, b):
    return torch.addmm(b, x, W_xh) + torch.mm(h, W_hh)


@wrong("rnn_step", "rnn_exp_overflow")
def _(x, h, W_xh, W_hh, b):
    s = x @ W_xh + h @ W_hh + b
    return ((2 * s).exp() - 1) / ((2 * s).exp() + 1)


@wrong("rnn_step", "rnn_exp_overflow")
def _(x, h, W_xh, W_hh, b):
    s = x @ W_xh + h @ W_hh + b
    return (torch.exp(s) - torch.exp(-s)) / (torch.exp(s) + torch.exp(-s))


@wrong("rnn_step", "rnn_forgets_hidden")
def _(x, h, W_xh, W_hh, b):
    hidden = F.linear(x, W_xh.T, b)
    return hidden.tanh()


@wrong("rnn_step", "rnn_forgets_hidden")
def _(x, h, W_xh, W_hh, b):
    h0 = torch.zeros(x.size(0), W_hh.size(0))
    return torch.tanh(x @ W_xh + h0 @ W_hh + b)


@wrong("rnn_step", "rnn_tanh_on_part")
def _(x, h, W_xh, W_hh, b):
    return torch.tanh(x @ W_xh + b) + h @ W_hh


@wrong("rnn_step", "rnn_tanh_on_part")
def _(x, h, W_xh, W_hh, b):
    inp = x.matmul(W_xh).tanh()
    rec = h.matmul(W_hh)
    return inp + rec + b


@wrong("rnn_step", "rnn_no_bias")
def _(x, h, W_xh, W_hh, b):
    return torch.tanh(torch.cat([x, h], 1) @ torch.cat([W_xh, W_hh], 0))


@wrong("rnn_step", "rnn_state_in_place")
def _(x, h, W_xh, W_hh, b):
    h[:] = torch.tanh(x @ W_xh + h @ W_hh + b)
    return h


@wrong("rnn_step", "rnn_state_in_place")
def _(x, h, W_xh, W_hh, b):
    new = x @ W_xh + h @ W_hh
    new += b
    h.zero_()
    return h.add_(new).tanh_()


@wrong("rnn_step")
def _(x, h, W_xh, W_hh, b):
    return torch.tanh(x @ W_xh) * torch.tanh(h @ W_hh + b)


@wrong("rnn_step")
def _(x, h, W_xh, W_hh, b):
    with torch.no_grad():
        return torch.tanh(x @ W_xh + h @ W_hh + b)


@wrong("rnn_step", "rnn_other_activation")
def _(x, h, W_xh, W_hh, b):
    return torch.relu(x @ W_xh + h @ W_hh + b)


@wrong("rnn_step")
def _(x, h, W_xh, W_hh, b):
    rows = []
    for i in range(x.shape[0]):
        rows.append(torch.tanh(x[i] @ W_xh + h[0] @ W_hh + b))
    return torch.stack(rows)


# --- gru_step


def _gates(x, h, W, U, b):
    r = F.sigmoid(torch.mm(x, W[0]) + torch.mm(h, U[0]) + b[0])
    z = F.sigmoid(torch.mm(x, W[1]) + torch.mm(h, U[1]) + b[1])
    return r, z


@wrong("gru_step", "gru_update_flipped")
def _(x, h, W, U, b):
    r, z = _gates(x, h, W, U, b)
    cand = torch.tanh(x @ W[2] + (r * h) @ U[2] + b[2])
    return torch.lerp(h, cand, z)


@wrong("gru_step", "gru_reset_unused")
def _(x, h, W, U, b):
    _, z = _gates(x, h, W, U, b)
    cand = torch.tanh(x @ W[2] + h @ U[2] + b[2])
    return cand - z * cand + z * h


@wrong("gru_step", "gru_reset_on_input")
def _(x, h, W, U, b):
    r, z = _gates(x, h, W, U, b)
    cand = torch.tanh(r * (x @ W[2]) + h @ U[2] + b[2])
    return (1 - z) * cand + z * h


@wrong("gru_step", "gru_reset_after_matmul")
def _(x, h, W, U, b):
    r, z = _gates(x, h, W, U, b)
    cand = torch.tanh(x @ W[2] + r * (h @ U[2]) + b[2])
    return (1 - z) * cand + z * h


@wrong("gru_step", "gru_reset_after_matmul")
def _(x, h, W, U, b):
    r, z = _gates(x, h, W, U, b)
    cand = torch.tanh(x @ W[2] + r * (h @ U[2] + b[2]))
    return (1 - z) * cand + z * h


@wrong("gru_step", "gru_gates_share_weights")
def _(x, h, W, U, b):
    z = r = torch.sigmoid(x @ W[0] + h @ U[0] + b[0])
    cand = torch.tanh(x @ W[2] + (r * h) @ U[2] + b[2])
    return (1 - z) * cand + z * h


@wrong("gru_step", "gru_gates_share_weights")
def _(x, h, W, U, b):
    r = torch.sigmoid(x @ W[1] + h @ U[1] + b[1])
    z = torch.sigmoid(x @ W[1] + h @ U[1] + b[1])
    cand = torch.tanh(x @ W[2] + (r * h) @ U[2] + b[2])
    return (1 - z) * cand + z * h


@wrong("gru_step", "gru_candidate_sigmoid")
def _(x, h, W, U, b):
    r, z = _gates(x, h, W, U, b)
    cand = torch.sigmoid(x @ W[2] + (r * h) @ U[2] + b[2])
    return (1 - z) * cand + z * h


@wrong("gru_step")
def _(x, h, W, U, b):
    r, z = _gates(x, h, W, U, b)
    cand = torch.tanh(x @ W[2] + (r * h) @ U[2] + b[2])
    return cand + z * h


@wrong("gru_step")
def _(x, h, W, U, b):
    r, z = _gates(x, h, W, U, b)
    cand = torch.tanh(x @ W[2] + (r * h) @ U[2])
    return (1 - z) * cand + z * h


# --- seq2seq_encode


def _cell(x, h, W_xh, W_hh, b):
    return torch.tanh(x.mm(W_xh) + h.mm(W_hh) + b)


def _all_states(emb, W_xh, W_hh, b):
    h = torch.zeros(len(emb), W_hh.shape[1])
    history = []
    for x in emb.unbind(1):
        h = _cell(x, h, W_xh, W_hh, b)
        history.append(h)
    return torch.stack(history, 1)


def _keep_mask(emb, lengths):
    positions = torch.arange(emb.shape[1])[None]
    return (positions < lengths[:, None])[..., None]


@wrong("seq2seq_encode", "enc_last_column")
def _(emb, lengths, W_xh, W_hh, b):
    out = _all_states(emb, W_xh, W_hh, b) * _keep_mask(emb, lengths)
    return out, out[:, -1, :]


@wrong("seq2seq_encode", "enc_last_column")
def _(emb, lengths, W_xh, W_hh, b):
    states = _all_states(emb, W_xh, W_hh, b)
    out = states.clone()
    for i, n in enumerate(lengths.tolist()):
        out[i, n:] = 0
    return out, states[:, -1]


@wrong("seq2seq_encode", "enc_resets_h0")
def _(emb, lengths, W_xh, W_hh, b):
    h0 = torch.zeros(emb.shape[0], W_hh.shape[0])
    out = torch.stack([_cell(emb[:, t], h0, W_xh, W_hh, b) for t in range(emb.shape[1])], 1)
    out = out * _keep_mask(emb, lengths)
    return out, out[torch.arange(len(out)), lengths - 1]


@wrong("seq2seq_encode", "enc_first_state")
def _(emb, lengths, W_xh, W_hh, b):
    out = _all_states(emb, W_xh, W_hh, b) * _keep_mask(emb, lengths)
    return out, out[:, 0]


@wrong("seq2seq_encode", "enc_zeroes_state_on_pad")
def _(emb, lengths, W_xh, W_hh, b):
    B, T, _ = emb.shape
    h = torch.zeros(B, W_hh.shape[0])
    out = []
    for t in range(T):
        alive = (lengths > t).float().unsqueeze(1)
        h = _cell(emb[:, t], h, W_xh, W_hh, b) * alive
        out.append(h)
    return torch.stack(out, 1), h


def _rnn(emb, W_xh, W_hh, b):
    rnn = torch.nn.RNN(emb.shape[-1], W_hh.shape[0], batch_first=True)
    rnn.weight_ih_l0.data, rnn.weight_hh_l0.data = W_xh.T.contiguous(), W_hh.T.contiguous()
    rnn.bias_ih_l0.data, rnn.bias_hh_l0.data = b.clone(), torch.zeros_like(b)
    return rnn


@wrong("seq2seq_encode", "enc_sorted_not_restored")
def _(emb, lengths, W_xh, W_hh, b):
    lengths, order = lengths.sort(descending=True)
    packed = pack_padded_sequence(emb[order], lengths, batch_first=True)
    out, h_n = _rnn(emb, W_xh, W_hh, b)(packed)
    out, _ = pad_packed_sequence(out, batch_first=True, total_length=emb.shape[1])
    return out, h_n.squeeze(0)


@wrong("seq2seq_encode", "enc_outputs_not_zeroed")
def _(emb, lengths, W_xh, W_hh, b):
    h = torch.zeros(len(emb), W_hh.shape[1])
    out = []
    for t in range(emb.shape[1]):
        h = torch.where((t < lengths)[:, None], _cell(emb[:, t], h, W_xh, W_hh, b), h)
        out.append(h)
    return torch.stack(out, dim=1), h


@wrong("seq2seq_encode", "enc_outputs_not_zeroed")
def _(emb, lengths, W_xh, W_hh, b):
    states = _all_states(emb, W_xh, W_hh, b)
    return states, torch.stack([s[n - 1] for s, n in zip(states, lengths, strict=True)])


@wrong("seq2seq_encode", "enc_mean_as_summary")
def _(emb, lengths, W_xh, W_hh, b):
    out = _all_states(emb, W_xh, W_hh, b).masked_fill(~_keep_mask(emb, lengths), 0)
    return out, out.mean(dim=1)


@wrong("seq2seq_encode", "enc_mean_as_summary")
def _(emb, lengths, W_xh, W_hh, b):
    out = _all_states(emb, W_xh, W_hh, b).masked_fill(~_keep_mask(emb, lengths), 0)
    return out, out.sum(dim=1) / lengths.view(-1, 1)


@wrong("seq2seq_encode")
def _(emb, lengths, W_xh, W_hh, b):
    packed = pack_padded_sequence(emb, lengths, batch_first=True)  # refuses unsorted lengths
    out, h_n = _rnn(emb, W_xh, W_hh, b)(packed)
    return pad_packed_sequence(out, batch_first=True, total_length=emb.shape[1])[0], h_n[0]


@wrong("seq2seq_encode")
def _(emb, lengths, W_xh, W_hh, b):
    packed = pack_padded_sequence(emb, lengths, batch_first=True, enforce_sorted=False)
    out, h_n = _rnn(emb, W_xh, W_hh, b)(packed)
    return pad_packed_sequence(out, batch_first=True, total_length=emb.shape[1])[0], h_n  # (1, B, H)


@wrong("seq2seq_encode")
def _(emb, lengths, W_xh, W_hh, b):
    emb *= _keep_mask(emb, lengths)
    out = _all_states(emb, W_xh, W_hh, b) * _keep_mask(emb, lengths)
    return out, out[torch.arange(len(out)), lengths - 1]


@wrong("seq2seq_encode")
def _(emb, lengths, W_xh, W_hh, b):
    out = _all_states(emb.flip(1), W_xh, W_hh, b).flip(1) * _keep_mask(emb, lengths)
    return out, out[torch.arange(len(out)), lengths - 1]
