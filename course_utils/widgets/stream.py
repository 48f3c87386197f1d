"""What happens to the stream in a stack of Transformer blocks: recorded by hooks, in float64."""

import copy
from collections.abc import Iterable
from typing import Any

import numpy as np

PARTS = ("read", "added", "stream")


def trace(blocks: Iterable[Any], x: Any, mask: Any = None) -> dict[str, np.ndarray]:
    """Run x (T, d) or (1, T, d) through blocks: start (T, d); read, added, stream (2L, T, d) for the 2L sub-layers.

    A block needs the parts ln1, attn, ln2 and ff2 (or ffn), as the course's blocks have; pre-norm and post-norm are
    told apart by what ln1 reads. It works on a copy in float64, with dropout off. Raises ValueError for a block
    without these parts, and for one that neither adds to the stream nor norms the sum.
    """
    import torch

    x = torch.as_tensor(x).detach().double()
    x = x[None] if x.dim() == 2 else x
    if x.dim() != 3 or len(x) != 1:
        raise ValueError(f"trace: x has shape {tuple(x.shape)}; it must be (T, d), the vectors of one sequence")
    found: dict[str, list[Any]] = {name: [] for name in PARTS}
    start = x
    with torch.no_grad():
        for i, block in enumerate(blocks):
            x = _through(copy.deepcopy(block).double().eval(), i, x, mask, found)
    if not found["added"]:
        raise ValueError("trace: blocks is empty; give at least one block")
    return {"start": start[0].numpy()} | {name: torch.cat(rows).numpy() for name, rows in found.items()}


def _through(block: Any, i: int, x: Any, mask: Any, found: dict[str, list[Any]]) -> Any:
    """One block: what it read, added and left in the stream is appended to `found`; the stream after it."""
    import torch

    last = "ff2" if hasattr(block, "ff2") else "ffn"
    if missing := [name for name in ("ln1", "attn", "ln2", last) if not hasattr(block, name)]:
        raise ValueError(f"trace: block {i} ({type(block).__name__}) has no {', '.join(missing)}; see the docstring")
    seen: dict[str, Any] = {}

    def look(name: str) -> Any:
        def hook(_part: Any, inputs: tuple, output: Any) -> None:
            seen[name] = inputs[0], output[0] if isinstance(output, tuple) else output

        return hook

    hooks = [getattr(block, name).register_forward_hook(look(name)) for name in ("ln1", "attn", "ln2", last)]
    try:
        out = block(x) if mask is None else block(x, mask)
    finally:
        for hook in hooks:
            hook.remove()
    if len(seen) < 4:
        raise ValueError(f"trace: block {i} ({type(block).__name__}) does not use all of ln1, attn, ln2 and {last}")
    given = seen["attn"][1], seen[last][1]
    if torch.equal(seen["ln1"][0], x):
        read, stream, fits = (seen["ln1"][1], seen["ln2"][1]), (seen["ln2"][0], out), seen["ln2"][0] + given[1]
    else:
        read, stream, fits = (x, seen["ln1"][1]), (seen["ln1"][1], out), seen["ln2"][1]
    if not torch.allclose(fits, out):
        raise ValueError(
            f"trace: block {i} ({type(block).__name__}) is neither pre-norm (x + f(LN(x))) nor post-norm (LN(x + f(x)))"
        )
    for name, tensors in zip(PARTS, (read, given, stream), strict=True):
        found[name] += tensors
    return out
