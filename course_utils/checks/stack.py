"""Cases of `build_encoder`: layers of a known make, put together and tried out."""

import torch
from torch import Tensor

from course_utils import encoder_decoder as reference
from course_utils.checks.compare import ELSEWHERE, close
from course_utils.checks.model import Case, Draw, Exercise, Output, Recipe
from course_utils.checks.stack_mistakes import MISCONCEPTIONS, RIGHT, assemble
from course_utils.checks.values import Call, Double, Outcome, Probe

FREE = torch.ones((), dtype=torch.bool)
RETURNS = "an nn.Module"


def _layers(n_layers: int, d: int):
    return lambda draw: {"make_layer": Double("layers", {"d": d, "seed": draw.seed()}), "n_layers": n_layers}


def _called_on(*shape: int):
    return lambda draw: Probe("stack", RETURNS, {"x": draw.normal(*shape)})


def _with_mask(draw: Draw) -> Probe:
    mask = torch.ones(5, 5, dtype=torch.bool).tril()
    return Probe("stack", RETURNS, {"x": draw.normal(2, 5, 3), "mask": mask})


def _output_only(arguments: dict) -> tuple[Tensor | None, ...]:
    return None, FREE, FREE, FREE


def _also_after_an_update(arguments: dict) -> tuple[Tensor | None, ...]:
    return None, None, FREE, FREE


def _registered(call: Call, got: Outcome, want: Outcome) -> str:
    (mine, made, _), (right, wanted, _) = (o.value[3].tolist() for o in (got, want))
    n = call.arguments["n_layers"]
    if mine != right:
        return (
            f"`parameters()` of your module finds {mine:.0f} numbers; {n} layers, each with weights of its own, have "
            f"{right:.0f}. The optimizer gets what `parameters()` finds."
        )
    return "" if made == wanted else f"With n_layers = {n}, make_layer is called {made:.0f} times."


def _mask_arrives(call: Call, got: Outcome, want: Outcome) -> str:
    """A module that takes x alone is right; one that takes a mask has to hand it on."""
    if not bool(close(got.value[0], want.value[0]).all()):
        return ELSEWHERE
    takes_mask = bool(got.value[3][2])
    if not takes_mask or bool(close(got.value[2], want.value[2]).all()):
        return ""
    return "Your module takes a mask as its second argument, but the mask does not reach every layer."


CASES = (
    Case("three layers", "the output of a layer is the input of the next", 3, _layers(3, 4), probe=_called_on(2, 3, 4),
         loose=_output_only),
    Case("what is registered", "parameters() finds the weights of all layers", 2, _layers(4, 3),
         probe=_called_on(2, 5, 3), compare=_registered),
    Case("after an update", "every layer learns by itself; calling twice changes nothing", 2, _layers(2, 5),
         probe=_called_on(3, 2, 5), loose=_also_after_an_update, repeat=True, keeps_inputs=True),
    Case("one layer", "n_layers = 1", 1, _layers(1, 3), probe=_called_on(1, 4, 3), loose=_output_only),
    Case("seven layers", "any number of layers", 1, _layers(7, 2), probe=_called_on(2, 3, 2), loose=_output_only),
    Case("a mask", "a module that takes a mask hands it to every layer (it need not take one)", 1, _layers(3, 3),
         probe=_with_mask, compare=_mask_arrives),
)  # fmt: skip


BUILD_ENCODER = Exercise(
    name="build_encoder",
    notebook="06",
    reference=reference.build_encoder,
    outputs=(
        Output("the output", ("time", "feature")),
        Output("the output after an update of all weights", ("time", "feature")),
        Output("the output with a mask", ("time", "feature")),
        Output("facts", ("fact",)),
    ),
    cases=CASES,
    recipe=Recipe(assemble, RIGHT),
    misconceptions=MISCONCEPTIONS,
    hints=(
        "How often must make_layer be called? And where must the layers be kept, so that parameters() finds them?",
        "nn.Sequential takes layers one after the other; with a class of your own, keep them in an nn.ModuleList.",
        "nn.Sequential(*[make_layer() for _ in range(n_layers)])",
    ),
)
