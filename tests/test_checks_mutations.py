"""Do the checks notice a mistake? Every small edit of a reference, and of what it calls in its file, must be rejected.

An edit that passes is either a hole in a check, or it changes nothing that the statement fixes. Those are counted here,
line by line, each line with its reason. What `test_mutations` lists as equivalent, nobody can notice.
"""

import ast
import contextlib
import io
import sys
import warnings
from collections import Counter
from pathlib import Path

import pytest
from mutants import mutants
from test_mutations import EQUIVALENT

from course_utils.checks import EXERCISES, check
from course_utils.checks.answers import LocalAnswer
from course_utils.checks.run import passes

SECONDS = 2.0  # for an edit that makes a loop endless

NO_SUCH_SIZES = "what happens for sizes that the statement excludes is left to the student"
ERROR_TEXT = "an error is raised all the same, with another text or of another type"
RESHAPE_REFUSES = "without this line view and reshape refuse such sizes by themselves"
MODES = "the models of a check have no modes; that a model is left as it was is the reference's own courtesy"
NO_LIMIT = "every model of a check has a block_size"
CACHE = "the statement knows no cache"
START = "the scale of what a learned parameter starts from is left to the student"

# exercise: the line: (how many of its edits pass, why)
NOT_FIXED = {
    "greedy_decode": {
        "greedy_decode: was_training = getattr(model, 'training', False)": (1, MODES),
        "greedy_decode: model.eval()": (2, MODES),
        "greedy_decode: if was_training:": (2, MODES),
        "greedy_decode: model.train()": (2, MODES),
        "greedy_decode: seen = idx if block_size is None else idx[:, -block_size:]": (1, NO_LIMIT),
    },
    "decode_step": {
        "masked_softmax: if mask is None:": (1, "decode_step always has a mask"),
        "masked_softmax: return scores.softmax(dim=-1)": (3, "decode_step always has a mask"),
    },
    "sinusoidal_positions": {
        "sinusoidal_positions: if T < 0 or d < 1:": (8, NO_SUCH_SIZES),
        "sinusoidal_positions: raise ValueError(f'T, d: got {T} and {d}; T must be at least 0 and d at least 1')": (
            1,
            ERROR_TEXT,
        ),
    },
    "apply_rope": {
        "apply_rope: if d % 2:": (
            1,
            "an odd number of features cannot be dealt out in pairs: an error comes by itself",
        ),
        "apply_rope: raise ValueError(f'x: got {d} features; rotary positions turn pairs, so the number must be "
        "even')": (
            1,
            ERROR_TEXT,
        ),
        "apply_rope: angles = torch.arange(start, start + T, dtype=torch.float64).unsqueeze(1) * frequencies": (
            1,
            "positions start at 0 in the statement",
        ),
    },
    "TokenEmbedding": {
        "TokenEmbedding: self.register_buffer('positions', sinusoidal_positions(max_len, d_model), persistent=False)": (
            1,
            "whether the buffer is saved with the weights is left to the student",
        ),
        "TokenEmbedding: if len(self.positions) < T:": (1, "a longer text has no positions: adding them is an error"),
        "TokenEmbedding: raise ValueError(f'idx: got {T} tokens, but max_len is {len(self.positions)}')": (
            2,
            ERROR_TEXT,
        ),
    },
    "mean_pool": {
        "mean_pool: return x.masked_fill(~real, 0.0).sum(dim=1) / lengths.clamp(min=1).unsqueeze(-1)": (
            2,
            "a sentence has at least one word",
        ),
    },
    "generate": {
        "generate: if temperature <= 0:": (2, NO_SUCH_SIZES),
        "generate: raise ValueError(f'temperature: got {temperature}, must be above 0; for the likeliest token use "
        "greedy_decode')": (1, NO_SUCH_SIZES),
        "generate: if top_k is not None and top_k < 1:": (2, NO_SUCH_SIZES),
        "generate: raise ValueError(f'top_k: got {top_k}, must be at least 1')": (1, NO_SUCH_SIZES),
        "generate: seen = idx if block_size is None else idx[:, -block_size:]": (1, NO_LIMIT),
        "generate: if top_k is not None and top_k < logits.shape[-1]:": (
            3,
            "a top_k above the number of words is an error in most right answers: the statement does not name it",
        ),
    },
    "MultiHeadAttention": {
        "MultiHeadAttention: if n_heads < 1 or d_model % n_heads:": (5, RESHAPE_REFUSES),
        "MultiHeadAttention: raise ValueError(f'd_model, n_heads: got {d_model} and {n_heads}; the heads share the "
        "features evenly, so n_heads must divide d_model')": (1, ERROR_TEXT),
        "MultiHeadAttention: self.weights = weights.detach()": (1, "the statement does not ask for kept weights"),
        "MultiHeadAttention: q, k = self.place(q, k, 0 if cache is None else len(cache))": (4, CACHE),
        "MultiHeadAttention: if cache is not None:": (1, CACHE),
        "MultiHeadAttention: k, v = cache.append(k, v)": (1, CACHE),
    },
    "dropout": {
        "dropout: if not 0 <= p < 1:": (3, NO_SUCH_SIZES),
        "dropout: raise ValueError(f'p: got {p}, must be at least 0 and below 1')": (1, NO_SUCH_SIZES),
        "dropout: if not training or p == 0:": (3, "for p = 0 the formula itself returns x; p = 1 was refused before"),
    },
    "TransformerBlock": {"TransformerBlock: options = {} if cache is None else {'cache': cache}": (3, CACHE)},
    "build_encoder": {
        "build_encoder: if n_layers < 1:": (2, NO_SUCH_SIZES),
        "build_encoder: raise ValueError(f'n_layers: got {n_layers}, must be at least 1')": (1, NO_SUCH_SIZES),
    },
    "noam_lr": {
        "noam_lr: if warmup < 1 or d_model < 1:": (8, "no model has less than two features"),
        "noam_lr: raise ValueError(f'd_model, warmup: got {d_model} and {warmup}; both must be at least 1')": (
            1,
            NO_SUCH_SIZES,
        ),
    },
    "TiedLM": {
        "TiedLM: self.head = nn.Linear(d_model, vocab, bias=False)": (1, "the next line replaces the head's weight"),
    },
    "patchify": {
        "patchify: if p < 1 or H % p or W % p:": (6, RESHAPE_REFUSES),
        "patchify: raise ValueError(f'p: got {p}, which does not divide an image of {H} x {W} pixels into whole "
        "patches')": (1, ERROR_TEXT),
    },
    "ViTEmbedding": {
        "ViTEmbedding: if patch < 1 or height % patch or width % patch:": (8, RESHAPE_REFUSES),
        "ViTEmbedding: raise ValueError(f'patch: got {patch}, which does not divide an image of {height} x {width} "
        "pixels')": (1, ERROR_TEXT),
        "ViTEmbedding: self.cls_token = nn.Parameter(torch.randn(1, 1, d_model) * 0.02)": (3, START),
        "ViTEmbedding: self.pos_embed = nn.Parameter(torch.randn(1, 1 + n_patches, d_model) * 0.02)": (3, START),
    },
}


