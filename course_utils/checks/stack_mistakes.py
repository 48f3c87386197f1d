"""The recipe of `build_encoder`, and its misconceptions."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

from course_utils.checks.model import Misconception


def assemble(s):
    """The function from its steps."""

    class Encoder(nn.Module):
        def __init__(self, make_layer, n_layers):
            s.begin(super())
            s.hold(self, lambda: s.layers(make_layer, n_layers))

        def forward(self, x, mask=None):
            return s.finish(s.run(s.held(self), x, mask), x)

    return lambda make_layer, n_layers: s.result(Encoder, make_layer, n_layers)


def _one_after_the_other(layers, x, mask):
    for layer in layers:
        x = layer(x, mask)
    return x


def _mask_to(which):
    def run(layers, x, mask):
        for number, layer in enumerate(layers):
            x = layer(x, mask) if which(number) else layer(x)
        return x

    return run


def _then(change):
    """After each layer something more is done; change gets what comes out and what went in."""

    def run(layers, x, mask):
        for layer in layers:
            x = change(layer(x, mask), x)
        return x

    return run


def _keep(module, make):
    module.layers = nn.ModuleList(make())


def _in_a_list(module, make):
    module.layers = list(make())


def _under_one_name(module, make):
    layers = make()
    for layer in layers:
        module.layer = layer
    module.layers = [module.layer] * len(layers)


def _later(module, make):
    module.make = make


def _copies(make_layer, n_layers):
    first = make_layer()
    return [copy.deepcopy(first) for _ in range(n_layers)]


def _all_states(layers, x, mask):
    states = [x]
    for layer in layers:
        states.append(layer(states[-1], mask))
    return tuple(states[1:])


def _in_no_grad(layers, x, mask):
    with torch.no_grad():
        return _one_after_the_other(layers, x, mask)


def _cut_before_each(layers, x, mask):
    for layer in layers:
        x = layer(x.detach(), mask)
    return x


RIGHT = {
    "begin": lambda parent: parent.__init__(),
    "layers": lambda make_layer, n_layers: [make_layer() for _ in range(n_layers)],
    "hold": _keep,
    "held": lambda module: module.layers,
    "run": _one_after_the_other,
    "finish": lambda out, x: out,
    "result": lambda cls, make_layer, n_layers: cls(make_layer, n_layers),
}


MISCONCEPTIONS = (
    Misconception(
        "stack_python_list",
        "The layers are kept in a plain Python list: parameters() does not find them, and the optimizer never moves "
        "them.",
        ("How many parameters does your module have?", "Print len(list(encoder.parameters())).",
         "self.layers = nn.ModuleList(make_layer() for _ in range(n_layers))"),
        ({"hold": _in_a_list},),
    ),
    Misconception(
        "stack_deepcopied_init",
        "The layers are copies of one layer, so that all start with the same weights.",
        ("How often is make_layer called?", "Compare the weights of the first and the second layer.",
         "[make_layer() for _ in range(n_layers)]"),
        ({"layers": _copies},),
    ),
    Misconception(
        "stack_same_layer",
        "One and the same layer is used several times: all steps share their weights.",
        ("How many layers are there in [layer] * n?", "Print len(list(encoder.parameters())).",
         "[make_layer() for _ in range(n_layers)]"),
        ({"layers": lambda make_layer, n: [make_layer()] * n},),
    ),
    Misconception(
        "stack_overwritten",
        "Each layer replaces the one before under the same name, so that only the last is left.",
        ("What does the second assignment to self.layer do to the first?", "Print your module.",
         "self.layers = nn.ModuleList(make_layer() for _ in range(n_layers))"),
        ({"hold": _under_one_name},),
    ),
    Misconception(
        "stack_not_chained",
        "Every layer gets the input of the whole stack instead of the output of the layer before.",
        ("What does the second layer read?", "Which variable does your loop write, and which does it read?",
         "x = layer(x)"),
        ({"run": lambda layers, x, mask: list(layers)[-1](x, mask)},
         {"run": lambda layers, x, mask: sum(layer(x, mask) for layer in layers)},
         {"run": lambda layers, x, mask: sum(layer(x, mask) for layer in layers) / len(layers)},
         {"run": lambda layers, x, mask: x + sum(layer(x, mask) for layer in layers)}),
    ),
    Misconception(
        "stack_first_only",
        "Only the first layer is used: the loop returns too early.",
        ("When does your loop end?", "Look at the indentation of your return.", "return x after the loop, not in it"),
        ({"run": lambda layers, x, mask: next(iter(layers))(x, mask)},),
    ),
    Misconception(
        "stack_one_too_few",
        "There is one layer too few.",
        ("How often does your loop run?", "Try n_layers = 1.", "range(n_layers)"),
        ({"layers": lambda make_layer, n: [make_layer() for _ in range(n - 1)]},
         {"run": lambda layers, x, mask: _one_after_the_other(list(layers)[1:], x, mask)},
         {"run": lambda layers, x, mask: _one_after_the_other(list(layers)[:-1], x, mask)}),
    ),
    Misconception(
        "stack_one_too_many",
        "There is one layer too many, or one is made and not used.",
        ("How often is make_layer called?", "Try n_layers = 1.", "range(n_layers)"),
        ({"layers": lambda make_layer, n: [make_layer() for _ in range(n + 1)]},
         {"layers": lambda make_layer, n: [make_layer() for _ in range(n + 1)][1:]},
         {"layers": lambda make_layer, n: [make_layer() for _ in range(n + 1)][:-1]},
         {"run": lambda layers, x, mask: _one_after_the_other([*layers, list(layers)[-1]], x, mask)}),
    ),
    Misconception(
        "stack_number_fixed",
        "The number of layers is fixed; n_layers is not used.",
        ("Is there an argument that you did not use?", "Try n_layers = 1 and n_layers = 7.", "range(n_layers)"),
        tuple({"layers": lambda make_layer, n, k=k: [make_layer() for _ in range(k)]} for k in (6, 1, 2, 3, 4, 12)),
    ),
    Misconception(
        "stack_reversed",
        "The layers are applied from the last to the first.",
        ("Which layer reads x first?", "Look for reversed, insert(0, …) or a negative step.", "for layer in layers"),
        ({"run": lambda layers, x, mask: _one_after_the_other(list(layers)[::-1], x, mask)},),
        convention="the layer made first is applied first.",
    ),
    Misconception(
        "stack_residual_added",
        "The input of a layer, or of the stack, is added to its output; the layers do that inside, where it belongs.",
        ("Who adds the residual: the block or the stack?", "With layers that return zeros, what must come out?",
         "x = layer(x)"),
        ({"run": _then(lambda out, x: x + out)}, {"finish": lambda out, x: out + x}),
    ),
    Misconception(
        "stack_something_between",
        "Something is done between or after the layers that nobody asked for: an activation, a norm, dropout.",
        ("What do the layers themselves do?", "Try layers that return their input: what must come out?",
         "x = layer(x), and nothing else"),
        ({"run": _then(lambda out, x: F.relu(out))}, {"run": _then(lambda out, x: F.gelu(out))},
         {"run": _then(lambda out, x: F.layer_norm(out, out.shape[-1:]))},
         {"finish": lambda out, x: F.layer_norm(out, out.shape[-1:])}, {"finish": lambda out, x: F.relu(out)}),
    ),
    Misconception(
        "stack_module_list",
        "An nn.ModuleList is returned: it keeps layers, but cannot be called.",
        ("What does nn.ModuleList do when it is called?", "Read the last line of the error: what is missing?",
         "nn.Sequential(*layers), or a module with a forward"),
        ({"result": lambda cls, make_layer, n: nn.ModuleList(make_layer() for _ in range(n))},),
    ),
    Misconception(
        "stack_list_returned",
        "A list of layers is returned, not a module.",
        ("What is the type of your result?", "Can it be called, and does it have parameters()?",
         "nn.Sequential(*layers), or a module with a forward"),
        ({"result": lambda cls, make_layer, n: [make_layer() for _ in range(n)]},),
    ),
    Misconception(
        "stack_made_in_forward",
        "The layers are made anew in every call: nothing is registered, and nothing learned stays.",
        ("When are the layers made: once, or in each call?", "Call your module twice. Does it give the same?",
         "make the layers in __init__"),
        ({"hold": _later, "held": lambda module: module.make()},),
    ),
    Misconception(
        "stack_not_called",
        "make_layer itself is put into the stack; it is a function that has to be called to make a layer.",
        ("What is make_layer: a layer, or what makes one?", "Read the last line of the error.",
         "make_layer(), with parentheses, once for each layer"),
        ({"layers": lambda make_layer, n: [make_layer] * n},
         {"layers": lambda make_layer, n: [make_layer] * n, "hold": _in_a_list},
         {"layers": lambda make_layer, n: make_layer(n)},
         {"layers": lambda make_layer, n: [make_layer(i) for i in range(n)]},
         {"result": lambda cls, make_layer, n: nn.Sequential(*[make_layer] * n)}),
    ),
    Misconception(
        "stack_mask_not_passed",
        "The module takes a mask, but does not pass it on to all layers.",
        ("Which of your layers gets the mask?", "Follow the mask through your loop.", "x = layer(x, mask)"),
        ({"run": _mask_to(lambda number: False)}, {"run": _mask_to(lambda number: number == 0)},
         {"run": _mask_to(lambda number: number > 0)}),
    ),
    Misconception(
        "stack_all_states",
        "The outputs of all layers are returned; only that of the last is asked for.",
        ("What does the next part of the model expect?", "Look at your return.", "return x"),
        ({"run": _all_states}, {"run": lambda layers, x, mask: torch.stack(_all_states(layers, x, mask))}),
    ),
    Misconception(
        "stack_no_gradient",
        "The layers are cut off from the graph, so that they never learn.",
        ("Does every layer get a gradient?", "Look for detach, .data or no_grad.", "x = layer(x)"),
        ({"run": _then(lambda out, x: out.detach())}, {"run": _in_no_grad}),
    ),
    Misconception(
        "stack_cut_between",
        "The graph is cut between the layers: only the last layer learns.",
        ("Which layers get a gradient?", "Look for detach, .data or no_grad between two layers.", "x = layer(x)"),
        ({"run": _cut_before_each},),
    ),
    Misconception(
        "stack_no_super",
        "super().__init__() is missing: a module must be set up before layers are put into it.",
        ("What is the first line of every __init__ of a module?", "Read the last line of the error.",
         "super().__init__()"),
        ({"begin": lambda parent: None},),
    ),
)  # fmt: skip
