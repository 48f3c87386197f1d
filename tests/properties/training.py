"""Properties of the learning rate of the Transformer and of one step of training."""

import copy
import math

import torch
from torch import nn

from properties import Case, close, raises, states


@states("noam_lr")
def the_rate_rises_in_proportion_and_falls_with_the_root(noam_lr, case: Case):
    d_model, warmup = 8 * case.D, 3 * case.T
    top = 1 / math.sqrt(d_model * warmup)
    for step in range(1, 5 * warmup):
        wanted = top * step / warmup if step < warmup else top * math.sqrt(warmup / step)
        assert math.isclose(noam_lr(step, d_model, warmup), wanted, rel_tol=1e-9)
    for size in (1, 5):
        assert math.isclose(noam_lr(7, size, 1), 1 / math.sqrt(7 * size), rel_tol=1e-9)


@states("noam_lr")
def step_0_counts_as_1(noam_lr, case: Case):
    for warmup in (1, case.T, 100):
        assert noam_lr(0, case.D, warmup) == noam_lr(1, case.D, warmup) > 0


@states("noam_lr")
def a_warm_up_or_a_model_of_nothing_is_an_error(noam_lr, case: Case):
    for d_model, warmup in ((8, 0), (0, 8), (-1, 8), (8, -2)):
        told = f"d_model, warmup: got {d_model} and {warmup}; both must be at least 1"
        raises(lambda: noam_lr(3, d_model, warmup), told)  # noqa: B023


def _model(case: Case) -> nn.Module:
    """A classifier in float64 whose weights depend on the case alone."""
    r = case.random()
    model = nn.Sequential(nn.Linear(case.D, case.H), nn.Tanh(), nn.Linear(case.H, 3)).double()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(r(*p.shape))
    return model


def _written_out(model: nn.Module, x, y, lr: float, max_norm: float | None) -> float:
    """One step of plain gradient descent; the loss before it."""
    logits = model(x)
    loss = (logits.logsumexp(dim=-1) - logits[torch.arange(len(y)), y]).mean()
    parameters = list(model.parameters())
    slopes = torch.autograd.grad(loss, parameters)
    norm = math.sqrt(sum(float((slope**2).sum()) for slope in slopes))
    factor = 1.0 if max_norm is None else min(1.0, max_norm / norm)
    with torch.no_grad():
        for p, slope in zip(parameters, slopes, strict=True):
            p -= lr * factor * slope  # noqa: PLW2901
    return loss.item()


@states("train_step")
def a_step_is_gradient_descent_within_the_limit(train_step, case: Case):
    for max_norm in (None, 1e-3, 1e3):
        ours = _model(case)
        theirs = copy.deepcopy(ours)
        optimizer = torch.optim.SGD(ours.parameters(), lr=0.3)
        for n in range(3):
            x = Case(seed=case.seed + n).random()(case.B + 2, case.D)
            y = Case(seed=case.seed + n).integers(3, case.B + 2)
            limit = () if max_norm is None else (max_norm,)
            said = train_step(ours, optimizer, x, y, *limit)
            assert type(said) is float
            assert math.isclose(said, _written_out(theirs, x, y, 0.3, max_norm), rel_tol=1e-6)
            for one, two in zip(ours.parameters(), theirs.parameters(), strict=True):
                close(one, two, 1e-6)


@states("train_step")
def a_step_is_made_in_train_mode(train_step, case: Case):
    seen = []

    class Watched(nn.Linear):
        def forward(self, x):
            seen.append(self.training)
            return super().forward(x)

    model = Watched(case.D, 3).eval()
    train_step(model, torch.optim.SGD(model.parameters(), lr=0.1), torch.ones(2, case.D), torch.tensor([0, 2]))
    assert seen == [True] and model.training
