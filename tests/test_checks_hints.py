"""The last hint of an exercise, completed, is a right answer, and so is what the lesson itself writes."""

import math
import re
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_utils import parts
from course_utils.checks import EXERCISES, check

# Between « and » stands what the hint says, letter for letter; the rest is what a student adds.
COMPLETED = {
    "rnn_step": """
def rnn_step(x, h, W_xh, W_hh, b):
    «return torch.tanh(x @ W_xh + h @ W_hh + b)»
""",
    "gru_step": """
def gru_step(x, h, W, U, b):
    r, z = (torch.sigmoid(x @ W[i] + h @ U[i] + b[i]) for i in (0, 1))
    «n = tanh(x @ W[2] + (r * h) @ U[2] + b[2])»
    return «(1 - z) * n + z * h»
""",
    "seq2seq_encode": """
def seq2seq_encode(emb, lengths, W_xh, W_hh, b):
    h, outputs = torch.zeros(len(emb), len(W_hh), dtype=emb.dtype), []
    for t in range(emb.shape[1]):
        «real = (t < lengths).unsqueeze(-1)»
        «h = torch.where(real, torch.tanh(emb[:, t] @ W_xh + h @ W_hh + b), h)»
        «outputs.append(torch.where(real, h, 0.0))»
    return torch.stack(outputs, dim=1), h
""",
    "shift_right": """
def shift_right(targets, bos_id):
    return «torch.cat([»torch.full_like(targets[:, :1], bos_id)«, targets[:, :-1]], dim=1)»
""",
    "lm_loss": """
def lm_loss(logits, targets, pad_id):
    return «F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=pad_id)»
""",
    "greedy_decode": """
def greedy_decode(model, idx, n, eos_id=None):
    finished = torch.zeros(len(idx), dtype=torch.bool)
    for _ in range(n):
        if finished.all():
            break
        «token = model(idx[:, -model.block_size:])[:, -1].argmax(-1)»
        if eos_id is not None:
            «token = torch.where(finished, eos_id, token)»
            «finished = finished | (token == eos_id)»
        idx = «torch.cat([idx, token.unsqueeze(1)], dim=1)»
    return idx
""",
    "additive_attention": """
def additive_attention(query, keys, W_q, W_k, v, mask=None):
    «scores = torch.tanh((query @ W_q).unsqueeze(1) + keys @ W_k) @ v»
    if mask is not None:
        scores = «scores.masked_fill(~mask, torch.finfo(scores.dtype).min)»
    weights = scores.«softmax(dim=-1)»
    return «(weights.unsqueeze(-1) * keys).sum(1)», weights
""",
    "decode_step": """
def decode_step(y_emb, h, enc_out, enc_mask, p):
    scores = (enc_out @ h.unsqueeze(-1)).squeeze(-1)
    weights = scores.masked_fill(~enc_mask, torch.finfo(scores.dtype).min).softmax(dim=-1)
    context = (weights.unsqueeze(-1) * enc_out).sum(1)
    «new = torch.tanh(torch.cat([y_emb, context], dim=-1) @ p['W_x'] + h @ p['W_h'] + p['b'])»
    «logits = torch.cat([new, context], dim=-1) @ p['W_o'] + p['b_o']»
    return logits, new, weights
""",
    "scaled_dot_product_attention": """
def scaled_dot_product_attention(q, k, v, mask=None):
    «scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])»
    if mask is not None:
        scores = «scores.masked_fill(~mask, torch.finfo(scores.dtype).min)»
    weights = scores.«softmax(dim=-1)»
    return weights «@ v», weights
""",
    "self_attention": """
def self_attention(x, W_q, W_k, W_v, mask=None):
    «q, k, v = x @ W_q, x @ W_k, x @ W_v»
    «scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])»
    if mask is not None:
        scores = «scores.masked_fill(~mask, torch.finfo(scores.dtype).min)»
    weights = scores.«softmax(dim=-1)»
    return weights «@ v», weights
""",
    "sinusoidal_positions": """
def sinusoidal_positions(n, d):
    t, table = torch.arange(n).unsqueeze(1), torch.zeros(n, d)
    «angles = t / 10000 ** (torch.arange(0, d, 2) / d)»
    «table[:, 0::2]» = angles.sin()
    «table[:, 1::2]» = «angles.cos()[:, : d // 2]»
    return table
""",
    "apply_rope": """
def apply_rope(x, base=10000.0):
    angles = torch.arange(x.shape[-2]).unsqueeze(1) / base ** (torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    cos, sin = angles.cos(), angles.sin()
    even, odd = x[..., 0::2], x[..., 1::2]
    return «torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)»
""",
    "TokenEmbedding": """
class TokenEmbedding(nn.Module):
    def __init__(self, vocab, d_model, max_len=64):
        super().__init__()
        self.emb = nn.Embedding(vocab, d_model)
        self.register_buffer("positions", sinusoidal_positions(max_len, d_model))

    def forward(self, idx):
        «return self.emb(idx) * math.sqrt(self.emb.embedding_dim) + self.positions[: idx.shape[1]]»
""",
    "causal_mask": """
def causal_mask(T):
    return «torch.ones(T, T, dtype=torch.bool)».«tril»()
""",
    "padding_mask": """
def padding_mask(lengths, T):
    return «torch.arange(T) < lengths.unsqueeze(1)»
""",
    "decoder_mask": """
def decoder_mask(tokens, pad_id):
    T = tokens.shape[1]
    return «torch.ones(T, T, dtype=torch.bool).tril() & (tokens != pad_id)[:, None, None, :]»
""",
    "mean_pool": """
def mean_pool(x, lengths):
    «real = torch.arange(x.shape[1]) < lengths.unsqueeze(1)»
    return «x.masked_fill(~real.unsqueeze(-1), 0.0).sum(dim=1) / lengths.unsqueeze(-1)»
""",
    "generate": """
def generate(model, idx, n, temperature=1.0, top_k=None):
    for _ in range(n):
        «logits = model(idx[:, -model.block_size:])[:, -1] / temperature»
        if top_k is not None:
            «kth = logits.topk(top_k).values[:, -1:]»
            logits = logits.«masked_fill(logits < kth, float('-inf'))»
        idx = torch.«cat»([idx, torch.«multinomial»(logits.«softmax»(-1), 1)], dim=1)
    return idx
""",
    "MultiHeadAttention": """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError
        self.h, self.W_q, self.W_k = n_heads, nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.W_v, self.W_o = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)

    def forward(self, x_q, x_kv=None, mask=None):
        x_kv = x_q if x_kv is None else x_kv
        (B, Tq, d_model), Tk, h, d_head = x_q.shape, x_kv.shape[1], self.h, x_q.shape[-1] // self.h
        «q = self.W_q(x_q).view(B, Tq, h, d_head).transpose(1, 2)»
        k, v = (W(x_kv).view(B, Tk, h, d_head).transpose(1, 2) for W in (self.W_k, self.W_v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(d_head)
        if mask is not None:
            mask = «mask.unsqueeze(1)» if mask.dim() == 3 else mask
            scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        out = scores.softmax(dim=-1) @ v
        return «self.W_o(out.transpose(1, 2).reshape(B, Tq, d_model))»
""",
    "layer_norm": """
def layer_norm(x, gamma, beta, eps=1e-5):
    «centred = x - x.mean(dim=-1, keepdim=True)»
    «variance = centred.pow(2).mean(dim=-1, keepdim=True)»
    return «centred / torch.sqrt(variance + eps) * gamma + beta»
""",
    "feed_forward": """
def feed_forward(x, W1, b1, W2, b2):
    return «F.relu(x @ W1 + b1) @ W2 + b2»
""",
    "dropout": """
def dropout(x, p, training):
    «if not training: return x»
    «kept = torch.rand_like(x) >= p»
    return «torch.where(kept, x / (1 - p), 0.0)»
""",
    "noam_lr": """
def noam_lr(step, d_model, warmup):
    «step = max(step, 1)»
    return «d_model ** -0.5 * min(step ** -0.5, step * warmup ** -1.5)»
""",
    "TransformerBlock": """
class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attn = MultiHeadAttention(d_model, n_heads)
        self.ff1, self.ff2, self.drop = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model), nn.Dropout(dropout)

    def forward(self, x, mask=None):
        «x = x + self.drop(self.attn(self.ln1(x), None, mask))»
        «x = x + self.drop(self.ff2(F.relu(self.ff1(self.ln2(x)))))»
        «return x»
""",
    "build_encoder": """
def build_encoder(make_layer, n_layers):
    return «nn.Sequential(*[make_layer() for _ in range(n_layers)])»
""",
    "train_step": """
def train_step(model, optimizer, x, y, max_norm=None):
    «model.train()»
    «optimizer.zero_grad()»
    «loss = F.cross_entropy(model(x), y)»
    «loss.backward()»
    «if max_norm is not None: nn.utils.clip_grad_norm_(model.parameters(), max_norm)»
    «optimizer.step()»
    «return loss.item()»
""",
    "TiedLM": """
class TiedLM(nn.Module):
    def __init__(self, vocab, d_model):
        super().__init__()
        self.emb, self.head = nn.Embedding(vocab, d_model), nn.Linear(d_model, vocab, bias=False)
        «self.head.weight = self.emb.weight»

    def forward(self, idx):
        «return self.head(self.emb(idx))»
""",
    "patchify": """
def patchify(images, p):
    B, C, H, W = images.shape
    «if H % p or W % p: raise ValueError(...)»
    grid = «images.reshape(B, C, H // p, p, W // p, p).permute(0, 2, 4, 1, 3, 5)»
    return grid«.reshape(B, (H // p) * (W // p), C * p * p)»
""",
    "ViTEmbedding": """
class ViTEmbedding(nn.Module):
    def __init__(self, img_size, patch, in_ch, d_model):
        super().__init__()
        height, width = (img_size, img_size) if isinstance(img_size, int) else img_size
        self.patch, N = patch, (height // patch) * (width // patch)
        self.proj = nn.Linear(in_ch * patch * patch, d_model)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, d_model))
        self.pos_embed = nn.Parameter(torch.zeros(1, 1 + N, d_model))

    def forward(self, images):
        patches = patchify(images, self.patch)
        «x = self.proj(patches)»
        «x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], dim=1)»
        «return x + self.pos_embed»
""",
    "vit_pool": """
def vit_pool(tokens):
    return «tokens[:, 0]»
""",
}
NAMES = {"math": math, "torch": torch, "F": F, "nn": nn, "tanh": torch.tanh}
LESSONS = Path(__file__).parents[1] / "lessons"
each_exercise = pytest.mark.parametrize("exercise", EXERCISES.values(), ids=list(EXERCISES))


