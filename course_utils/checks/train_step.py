"""Cases of `train_step`: a small classifier whose weights and losses are compared after each step."""

import torch
from torch import Tensor

from course_utils import training as reference
from course_utils.checks.compare import ELSEWHERE, close
from course_utils.checks.model import Case, Draw, Exercise, Output, Recipe
from course_utils.checks.train_step_clipping import CLIPPING
from course_utils.checks.train_step_mistakes import LOSS, MODES, RIGHT, UPDATES, assemble
from course_utils.checks.values import Call, Double, Outcome, Probe

FREE = torch.ones((), dtype=torch.bool)
RETURNS = "the loss as a plain number (float)"


def _batches(steps: int, kind: str = "sgd", lr: float = 0.3, max_norm: float | None = None, size: int = 5, **options):
    """`steps` batches for a classifier with 4 features and 3 classes; `options` are those of the optimizer."""

    def build(draw: Draw) -> dict:
        arguments = {
            "model": Double("classifier", {"d": 4, "hidden": 6, "classes": 3, "seed": draw.seed()}),
            "optimizer": Double(kind, {"lr": lr} | options),
            "x": 1.5 * draw.normal(steps, size, 4),
            "y": draw.tokens(0, 3, steps, size),
        }
        return arguments if max_norm is None else arguments | {"max_norm": max_norm}

    return build


def _trained(**params: bool):
    return lambda draw: Probe("training", RETURNS, params)


def _losses_and_weights(arguments: dict) -> tuple[Tensor | None, ...]:
    return None, None, FREE


def _train_mode(call: Call, got: Outcome, want: Outcome) -> str:
    losses, weights, conduct = got.value
    others = want.value
    if not torch.equal(conduct[:, 1], others[2][:, 1]):
        return "Before the step the model was in evaluation mode, and it still is: train mode is not switched on."
    right = bool(close(losses, others[0]).all() and close(weights, others[1]).all())
    return "" if right else ELSEWHERE


def _plain_number(call: Call, got: Outcome, want: Outcome) -> str:
    if not torch.equal(got.value[2][:, 0], want.value[2][:, 0]):
        return "The loss is returned as a tensor, not as a plain number (float)."
    return "" if bool(close(got.value[0], want.value[0]).all()) else ELSEWHERE


CASES = (
    Case("one step", "the loss before the update is returned; every weight moves against its gradient", 2, _batches(1),
         probe=_trained(), loose=_losses_and_weights),
    Case("three steps with momentum", "each step uses the gradients of its own batch only", 2,
         _batches(3, lr=0.1, momentum=0.8), probe=_trained(), loose=_losses_and_weights),
    Case("a small max_norm", "the norm of all gradients together is brought down to max_norm", 2,
         _batches(2, lr=1.0, max_norm=0.25), probe=_trained(), loose=_losses_and_weights),
    Case("a large max_norm", "gradients with a smaller norm are left alone", 1, _batches(2, max_norm=80.0),
         probe=_trained(), loose=_losses_and_weights),
    Case("a model in evaluation mode", "train mode is switched on before the loss is computed", 1, _batches(2),
         probe=_trained(evaluating=True), compare=_train_mode),
    Case("a plain number", "the loss is a float", 1, _batches(1, size=7), probe=_trained(), compare=_plain_number),
    Case("Adam, and a batch is kept", "any optimizer; nothing is written to; no randomness", 1,
         _batches(2, kind="adam", lr=0.05), probe=_trained(), loose=_losses_and_weights, repeat=True,
         keeps_inputs=True),
    Case("gradients that are already there", "what was in .grad before the step has no influence", 0, _batches(1),
         probe=_trained(stale=True), loose=_losses_and_weights,
         note="Passed. Gradients that are there before the first step are added to it: zero_grad before backward, "
              "not only at the end, is the safer order."),
)  # fmt: skip


TRAIN_STEP = Exercise(
    name="train_step",
    notebook="06",
    reference=reference.train_step,
    outputs=(
        Output("the loss", ("step",)),
        Output("the weights after each step", ("step", "weight")),
        Output("conduct", ("step", "fact")),
    ),
    cases=CASES,
    recipe=Recipe(assemble, RIGHT),
    misconceptions=(*UPDATES, *CLIPPING, *LOSS, *MODES),
    hints=(
        "In which order: clear old gradients, compute the loss, compute new gradients, limit them, update?",
        "model.train(), zero_grad, cross_entropy, backward, clip_grad_norm_ if max_norm is given, step, item.",
        "model.train(); optimizer.zero_grad(); loss = F.cross_entropy(model(x), y); loss.backward(); "
        "if max_norm is not None: nn.utils.clip_grad_norm_(model.parameters(), max_norm); "
        "optimizer.step(); return loss.item()",
    ),
)
