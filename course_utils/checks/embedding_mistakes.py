"""The recipe of `TokenEmbedding`, and its misconceptions."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from course_utils import positions as reference
from course_utils.checks.model import Misconception
from course_utils.checks.shared import dropout_always, no_super
from course_utils.checks.sinusoids import SINUSOIDAL_POSITIONS


def assemble(s):
    """The module from its steps."""

    class TokenEmbedding(nn.Module):
        def __init__(self, vocab, d_model, max_len=64):
            s.begin(super())
            self.emb = nn.Embedding(vocab, d_model)
            s.hold(self, s.table(s.rows_made(max_len), d_model))

        def forward(self, idx):
            words, d = self.emb(idx), self.emb.embedding_dim
            return s.finish(s.join(words, s.rows(self.table, idx), math.sqrt(d)))

    return TokenEmbedding


def _as_parameter(module, table):
    module.table = nn.Parameter(table)


def _learned(module, table):
    # Added, so that the first numbers are those of a right answer: what is wrong is that they are trained.
    module.learned = nn.Embedding(*table.shape)
    nn.init.zeros_(module.learned.weight)
    module.register_buffer("table", table)


def _as_embedding(module, table):
    module.learned = nn.Embedding.from_pretrained(table, freeze=False)
    module.table = module.learned.weight


def _as_attribute(module, table):
    module.table = table


def table_is_plain(inside) -> bool:
    """A table in an ordinary attribute, and neither a buffer nor a frozen parameter that could be the table instead."""
    frozen = any(len(inside.parameters[name]) > 1 for name in inside.frozen)
    return bool(inside.plain) and not inside.buffers and not frozen


def _trains_positions(got, want) -> bool:
    """Something as long as the table is trained besides the word vectors."""
    if got.inside is None or "emb.weight" not in got.inside.parameters:
        return False
    extra = [shape for name, shape in got.inside.parameters.items() if name not in (*got.inside.frozen, "emb.weight")]
    return any(len(shape) > 1 for shape in extra)


RIGHT = {
    "begin": lambda parent: parent.__init__(),
    "rows_made": lambda max_len: max_len,
    "table": reference.sinusoidal_positions,
    "hold": lambda module, table: module.register_buffer("table", table),
    "rows": lambda table, idx: table[: idx.shape[1]],
    "join": lambda words, rows, root: words * root + rows,
    "finish": lambda result: result,
}


def _join(*ways):
    return tuple({"join": way} for way in ways)


MISCONCEPTIONS = (
    Misconception(
        "emb_divided",
        "The word vectors are divided by the root of d_model instead of multiplied.",
        ("Are word vectors to become larger or smaller beside the positions?",
         "Dividing belongs to the scores of attention.",
         "self.emb(idx) * math.sqrt(self.emb.embedding_dim)"),
        _join(lambda words, rows, root: words / root + rows),
    ),
    Misconception(
        "emb_not_scaled",
        "The word vectors are not scaled.",
        ("What happens to the word vectors before positions are added?",
         "Compare your line with the formula.",
         "self.emb(idx) * math.sqrt(self.emb.embedding_dim)"),
        _join(lambda words, rows, root: words + rows),
    ),
    Misconception(
        "emb_scaled_by_d",
        "The word vectors are multiplied by d_model instead of by its root.",
        ("d or its root?", "Compare your line with the formula.", "self.emb(idx) * math.sqrt(self.emb.embedding_dim)"),
        _join(lambda words, rows, root: words * root**2 + rows),
    ),
    Misconception(
        "emb_scale_after_sum",
        "The sum of word vector and position is scaled; only the word vector should be.",
        ("With word vectors of zero, what must the output be?",
         "Look at the parentheses.",
         "self.emb(idx) * math.sqrt(self.emb.embedding_dim) + self.positions[: idx.shape[1]]"),
        _join(lambda words, rows, root: (words + rows) * root),
    ),
    Misconception(
        "emb_positions_scaled",
        "The positions are scaled instead of the word vectors, or divided.",
        ("Which of the two is multiplied?", "With word vectors of zero, what must the output be?",
         "self.emb(idx) * math.sqrt(self.emb.embedding_dim) + self.positions[: idx.shape[1]]"),
        _join(lambda words, rows, root: words + rows * root, lambda words, rows, root: words * root + rows / root,
              lambda words, rows, root: words + rows / root, lambda words, rows, root: (words + rows) / root),
    ),
    Misconception(
        "emb_single_row",
        "One row of the table is added to every word instead of the rows 0 to T-1.",
        ("Must the same word at two places give the same vector?",
         "A colon is missing.",
         "self.positions[: idx.shape[1]]"),
        ({"rows": lambda table, idx: table[idx.shape[1]]}, {"rows": lambda table, idx: table[idx.shape[1] - 1]},
         {"rows": lambda table, idx: table[0]}, {"rows": lambda table, idx: table[-1]}),
    ),
    Misconception(
        "emb_no_positions",
        "The positions are forgotten: the model cannot tell the order of words.",
        ("How does the model know which word came first?", "Must the same word at two places give the same vector?",
         "... + self.positions[: idx.shape[1]]"),
        _join(lambda words, rows, root: words * root, lambda words, rows, root: words),
    ),
    Misconception(
        "emb_multiplied",
        "The positions multiply the word vectors instead of being added.",
        ("With word vectors of zero, what must the output be?", "Look at the operator in front of the positions.",
         "+, not *"),
        _join(lambda words, rows, root: words * root * rows),
    ),
    Misconception(
        "emb_subtracted",
        "The positions are subtracted.",
        ("Plus or minus?", "Look at the operator in front of the positions.", "+, not -"),
        _join(lambda words, rows, root: words * root - rows),
    ),
    Misconception(
        "emb_concatenated",
        "The positions are appended to the word vectors, which makes the vectors twice as long.",
        ("How many features must a word have afterwards?", "Print the shape of your result.", "Add, do not append."),
        _join(lambda words, rows, root: torch.cat([words * root, rows.expand(words.shape)], dim=-1)),
    ),
    Misconception(
        "emb_positions_trained",
        "The positions are trained like weights; sinusoids are fixed.",
        ("Which numbers should the optimizer change?",
         "Look at list(module.named_parameters()): only the word vectors belong there.",
         'self.register_buffer("positions", table)'),
        ({"hold": _as_parameter}, {"hold": _learned}, {"hold": _as_embedding}),
        symptom=_trains_positions,
    ),
    Misconception(
        "emb_table_not_registered",
        "The table of positions is an ordinary attribute: model.to(device) leaves it behind on the CPU, and "
        "state_dict() does not know it.",
        ("What moves when the model goes to the GPU?",
         "Look at dict(module.named_buffers()): the table belongs there.",
         'self.register_buffer("positions", table)'),
        ({"hold": _as_attribute},),
        symptom=lambda got, want: table_is_plain(got.inside) and not table_is_plain(want.inside),
    ),
    Misconception(
        "emb_max_len_fixed",
        "The length of the table is a fixed number; the argument max_len is not used.",
        ("Is there an argument that you did not use?", "Try max_len=80 and a sentence of 80 words.",
         "table = use(sinusoidal_positions)(max_len, d_model)"),
        ({"rows_made": lambda max_len: 64}, {"rows_made": lambda max_len: 50}),
    ),
    Misconception(
        "emb_max_len_off_by_one",
        "The table is one row too short.",
        ("Which rows does a sentence of max_len words need?", "Try a sentence of max_len words.",
         "table = use(sinusoidal_positions)(max_len, d_model)"),
        ({"rows_made": lambda max_len: max_len - 1},),
    ),
    Misconception(
        "emb_positions_along_batch",
        "The rows of the table go to sentences instead of to words: the first axis is the batch.",
        ("Which axis of idx is time?", "Do two sentences with the same words get the same vectors?",
         "self.positions[: idx.shape[1]]"),
        ({"rows": lambda table, idx: table[: idx.shape[0]].unsqueeze(1)},
         {"rows": lambda table, idx: table[: idx.shape[0]]}, {"rows": lambda table, idx: table[: len(idx)][:, None]}),
    ),
    Misconception(
        "emb_whole_table",
        "The whole table is added, although the sentence is shorter than max_len.",
        ("How many rows does a sentence of T words need?", "Try a sentence shorter than max_len.",
         "self.positions[: idx.shape[1]]"),
        ({"rows": lambda table, idx: table},),
    ),
    Misconception(
        "emb_positions_by_token",
        "The rows of the table are chosen by the words instead of by their places.",
        ("What is a position: the number of a word in the vocabulary, or its place?",
         "Must the same word at two places give the same vector?",
         "self.positions[: idx.shape[1]]"),
        ({"rows": lambda table, idx: table[idx]},),
    ),
    Misconception(
        "emb_starts_at_1",
        "The first word gets the row 1 instead of 0.",
        ("Which place has the first word?", "Print which rows you add for T = 1.", "self.positions[: idx.shape[1]]"),
        ({"rows": lambda table, idx: table[1 : idx.shape[1] + 1]},
         {"table": lambda n, d: reference.sinusoidal_positions(n + 1, d)[1:]}),
        convention="positions count from 0.",
    ),
    Misconception(
        "emb_wrong_table",
        "The table that is added is not the sinusoidal one.",
        ("Does your sinusoidal_positions pass its own check?", "Give word vectors of zero: what comes out?",
         "table = use(sinusoidal_positions)(max_len, d_model)"),
        tuple({"table": SINUSOIDAL_POSITIONS.recipe.make(variant)}
              for m in SINUSOIDAL_POSITIONS.misconceptions for variant in m.variants
              if m.id not in ("sin_transposed", "sin_extra_axis", "sin_starts_at_1")),
        convention="sines and cosines alternate, with the angles t / 10000^(2i/d).",
    ),
    Misconception(
        "emb_extra_axis",
        "The result has an axis too many.",
        ("Which shape does the statement name?", "Print the shape of the rows that you add.", "(B, T, d_model)"),
        ({"finish": lambda result: result.unsqueeze(0)},
         {"rows": lambda table, idx: table[: idx.shape[1]][None, None]}),
    ),
    Misconception(
        "emb_normalised",
        "The vectors are normalised; nobody asked for that.",
        ("What is the length of a word vector?", "Look for normalize or LayerNorm.",
         "self.emb(idx) * math.sqrt(self.emb.embedding_dim) + self.positions[: idx.shape[1]]"),
        _join(lambda words, rows, root: F.layer_norm(words * root + rows, words.shape[-1:]),
              lambda words, rows, root: F.normalize(words, dim=-1) * root + rows,
              lambda words, rows, root: F.normalize(words * root + rows, dim=-1)),
    ),
    Misconception(
        "emb_detached",
        "The word vectors are cut off from the graph, so they never learn.",
        ("Does self.emb get a gradient?", "Look for detach, .data or no_grad.", "Use self.emb(idx) as it is."),
        _join(lambda words, rows, root: words.detach() * root + rows),
    ),
    dropout_always("emb_dropout_always", "Dropout is always on: two calls with the same words differ.", "finish"),
    no_super("emb_no_super"),
)  # fmt: skip