def written(source, name, **more):
    names = dict(NAMES, **more)
    exec(source, names)
    return names[name]


@each_exercise
def test_the_last_hint_completed_passes(exercise):
    code = COMPLETED[exercise.name]
    hints = [exercise.hints[2]]
    if exercise.name == "greedy_decode":  # its flags belong to a misconception of their own
        hints += [m.hints[2] for m in exercise.misconceptions if m.id == "gen_stops_only_together"]
    for said in re.findall("«(.*?)»", code):
        assert any(said in hint for hint in hints), said
    source = code.replace("«", "").replace("»", "")
    more = {name: e.reference for name, e in EXERCISES.items() if name != exercise.name}
    report = check(written(source, exercise.name, **more))
    assert (report.passed, report.points, report.notes) == (True, 10, ()), str(report)


def all_hints(exercise):
    yield from exercise.hints
    for misconception in exercise.misconceptions:
        yield from misconception.hints
    yield from (case.note for case in exercise.cases)


@pytest.mark.parametrize("name", [n for n in EXERCISES if n != "generate"])
def test_minus_infinity_is_not_recommended_without_its_price(name):
    """In a mask it makes NaN of a row that is all hidden; top-k never hides a whole row."""
    for hint in all_hints(EXERCISES[name]):
        if "-inf" in hint:
            assert "NaN" in hint, hint
            assert "finfo" in hint, hint


