"""Properties of rnn_step, gru_step, lstm_step and seq2seq_encode; torch's own cells are the judge."""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from properties import Case, close, gradients, states

FAR = 1000.0  # a bias so large that a sigmoid is exactly 0 or 1


def _copy(target: torch.Tensor, source: torch.Tensor) -> None:
    with torch.no_grad():
        target.copy_(source)


def _cell(kind: type, n_gates: int, W, U, b) -> nn.Module:
    """torch's cell with our weights: it keeps (gates * out, in) matrices, and a second bias that stays zero."""
    cell = kind(W.shape[-2], W.shape[-1]).double()
    _copy(cell.weight_ih, W.transpose(-1, -2).reshape(n_gates * W.shape[-1], -1))
    _copy(cell.weight_hh, U.transpose(-1, -2).reshape(n_gates * U.shape[-1], -1))
    _copy(cell.bias_ih, b.flatten())
    _copy(cell.bias_hh, torch.zeros_like(cell.bias_hh))
    return cell


def _rnn_inputs(case: Case):
    r = case.random()
    return r(case.B, case.D), r(case.B, case.H), r(case.D, case.H), r(case.H, case.H), r(case.H)


def _gated_inputs(case: Case, gates: int):
    r = case.random()
    B, D, H = case.B, case.D, case.H
    return r(B, D), r(B, H), r(gates, D, H), r(gates, H, H), r(gates, H)


@states("rnn_step")
def rnn_step_is_the_cell_of_torch(rnn_step, case: Case):
    x, h, W, U, b = _rnn_inputs(case)
    close(rnn_step(x, h, W, U, b), _cell(nn.RNNCell, 1, W, U, b)(x, h))


@states("rnn_step")
def rnn_step_stays_between_minus_one_and_one(rnn_step, case: Case):
    x, h, *weights = _rnn_inputs(case)
    assert rnn_step(50 * x, 50 * h, *weights).abs().max() <= 1


@states("rnn_step")
def rnn_step_has_the_gradients_of_torch(rnn_step, case: Case):
    x, h, W, U, b = _rnn_inputs(case)
    cell = _cell(nn.RNNCell, 1, W, U, b)
    inputs = [part.requires_grad_() for part in (x, h, W, U, b)]
    weights = torch.arange(1.0, case.B * case.H + 1).view(case.B, case.H)
    ours = gradients(rnn_step(*inputs), inputs, weights)
    theirs = gradients(cell(x, h), [x, h, cell.weight_ih, cell.weight_hh, cell.bias_ih], weights)
    for mine, other in zip(ours, (*theirs[:2], theirs[2].T, theirs[3].T, theirs[4]), strict=True):
        close(mine, other)


@states("gru_step")
def gru_step_is_the_cell_of_torch_where_the_two_orders_agree(gru_step, case: Case):
    # torch resets after the product with U, the course before it; a diagonal U makes the two the same.
    x, h, W, U, b = _gated_inputs(case, 3)
    U[2] = torch.diag(U[2].diagonal())
    close(gru_step(x, h, W, U, b), _cell(nn.GRUCell, 3, W, U, b)(x, h))


@states("gru_step")
def gru_step_is_the_cell_of_torch_where_nothing_is_reset(gru_step, case: Case):
    x, h, W, U, b = _gated_inputs(case, 3)
    b[0] = FAR
    close(gru_step(x, h, W, U, b), _cell(nn.GRUCell, 3, W, U, b)(x, h))


@states("gru_step")
def gru_step_resets_before_the_product(gru_step, case: Case):
    x, h, W, U, b = _gated_inputs(case, 3)
    b[1] = -FAR  # the candidate alone
    reset = torch.sigmoid(x @ W[0] + h @ U[0] + b[0])
    close(gru_step(x, h, W, U, b), torch.tanh(x @ W[2] + torch.einsum("bi,bi,ij->bj", reset, h, U[2]) + b[2]))


@states("gru_step")
def gru_step_with_a_closed_reset_gate_forgets(gru_step, case: Case):
    x, h, W, U, b = _gated_inputs(case, 3)
    b[0], b[1] = -FAR, -FAR
    close(gru_step(x, h, W, U, b), gru_step(x, -3 * h, W, U, b))


@states("gru_step")
def gru_step_with_an_open_update_gate_keeps_the_state(gru_step, case: Case):
    x, h, W, U, b = _gated_inputs(case, 3)
    b[1] = FAR
    assert torch.equal(gru_step(x, h, W, U, b), h)


