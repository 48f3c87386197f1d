"""Makes a module from a student's class, copies weights into it and looks inside; runs where the answer runs."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from course_utils import multihead, positions, transformer, vision
from course_utils.checks.model import Draw
from course_utils.checks.values import Construction, Inside

REFERENCES: dict[str, type[nn.Module]] = {
    "TokenEmbedding": positions.TokenEmbedding,
    "MultiHeadAttention": multihead.MultiHeadAttention,
    "TransformerBlock": transformer.TransformerBlock,
    "TiedLM": transformer.TiedLM,
    "ViTEmbedding": vision.ViTEmbedding,
}
MAX_LISTED = 100


def construction(reference: str, draw: Draw, scale: float = 0.4, **arguments: Any) -> Construction:
    """A description with every parameter random, biases too: a fresh module has zeros and ones that hide mistakes."""
    names = REFERENCES[reference](*arguments.values()).named_parameters()
    return Construction(reference, arguments, {name: scale * draw.normal(*p.shape) for name, p in names})


def make(cls: Callable[..., Any], arguments: dict[str, Any]) -> nn.Module:
    """An instance; TypeError if it is no module."""
    module = cls(*arguments.values())
    if not isinstance(module, nn.Module):
        name = getattr(cls, "__name__", "the class")
        raise TypeError(f"{name} is no module: write class {name}(nn.Module)")
    return module


def load(module: nn.Module, described: Construction) -> Inside:
    """Copy the weights in, by `copy_from` if the module offers it, else by the names of the statement."""
    module.eval()
    inside = _fill(module, described)
    if described.training:
        module.train()
    return inside


def _fill(module: nn.Module, described: Construction) -> Inside:
    with torch.no_grad():
        if described.own:
            OWN[described.own](module)
        if not described.weights:
            return _look(module)
        if callable(getattr(module, "copy_from", None)):
            reference = REFERENCES[described.reference](*described.arguments.values()).eval()
            reference.load_state_dict(described.weights, strict=False)
            module.copy_from(reference)
            return _look(module, "copy_from")
        held = {name: weight(module, name) for name in described.weights}
        missing = tuple(name for name, tensor in held.items() if tensor is None)
        if missing:
            missing, copied = _by_parts(module, described, missing)
            held = {name: tensor for name, tensor in held.items() if name.partition(".")[0] not in copied}
        misfits = {n: tuple(t.shape) for n, t in held.items() if t is not None and not _fits(t, described.weights[n])}
        if missing or misfits:
            return _look(module, "", missing, misfits)
        for name, tensor in held.items():
            tensor.copy_(described.weights[name].view_as(tensor))
        return _look(module, "names" if len(held) == len(described.weights) else "parts")


def _by_parts(
    module: nn.Module, described: Construction, missing: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Parts that lack a weight of the statement may offer a `copy_from` of their own.

    Returns the names that are still missing, and the parts that were copied so.
    """
    reference = REFERENCES[described.reference](*described.arguments.values()).eval()
    reference.load_state_dict(described.weights, strict=False)
    copied = []
    for part in dict.fromkeys(name.partition(".")[0] for name in missing):
        mine, other = getattr(module, part, None), getattr(reference, part, None)
        if isinstance(other, nn.Module) and callable(getattr(mine, "copy_from", None)):
            mine.copy_from(other)
            copied.append(part)
    return tuple(name for name in missing if name.partition(".")[0] not in copied), tuple(copied)


def _fits(held: Tensor, given: Tensor) -> bool:
    """Whether the shapes agree; a convolution over whole patches has the numbers of a linear layer in the same order.

    (out, channel, row, column) is as good as (out, in).
    """
    return held.shape == given.shape or (held.dim() > given.dim() == 2 and held.flatten(1).shape == given.shape)


def _zeros(module: nn.Module) -> None:
    for p in module.parameters():
        p.zero_()


def _no_biases(module: nn.Module) -> None:
    for p in module.parameters():
        if p.dim() == 1 and not bool((p == 1).all()):  # ones are the scales of fresh norms
            p.zero_()


OWN: dict[str, Callable[[nn.Module], None]] = {"zeros": _zeros, "no biases": _no_biases}


def weight(module: nn.Module, name: str) -> Tensor | None:
    """The tensor that the module holds under a name like "W_q.weight"."""
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, Tensor) else None


def idle(module: nn.Module, gradients: dict[str, Tensor | None]) -> tuple[str, ...]:
    """The weight matrices that no gradient reaches. A bias may have none by nature: that of the keys cancels."""
    reached = {name for name, gradient in gradients.items() if gradient is not None and bool(gradient.any())}
    return tuple(name for name, p in listed(module).items() if p.dim() > 1 and name not in reached)


def listed(module: nn.Module) -> dict[str, nn.Parameter]:
    """The first parameters by name; shared ones once."""
    return dict(list(module.named_parameters())[:MAX_LISTED])


def _look(
    module: nn.Module,
    loaded: str = "",
    missing: tuple[str, ...] = (),
    misfits: dict[str, tuple[int, ...]] | None = None,
) -> Inside:
    parameters = listed(module)
    return Inside(
        loaded,
        missing,
        misfits or {},
        {name: tuple(p.shape) for name, p in parameters.items()},
        {name: tuple(b.shape) for name, b in list(module.named_buffers())[:MAX_LISTED]},
        tuple(name for name, p in parameters.items() if not p.requires_grad),
        _aliases(parameters),
        _plain(module),
    )


def _plain(module: nn.Module) -> tuple[str, ...]:
    """Tables that are ordinary attributes: `to(device)` and `state_dict()` know nothing of them."""
    found = []
    for prefix, part in module.named_modules():
        found += [f"{prefix}.{name}".lstrip(".") for name, value in vars(part).items() if _is_table(value)]
    return tuple(found[:MAX_LISTED])


def _is_table(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return len(value) > 1 and isinstance(value[0], Tensor)
    return isinstance(value, Tensor | np.ndarray) and value.ndim > 1


def _aliases(parameters: dict[str, nn.Parameter]) -> tuple[str, ...]:
    seen: set[int] = set()
    found = []
    for name, p in parameters.items():
        if p.numel() and p.data_ptr() in seen:
            found.append(name)
        seen.add(p.data_ptr())
    return tuple(found)
