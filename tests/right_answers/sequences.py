"""Right answers to the exercises of notebook 01."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from right_answers import right

# --- rnn_step


@right("rnn_step")
def _(inp, state, A, B, c):
    """Renamed parameters, one concatenated product."""
    return torch.cat([inp, state], dim=1).matmul(torch.cat([A, B])).add(c).tanh()


@right("rnn_step")
def _(x, h, W_xh, W_hh, b):
    """einsum."""
    return torch.tanh(torch.einsum("bd,dh->bh", x, W_xh) + torch.einsum("bi,ih->bh", h, W_hh) + b[None, :])


@right("rnn_step")
def _(x, h, W_xh, W_hh, b):
    """The library's cell."""
    return torch.rnn_tanh_cell(x, h, W_xh.T, W_hh.T, b, torch.zeros_like(b))


@right("rnn_step")
def _(x, h, W_xh, W_hh, b):
    """A loop over the batch and exponentials for tanh."""
    rows = []
    for i in range(len(x)):
        s = x[i] @ W_xh + h[i] @ W_hh + b
        rows.append(2 * torch.sigmoid(2 * s) - 1)
    return torch.stack(rows)


@right("rnn_step")
def _(x, h, W_xh, W_hh, b):
    """In place, but on an own copy."""
    out = x @ W_xh
    out += h.clone() @ W_hh
    out += b
    return out.tanh_()


@right("rnn_step")
def _(x, h, W_xh, W_hh, b):
    """nn.RNNCell with copied weights: correct, though it does not pass gradients on to the weights."""
    cell = nn.RNNCell(x.shape[1], h.shape[1])
    cell.load_state_dict({"weight_ih": W_xh.T, "weight_hh": W_hh.T, "bias_ih": b, "bias_hh": torch.zeros_like(b)})
    return cell(x, h)


# --- gru_step


@right("gru_step")
def _(x, h, W, U, b):
    """Both gates in one einsum."""
    gates = torch.einsum("bd,gdh->gbh", x, W[:2]) + torch.einsum("bi,gih->gbh", h, U[:2]) + b[:2, None]
    r, z = torch.sigmoid(gates)
    n = torch.tanh(x @ W[2] + (r * h) @ U[2] + b[2])
    return torch.lerp(n, h, z)


@right("gru_step")
def _(x, h, W, U, b):
    def gate(i, state):
        return F.linear(x, W[i].T, b[i]) + F.linear(state, U[i].T)

    r, z = gate(0, h).sigmoid(), gate(1, h).sigmoid()
    return h * z + gate(2, h * r).tanh() * (1 - z)


@right("gru_step")
def _(x, h, W, U, b):
    (Wr, Wz, Wn), (Ur, Uz, Un), (br, bz, bn) = W, U, b
    r = 1 / (1 + torch.exp(-(x @ Wr + h @ Ur + br)))
    z = torch.sigmoid(x @ Wz + h @ Uz + bz)
    new = h.clone()
    new *= z
    new += (1 - z) * torch.tanh(x @ Wn + torch.mul(r, h) @ Un + bn)
    return new


# --- seq2seq_encode


@right("seq2seq_encode")
def _(emb, lengths, W_xh, W_hh, b):
    """Packed, with the library's RNN."""
    rnn = nn.RNN(emb.shape[2], W_hh.shape[0], batch_first=True)
    rnn.weight_ih_l0.data, rnn.weight_hh_l0.data = W_xh.T.contiguous(), W_hh.T.contiguous()
    rnn.bias_ih_l0.data, rnn.bias_hh_l0.data = b.clone(), torch.zeros_like(b)
    packed = pack_padded_sequence(emb, lengths, batch_first=True, enforce_sorted=False)
    out, final = rnn(packed)
    return pad_packed_sequence(out, batch_first=True, total_length=emb.shape[1])[0], final[0]


@right("seq2seq_encode")
def _(emb, lengths, W_xh, W_hh, b):
    """Run over everything, then mask and gather. float32 zeros are fine."""
    B, T, _ = emb.shape
    h = torch.zeros(B, W_hh.shape[0])
    states = []
    for t in range(T):
        h = torch.tanh(emb[:, t] @ W_xh + h @ W_hh + b)
        states.append(h)
    states = torch.stack(states, dim=1)
    mask = torch.arange(T)[None, :] < lengths[:, None]
    return states * mask[:, :, None], states[torch.arange(B), lengths - 1]


@right("seq2seq_encode")
def _(emb, lengths, W_xh, W_hh, b):
    """One sentence at a time, results as a list."""
    B, T, _ = emb.shape
    outputs, finals = [], []
    for i in range(B):
        h = emb.new_zeros(W_hh.shape[0])
        row = []
        for t in range(int(lengths[i])):
            h = torch.tanh(emb[i, t] @ W_xh + h @ W_hh + b)
            row.append(h)
        row += [torch.zeros_like(h)] * (T - len(row))
        outputs.append(torch.stack(row))
        finals.append(h)
    return [torch.stack(outputs), torch.stack(finals)]


