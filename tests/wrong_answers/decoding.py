"""Wrong answers to shift_right, lm_loss and greedy_decode."""

import torch
import torch.nn.functional as F

from wrong_answers import wrong

# --- shift_right


@wrong("shift_right", "shift_none")
def _(targets, bos_id):
    return targets


@wrong("shift_right", "shift_roll")
def _(targets, bos_id):
    return torch.roll(targets, shifts=1, dims=1)


@wrong("shift_right", "shift_left")
def _(targets, bos_id):
    out = torch.empty_like(targets)
    out[:, :-1] = targets[:, 1:]
    out[:, -1] = bos_id
    return out


@wrong("shift_right", "shift_left")
def _(targets, bos_id):
    return torch.roll(targets, -1, dims=-1)


@wrong("shift_right", "shift_batch_axis")
def _(targets, bos_id):
    out = targets.clone()
    out[1:] = targets[:-1]
    out[0] = bos_id
    return out


@wrong("shift_right")
def _(targets, bos_id):
    return F.pad(targets, (1, 0), value=bos_id)


@wrong("shift_right")
def _(targets, bos_id):
    targets[:, 1:] = targets[:, :-1].clone()
    targets[:, 0] = bos_id
    return targets


@wrong("shift_right")
def _(targets, bos_id):
    return F.pad(targets[:, :-1], (1, 0))  # 0 instead of bos_id


@wrong("shift_right")
def _(targets, bos_id):
    return F.pad(targets[:, :-1], (1, 0), value=bos_id).float()


@wrong("shift_right")
def _(targets, bos_id):
    return [[bos_id, *row[:-1]] for row in targets.tolist()]


# --- lm_loss


@wrong("lm_loss", "loss_double_softmax")
def _(logits, targets, pad_id):
    probs = F.softmax(logits, dim=-1)
    return F.cross_entropy(probs.view(-1, probs.shape[-1]), targets.view(-1), ignore_index=pad_id)


@wrong("lm_loss", "loss_view_bvt")
def _(logits, targets, pad_id):
    B, T, V = logits.shape
    return F.cross_entropy(logits.view(B, V, T), targets, ignore_index=pad_id)


@wrong("lm_loss", "loss_counts_padding")
def _(logits, targets, pad_id):
    return F.cross_entropy(logits.permute(0, 2, 1), targets)


@wrong("lm_loss", "loss_divides_by_all")
def _(logits, targets, pad_id):
    each = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")
    return (each * (targets != pad_id)).mean()


@wrong("lm_loss", "loss_mean_of_means")
def _(logits, targets, pad_id):
    per_sentence = [F.cross_entropy(z, t, ignore_index=pad_id) for z, t in zip(logits, targets, strict=True)]
    return torch.stack(per_sentence).mean()


@wrong("lm_loss", "loss_softmax_time")
def _(logits, targets, pad_id):
    logp = F.log_softmax(logits, dim=1)
    return F.nll_loss(logp.reshape(-1, logp.size(-1)), targets.reshape(-1), ignore_index=pad_id)


@wrong("lm_loss", "loss_divides_by_batch")
def _(logits, targets, pad_id):
    total = F.cross_entropy(logits.mT, targets, ignore_index=pad_id, reduction="sum")
    return total / len(targets)


@wrong("lm_loss", "loss_nll_on_logits")
def _(logits, targets, pad_id):
    return F.nll_loss(logits.flatten(0, 1), targets.flatten(), ignore_index=pad_id)


@wrong("lm_loss", "loss_probability_not_log")
def _(logits, targets, pad_id):
    p = logits.softmax(-1)
    p = torch.gather(p, 2, targets[..., None])[..., 0]
    return -p[targets != pad_id].mean()


@wrong("lm_loss", "loss_mask_by_prediction")
def _(logits, targets, pad_id):
    each = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")
    return each[logits.argmax(-1) != pad_id].mean()


@wrong("lm_loss", "loss_mask_by_prediction")
def _(logits, targets, pad_id):
    each = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")
    keep = (logits.argmax(-1) != pad_id) * 1.0
    return (each * keep).sum() / keep.sum()


