"""Wrong answers of people who read the course: masks without effect, and mistakes that had no name before."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from wrong_answers import wrong
from wrong_answers.modules import Embedding, Heads

# --- masks that change nothing, and masks that make an ordinary score of a hidden one


def forgotten(scores, mask):
    scores.masked_fill(~mask, float("-inf"))
    return scores


def nothing_yet(scores, mask):
    if mask is not None:
        pass
    return scores


def added_tiny(scores, mask):
    return scores + (1 - mask.float()) * -1e-9


def filled_tiny(scores, mask):
    return torch.where(mask, scores, -1e-9)


def added_as_01(scores, mask):
    return scores + mask.float()


def dot_product(hide):
    def attention(q, k, v, mask=None):
        scores = torch.einsum("...id,...jd->...ij", q, k) / math.sqrt(q.size(-1))
        if mask is not None:
            scores = hide(scores, mask)
        weights = F.softmax(scores, dim=-1)
        return weights @ v, weights

    return attention


def of_one_sequence(hide):
    return lambda x, W_q, W_k, W_v, mask=None: dot_product(hide)(x @ W_q, x @ W_k, x @ W_v, mask)


def additive(hide):
    def attention(query, keys, W_q, W_k, v, mask=None):
        scores = torch.tanh((query @ W_q)[:, None, :] + keys @ W_k).matmul(v)
        if mask is not None:
            scores = hide(scores, mask)
        weights = F.softmax(scores, dim=-1)
        return torch.bmm(weights[:, None], keys).squeeze(1), weights

    return attention


def decoder(hide, returns=lambda logits, new, weights: (logits, new, weights)):
    def decode_step(y_emb, h, enc_out, enc_mask, p):
        weights = F.softmax(hide(torch.bmm(enc_out, h[:, :, None]).squeeze(2), enc_mask), dim=-1)
        context = torch.bmm(weights[:, None], enc_out).squeeze(1)
        new = torch.tanh(torch.cat((y_emb, context), 1) @ p["W_x"] + h @ p["W_h"] + p["b"])
        return returns(torch.cat((new, context), 1) @ p["W_o"] + p["b_o"], new, weights)

    return decode_step


def heads(hide):
    return type("MultiHeadAttention", (Heads,), {"hide": lambda self, scores, mask: hide(scores, mask)})


# exercise: how an answer is made, and the ids for no effect, a number next to 0, and 0 and 1
MASKED = {
    "scaled_dot_product_attention": (dot_product, "sdpa_mask_ignored", "sdpa_mask_fill_1e-9", "sdpa_mask_added_as_01"),
    "self_attention": (of_one_sequence, "self_mask_ignored", "self_mask_fill_1e-9", "self_mask_added_as_01"),
    "additive_attention": (additive, "add_mask_ignored", "add_mask_fill_1e-9", "add_mask_added_as_01"),
    "decode_step": (decoder, "dec_no_source_mask", "dec_mask_fill_1e-9", "dec_mask_added_as_01"),
    "MultiHeadAttention": (heads, "mha_mask_ignored", "mha_mask_multiplied", "mha_mask_added_as_01"),
}
WITHOUT_EFFECT = (forgotten, nothing_yet, added_tiny)

for _exercise, (_made, _none, _tiny, _01) in MASKED.items():
    for _hide in WITHOUT_EFFECT:
        wrong(_exercise, _none)(_made(_hide))
    wrong(_exercise, _tiny)(_made(filled_tiny))
    wrong(_exercise, _01)(_made(added_as_01))


# --- no name before


@wrong("self_attention", "self_roles_swapped")
def keys_ask(x, W_q, W_k, W_v, mask=None):
    q, k, v = x @ W_q, x @ W_k, x @ W_v
    scores = k @ q.transpose(-2, -1) / math.sqrt(k.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e30)
    weights = scores.softmax(-1)
    return weights @ v, weights


@wrong("rnn_step", "rnn_residual")
def added_to_the_old_state(x, h, W_xh, W_hh, b):
    update = torch.tanh(F.linear(x, W_xh.T, b) + F.linear(h, W_hh.T))
    return h + update


def _gru(x, h, W, U, b):
    r, z = ((x @ W[i] + h @ U[i] + b[i]).sigmoid() for i in range(2))
    return z, (x @ W[2] + (r * h) @ U[2] + b[2]).tanh()


@wrong("gru_step", "gru_shares_exceed_one")
def whole_candidate(x, h, W, U, b):
    z, n = _gru(x, h, W, U, b)
    return z * h + n


@wrong("gru_step", "gru_shares_exceed_one")
def whole_state(x, h, W, U, b):
    z, n = _gru(x, h, W, U, b)
    return h + (1 - z) * n


@wrong("gru_step", "gru_reset_on_input")
def resets_all(x, h, W, U, b):
    r, z, inner = (x @ W[i] + h @ U[i] + b[i] for i in range(3))
    z = z.sigmoid()
    return (1 - z) * torch.tanh(r.sigmoid() * inner) + z * h


@wrong("seq2seq_encode", "enc_carried_over")
def never_begins_anew(emb, lengths, W_xh, W_hh, b):
    outputs = torch.zeros(*emb.shape[:2], W_hh.shape[0], dtype=emb.dtype)
    h, finals = torch.zeros(W_hh.shape[0], dtype=emb.dtype), []
    for i, length in enumerate(lengths):
        for t in range(int(length)):
            h = torch.tanh(emb[i, t] @ W_xh + h @ W_hh + b)
            outputs[i, t] = h
        finals.append(h)
    return outputs, torch.stack(finals)


wrong("decode_step", "dec_results_missing")(
    decoder(lambda s, m: s.masked_fill(~m, -1e30), lambda logits, new, weights: logits)
)
wrong("decode_step", "dec_results_missing")(
    decoder(lambda s, m: s.masked_fill(~m, -1e30), lambda logits, new, weights: (logits, new))
)
wrong("decode_step", "dec_results_order")(
    decoder(lambda s, m: s.masked_fill(~m, -1e30), lambda logits, new, weights: (new, weights, logits))
)


@wrong("noam_lr", "lr_power_without_parentheses")
def halves(step, d_model, warmup):
    step = max(1, step)
    return d_model**-0.5 * min(step**-1 / 2, step * warmup**-1.5)


@wrong("noam_lr", "lr_power_without_parentheses")
def halves_everywhere(step, d_model, warmup):
    step = step or 1
    return d_model**-1 / 2 * min(step**-1 / 2, step * warmup**-3 / 2)


@wrong("MultiHeadAttention", "mha_mask_head_axis")
class NoHeadAxis(Heads):
    """A mask (B, Tq, Tk) is used as it is."""

    def fit(self, mask, scores):
        return mask


@wrong("TokenEmbedding", "emb_table_not_registered")
class PlainTable(Embedding):
    """The table is an ordinary attribute."""

    def keep(self, table):
        self.pe = table


# --- a block whose whole layer is the library's: masks (T, T) only


@wrong("TransformerBlock")
class LibraryLayer(nn.Module):
    """Every mask but (T, T) is an error."""

    def __init__(self, d_model, n_heads, d_ff, dropout=0.0):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(d_model, n_heads, d_ff, dropout, batch_first=True, norm_first=True)

    def forward(self, x, mask=None):
        return self.layer(x, src_mask=None if mask is None else ~self.fit(mask))

    def fit(self, mask):
        return mask


@wrong("TransformerBlock")
class FirstMaskForAll(LibraryLayer):
    """A mask (B, 1, T, T) is cut down to that of the first sentence."""

    def fit(self, mask):
        return mask[0, 0] if mask.dim() == 4 else mask