@each_exercise
def test_hints_call_no_other_exercise(exercise):
    """It may not be done yet; what is not in `use(...)` has to be written out."""
    for hint in all_hints(exercise):
        for other in EXERCISES.keys() - {exercise.name}:
            # F.layer_norm and F.dropout are torch's own.
            assert not re.search(rf"(?<![\w.]){other}\(", hint.replace("shift_right(targets)", "")), hint


def test_hints_of_the_embedding_use_only_what_forward_knows():
    for hint in all_hints(EXERCISES["TokenEmbedding"]):
        assert "sqrt(d_model)" not in hint


def solutions():
    for lesson in sorted(LESSONS.glob("*.py")):
        for cell in re.split(r"^# %%", lesson.read_text(encoding="utf-8"), flags=re.MULTILINE):
            found = re.match(r' exercise="(\w+)".*\n', cell)
            if found and found[1] in EXERCISES:
                yield pytest.param(found[1], cell[found.end() :], id=found[1])


@pytest.mark.parametrize(("name", "source"), list(solutions()))
def test_the_solution_of_the_lesson_passes_without_a_note(name, source):
    # The names that lessons 03 and 06 give to parts of earlier lessons.
    parts_used = {"waves": "sinusoidal_positions", "attention": "MultiHeadAttention", "cut": "patchify"}
    report = check(written(source, name, **{ours: EXERCISES[part].reference for ours, part in parts_used.items()}))
    assert report.passed, str(report)
    assert not report.notes


def test_every_exercise_has_a_solution_in_a_lesson():
    assert {param.id for param in solutions()} == set(EXERCISES)


def test_use_says_what_is_true_of_both_kinds_of_zero_state(capsys):
    """Read from zero padding or set to zero: the same numbers; the sentence that `use` quotes fits both."""
    wrong = {m.id: m for m in EXERCISES["seq2seq_encode"].misconceptions}
    for name in ("enc_last_column", "enc_zeroes_state_on_pad"):
        answer = EXERCISES["seq2seq_encode"].recipe.make(wrong[name].variants[0])
        assert check(answer, "seq2seq_encode").findings[0].misconception == "enc_zeroes_state_on_pad"
        parts.use(answer, "seq2seq_encode")
        assert "set to zero" in capsys.readouterr().out