@states("gru_step")
def gru_step_leaves_no_wider_range_than_it_found(gru_step, case: Case):
    x, h, *weights = _gated_inputs(case, 3)
    assert (gru_step(5 * x, h, *weights).abs() <= h.abs().clamp(min=1)).all()


@states("gru_step")
def gru_step_has_the_gradients_of_torch(gru_step, case: Case):
    x, h, W, U, b = _gated_inputs(case, 3)
    U[2] = torch.diag(U[2].diagonal())
    cell = _cell(nn.GRUCell, 3, W, U, b)
    x.requires_grad_(), h.requires_grad_()
    weights = torch.arange(1.0, case.B * case.H + 1).view(case.B, case.H)
    ours = gradients(gru_step(x, h, W, U, b), [x, h], weights)
    for mine, other in zip(ours, gradients(cell(x, h), [x, h], weights), strict=True):
        close(mine, other)


@states("lstm_step")
def lstm_step_is_the_cell_of_torch(lstm_step, case: Case):
    x, h, W, U, b = _gated_inputs(case, 4)
    c = case.random()(case.B, case.H) * 2
    expected_h, expected_c = _cell(nn.LSTMCell, 4, W, U, b)(x, (h, c))
    next_h, next_c = lstm_step(x, h, c, W, U, b)
    close(next_h, expected_h)
    close(next_c, expected_c)


@states("lstm_step")
def lstm_step_carries_an_untouched_cell(lstm_step, case: Case):
    x, h, W, U, b = _gated_inputs(case, 4)
    c = case.random()(case.B, case.H) * 100
    b[0], b[1] = -FAR, FAR
    assert torch.equal(lstm_step(x, h, c, W, U, b)[1], c)


@states("lstm_step")
def lstm_step_passes_the_gradient_of_the_cell_through_the_forget_gate(lstm_step, case: Case):
    x, h, W, U, b = _gated_inputs(case, 4)
    c = case.random()(case.B, case.H).requires_grad_()
    (gradient,) = torch.autograd.grad(lstm_step(x, h, c, W, U, b)[1].sum(), c)
    close(gradient, torch.sigmoid(x @ W[1] + h @ U[1] + b[1]))


def _encoder_inputs(case: Case):
    r = case.random()
    emb = r(case.B, case.T, case.D)
    return emb, case.lengths(), r(case.D, case.H), r(case.H, case.H), r(case.H)


@states("seq2seq_encode")
def encode_is_the_packed_rnn_of_torch(encode, case: Case):
    emb, lengths, W, U, b = _encoder_inputs(case)
    rnn = nn.RNN(case.D, case.H, batch_first=True).double()
    for target, source in zip(rnn.parameters(), (W.T, U.T, b, torch.zeros_like(b)), strict=True):
        _copy(target, source)
    emb.requires_grad_()
    packed = pack_padded_sequence(emb, lengths, batch_first=True, enforce_sorted=False)
    packed_states, last = rnn(packed)
    expected, _ = pad_packed_sequence(packed_states, batch_first=True, total_length=case.T)
    outputs, final = encode(emb, lengths, W, U, b)
    close(outputs, expected)
    close(final, last[0])
    close(torch.autograd.grad(final.sum(), emb)[0], torch.autograd.grad(last.sum(), emb)[0])


@states("seq2seq_encode")
def encode_gives_zeros_on_padding_and_the_last_real_state(encode, case: Case):
    emb, lengths, *weights = _encoder_inputs(case)
    outputs, final = encode(emb, lengths, *weights)
    for i, n in enumerate(lengths.tolist()):
        assert not outputs[i, n:].any()
        assert torch.equal(final[i], outputs[i, n - 1])


@states("seq2seq_encode")
def encode_never_sees_padding(encode, case: Case):
    emb, lengths, *weights = _encoder_inputs(case)
    poisoned = emb.clone()
    for i, n in enumerate(lengths.tolist()):
        poisoned[i, n:] = float("nan")
    more = torch.cat([poisoned, torch.full_like(emb[:, :2], float("inf"))], dim=1)
    outputs, final = encode(emb, lengths, *weights)
    longer, final_of_longer = encode(more, lengths, *weights)
    assert torch.equal(longer[:, : case.T], outputs) and not longer[:, case.T :].any()
    assert torch.equal(final_of_longer, final)


@states("seq2seq_encode")
def encode_treats_each_sentence_alone(encode, case: Case):
    emb, lengths, *weights = _encoder_inputs(case)
    outputs, final = encode(emb, lengths, *weights)
    for i in range(case.B):
        alone, final_alone = encode(emb[i : i + 1], lengths[i : i + 1], *weights)
        close(alone[0], outputs[i])
        close(final_alone[0], final[i])
