"""Feeding a decoder: teacher forcing while training, its own words afterwards."""

from collections.abc import Callable

import torch
from jaxtyping import Int
from torch import Tensor


def shift_right(targets: Int[Tensor, "B T"], bos_id: int) -> Int[Tensor, "B T"]:
    """What a decoder reads while it predicts `targets`: the start token, then every target but the last.

    Source: Williams and Zipser 1989 (teacher forcing).
    """
    bos = torch.full_like(targets[:, :1], bos_id)
    return torch.cat([bos, targets[:, :-1]], dim=1)


@torch.no_grad()
def greedy_decode(
    model: Callable[[Tensor], Tensor], idx: Int[Tensor, "B T0"], n: int, eos_id: int | None = None
) -> Int[Tensor, "B T"]:
    """Append up to n tokens to each row, always the most likely one.

    model(idx) gives logits (B, T, V); it is fed at most its last `model.block_size` tokens, where it has that
    attribute. A row that has emitted `eos_id` goes on emitting it; decoding stops when all rows have.
    Dropout is switched off while decoding and the mode of the model is restored.
    """
    was_training = getattr(model, "training", False)
    if was_training:
        model.eval()
    block_size = getattr(model, "block_size", None)
    finished = torch.zeros(idx.shape[0], dtype=torch.bool, device=idx.device)
    try:
        for _ in range(n):
            if eos_id is not None and bool(finished.all()):
                break
            seen = idx if block_size is None else idx[:, -block_size:]
            token = model(seen)[:, -1].argmax(dim=-1)
            if eos_id is not None:
                token = torch.where(finished, torch.full_like(token, eos_id), token)
                finished = finished | (token == eos_id)
            idx = torch.cat([idx, token.unsqueeze(1)], dim=1)
    finally:
        if was_training:
            model.train()
    return idx


@torch.no_grad()
def generate(
    model: Callable[[Tensor], Tensor],
    idx: Int[Tensor, "B T0"],
    n: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    generator: torch.Generator | None = None,
) -> Int[Tensor, "B T"]:
    """Append n tokens to each row, each drawn from the model's distribution.

    The logits are divided by the temperature (> 0): below 1 the draw is bolder for likely tokens, above 1 more even.
    top_k keeps the k largest logits only. Feeds at most the last `model.block_size` tokens.
    Raises ValueError for a temperature that is not positive and a top_k below 1.
    """
    if temperature <= 0:
        raise ValueError(f"temperature: got {temperature}, must be above 0; for the likeliest token use greedy_decode")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k: got {top_k}, must be at least 1")
    block_size = getattr(model, "block_size", None)
    for _ in range(n):
        seen = idx if block_size is None else idx[:, -block_size:]
        logits = model(seen)[:, -1] / temperature
        if top_k is not None and top_k < logits.shape[-1]:
            kept = logits.topk(top_k, dim=-1)
            logits = torch.full_like(logits, float("-inf")).scatter(-1, kept.indices, kept.values)
        token = torch.multinomial(logits.softmax(dim=-1), 1, generator=generator)
        idx = torch.cat([idx, token], dim=1)
    return idx
