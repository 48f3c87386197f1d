"""The block stepper in the harness."""

import numpy as np
import torch
from torch import nn

from course_utils.block_variants import BlockVariant
from course_utils.widgets import BlockStepper

from ..entry import Case, Entry, Fault, Keys

WORDS = "the dog bites a man".split()


def stack(norm, seed, blocks=3, d=16):
    torch.manual_seed(seed)
    return nn.ModuleList(BlockVariant(d, 4, 32, norm=norm) for _ in range(blocks))


def make(seed):
    x = torch.tensor(np.random.default_rng(seed).standard_normal((len(WORDS), 16)))
    state = torch.random.get_rng_state()
    pre, post = (BlockStepper.trace(stack(norm, seed), x) for norm in ("pre", "post"))
    torch.random.set_rng_state(state)
    falls = np.geomspace(1, 2e-3, 12) * (1 + 0.1 * np.random.default_rng(seed).random(12))
    return BlockStepper(pre, post, WORDS, {"pre": np.linspace(0.9, 0.5, 12) + seed / 50, "post": falls[::-1]})


def cases(r):
    while True:
        layers, T, d = r.sizes(3, 2)
        flat = r.normal(1 + 3 * layers, T, d)
        start, added, stream = flat[0], flat[1 + layers : 1 + 2 * layers], flat[1 + 2 * layers :]
        row, position, count = r.below(len(flat)), r.below(T), r.below(layers + 1)
        yield Case("vectorAt", (flat, row, position, T, d), flat[row, position])
        yield Case("lengthOf", (flat[row, position],), flat[row, position].norm())
        total = start + added[:count].sum(0)
        yield Case("sumOf", (flat, count, position, layers, T, d), total[position])
        after = stream[count - 1] if count else start
        yield Case("missing", (flat, count, position, layers, T, d), (total - after)[position].abs().max())
        last = stream[-1, position]
        parts = torch.cat([start[None], added])[:, position] @ last / last.norm()
        yield Case("along", (flat, position, layers, T, d), parts)
        norm, step = r.choice("pre", "post"), r.below(6 * layers)
        names = {"pre": ["norm", "f", "add"], "post": ["f", "add", "norm"]}[norm]
        done = sum(names[s % 3] == "add" for s in range(step + 1))
        yield Case("stage", (norm, step), {"layer": step // 3, "part": step % 3, "added": done})


ENTRY = Entry(
    name="block_stepper",
    make=make,
    cases=cases,
    faults={
        "another position": Fault("(row * T + position) * d, (row", "(row * T + position + 1) * d, (row"),
        "transposed matrix": Fault(
            "(row * T + position) * d, (row * T + position + 1) * d",
            "(position * T + row) * d, (position * T + row + 1) * d",
        ),
        "the start is forgotten": Fault(
            "const sum = vectorAt(flat, 0, position, T, d)", "const sum = new Float64Array(d)"
        ),
        "what was read is added": Fault("1 + layers + k, position", "1 + k, position"),
        "one vector too few": Fault("for (let k = 0; k < count; k++)", "for (let k = 1; k < count; k++)"),
        "sign of the difference": Fault("Math.abs(x - stream[c])", "x - stream[c]"),
        "post-norm adds last": Fault("+(part >= 1)", "+(part === 2)"),
        "along another vector": Fault("vectorAt(flat, 3 * layers, position", "vectorAt(flat, 3 * layers - 1, position"),
        "length not rooted": Fault("Math.sqrt(v.reduce", "(v.reduce"),
    },
    keyboard=(
        Keys("button:has-text('Next step')", ("Enter", "Enter"), "block 0, add", {"step": 2}),
        Keys("button:has-text('Back')", ("Space",), "block 0, attention", {"step": 1}),
        Keys("button:has-text('6 add')", ("Enter",), "(the start plus 2 added vectors): exactly 0", {"step": 5}),
        Keys("select >> nth=0", ("ArrowDown",), "block 1, add", {"step": 11}),
        Keys("select >> nth=1", ("ArrowDown", "ArrowDown"), "", {"position": 2}),
        Keys("button:has-text('post-norm')", ("Enter",), "post-norm, block 1, norm", {"norm": "post"}),
    ),
    kernel="(w.norm, w.step, w.position)",
)
