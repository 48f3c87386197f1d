"""Makes a module from a student's class, copies weights into it and looks inside; runs where the answer runs."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from course_utils import multihead, positions
from course_utils.checks.model import Draw
from course_utils.checks.values import Construction, Inside

REFERENCES: dict[str, type[nn.Module]] = {
    "TokenEmbedding": positions.TokenEmbedding,
    "MultiHeadAttention": multihead.MultiHeadAttention,
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
    if not described.weights:
        return _look(module)
    with torch.no_grad():
        if callable(getattr(module, "copy_from", None)):
            reference = REFERENCES[described.reference](*described.arguments.values()).eval()
            reference.load_state_dict(described.weights, strict=False)
            module.copy_from(reference)
            return _look(module, "copy_from")
        held = {name: weight(module, name) for name in described.weights}
        missing = tuple(name for name, tensor in held.items() if tensor is None)
        misfits = {
            n: tuple(t.shape) for n, t in held.items() if t is not None and t.shape != described.weights[n].shape
        }
        if missing or misfits:
            return _look(module, "", missing, misfits)
        for name, tensor in held.items():
            tensor.copy_(described.weights[name])
        return _look(module, "names")


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
    )