@wrong("lm_loss", "loss_detached")
def _(logits, targets, pad_id):
    return F.cross_entropy(logits.transpose(1, 2), targets, ignore_index=pad_id).item()


@wrong("lm_loss", "loss_detached")
def _(logits, targets, pad_id):
    return F.cross_entropy(logits.data.transpose(1, 2), targets, ignore_index=pad_id)


@wrong("lm_loss")
def _(logits, targets, pad_id):
    return F.cross_entropy(logits.transpose(1, 2), targets, ignore_index=0)


@wrong("lm_loss", "loss_perplexity")
def _(logits, targets, pad_id):
    return torch.exp(F.cross_entropy(logits.transpose(1, 2), targets, ignore_index=pad_id))


@wrong("lm_loss", "loss_shifts_again")
def _(logits, targets, pad_id):
    return F.cross_entropy(logits[:, :-1].transpose(1, 2), targets[:, 1:], ignore_index=pad_id)


@wrong("lm_loss", "loss_shifts_again")
def _(logits, targets, pad_id):
    ahead = logits.narrow(1, 1, logits.shape[1] - 1).reshape(-1, logits.shape[2])
    return F.cross_entropy(ahead, targets[:, :-1].reshape(-1), ignore_index=pad_id)


@wrong("lm_loss", "loss_batch_time_mixed")
def _(logits, targets, pad_id):
    flat = torch.cat([logits[:, t] for t in range(logits.shape[1])])
    return F.cross_entropy(flat, targets.flatten(), ignore_index=pad_id)


@wrong("lm_loss", "loss_batch_time_mixed")
def _(logits, targets, pad_id):
    return F.cross_entropy(logits.flatten(0, 1), targets.t().flatten(), ignore_index=pad_id)


@wrong("lm_loss")
def _(logits, targets, pad_id):
    return F.cross_entropy(logits.transpose(1, 2), targets, ignore_index=pad_id, label_smoothing=0.1)


@wrong("lm_loss")
def _(logits, targets, pad_id):
    p = torch.softmax(logits, -1).gather(2, targets.unsqueeze(2)).squeeze(2)
    return -torch.log(p)[targets != pad_id].mean()


# --- greedy_decode


@wrong("greedy_decode", "gen_last_token_only")
def _(model, idx, n, eos_id=None):
    return _decode(model, idx, n, eos_id, feed=lambda seq: seq[:, [-1]])


@wrong("greedy_decode", "gen_crop_front")
def _(model, idx, n, eos_id=None):
    return _decode(model, idx, n, eos_id, feed=lambda seq: seq[:, : model.block_size])


@wrong("greedy_decode", "gen_no_crop")
def _(model, idx, n, eos_id=None):
    return _decode(model, idx, n, eos_id, feed=lambda seq: seq)


def _decode(model, idx, n, eos_id, feed=None, choose=None, finished=torch.all):
    feed = feed or (lambda seq: seq[:, -model.block_size :])
    choose = choose or (lambda logits: logits[:, -1, :].max(dim=-1).indices)
    ended = [False] * len(idx)
    for _ in range(n):
        if eos_id is not None and finished(torch.tensor(ended)):
            return idx
        new = choose(model(feed(idx)))
        if eos_id is not None:
            for i in range(len(idx)):
                if ended[i]:
                    new[i] = eos_id
                ended[i] = ended[i] or new[i].item() == eos_id
        idx = torch.hstack([idx, new[:, None]])
    return idx


@wrong("greedy_decode", "gen_argmax_batch")
def _(model, idx, n, eos_id=None):
    for _ in range(n):
        logits = model(idx[:, -model.block_size :])[:, -1, :]
        nxt = torch.argmax(logits, dim=0, keepdim=True)
        idx = torch.cat((idx, nxt), dim=1)
    return idx


@wrong("greedy_decode", "gen_argmax_batch")
def _(model, idx, n, eos_id=None):
    return _decode(model, idx, n, eos_id, choose=lambda logits: logits[:, -1].argmax(0)[: len(idx)])


