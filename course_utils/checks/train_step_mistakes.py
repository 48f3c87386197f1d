"""The recipe of `train_step`, and its misconceptions about updates, the loss and the mode."""

import torch
import torch.nn.functional as F

from course_utils.checks.compare import close
from course_utils.checks.model import Misconception
from course_utils.checks.train_step_clipping import clip, nothing
from course_utils.checks.values import Outcome


def assemble(s):
    """The function from its steps."""

    def run(model, optimizer, x, y, max_norm=None):
        s.mode(model)
        optimizer = s.optimizer(model, optimizer)
        s.start(optimizer)
        loss = s.reduce(s.loss(s.logits(model, x), y), x)
        s.clear(optimizer)
        s.early(model, max_norm)
        s.backward(loss)
        s.between(optimizer)
        s.clip(model, max_norm)
        s.step(optimizer)
        s.late(model, max_norm)
        s.end(model)
        return s.result(loss, model, x, y)

    return run


def _times(n):
    def step(optimizer):
        for _ in range(n):
            optimizer.step()

    return step


def _zero(optimizer):
    optimizer.zero_grad()


def _instead(make):
    """Another optimizer takes the place of the one that was passed."""
    return lambda model, optimizer: make(model.parameters())


def _of_the_same_kind(model, optimizer):
    return type(optimizer)(model.parameters(), lr=optimizer.param_groups[0]["lr"])


def _no_graph(model, x):
    with torch.no_grad():
        return model(x)


def _in_evaluation(model, x, y):
    model.eval()
    with torch.no_grad():
        loss = F.cross_entropy(model(x), y).item()
    model.train()
    return loss


def _of_another_optimizer(got: Outcome, want: Outcome) -> bool:
    """Weights move although the optimizer that was passed does nothing."""
    if not isinstance(got.value, tuple) or not isinstance(want.value, tuple):
        return False
    moved, steps = got.value[2][:, 2], got.value[2][:, 4:6]
    return bool(moved.any()) and not bool(steps.any())


def _returns(kind):
    """Recognises a result that is right but for its kind: 0 a tensor with its graph, 0.5 one without."""

    def symptom(got: Outcome, want: Outcome) -> bool:
        if not isinstance(got.value, tuple) or not isinstance(want.value, tuple):
            return False
        alike = all(bool(close(a, b).all()) for a, b in zip(got.value[:2], want.value[:2], strict=True))
        return alike and bool((got.value[2][:, 0] == kind).all())

    return symptom


def _stays_in_evaluation(got: Outcome, want: Outcome) -> bool:
    if not isinstance(got.value, tuple) or not isinstance(want.value, tuple):
        return False
    return bool((got.value[2][:, 1] < want.value[2][:, 1]).all())


RIGHT = {
    "mode": lambda model: model.train(),
    "optimizer": lambda model, optimizer: optimizer,
    "start": nothing,
    "logits": lambda model, x: model(x),
    "loss": F.cross_entropy,
    "reduce": lambda loss, x: loss,
    "clear": _zero,
    "early": nothing,
    "backward": lambda loss: loss.backward(),
    "between": nothing,
    "clip": clip,
    "step": lambda optimizer: optimizer.step(),
    "late": nothing,
    "end": nothing,
    "result": lambda loss, model, x, y: loss.item(),
}

ORDER = "optimizer.zero_grad(); loss.backward(); optimizer.step()"


