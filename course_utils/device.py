"""Where a model trains: on the graphics card if there is one, unless somebody says otherwise."""

import os
import re
from typing import Any

import torch

KINDS = ("cpu", "cuda", "mps")


def choose_device(name: str | torch.device | None = None) -> torch.device:
    """The device to train on: `name`, else the environment's COURSE_DEVICE, else cuda, mps or cpu, whichever is there.

    Raises ValueError for an unknown device, and for one that this machine does not have.
    """
    where = "device" if name else "COURSE_DEVICE"
    asked = str(name or os.environ.get("COURSE_DEVICE") or "auto").strip().lower() or "auto"
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if asked == "auto":
        return torch.device("cuda" if there["cuda"] else "mps" if there["mps"] else "cpu")
    kind = asked.split(":")[0]
    present = ", ".join(k for k in KINDS if there[k])
    if not re.fullmatch(rf"({'|'.join(KINDS)})(:\d+)?", asked):
        raise ValueError(
            f"{where}: got {asked!r}, must be auto or one of {', '.join(KINDS)}; this machine has {present}"
        )
    if not there[kind]:
        raise ValueError(f"{where}: {asked!r} was asked for, but this machine has {present}")
    device = torch.device(asked)
    if kind == "cuda" and (device.index or 0) >= (cards := torch.cuda.device_count()):
        raise ValueError(f"{where}: {asked!r} was asked for, but this machine's last card is cuda:{cards - 1}")
    return device


def to_device(batch: Any, device: torch.device | str) -> Any:
    """A batch on another device: a tensor, anything with a method `to`, or a tuple, list or dict of such."""
    if hasattr(batch, "to"):
        return batch.to(device)
    if isinstance(batch, (tuple, list)):
        return type(batch)(to_device(part, device) for part in batch)
    if isinstance(batch, dict):
        return {name: to_device(part, device) for name, part in batch.items()}
    return batch
