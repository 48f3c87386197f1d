"""Properties of lm_loss."""

import math

import torch

from properties import Case, close, states


def _inputs(case: Case):
    """Logits, targets with the padding of a real batch, and a padding id that is not the first."""
    V = case.H + 1
    pad_id = V - 1
    targets = case.integers(V - 1, case.B, case.T)
    for i, n in enumerate(case.lengths().tolist()):
        targets[i, n:] = pad_id
    return case.random()(case.B, case.T, V), targets, pad_id


@states("lm_loss")
def lm_loss_is_the_mean_surprise_of_the_real_tokens_of_the_batch(lm_loss, case: Case):
    logits, targets, pad_id = _inputs(case)
    surprises = []
    for i in range(case.B):
        for t in range(case.T):
            if targets[i, t] != pad_id:
                shares = logits[i, t].exp() / logits[i, t].exp().sum()
                surprises.append(-math.log(shares[targets[i, t]]))
    close(lm_loss(logits, targets, pad_id), torch.tensor(sum(surprises) / len(surprises), dtype=torch.float64))


@states("lm_loss")
def lm_loss_of_no_opinion_is_the_logarithm_of_the_vocabulary(lm_loss, case: Case):
    logits, targets, pad_id = _inputs(case)
    loss = lm_loss(torch.full_like(logits, 7.0), targets, pad_id)
    assert math.isclose(loss.item(), math.log(logits.shape[-1]), rel_tol=1e-9)


@states("lm_loss")
def lm_loss_gives_padding_no_gradient(lm_loss, case: Case):
    logits, targets, pad_id = _inputs(case)
    (gradient,) = torch.autograd.grad(lm_loss(logits.requires_grad_(), targets, pad_id), logits)
    assert not gradient[targets == pad_id].any()
    assert gradient[targets != pad_id].any(dim=-1).all()


@states("lm_loss")
def lm_loss_of_nothing_is_not_a_number(lm_loss, case: Case):
    logits, targets, pad_id = _inputs(case)
    assert lm_loss(logits, torch.full_like(targets, pad_id), pad_id).isnan()