UPDATES = (
    Misconception(
        "train_no_zero_grad",
        "Old gradients are never cleared: backward adds the new ones to them, so they pile up.",
        ("What is left in .grad from the last batch?", "The first step is right, the second is not.", ORDER),
        ({"clear": nothing},),
    ),
    Misconception(
        "train_no_step",
        "The optimizer never takes its step: optimizer.step() is missing.",
        ("Who updates the weights?", "Compare a weight before and after the call.", ORDER),
        ({"step": nothing},),
    ),
    Misconception(
        "train_no_backward",
        "The gradients are never computed: loss.backward() is missing.",
        ("Who fills .grad?", "Print p.grad of a parameter before the step.", ORDER),
        ({"backward": nothing},),
    ),
    Misconception(
        "train_zero_before_step",
        "The gradients are cleared between backward and step, so that the step finds nothing.",
        ("What is in .grad when the optimizer takes its step?", "In which order do zero_grad, backward and step stand?",
         ORDER),
        ({"clear": nothing, "between": _zero}, {"between": _zero}),
    ),
    Misconception(
        "train_step_before_backward",
        "The step comes before the gradients of this batch are there: each update uses those of the batch before.",
        ("Which gradients does the step use?", "In which order do backward and step stand?", ORDER),
        ({"start": lambda optimizer: (optimizer.step(), optimizer.zero_grad()), "clear": nothing, "step": nothing},
         {"clear": lambda optimizer: (optimizer.step(), optimizer.zero_grad()), "step": nothing},
         {"clear": lambda optimizer: (optimizer.zero_grad(), optimizer.step()), "step": nothing}),
    ),
    Misconception(
        "train_step_twice",
        "The optimizer takes more than one step for a batch.",
        ("How many updates does one call make?", "Count the calls of step.", ORDER),
        ({"step": _times(2)}, {"step": _times(3)}, {"step": _times(10)}),
    ),
    Misconception(
        "train_other_optimizer",
        "The weights are moved by something else than the optimizer that was passed (a new one, or a loop of your "
        "own): that one never takes a step.",
        ("Is there an argument that you did not use?", "What does a new optimizer, or a plain loop, know of momentum "
         "and of the steps before?", "optimizer.step(), with the optimizer that was passed"),
        ({"optimizer": _instead(lambda p: torch.optim.Adam(p, lr=1e-3))},
         {"optimizer": _instead(lambda p: torch.optim.SGD(p, lr=0.01))},
         {"optimizer": _instead(lambda p: torch.optim.SGD(p, lr=0.1))},
         {"optimizer": _of_the_same_kind}),
        symptom=_of_another_optimizer,
    ),
)  # fmt: skip


