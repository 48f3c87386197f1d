"""Right and wrong ways to limit gradients, and the misconceptions of `train_step` about them."""

import torch
from torch import nn

from course_utils.checks.model import Misconception

LINE_CLIP = "if max_norm is not None: nn.utils.clip_grad_norm_(model.parameters(), max_norm)"


def nothing(*_):
    """A step left out."""


def clip(model, max_norm):
    """Right: limit the norm of all gradients together."""
    if max_norm is not None:
        nn.utils.clip_grad_norm_(model.parameters(), max_norm)


def _always_clip(model, max_norm):
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)


def _clip_with(default):
    return lambda model, max_norm: nn.utils.clip_grad_norm_(
        model.parameters(), default if max_norm is None else max_norm
    )


def _clip_to(limit):
    return lambda model, max_norm: nn.utils.clip_grad_norm_(model.parameters(), limit)


def _clip_if_given(limit):
    return lambda model, max_norm: None if max_norm is None else _clip_to(limit)(model, max_norm)


def _clip_values(model, max_norm):
    if max_norm is not None:
        nn.utils.clip_grad_value_(model.parameters(), max_norm)


def _clip_each(model, max_norm):
    if max_norm is not None:
        for p in model.parameters():
            nn.utils.clip_grad_norm_(p, max_norm)


def _clip_other_norm(norm_type):
    def step(model, max_norm):
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm, norm_type)

    return step


def _scale_to(model, max_norm):
    if max_norm is not None:
        gradients = [p.grad for p in model.parameters()]
        norm = torch.stack([g.norm() for g in gradients]).norm()
        for g in gradients:
            g.mul_(max_norm / norm)


def _divide(model, max_norm):
    if max_norm is not None:
        for p in model.parameters():
            p.grad.div_(max_norm)


def _clip_weights(by_value):
    def step(model, max_norm):
        if max_norm is None:
            return
        with torch.no_grad():
            parameters = list(model.parameters())
            norm = torch.stack([p.norm() for p in parameters]).norm()
            for p in parameters:
                p.clamp_(-max_norm, max_norm) if by_value else p.mul_((max_norm / norm).clamp(max=1.0))

    return step


CLIPPING = (
    Misconception(
        "train_clip_before_backward",
        "The gradients are clipped before backward, when there is nothing to clip.",
        ("When do gradients exist?", "Clip between backward and step.", f"loss.backward(); {LINE_CLIP}"),
        ({"early": clip, "clip": nothing},),
    ),
    Misconception(
        "train_clip_after_step",
        "The gradients are clipped after the step, when it is too late.",
        ("When are the gradients used?", "Clip between backward and step.", f"{LINE_CLIP}; optimizer.step()"),
        ({"clip": nothing, "late": clip},),
    ),
    Misconception(
        "train_no_clip",
        "max_norm has no effect: the gradients are not clipped.",
        ("Is there an argument that you did not use?", "Which of your lines mentions max_norm?", LINE_CLIP),
        ({"clip": nothing},),
    ),
    Misconception(
        "train_clip_value",
        "Each entry of the gradients is limited, instead of the norm of all of them together: that changes the "
        "direction.",
        ("Does clipping change the direction of the update?", "There is a function for values and one for the norm.",
         LINE_CLIP),
        ({"clip": _clip_values}, {"clip": _clip_other_norm(float("inf"))}),
    ),
    Misconception(
        "train_clip_each",
        "The gradient of each parameter is clipped by itself, instead of the norm of all of them together.",
        ("Of how many numbers is the norm taken?", "Is your clipping inside a loop over the parameters?", LINE_CLIP),
        ({"clip": _clip_each},),
    ),
    Misconception(
        "train_clip_other_norm",
        "Another norm than the Euclidean one is limited.",
        ("Which norm is meant: the sum of squares under a root, or of absolute values?", "Look at norm_type.",
         LINE_CLIP),
        ({"clip": _clip_other_norm(1.0)},),
    ),
    Misconception(
        "train_clip_without_limit",
        "The gradients are clipped although no max_norm is given, or None is passed on to the clipping.",
        ("What should happen if max_norm is None?", "Call it without max_norm.", LINE_CLIP),
        ({"clip": _always_clip}, {"clip": _clip_with(1.0)}, {"clip": _clip_with(0.5)}, {"clip": _clip_with(0.0)}),
    ),
    Misconception(
        "train_clip_fixed",
        "The gradients are clipped to a number of your own, whatever max_norm is.",
        ("Is there an argument that you did not use?", "Call it with a large max_norm, and without any.", LINE_CLIP),
        tuple({"clip": step} for limit in (1.0, 0.5, 5.0) for step in (_clip_to(limit), _clip_if_given(limit))),
    ),
    Misconception(
        "train_always_scaled",
        "The gradients are always scaled to the norm max_norm, also when theirs is smaller.",
        ("What should clipping do to a gradient that is small enough?", "Try a very large max_norm.", LINE_CLIP),
        ({"clip": _scale_to}, {"clip": _divide}),
    ),
    Misconception(
        "train_clips_weights",
        "The weights are clipped, not their gradients.",
        ("What is to be limited: the weights, or the size of a step?", "Which tensors does your clipping change?",
         LINE_CLIP),
        ({"clip": _clip_weights(True)}, {"clip": nothing, "late": _clip_weights(True)}, {"clip": _clip_weights(False)},
         {"clip": nothing, "late": _clip_weights(False)}),
    ),
)  # fmt: skip