def edits(exercise):
    """The mutants of a reference and of its helpers in the same file, with the module that they belong to."""
    module = sys.modules[exercise.reference.__module__]
    source = Path(module.__file__).read_text(encoding="utf-8")
    for name in called(source, exercise.reference.__name__):
        if name in EXERCISES and name != exercise.name:
            continue  # it has a check of its own
        for mutant in mutants(source, name):
            yield mutant, module


def called(source, name):
    """The name of a definition, and those of the definitions that it uses, one through the other."""
    definitions = {n.name: n for n in ast.parse(source).body if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    found, left = [], [name]
    while left:
        name = left.pop()
        if name in definitions and name not in found:
            found.append(name)
            left += [n.id for n in ast.walk(definitions[name]) if isinstance(n, ast.Name)]
    return found


def survives(exercise, mutant, module):
    """Whether the check passes an edit."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            answer = mutant.build(module)[exercise.reference.__name__]
        except Exception:  # it is noticed as soon as the file is read
            return False
        return passes(exercise, LocalAnswer(answer, SECONDS))


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=list(EXERCISES))
def test_every_edit_is_rejected(exercise):
    assert passes(exercise, LocalAnswer(exercise.reference)), "the reference itself must pass"
    found = list(edits(exercise))
    survivors = {mutant.name for mutant, module in found if survives(exercise, mutant, module)} - EQUIVALENT.keys()
    lines = Counter(name.split(": [")[0] for name in survivors)
    listed = {line: count for line, (count, _) in NOT_FIXED.get(exercise.name, {}).items()}
    assert lines == listed, "the check passes:\n" + "\n".join(sorted(survivors))
    assert 2 * len(survivors) < len(found), "most edits must be noticed"


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=list(EXERCISES))
def test_the_quick_way_and_the_report_agree(exercise):
    mutant, module = list(edits(exercise))[-1]
    answer = mutant.build(module)[exercise.reference.__name__]
    assert check(answer, exercise.name).passed == passes(exercise, LocalAnswer(answer, SECONDS)), mutant.name