LOSS = (
    Misconception(
        "train_keeps_graph",
        "The loss is returned as a tensor with its graph: who collects the losses keeps the memory of every step.",
        ("What is the type of your result?", "A list of a thousand such losses: what do they all hold?",
         "return loss.item()"),
        ({"result": lambda loss, model, x, y: loss},),
        symptom=_returns(0.0),
    ),
    Misconception(
        "train_returns_tensor",
        "The loss is returned as a tensor.",
        ("What is the type of your result?", "detach cuts the graph off; a tensor is left.", "return loss.item()"),
        ({"result": lambda loss, model, x, y: loss.detach()},),
        convention="the loss is returned as a plain number (float).",
        symptom=_returns(0.5),
    ),
    Misconception(
        "train_loss_after_update",
        "The loss is computed anew after the update.",
        ("Which weights does the returned loss belong to?", "Look for a second model(x).", "return loss.item()"),
        ({"result": lambda loss, model, x, y: F.cross_entropy(model(x), y).item()},
         {"result": lambda loss, model, x, y: _in_evaluation(model, x, y)}),
        convention="the loss before the update is returned.",
    ),
    Misconception(
        "train_softmax_first",
        "Probabilities go into the cross-entropy, which applies softmax once more.",
        ("What does cross_entropy expect: logits or probabilities?", "Look for softmax.",
         "F.cross_entropy(model(x), y)"),
        ({"loss": lambda z, y: F.cross_entropy(z.softmax(-1), y)},
         {"loss": lambda z, y: F.cross_entropy(z.sigmoid(), y)},
         {"loss": lambda z, y: F.cross_entropy(z.softmax(0), y)}),
    ),
    Misconception(
        "train_loss_sum",
        "The losses of a batch are summed, not averaged.",
        ("Is the loss twice as large for twice as many samples?", "Look for reduction or sum.",
         "F.cross_entropy(model(x), y)"),
        ({"reduce": lambda loss, x: loss * len(x)},),
        convention="the loss is the mean over the batch.",
    ),
    Misconception(
        "train_loss_divided",
        "The loss is divided once more: cross_entropy has taken the mean already.",
        ("By what has cross_entropy divided already?", "Look for / len(x).", "F.cross_entropy(model(x), y)"),
        ({"reduce": lambda loss, x: loss / len(x)},
         {"result": lambda loss, model, x, y: loss.item() / len(x)}),
    ),
    Misconception(
        "train_nll_on_logits",
        "Raw logits are used where log-probabilities are needed.",
        ("Can your loss be negative?", "nll_loss expects log-probabilities.", "F.cross_entropy(model(x), y)"),
        ({"loss": F.nll_loss}, {"loss": lambda z, y: F.nll_loss(z.softmax(-1), y)}),
    ),
    Misconception(
        "train_squared_error",
        "Another loss than the cross-entropy is used: squared or absolute errors, or binary cross-entropy.",
        ("Which loss does the statement name?", "y holds classes, not numbers to be hit.",
         "F.cross_entropy(model(x), y)"),
        ({"loss": lambda z, y: F.mse_loss(z, F.one_hot(y, z.shape[-1]).to(z.dtype))},
         {"loss": lambda z, y: F.mse_loss(z.softmax(-1), F.one_hot(y, z.shape[-1]).to(z.dtype))},
         {"loss": lambda z, y: F.binary_cross_entropy_with_logits(z, F.one_hot(y, z.shape[-1]).to(z.dtype))},
         {"loss": F.multi_margin_loss}),
    ),
    Misconception(
        "train_loss_not_averaged",
        "There is one loss for each sample, not one for the batch; backward starts from a single number.",
        ("How many numbers are a loss?", "Look for reduction.", "F.cross_entropy(model(x), y)"),
        ({"loss": lambda z, y: F.cross_entropy(z, y, reduction="none")},),
    ),
    Misconception(
        "train_ascends",
        "The sign of the loss is turned: the update makes it larger.",
        ("Is the loss to become smaller or larger?", "Look for a minus.", "loss.backward()"),
        ({"backward": lambda loss: (-loss).backward()}, {"reduce": lambda loss, x: -loss}),
    ),
    Misconception(
        "train_number_too_early",
        "The loss is made a plain number before backward, which needs the tensor with its graph.",
        ("What can backward do with a plain number?", "Call .item() in the return, not before.",
         "loss.backward(); …; return loss.item()"),
        ({"reduce": lambda loss, x: loss.item()}, {"reduce": lambda loss, x: float(loss)}),
        symptom=lambda got, want: got.error is not None and "'float' object has no attribute" in got.error.message,
    ),
    Misconception(
        "train_no_graph",
        "The model runs without a graph (no_grad, detach), so that backward has nothing to go through.",
        ("Where does backward begin, and where should it end?", "Look for no_grad and detach.",
         "F.cross_entropy(model(x), y)"),
        ({"logits": _no_graph}, {"reduce": lambda loss, x: loss.detach()},
         {"logits": lambda model, x: model(x).argmax(-1).float()}),
    ),
)  # fmt: skip


MODES = (
    Misconception(
        "train_no_train_mode",
        "The model is not put into train mode: what an evaluation before has switched off (dropout) stays off.",
        ("In which mode is the model after an evaluation?", "Call model.eval() before, and look at model.training "
         "afterwards.", "model.train(), in the first line"),
        ({"mode": nothing},),
        symptom=_stays_in_evaluation,
    ),
    Misconception(
        "train_evaluation_mode",
        "The model is put into evaluation mode for the step: dropout is off while it trains.",
        ("Which mode is for training?", "Look for model.eval().", "model.train(), in the first line"),
        ({"mode": lambda model: model.eval()},),
    ),
    Misconception(
        "train_mode_too_late",
        "Train mode is switched on after the loss was computed.",
        ("In which mode does your model compute the loss?", "Look at the order of model(x) and model.train().",
         "model.train(), in the first line"),
        ({"mode": nothing, "end": lambda model: model.train()},),
    ),
    Misconception(
        "train_left_in_evaluation",
        "The model is left in evaluation mode.",
        ("In which mode is the model after your step?", "Look for model.eval().", "model.train(), and no model.eval()"),
        ({"end": lambda model: model.eval()},),
        convention="the step switches train mode on.",
    ),
)  # fmt: skip
