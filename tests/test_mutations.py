"""Do the properties notice a mistake? Every small edit of a reference function must break at least one of them.

An edit that survives is either a property that is missing, or it changes nothing that anybody could observe; those
are listed here, each with the reason.
"""

from pathlib import Path

import properties
import pytest
from mutants import mutants

from course_utils import attention, decoding, losses, recurrent

SIZE = "seq2seq_encode: h = emb.new_zeros(emb.shape[0], W_hh.shape[0]): "
SOFTENED = "masked_softmax: scores = scores.masked_fill(~mask, float('-inf')).masked_fill(empty, 0.0): "
ENDED = "greedy_decode: if eos_id is not None and bool(finished.all()):: "
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
}

FUNCTIONS = [
    pytest.param(module, name, id=name)
    for module in (recurrent, attention, losses, decoding)
    for name in properties.OF
    if hasattr(module, name)
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
