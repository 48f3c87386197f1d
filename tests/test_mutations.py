"""Do the properties notice a mistake? Every small edit of a reference function must break at least one of them.

An edit that survives is either a property that is missing, or it changes nothing that anybody could observe; those
are listed here, each with the reason.
"""

from pathlib import Path

import properties
import pytest
from mutants import mutants

from course_utils import (
    attention,
    decoding,
    encoder_decoder,
    layers,
    losses,
    masks,
    multihead,
    positions,
    recurrent,
    training,
    transformer,
    vision,
)

SIZE = "seq2seq_encode: h = emb.new_zeros(emb.shape[0], W_hh.shape[0]): "
SOFTENED = "masked_softmax: scores = scores.masked_fill(~mask, float('-inf')).masked_fill(empty, 0.0): "
ENDED = "greedy_decode: if eos_id is not None and bool(finished.all()):: "
TOP = "blockwise_attention: top = rows.new_full((*rows.shape[:-1], 1), -torch.inf): "
MIXED = "blockwise_attention: mixed = rows.new_zeros(*rows.shape[:-1], v.shape[-1]): "
BLOCK_SCORES = "blockwise_attention: scores = rows @ k[..., j:j + block, :].transpose(-2, -1): "
NEW_TOP = "blockwise_attention: new_top = torch.maximum(top, scores.max(dim=-1, keepdim=True).values): "
MAXIMUM = "torch.maximum(top, scores.max(dim=-1, keepdim=True).values)"
LAST = "blockwise_attention: last = min(Tk, i + block) if causal else Tk: "
DISTANCE = "alibi_bias: distance = (torch.arange(T).unsqueeze(1) - torch.arange(T)).abs(): "
ROWS, COLUMNS = "torch.arange(T).unsqueeze(1)", "torch.arange(T)"
SQUARE = "torch.ones(T, T, dtype=torch.bool, device=device)"
LINEAR = "nn.Linear(d_model, d_model)"
SPLIT = "x.view(B, T, self.n_heads, d_model // self.n_heads)"
MERGED = "MultiHeadAttention: return self.W_o(out.transpose(1, 2).flatten(2)): "
NOAM = "noam_lr: return d_model ** (-0.5) * min(step ** (-0.5), step * warmup ** (-1.5)): "
MIXTURE = (
    "attention_rollout: mixed = 0.5 * mean + 0.5 * torch.eye(mean.shape[-1], dtype=mean.dtype, device=mean.device): "
)
CLASS_TOKEN = "torch.randn(1, 1, d_model)"
SCORES = "scaled_dot_product_attention: scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]): "

EQUIVALENT = {
    SIZE + "[0] -> [1] (2)": "W_hh is square",
    SIZE + "[0] -> [-1] (2)": "W_hh is square",
    SOFTENED + "[0.0] -> [1]": "any finite number softens an empty row: its weights are set to zero afterwards",
    SOFTENED + "[0.0] -> [-1]": "any finite number softens an empty row: its weights are set to zero afterwards",
    SCORES + "[k.transpose(-2, -1)] -> [k.transpose(-1, -2)]": "two axes change places whichever is named first",
    ENDED + "[bool(finished.all())] -> [finished.all()]": "`and` and `if` take the truth of a tensor themselves",
    ENDED + "[eos_id is not None and bool(finished.all())] -> [bool(finished.all())]": "without EOS no row is finished",
    "greedy_decode: finished = finished | (token == eos_id): [finished | (token == eos_id)] -> [token == eos_id]": (
        "the token of a finished row was set to EOS one line above"
    ),
    "generate: if top_k is not None and top_k < logits.shape[-1]:: [top_k < logits.shape[-1]] -> "
    "[top_k <= logits.shape[-1]]": "keeping the V largest of V logits keeps them all",
    DISTANCE + f"[{ROWS} - {COLUMNS}] -> [{COLUMNS} - {ROWS}]": "the sign is dropped",
    f"causal_mask: return {SQUARE}.tril(): [{SQUARE}] -> [{SQUARE}]": "both arguments are T",
    f"window_mask: mask = {SQUARE}: [{SQUARE}] -> [{SQUARE}]": "both arguments are T",
    TOP + "[-1] -> [0]": "all rows start with the same number, so that one of it is enough",
    MIXED + "[-1] -> [0] (2)": "all rows start with the same zeros, so that one row of them is enough",
    BLOCK_SCORES + "[k[..., j:j + block, :].transpose(-2, -1)] -> [k[..., j:j + block, :].transpose(-1, -2)]": (
        "two axes change places whichever is named first"
    ),
    NEW_TOP + f"[{MAXIMUM}] -> [torch.maximum(scores.max(dim=-1, keepdim=True).values, top)]": "either is the larger",
    "MultiHeadAttention: self.W_q, self.W_k, self.W_v, self.W_o = "
    f"({LINEAR} for _ in range(4)): [{LINEAR}] -> [{LINEAR}]": "both arguments are d_model",
    f"MultiHeadAttention: return {SPLIT}.transpose(1, 2): [{SPLIT}.transpose(1, 2)] -> [{SPLIT}.transpose(2, 1)]": (
        "two axes change places whichever is named first"
    ),
    MERGED + "[out.transpose(1, 2)] -> [out.transpose(2, 1)]": "two axes change places whichever is named first",
    "noam_lr: step = max(1, step): [max(1, step)] -> [max(step, 1)]": "either is the larger",
    NOAM + "[min(step ** (-0.5), step * warmup ** (-1.5))] -> [min(step * warmup ** (-1.5), step ** (-0.5))]": (
        "either is the smaller"
    ),
    MIXTURE + "[-1] -> [-2]": "attention weights of a layer are square",
    f"ViTEmbedding: self.cls_token = nn.Parameter({CLASS_TOKEN} * 0.02): [{CLASS_TOKEN}] -> [{CLASS_TOKEN}]": (
        "both arguments are 1"
    ),
    LAST + "[min(Tk, i + block)] -> [min(i + block, Tk)]": "either is the smaller",
}

FUNCTIONS = [
    pytest.param(module, name, id=name)
    for module in (
        *(recurrent, attention, positions, masks, multihead, losses, decoding),
        *(layers, transformer, encoder_decoder, vision, training),
    )
    for name in properties.OF
    if getattr(getattr(module, name, None), "__module__", "") == module.__name__
]


def noticed(implementation, name: str) -> bool:
    """Whether a property fails, in whatever way, on one of a few fixed cases."""
    for case in properties.CASES:
        for holds in properties.OF[name]:
            try:
                holds(implementation, case)
            except Exception:
                return True
    return False


@pytest.mark.parametrize("module, name", FUNCTIONS)
def test_every_edit_is_noticed(module, name):
    source = Path(module.__file__).read_text(encoding="utf-8")
    assert not noticed(getattr(module, name), name), "the reference itself must pass"
    edits = mutants(source, name)
    assert edits
    survivors = {m.name for m in edits if not noticed(m.build(module)[name], name)}
    unexplained = sorted(survivors - EQUIVALENT.keys())
    assert not unexplained, "no property fails on:\n" + "\n".join(unexplained)
    stale = sorted(key for key in EQUIVALENT if key.startswith(f"{name}: ") and key not in survivors)
    assert not stale, "listed as equivalent, but noticed or gone:\n" + "\n".join(stale)
