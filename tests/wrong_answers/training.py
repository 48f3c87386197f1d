"""Wrong answers to train_step."""

import torch
import torch.nn.functional as F
from torch import nn

from wrong_answers import wrong


@wrong("train_step", "train_no_zero_grad")
def _(model, optimizer, x, y, max_norm=None):
    model.train()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    if max_norm is not None:
        nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return loss.item()


@wrong("train_step", "train_clip_before_backward")
def _(model, optimizer, x, y, max_norm=None):
    model.train()
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    if max_norm is not None:
        nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    loss.backward()
    optimizer.step()
    return loss.item()


@wrong("train_step", "train_clip_after_step")
def _(model, optimizer, x, y, max_norm=None):
    model.train()
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    if max_norm is not None:
        nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    return loss.item()


@wrong("train_step", "train_keeps_graph")
def _(model, optimizer, x, y, max_norm=None):
    model.train()
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    if max_norm is not None:
        nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return loss


@wrong("train_step", "train_no_step")
def _(model, optimizer, x, y, max_norm=None):
    model.train()
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    if max_norm is not None:
        nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    return loss.item()


class Step:
    """A right answer in parts; a wrong one exchanges some."""

    def start(self, model, optimizer):
        model.train()
        optimizer.zero_grad()

    def loss(self, model, x, y):
        return F.cross_entropy(model(x), y)

    def clip(self, model, max_norm):
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)

    def update(self, optimizer):
        optimizer.step()

    def result(self, model, x, y, loss):
        return loss.item()

    def __call__(self, model, optimizer, x, y, max_norm=None):
        self.start(model, optimizer)
        loss = self.loss(model, x, y)
        loss.backward()
        self.clip(model, max_norm)
        self.update(optimizer)
        return self.result(model, x, y, loss)


def _step(title, misconception=None, **methods):
    """A wrong answer: the right one with some parts exchanged."""
    changed = type("Step", (Step,), methods)()

    def train_step(model, optimizer, x, y, max_norm=None):
        return changed(model, optimizer, x, y, max_norm)

    train_step.__doc__ = title
    train_step.__name__ = "".join(word.title() for word in title.split())
    wrong("train_step", misconception)(train_step)


def _each_clipped(self, model, max_norm):
    for p in model.parameters():
        if max_norm is not None and p.grad is not None:
            nn.utils.clip_grad_norm_(p, max_norm)


def _values_clipped(self, model, max_norm):
    if max_norm is not None:
        nn.utils.clip_grad_value_(model.parameters(), max_norm)


def _always_scaled(self, model, max_norm):
    if max_norm is not None:
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        norm = torch.cat([g.flatten() for g in gradients]).norm()
        for g in gradients:
            g.mul_(max_norm / norm)


def _cleared_after_backward(self, model, max_norm):
    Step.clip(self, model, max_norm)
    model.zero_grad()


def _weights_clipped(self, model, max_norm):
    if max_norm is not None:
        for p in model.parameters():
            p.data.clamp_(-max_norm, max_norm)


def _twice(self, optimizer):
    optimizer.step()
    optimizer.step()


def _one_hot_squares(self, model, x, y):
    logits = model(x)
    return F.mse_loss(logits.softmax(-1), F.one_hot(y, logits.shape[-1]).to(logits.dtype))


_step("eval mode", start=lambda self, model, optimizer: (model.eval(), optimizer.zero_grad()))
_step("mode left alone", start=lambda self, model, optimizer: optimizer.zero_grad())
_step("no limit", clip=lambda self, model, max_norm: None)
_step(
    "always limited to 1",
    "train_clip_fixed",
    clip=lambda self, model, max_norm: nn.utils.clip_grad_norm_(model.parameters(), 1.0),
)
_step("each parameter limited alone", clip=_each_clipped)
_step("values limited", clip=_values_clipped)
_step("short gradients made longer", clip=_always_scaled)
_step("cleared between backward and step", clip=_cleared_after_backward)
_step("weights limited", clip=_weights_clipped)
_step("two updates", update=_twice)
_step("loss after the update", result=lambda self, model, x, y, loss: F.cross_entropy(model(x), y).item())
_step("sum of losses", loss=lambda self, model, x, y: F.cross_entropy(model(x), y, reduction="sum"))
_step("softmax twice", loss=lambda self, model, x, y: F.cross_entropy(model(x).softmax(-1), y))
_step("squared error", loss=_one_hot_squares)
_step(
    "mean loss divided by the batch again",
    "train_loss_divided",
    result=lambda self, model, x, y, loss: loss.item() / len(x),
)
_step("no result", result=lambda self, model, x, y, loss: None)
_step("detached loss tensor", result=lambda self, model, x, y, loss: loss.detach())
_step("train mode switched off at the end", result=lambda self, model, x, y, loss: (model.eval(), loss.item())[1])


@wrong("train_step")
def _(model, optimizer, x, y, max_norm=None):
    """Number first, and no tensor left to go backward from."""
    model.train()
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y).item()
    loss.backward()
    optimizer.step()
    return loss


@wrong("train_step", "train_other_optimizer")
def _(model, optimizer, x, y, max_norm=None):
    """A plain step of gradient descent in place of the optimiser's."""
    model.train()
    model.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p.sub_(0.01 * p.grad)
    return loss.item()
