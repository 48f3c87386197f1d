"""The recipe of `TiedLM`, and its misconceptions."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from course_utils.checks.model import Misconception
from course_utils.checks.shared import dropout_always, no_super
from course_utils.checks.values import Outcome


def assemble(s):
    """The module from its steps."""

    class TiedLM(nn.Module):
        def __init__(self, vocab, d_model):
            s.begin(super())
            self.emb = s.embedding(vocab, d_model)
            self.head = s.head(self.emb, vocab, d_model)

        def forward(self, idx):
            return s.last(s.score(self, s.enter(s.look_up(self.emb, idx))))

    return TiedLM


def _shared(emb, vocab, d_model):
    head = nn.Linear(d_model, vocab, bias=False)
    head.weight = emb.weight
    return head


def _head(change):
    """A head to which something else is done than sharing."""

    def make(emb, vocab, d_model):
        head = nn.Linear(d_model, vocab, bias=False)
        change(head, emb)
        return head

    return make


def _with_bias(emb, vocab, d_model):
    head = nn.Linear(d_model, vocab)
    nn.init.ones_(head.bias)
    head.weight = emb.weight
    return head


def _alias(head, emb):
    head.weight.data = emb.weight.data


def _copied(head, emb):
    head.weight = nn.Parameter(emb.weight.clone())


def _turned(head, emb):
    head.weight = nn.Parameter(emb.weight.T)


def _frozen(vocab, d_model):
    emb = nn.Embedding(vocab, d_model)
    emb.weight.requires_grad_(False)
    return emb


def _two_matrices(got: Outcome, want: Outcome) -> bool:
    if got.inside is None or got.inside.aliases:
        return False
    return sum(len(shape) > 1 for shape in got.inside.parameters.values()) > 1


def _last(*ways):
    return tuple({"last": way} for way in ways)


RIGHT = {
    "begin": lambda parent: parent.__init__(),
    "embedding": nn.Embedding,
    "head": _shared,
    "look_up": lambda emb, idx: emb(idx),
    "enter": lambda x: x,
    "score": lambda module, x: module.head(x),
    "last": lambda logits: logits,
}


MISCONCEPTIONS = (
    Misconception(
        "tie_data_alias",
        "Only the numbers are shared (by .data, or by copying in each call): there are still two parameters, each with "
        "a gradient of its own.",
        ("How many parameters does your module have?", "Whose gradient holds the part of the head?",
         "self.head.weight = self.emb.weight, without .data"),
        ({"head": _head(_alias)},),
        symptom=lambda got, want: got.inside is not None and bool(got.inside.aliases),
    ),
    Misconception(
        "tie_missing",
        "The head has a matrix of its own (a copy is one too): nothing is tied.",
        ("How many matrices does your module train?", "Print sum(p.numel() for p in model.parameters()).",
         "self.head.weight = self.emb.weight"),
        ({"head": _head(lambda head, emb: None)}, {"head": _head(_copied)}),
        symptom=_two_matrices,
    ),
    Misconception(
        "tie_head_bias",
        "The head has a bias.",
        ("What does nn.Linear hold besides its weight?", "Count the numbers that your module trains.",
         "nn.Linear(d_model, vocab, bias=False)"),
        ({"head": _with_bias},),
        convention="the head has no bias.",
        symptom=lambda got, want: got.inside is not None and any(len(s) == 1 for s in got.inside.parameters.values()),
    ),
    Misconception(
        "tie_head_detached",
        "One of the two uses of the matrix is cut off from the graph, so that it learns from the other only.",
        ("From how many places does the gradient of the matrix come?", "Look for detach, .data or no_grad.",
         "self.head.weight = self.emb.weight"),
        ({"score": lambda m, x: F.linear(x, m.emb.weight.detach())}, {"enter": lambda x: x.detach()}),
    ),
    Misconception(
        "tie_scaled",
        "Vectors or logits are scaled by the root of d_model.",
        ("Does this exercise ask for a scale?", "With vectors of ones, what is a logit?",
         "return self.head(self.emb(idx))"),
        ({"enter": lambda x: x * math.sqrt(x.shape[-1])}, {"enter": lambda x: x / math.sqrt(x.shape[-1])}),
        convention="the logits are head(emb(idx)), without a scale.",
    ),
    Misconception(
        "tie_returns_vectors",
        "The vectors are returned; the head is not used.",
        ("How many numbers must come out for each place?", "Print the shape of your result.",
         "return self.head(self.emb(idx))"),
        ({"score": lambda m, x: x},),
    ),
    Misconception(
        "tie_softmax",
        "Probabilities are returned instead of logits.",
        ("What does cross_entropy expect?", "Look for softmax.", "return self.head(self.emb(idx))"),
        _last(lambda z: z.softmax(-1), torch.sigmoid, lambda z: z.softmax(1), lambda z: z.softmax(0)),
    ),
    Misconception(
        "tie_log_softmax",
        "Log-probabilities are returned instead of logits.",
        ("Who takes the softmax: the model, or the loss?", "Look for log_softmax.", "return self.head(self.emb(idx))"),
        _last(lambda z: z.log_softmax(-1)),
        convention="the logits are returned as they are; cross_entropy does the rest.",
    ),
    Misconception(
        "tie_symbols_returned",
        "The most likely symbols are returned instead of the logits of all.",
        ("How many numbers must come out for each place?", "Look for argmax.", "return self.head(self.emb(idx))"),
        _last(lambda z: z.argmax(-1)),
    ),
    Misconception(
        "tie_last_only",
        "Only the logits of the last place are returned.",
        ("For how many places must there be logits?", "Look for [:, -1].", "return self.head(self.emb(idx))"),
        _last(lambda z: z[:, -1], lambda z: z[:, -1:]),
    ),
    Misconception(
        "tie_averaged",
        "The places of a sentence are averaged or added up: one result for a sentence, not one for each place.",
        ("For how many places must there be logits?", "Look for mean or sum.", "return self.head(self.emb(idx))"),
        ({"enter": lambda x: x.mean(1)}, {"enter": lambda x: x.sum(1)}),
    ),
    Misconception(
        "tie_flattened",
        "Batch and time are folded into one axis.",
        ("Which shape does the statement name?", "Look for view, reshape or flatten.", "(B, T, V)"),
        _last(lambda z: z.flatten(0, 1)),
        convention="the logits have shape (B, T, V).",
    ),
    Misconception(
        "tie_vocabulary_before_time",
        "Time and vocabulary have changed places: the logits come as (B, V, T).",
        ("Which axis holds the scores of one place?", "Look for transpose or permute; cross_entropy may want that "
         "order, the statement does not.", "return self.head(self.emb(idx))"),
        _last(lambda z: z.transpose(1, 2), lambda z: z.transpose(1, 2).reshape(z.shape)),
        convention="the logits have shape (B, T, V).",
    ),
    Misconception(
        "tie_turned",
        "The matrix is transposed: both the embedding and nn.Linear(d_model, vocab) keep it as (vocab, d_model).",
        ("Print emb.weight.shape and head.weight.shape: do they differ?", "nn.Linear multiplies with its weight "
         "transposed.", "self.head.weight = self.emb.weight"),
        ({"head": _head(_turned)}, {"score": lambda m, x: x @ m.emb.weight}),
    ),
    Misconception(
        "tie_something_between",
        "Something is done to the vectors that nobody asked for: a norm, an activation, positions.",
        ("What stands between embedding and head?", "Follow one word through your forward.",
         "return self.head(self.emb(idx))"),
        ({"enter": lambda x: F.layer_norm(x, x.shape[-1:])}, {"enter": F.relu}, {"enter": torch.tanh},
         {"enter": lambda x: F.normalize(x, dim=-1)}),
    ),
    Misconception(
        "tie_padding_row",
        "Symbol 0 is treated as padding: its row does not learn.",
        ("Does every row of the matrix get a gradient?", "Look for padding_idx.", "nn.Embedding(vocab, d_model)"),
        ({"embedding": lambda vocab, d_model: nn.Embedding(vocab, d_model, padding_idx=0)},),
    ),
    Misconception(
        "tie_frozen",
        "The matrix does not ask for gradients: it is never trained.",
        ("What is emb.weight.requires_grad?", "Look for requires_grad, or from_pretrained, which freezes.",
         "nn.Embedding(vocab, d_model)"),
        ({"embedding": _frozen},),
        symptom=lambda got, want: got.inside is not None and bool(got.inside.frozen),
    ),
    dropout_always("tie_dropout_always", "Dropout is always on: two calls with the same words differ.", "enter"),
    no_super("tie_no_super"),
)  # fmt: skip