@right("seq2seq_encode")
def _(emb, lengths, W_xh, W_hh, b):
    """Sorted and restored, with a blend of old and new state."""
    order = torch.argsort(lengths, descending=True)
    inverse = torch.argsort(order)
    e, n = emb[order], lengths[order]
    h = e.new_zeros(len(e), W_hh.shape[0])
    out = e.new_zeros(len(e), e.shape[1], W_hh.shape[0])
    for t in range(e.shape[1]):
        real = (n > t).to(e.dtype)[:, None]
        h = real * torch.tanh(e[:, t] @ W_xh + h @ W_hh + b) + (1 - real) * h
        out[:, t] = real * h
    return out[inverse], h[inverse]


# --- shift_right


@right("shift_right")
def _(targets, bos_id):
    return F.pad(targets[:, :-1], (1, 0), value=bos_id)


@right("shift_right")
def _(targets, bos_id):
    out = targets.roll(1, dims=1)
    out[:, 0] = bos_id
    return out


@right("shift_right")
def _(targets, bos_id):
    out = torch.empty_like(targets)
    out[:, 0] = bos_id
    out[:, 1:] = targets[:, :-1]
    return out


@right("shift_right")
def _(targets, bos_id):
    return torch.tensor([[bos_id, *row[:-1]] for row in targets.tolist()])


# --- lm_loss


@right("lm_loss")
def _(logits, targets, pad_id):
    """The usual line, with view."""
    return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=pad_id)


@right("lm_loss")
def _(logits, targets, pad_id):
    return nn.CrossEntropyLoss(ignore_index=pad_id)(logits.transpose(1, 2), targets)


@right("lm_loss")
def _(logits, targets, pad_id):
    logp = logits.log_softmax(-1)
    nll = -logp.gather(2, targets[..., None])[..., 0]
    real = targets.ne(pad_id).to(nll.dtype)
    return (nll * real).sum() / real.sum()


@right("lm_loss")
def _(logits, targets, pad_id):
    real = targets != pad_id
    z, t = logits[real], targets[real]
    return (z.logsumexp(-1) - z[torch.arange(len(t)), t]).mean()


@right("lm_loss")
def _(logits, targets, pad_id):
    """One-hot, a softmax made safe by hand, and log-probabilities given to cross_entropy's sibling."""
    z = logits - logits.max(-1, keepdim=True).values
    logp = z - z.exp().sum(-1, keepdim=True).log()
    hot = F.one_hot(targets, logits.shape[-1])
    return -(logp * hot).sum(-1)[targets != pad_id].mean()


@right("lm_loss")
def _(logits, targets, pad_id):
    """log_softmax twice changes nothing."""
    return F.cross_entropy(logits.log_softmax(-1).permute(0, 2, 1), targets, ignore_index=pad_id)


@right("lm_loss")
def _(logits, targets, pad_id):
    total, count = 0.0, 0
    for i in range(targets.shape[0]):
        for t in range(targets.shape[1]):
            if targets[i, t] != pad_id:
                total = total + F.cross_entropy(logits[i, t], targets[i, t])
                count += 1
    return total / count


# --- greedy_decode


@right("greedy_decode")
def _(model, idx, n, eos_id=None):
    """Without no_grad, with keepdim and one flag per row."""
    done = torch.zeros(idx.size(0), 1, dtype=torch.bool)
    for _ in range(n):
        nxt = torch.argmax(model(idx[:, -model.block_size :])[:, -1, :], dim=-1, keepdim=True)
        if eos_id is not None:
            nxt[done] = eos_id
            done |= nxt == eos_id
        idx = torch.cat((idx, nxt), dim=1)
        if eos_id is not None and done.all():
            break
    return idx


@right("greedy_decode")
@torch.inference_mode()
def _(model, idx, n, eos_id=None):
    """Row by row with lists; padded with the end token afterwards."""
    rows = []
    for row in idx:
        tokens = row.tolist()
        for _ in range(n):
            logits = model(torch.tensor([tokens[-model.block_size :]]))
            tokens.append(int(logits[0, -1].argmax()))
            if tokens[-1] == eos_id:
                break
        rows.append(tokens)
    longest = max(map(len, rows))
    return torch.tensor([r + [eos_id] * (longest - len(r)) for r in rows])


@right("greedy_decode")
def _(model, idx, n, eos_id=None):
    """topk on probabilities, a buffer, numpy for the flags, and eval mode."""
    was_training = model.training
    model.eval()
    B, T0 = idx.shape
    buffer = torch.zeros(B, T0 + n, dtype=torch.long)
    buffer[:, :T0] = idx
    done = np.zeros(B, dtype=bool)
    length = T0
    with torch.no_grad():
        while length < T0 + n and not done.all():
            start = max(0, length - model.block_size)
            probs = model(buffer[:, start:length]).softmax(-1)
            new = probs[:, -1].topk(1).indices[:, 0].numpy()
            if eos_id is not None:
                new = np.where(done, eos_id, new)
                done |= new == eos_id
            buffer[:, length] = torch.from_numpy(new)
            length += 1
    model.train(was_training)
    return buffer[:, :length]
