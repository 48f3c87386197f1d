"""How a function is tried out that makes a module, or changes one; runs where the answer runs.

Each probe gets the answer and its arguments, calls it, watches, and returns plain values: the outputs of the exercise.
"""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from course_utils.checks import doubles
from course_utils.checks.values import Foreign, Probe


def run(function: Callable[..., Any], arguments: dict[str, Any], probe: Probe) -> Any:
    """What the probe finds out."""
    return PROBES[probe.kind](function, arguments, **probe.params)


def _unfit(value: Any) -> Foreign | None:
    """What stands for a result that the probe can do nothing with."""
    if value is None:
        return None
    if isinstance(value, Tensor):
        return Foreign(f"a tensor of shape {tuple(value.shape)}")
    kind = type(value).__name__[:60]
    if isinstance(value, tuple | list):
        return Foreign(f"a {kind} of {len(value)} items")
    return Foreign(f"a plain {kind}" if isinstance(value, bool | int | float | str) else f"a {kind}")


def stack(
    build: Callable[..., Any], arguments: dict[str, Any], x: Tensor, mask: Tensor | None = None
) -> tuple[Tensor, ...] | Foreign | None:
    """Builds the stack and calls it, moves its parameters a little downhill, and calls it again.

    Returns the output before and after, the output with the mask (without, if there is none, or the module takes
    none), and facts: how many numbers the module registers, how many layers were made, whether it took the mask.
    """
    make_layer = doubles.build(arguments["make_layer"])
    module = build(make_layer, arguments["n_layers"])
    if not isinstance(module, nn.Module):
        return _unfit(module)
    takes_mask = mask is not None and _takes(module.forward, x, mask)
    before = after = module(x)
    masked = module(x, mask) if takes_mask else before
    parameters = list(module.parameters())
    if isinstance(before, Tensor) and before.requires_grad:
        before.pow(2).sum().backward()
        with torch.no_grad():
            for p in parameters:
                if p.grad is not None:
                    p.sub_(0.02 * p.grad)
        after = module(x)
    facts = [sum(p.numel() for p in parameters), len(make_layer.made), takes_mask]
    return before, after, masked, torch.tensor(facts, dtype=torch.float64)


def _takes(function: Callable[..., Any], *arguments: Any) -> bool:
    try:
        inspect.signature(function).bind(*arguments)
    except (TypeError, ValueError):
        return False
    return True


def training(
    step: Callable[..., Any],
    arguments: dict[str, Any],
    evaluating: bool = False,
    stale: bool = False,
) -> tuple[Tensor, ...] | Foreign | None:
    """Calls the step once for each batch: x (K, N, d), y (K, N).

    evaluating: the model is put into evaluation mode before each step; stale: it comes with gradients.
    Returns the losses (K,), all weights after each step (K, n), and the conduct in each step (K, 9): the kind of number
    that was returned, whether train mode is on afterwards, whether weights moved, and what `_conduct` tells.
    """
    model = doubles.build(arguments["model"])
    optimizer = doubles.optimizer(arguments["optimizer"], model)
    weights = list(model.parameters())
    if stale:
        for p in weights:
            p.grad = torch.full_like(p, 0.7)
    weights[0].register_hook(lambda _: model.log.append("backward"))
    optimizer.register_step_pre_hook(lambda *_: model.log.append("step" if _gradients(weights) else "idle step"))
    rest = [v for name, v in arguments.items() if name not in ("model", "optimizer", "x", "y")]
    losses, after, conduct = [], [], []
    for x, y in zip(arguments["x"], arguments["y"], strict=True):
        model.train(not evaluating)
        model.log.clear()
        before = _flat(weights)
        loss = step(model, optimizer, x, y, *rest)
        kind = _kind_of_number(loss)
        if kind is None:
            return _unfit(loss)
        losses.append(float(loss))
        after.append(_flat(weights))
        moved = not torch.equal(before, after[-1])
        conduct.append([kind, float(model.training), float(moved), *_conduct(model.log)])
    return (
        torch.tensor(losses, dtype=torch.float32),
        torch.stack(after),
        torch.tensor(conduct, dtype=torch.float64),
    )


def _flat(weights: list[nn.Parameter]) -> Tensor:
    return torch.cat([p.detach().flatten() for p in weights])


def _gradients(weights: list[nn.Parameter]) -> bool:
    return any(p.grad is not None and bool(p.grad.any()) for p in weights)


def _kind_of_number(value: Any) -> float | None:
    """1 for a plain number; less for a tensor that holds one, least with its graph; None for anything else."""
    if isinstance(value, float | np.floating):
        return 1.0
    if isinstance(value, Tensor) and value.numel() == 1 and not value.is_complex():
        return 0.0 if value.requires_grad else 0.5
    return None


def _conduct(log: list[str]) -> list[float]:
    """Was there a backward pass, steps with and without gradients, and when were the parameters looked through:
    before the backward pass, between it and the step, after the step."""
    steps = [i for i, what in enumerate(log) if "step" in what]
    backward = log.index("backward") if "backward" in log else len(log)
    step = steps[0] if steps else len(log)
    looked = [i for i, what in enumerate(log) if what == "parameters"]
    places = (
        any(i < backward for i in looked),
        any(backward < i < step for i in looked),
        any(i > step for i in looked),
    )
    return [float(n) for n in ("backward" in log, log.count("step"), log.count("idle step"), *places)]


PROBES: dict[str, Callable[..., Any]] = {"stack": stack, "training": training}