@wrong("greedy_decode", "gen_argmax_flat")
def _(model, idx, n, eos_id=None):
    for _ in range(n):
        best = model(idx[:, -model.block_size :])[:, -1].argmax().item()
        idx = torch.cat([idx, torch.full((idx.shape[0], 1), best)], 1)
        if best == eos_id:
            break
    return idx


@wrong("greedy_decode", "gen_argmax_flat")
def _(model, idx, n, eos_id=None):
    for _ in range(n):
        nxt = model(idx[:, -model.block_size :])[:, -1].argmax()
        idx = torch.cat([idx, nxt.view(1, 1)], dim=1)
        if eos_id is not None and nxt == eos_id:
            break
    return idx


@wrong("greedy_decode", "gen_stops_on_any_eos")
def _(model, idx, n, eos_id=None):
    return _decode(model, idx, n, eos_id, finished=torch.any)


@wrong("greedy_decode", "gen_stops_on_any_eos")
def _(model, idx, n, eos_id=None):
    for _ in range(n):
        nxt = model(idx[:, -model.block_size :])[:, -1].argmax(-1, keepdim=True)
        idx = torch.cat([idx, nxt], 1)
        if eos_id is not None and (nxt == eos_id).any():
            break
    return idx


@wrong("greedy_decode", "gen_returns_new_only")
def _(model, idx, n, eos_id=None):
    return _decode(model, idx, n, eos_id)[:, idx.size(1) :]


@wrong("greedy_decode", "gen_one_too_many")
def _(model, idx, n, eos_id=None):
    return _decode(model, idx, n + 1, eos_id)


@wrong("greedy_decode", "gen_one_too_few")
def _(model, idx, n, eos_id=None):
    while n > 1:
        idx = _decode(model, idx, 1, None)
        n -= 1
        if eos_id is not None and (idx == eos_id).any(1).all():
            break
    if eos_id is not None:
        after = (idx == eos_id).cumsum(1) > 0
        idx = idx.masked_fill(after, eos_id)
    return idx


@wrong("greedy_decode", "gen_argmax_time")
def _(model, idx, n, eos_id=None):
    return _decode(model, idx, n, eos_id, choose=lambda logits: logits.argmax(dim=1)[:, -1])


@wrong("greedy_decode", "gen_argmax_time")
def _(model, idx, n, eos_id=None):
    for _ in range(n):
        idx = torch.cat([idx, model(idx[:, -model.block_size :]).argmax(dim=1)], dim=1)
    return idx


@wrong("greedy_decode", "gen_ignores_eos")
def _(model, idx, n, eos_id=None):
    for _ in range(n):  # eos_id is never looked at
        nxt = model(idx[:, -model.block_size :])[:, -1].argmax(-1, keepdim=True)
        idx = torch.cat([idx, nxt], 1)
    return idx


@wrong("greedy_decode", "gen_stops_only_together")
def _(model, idx, n, eos_id=None):
    for _ in range(n):
        if eos_id is not None and bool((idx[:, -1] == eos_id).all()):
            break
        logits = model(idx[:, -model.block_size :])
        idx = torch.hstack([idx, logits[:, -1].topk(1).indices])
    return idx


@wrong("greedy_decode", "gen_stops_only_together")
def _(model, idx, n, eos_id=None):
    for _ in range(n):  # finished rows go on with other words
        nxt = model(idx[:, -model.block_size :])[:, -1].argmax(-1, keepdim=True)
        idx = torch.cat([idx, nxt], 1)
        if eos_id is not None and (nxt == eos_id).all():
            break
    return idx


@wrong("greedy_decode")
def _(model, idx, n, eos_id=None):
    return _decode(model, idx, n, eos_id, choose=lambda z: torch.multinomial(z[:, -1].softmax(-1), 1)[:, 0])


@wrong("greedy_decode")
def _(model, idx, n, eos_id=None):
    return _decode(model, idx, n, eos_id).float()


@wrong("greedy_decode")
def _(model, idx, n, eos_id=None):
    out = _decode(model, idx, n, eos_id or None)
    return out
