"""One training loop for every model of the course."""

import contextlib
import math
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from . import mode
from .device import choose_device, to_device
from .progress_bar import ProgressBar


@dataclass
class History:
    """What a training run leaves behind: the loss of each step, steps and seconds used, measurements on the way.

    finished is False if the time limit, or a loss that was no longer finite (diverged), ended it early.
    """

    losses: list[float] = field(default_factory=list)
    measured: list[tuple[int, object]] = field(default_factory=list)
    seconds: float = 0.0
    finished: bool = True
    diverged: bool = False

    @property
    def steps(self) -> int:
        return len(self.losses)

    @property
    def final_loss(self) -> float:
        """Mean loss of the last twentieth of the run (at least one step)."""
        last = self.losses[-max(1, len(self.losses) // 20) :]
        return sum(last) / len(last) if last else math.nan


def seed_everything(seed: int) -> None:
    """Seed Python's, numpy's and torch's generators."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def n_parameters(model: nn.Module) -> int:
    """How many numbers the model learns."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def cosine_with_warmup(step: int, steps: int, warmup: int, floor: float = 0.05) -> float:
    """Factor on the learning rate: a linear rise over `warmup` steps, then half a cosine down to `floor`."""
    rise = min(1.0, (step + 1) / max(1, warmup))
    return rise * (floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * step / max(1, steps))))


def noam_lr(step: int, d_model: int, warmup: int) -> float:
    """Learning rate that rises linearly for `warmup` steps and then falls with the root of the step.

    Step 0 counts as 1. Source: Vaswani et al. 2017, section 5.3. Raises ValueError for a warm-up below one step.
    """
    if warmup < 1 or d_model < 1:
        raise ValueError(f"d_model, warmup: got {d_model} and {warmup}; both must be at least 1")
    step = max(1, step)
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def train_step(
    model: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor, y: Tensor, max_norm: float | None = None
) -> float:
    """One update of a classifier: model(x) gives logits (N, V), y (N) the classes. The loss before the update.

    max_norm limits the norm of all gradients together. Train mode is switched on.
    """
    model.train()
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    if max_norm is not None:
        nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return loss.item()


@contextlib.contextmanager
def _put_away(model: nn.Module, bar: ProgressBar, history: History) -> Iterator[None]:
    """Whatever ends a training: no bar that seems to run on, no model that still drops features out."""
    try:
        yield
    except BaseException as error:
        by = "interrupted" if isinstance(error, KeyboardInterrupt) else "stopped by an error"
        bar.close(history.final_loss, step=history.steps, broken_off=by)
        raise
    finally:
        model.cpu().eval()


def train(
    model: nn.Module,
    loss_of: Callable[[nn.Module, object], Tensor],
    batches: Iterator,
    steps: int,
    *,
    lr: float = 4e-3,
    warmup: int = 50,
    clip: float | None = 1.0,
    label: str = "training",
    measure: Callable[[nn.Module], object] | None = None,
    measure_every: int = 0,
    time_limit: float = 600.0,
    schedule: Callable[[int], float] | None = None,
    betas: tuple[float, float] = (0.9, 0.999),
    weight_decay: float = 0.0,
    device: str | torch.device | None = None,
) -> History:
    """Train with Adam for a fixed number of steps, with a progress bar.

    loss_of(model, batch) is a scalar tensor. schedule(step) is the factor on the learning rate at step 0, 1, …, by
    default a warm-up and then a cosine; clip limits the norm of all gradients together (None: not at all);
    weight_decay is AdamW's. `measure(model)` runs at step 0 and then every `measure_every` steps and at the end, in
    eval mode and without gradients. Training stops early in two cases, and says so: after `time_limit` seconds (no
    result of the course depends on how fast a machine is), and when the loss is no longer a finite number.
    The device is chosen by `choose_device`. Afterwards the model is on the CPU again, in eval mode; after Ctrl-C and
    after an error, too.
    Raises ValueError for fewer than one step, a model without parameters, or a loss that does not reach them.
    """
    if steps < 1:
        raise ValueError(f"steps: got {steps}, must be at least 1")
    parameters = [p for p in model.parameters() if p.requires_grad]
    if not parameters:
        raise ValueError(f"model: {type(model).__name__} has no parameter to train")
    steps = mode.steps(steps)
    history = History()
    device = choose_device(device)
    model.to(device)
    optimizer = torch.optim.AdamW(parameters, lr=lr, betas=betas, weight_decay=weight_decay)
    factor = schedule or (lambda step: cosine_with_warmup(step, steps, warmup))
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
    bar = ProgressBar(steps, label)
    started = time.monotonic()

    def take_measure(step: int) -> None:
        if measure is not None:
            model.cpu().eval()  # what measures brings its own data, which is on the CPU
            with torch.no_grad():
                history.measured.append((step, measure(model)))
            model.to(device)
        model.train()

    with _put_away(model, bar, history):
        take_measure(0)
        for step in range(1, steps + 1):
            loss = loss_of(model, to_device(next(batches), device))
            if step == 1 and not (isinstance(loss, Tensor) and loss.requires_grad):
                raise ValueError(
                    "loss_of: the loss does not depend on the model's parameters (detached, or .item() was called)"
                )
            optimizer.zero_grad()
            loss.backward()
            if clip is not None:
                nn.utils.clip_grad_norm_(parameters, clip)
            optimizer.step()
            scheduler.step()
            history.losses.append(loss.item())
            if measure_every and (step % measure_every == 0 or step == steps):
                take_measure(step)
            history.seconds = time.monotonic() - started
            bar.update(step, history.losses[-1])
            if not math.isfinite(history.losses[-1]):
                history.finished, history.diverged = False, True
                break
            if history.seconds > time_limit and step < steps:
                history.finished = False
                break
    bar.close(
        history.final_loss,
        finished=history.finished,
        time_limit=time_limit,
        diverged=history.diverged,
        step=history.steps,
    )
    return history
