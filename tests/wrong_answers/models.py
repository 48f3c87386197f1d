"""Wrong answers to build_encoder and TiedLM."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

from wrong_answers import wrong

# --- build_encoder


@wrong("build_encoder", "stack_python_list")
def _(make_layer, n_layers):
    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = [make_layer() for _ in range(n_layers)]

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x

    return Encoder()


@wrong("build_encoder", "stack_python_list")
def _(make_layer, n_layers):
    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = {}
            for i in range(n_layers):
                self.blocks[i] = make_layer()

        def forward(self, x, *args):
            for i in range(n_layers):
                x = self.blocks[i](x, *args)
            return x

    return Encoder()


@wrong("build_encoder", "stack_deepcopied_init")
def _(make_layer, n_layers):
    layer = make_layer()
    return nn.Sequential(*[copy.deepcopy(layer) for _ in range(n_layers)])


@wrong("build_encoder", "stack_deepcopied_init")
def _(make_layer, n_layers):
    class Encoder(nn.Module):
        def __init__(self, layer):
            super().__init__()
            self.layers = nn.ModuleList([layer])
            for _ in range(n_layers - 1):
                self.layers.append(make_layer())
                self.layers[-1].load_state_dict(layer.state_dict())

        def forward(self, x, *args):
            for layer in self.layers:
                x = layer(x, *args)
            return x

    return Encoder(make_layer())


@wrong("build_encoder")
def _(make_layer, n_layers):
    """One layer, many times."""
    return nn.Sequential(*[make_layer()] * n_layers)


@wrong("build_encoder")
def _(make_layer, n_layers):
    """One layer applied in a loop."""

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = make_layer()

        def forward(self, x, *args):
            for _ in range(n_layers):
                x = self.layer(x, *args)
            return x

    return Encoder()


@wrong("build_encoder")
def _(make_layer, n_layers):
    """A list of layers, which nobody can call."""
    return nn.ModuleList([make_layer() for _ in range(n_layers)])


@wrong("build_encoder")
def _(make_layer, n_layers):
    """A plain list."""
    return [make_layer() for _ in range(n_layers)]


@wrong("build_encoder")
def _(make_layer, n_layers):
    """The function that makes a layer, not a layer."""
    return nn.Sequential(*[make_layer for _ in range(n_layers)])


@wrong("build_encoder")
def _(make_layer, n_layers):
    """One too few."""
    return nn.Sequential(*[make_layer() for _ in range(1, n_layers)])


@wrong("build_encoder")
def _(make_layer, n_layers):
    """One too many."""
    return nn.Sequential(*[make_layer() for _ in range(n_layers + 1)])


def _encoder(forward, misconception=None):
    """A wrong answer whose layers are right and whose forward is not."""

    def build_encoder(make_layer, n_layers):
        class Encoder(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList(make_layer() for _ in range(n_layers))

        Encoder.forward = forward
        return Encoder()

    build_encoder.__name__ = forward.__name__.title()
    wrong("build_encoder", misconception)(build_encoder)


def _every_layer_reads_the_input(self, x, *args):
    for layer in self.layers:
        out = layer(x, *args)
    return out


def _last_layer_left_out(self, x, *args):
    for layer in self.layers[:-1]:
        x = layer(x, *args)
    return x


def _returns_in_the_loop(self, x, *args):
    for layer in self.layers:
        x = layer(x, *args)
        return x


def _backwards(self, x, *args):
    for layer in reversed(self.layers):
        x = layer(x, *args)
    return x


def _results_added(self, x, *args):
    for layer in self.layers:
        x = x + layer(x, *args)
    return x


def _all_states(self, x, *args):
    states = []
    for layer in self.layers:
        x = layer(x, *args)
        states.append(x)
    return states


def _detached_between(self, x, *args):
    for layer in self.layers:
        x = layer(x.detach(), *args)
    return x


for _forward in (
    *(_every_layer_reads_the_input, _last_layer_left_out, _returns_in_the_loop, _backwards),
    *(_results_added, _all_states),
):
    _encoder(_forward)
_encoder(_detached_between, "stack_cut_between")


# --- TiedLM


class Tied(nn.Module):
    """A right answer."""

    def __init__(self, vocab, d_model):
        super().__init__()
        self.emb = nn.Embedding(vocab, d_model)
        self.head = self.make_head(vocab, d_model)
        self.tie()

    def make_head(self, vocab, d_model):
        return nn.Linear(d_model, vocab, bias=False)

    def tie(self):
        self.head.weight = self.emb.weight

    def forward(self, idx):
        return self.head(self.emb(idx))


def _tied(misconception, **methods):
    """A wrong answer: the right one with some methods exchanged."""
    wrong("TiedLM", misconception)(type("TiedLM", (Tied,), methods))


def _data(self):
    self.head.weight.data = self.emb.weight.data


def _fresh_parameter(self):
    self.head.weight = nn.Parameter(self.emb.weight)


def _fresh_parameter_from_data(self):
    self.emb.weight = nn.Parameter(self.head.weight.data)


def _data_each_time(self, idx):
    self.head.weight.data = self.emb.weight.data
    return self.head(self.emb(idx))


def _copied_once(self):
    with torch.no_grad():
        self.head.weight.copy_(self.emb.weight)


def _cloned(self):
    self.head.weight = nn.Parameter(self.emb.weight.detach().clone())


def _module_replaced(self):
    self.head = nn.Linear(self.head.in_features, self.head.out_features, bias=False)


def _tied_to_transpose(self):
    self.head.weight = nn.Parameter(self.emb.weight.T)


def _frozen(self):
    self.head.weight = self.emb.weight
    self.emb.weight.requires_grad_(False)


def _forgets_super(self, vocab, d_model):
    self.emb = nn.Embedding(vocab, d_model)


_tied("tie_data_alias", tie=_data)
_tied("tie_data_alias", tie=_fresh_parameter)
_tied("tie_data_alias", tie=_fresh_parameter_from_data)
_tied("tie_missing", tie=lambda self: None)
_tied("tie_missing", tie=_cloned)
_tied("tie_missing", tie=_copied_once)
_tied(None, forward=_data_each_time, tie=lambda self: None)
_tied(None, tie=_module_replaced)
_tied(None, tie=_tied_to_transpose)
_tied(None, tie=_frozen)
_tied(None, make_head=lambda self, vocab, d_model: nn.Linear(d_model, vocab))
_tied(None, forward=lambda self, idx: self.emb(idx))
_tied(None, forward=lambda self, idx: self.head(self.emb(idx)).softmax(-1))
_tied("tie_log_softmax", forward=lambda self, idx: self.head(self.emb(idx)).log_softmax(-1))
_tied(None, forward=lambda self, idx: self.head(self.emb(idx))[:, -1])
_tied(None, forward=lambda self, idx: self.head(self.emb(idx) * self.emb.embedding_dim**0.5))
_tied(None, forward=lambda self, idx: self.head(self.emb(idx)) / self.emb.embedding_dim**0.5)
_tied(None, forward=lambda self, idx: F.linear(self.emb(idx), self.emb.weight.detach()))
_tied(None, forward=lambda self, idx: self.head(self.emb(idx).detach()))
_tied("tie_vocabulary_before_time", forward=lambda self, idx: self.head(self.emb(idx)).transpose(1, 2))
_tied(None, forward=lambda self, idx: self.head(self.emb(idx).relu()))
_tied(None, forward=lambda self, idx: self.head(self.emb(idx).mean(1, keepdim=True).expand(-1, idx.shape[1], -1)))
_tied(None, __init__=_forgets_super)


@wrong("TiedLM")
class OtherNamesUntied(nn.Module):
    """Nothing can be copied, and nothing is shared."""

    def __init__(self, vocab, d_model):
        super().__init__()
        self.wte = nn.Embedding(vocab, d_model)
        self.lm_head = nn.Linear(d_model, vocab, bias=False)

    def forward(self, idx):
        return self.lm_head(self.wte(idx))
