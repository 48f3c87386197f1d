"""Misconceptions of `TransformerBlock` about the feed-forward network, dropout and what is registered."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from course_utils.checks.block_mistakes import ALIKE, LINE_1, LINE_2
from course_utils.checks.block_recipe import feed
from course_utils.checks.model import Misconception
from course_utils.checks.shared import calls_differ, looks_like_dropout, no_super
from course_utils.checks.values import Outcome


def _activation(f):
    return {"feed": lambda m, normed, mask: m.ff2(f(m.ff1(normed)))}


def _list_of_layers(module, d_model, d_ff):
    module.ff = [nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)]


def _from_the_list(m, normed, mask):
    return m.ff[1](F.relu(m.ff[0](normed)))


def _width(width):
    def layers(module, d_model, d_ff):
        inner = width(d_model)
        module.ff1, module.ff2 = nn.Linear(d_model, inner), nn.Linear(inner, d_model)

    return layers


def _no_ffn_biases(module, d_model, d_ff):
    module.ff1, module.ff2 = nn.Linear(d_model, d_ff, bias=False), nn.Linear(d_ff, d_model, bias=False)


def _matrices(outcome: Outcome) -> int:
    return sum(math.prod(shape) for shape in outcome.inside.parameters.values() if len(shape) > 1)


def _lacks_the_ffn(got: Outcome, want: Outcome) -> bool:
    """All matrices but those of the feed-forward network are registered."""
    if got.inside is None or want.inside is None:
        return False
    inside = want.inside.parameters
    return _matrices(got) == _matrices(want) - 2 * math.prod(inside["ff1.weight"])


def _other_width(got: Outcome, want: Outcome) -> bool:
    misfits = {} if got.inside is None else got.inside.misfits
    return "ff1.weight" in misfits and misfits["ff1.weight"] != tuple(reversed(want.inside.parameters["ff1.weight"]))


def _without_biases(got: Outcome, want: Outcome) -> bool:
    missing = () if got.inside is None else got.inside.missing
    return bool(missing) and set(missing) <= {"ff1.bias", "ff2.bias"}


def _drops_in_evaluation(got: Outcome, want: Outcome) -> bool:
    return looks_like_dropout(got, want) and not calls_differ(want)


def _always(p):
    return lambda m, added: F.dropout(added, m.drop.p if p is None else p)


def _keep(m, added):
    return added


PARTS = (
    Misconception(
        "block_ffn_linear",
        "The feed-forward network has no activation: two linear layers in a row are one.",
        ("What are two matrices one after the other?", "Where is the ReLU?", "self.ff2(F.relu(self.ff1(n)))"),
        (_activation(lambda h: h),),
    ),
    Misconception(
        "block_other_activation",
        "The feed-forward network has another activation than ReLU.",
        ("Which activation does the statement name?", "What becomes of a negative number between ff1 and ff2?",
         "self.ff2(F.relu(self.ff1(n)))"),
        tuple(_activation(f) for f in (F.gelu, lambda h: F.gelu(h, approximate="tanh"), torch.tanh, F.silu,
                                       torch.sigmoid, F.leaky_relu, F.elu, lambda h: h.softmax(-1))),
        convention="the activation is ReLU.",
    ),
    Misconception(
        "block_relu_misplaced",
        "The ReLU is not between ff1 and ff2, or there is a second one behind ff2.",
        ("Can your feed-forward network add a negative number?", "ReLU acts on the wide layer only.",
         "self.ff2(F.relu(self.ff1(n)))"),
        ({"feed": lambda m, normed, mask: F.relu(m.ff2(m.ff1(normed)))},
         {"feed": lambda m, normed, mask: F.relu(feed(m, normed, mask))},
         {"feed": lambda m, normed, mask: m.ff2(m.ff1(F.relu(normed)))}),
    ),
    Misconception(
        "block_no_ffn",
        "The feed-forward network is not used.",
        ("Are ff1 and ff2 used in forward?", "A block has two sub-layers.", LINE_2),
        ({"join2": lambda m, x, middle, normed, added: middle},),
    ),
    Misconception(
        "block_no_attention",
        "The attention is not used.",
        ("Is attn used in forward?", "A block has two sub-layers.", LINE_1),
        ({"join1": lambda m, x, normed, added: x},),
    ),
    Misconception(
        "block_ffn_in_list",
        "The layers of the feed-forward network are kept in a plain Python list: they are not registered and never "
        "trained.",
        ("How many parameters does your block have?", "Print [n for n, _ in block.named_parameters()].",
         "self.ff1 = nn.Linear(d_model, d_ff); self.ff2 = nn.Linear(d_ff, d_model)"),
        ({"layers": _list_of_layers, "feed": _from_the_list},),
        symptom=_lacks_the_ffn,
    ),
    Misconception(
        "block_d_ff_ignored",
        "The feed-forward network does not have d_ff units: the argument is not used.",
        ("Is there an argument that you did not use?", "Print block.ff1.", "nn.Linear(d_model, d_ff)"),
        ({"layers": _width(lambda d: 4 * d)}, {"layers": _width(lambda d: d)}, {"layers": _width(lambda d: 2 * d)}),
        symptom=_other_width,
    ),
    Misconception(
        "block_ffn_no_bias",
        "The layers of the feed-forward network have no biases.",
        ("What does nn.Linear hold besides its weight?", "Look for bias=False.", "nn.Linear(d_model, d_ff)"),
        ({"layers": _no_ffn_biases},),
        convention="ff1 and ff2 are nn.Linear with bias.",
        symptom=_without_biases,
    ),
    Misconception(
        "block_detached",
        "Something is cut off from the graph, so that a part of the block never learns.",
        ("Does every weight get a gradient?", "Look for detach, .data or no_grad.", ALIKE),
        ({"join1": lambda m, x, normed, added: x + added.detach()},
         {"join2": lambda m, x, middle, normed, added: middle + added.detach()},
         {"join1": lambda m, x, normed, added: x.detach() + added},
         {"join2": lambda m, x, middle, normed, added: middle.detach() + added},
         {"norm1": lambda m, x: m.ln1(x.detach())}, {"norm2": lambda m, middle, x: m.ln2(middle.detach())},
         {"norm1": lambda m, x: m.ln1(x).detach()}, {"norm2": lambda m, middle, x: m.ln2(middle).detach()},
         {"last": lambda out: out.detach()}),
    ),
    Misconception(
        "block_returns_more",
        "More than the output is returned.",
        ("How many results does the docstring name?", "Look at your last line.", "return x"),
        ({"last": lambda out: (out, None)}, {"last": lambda out: (out, out)}),
        convention="forward returns the output only.",
    ),
    no_super("block_no_super"),
)  # fmt: skip


DROPOUT = (
    Misconception(
        "block_dropout_always",
        "Dropout is on in evaluation mode as well.",
        ("Do two calls agree after block.eval()?", "F.dropout is on unless it is told training=False.",
         "self.drop = nn.Dropout(dropout), which block.eval() switches off"),
        ({"drop1": _always(None), "drop2": _always(None)}, {"drop1": _always(None)}, {"drop2": _always(None)},
         {"drop1": _always(0.1), "drop2": _always(0.1)}, {"drop1": _always(0.5), "drop2": _always(0.5)}),
        symptom=_drops_in_evaluation,
    ),
    Misconception(
        "block_no_dropout",
        "Dropout does nothing: it is not used, or its argument is not.",
        ("Do two calls differ in train mode, with dropout=0.5?", "Is self.drop used in forward, and dropout in "
         "__init__?", ALIKE),
        ({"drop1": _keep, "drop2": _keep}, {"dropout": lambda p: nn.Dropout(0.0)}),
    ),
    Misconception(
        "block_dropout_once",
        "Dropout acts on one of the two sub-layers only.",
        ("How many sub-layers add something to x?", "Is self.drop used twice?", ALIKE),
        ({"drop1": _keep}, {"drop2": _keep}),
        convention="dropout acts on what each of the two sub-layers adds.",
    ),
    Misconception(
        "block_dropout_on_stream",
        "Dropout acts on the sum, so that x itself is lost in places.",
        ("May dropout delete parts of x on its way through the block?", "Look at your parentheses.", ALIKE),
        ({"drop1": _keep, "join1": lambda m, x, normed, added: m.drop(x + added),
          "drop2": _keep, "join2": lambda m, x, middle, normed, added: m.drop(middle + added)},
         {"drop2": _keep, "join2": lambda m, x, middle, normed, added: m.drop(middle + added)},
         {"drop1": _keep, "join1": lambda m, x, normed, added: m.drop(x + added)}),
        convention="dropout acts on what a sub-layer adds, before the addition.",
    ),
    Misconception(
        "block_dropout_elsewhere",
        "Dropout acts on what a sub-layer reads, or inside the feed-forward network, instead of on what it adds.",
        ("With dropout close to 1, what should come out of the block?", "On which side of the sub-layer does it stand?",
         ALIKE),
        ({"drop1": _keep, "norm1": lambda m, x: m.drop(m.ln1(x)),
          "drop2": _keep, "norm2": lambda m, middle, x: m.drop(m.ln2(middle))},
         {"drop1": _keep, "drop2": _keep, "feed": lambda m, normed, mask: m.ff2(m.drop(F.relu(m.ff1(normed))))},
         {"drop2": _keep, "feed": lambda m, normed, mask: m.ff2(m.drop(F.relu(m.ff1(normed))))},
         {"drop1": _keep, "norm1": lambda m, x: m.drop(m.ln1(x))}),
        convention="dropout acts on what a sub-layer adds, before the addition.",
    ),
    Misconception(
        "block_dropout_keep_share",
        "The share that is kept is passed where the share that is dropped is asked for, or another number.",
        ("With dropout=0.1, how many of ten numbers are to be dropped?", "Look for 1 - dropout.",
         "nn.Dropout(dropout)"),
        ({"dropout": lambda p: nn.Dropout(1 - p)}, {"dropout": lambda p: nn.Dropout(0.1)},
         {"dropout": lambda p: nn.Dropout(0.5)}),
    ),
)  # fmt: skip
