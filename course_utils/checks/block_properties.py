"""Properties of `TransformerBlock` that hold for any weights, for answers into which none can be copied."""

import math
from collections.abc import Callable
from dataclasses import replace

import torch

from course_utils.checks.model import Case, Draw
from course_utils.checks.modules import construction
from course_utils.checks.values import Call, Construction, Outcome
from course_utils.checks.words import ORDER, changed_word, for_each_word, no_future, permuted, reach, repeats, same


def causal(T: int) -> torch.Tensor:
    """A causal mask."""
    return torch.ones(T, T, dtype=torch.bool).tril()


def made(training: bool = False, **sizes: float) -> Callable[[Draw], Construction]:
    """A block of these sizes (d_model, n_heads, d_ff, and dropout where it is given) with random weights copied in."""
    return lambda draw: replace(construction("TransformerBlock", draw, **sizes), training=training)


def _bare(d_model: int, n_heads: int, d_ff: int, dropout: float = 0.0, own: str = "", training: bool = False):
    sizes = {"d_model": d_model, "n_heads": n_heads, "d_ff": d_ff, "dropout": dropout}
    return lambda draw: Construction("TransformerBlock", sizes, own=own, training=training)


def _number_of_weights(call: Call, got: Outcome, want: Outcome) -> str:
    """The matrices exactly; how many biases an attention has is its own affair."""
    (mine, biases), (right, wanted) = (_matrices_and_vectors(o) for o in (got, want))
    d_model = call.construction.arguments["d_model"]
    if mine == right and wanted - biases in range(0, 4 * d_model + 1, d_model):
        return ""
    sizes = ", ".join(f"{n}={v}" for n, v in call.construction.arguments.items() if n != "dropout")
    return (
        f"With {sizes}, your block trains {mine + biases} numbers. Attention (four matrices), feed-forward network and "
        f"two norms have {right + wanted}."
    )


def _matrices_and_vectors(outcome: Outcome) -> tuple[int, int]:
    shapes = outcome.inside.parameters.values()
    matrices = sum(math.prod(shape) for shape in shapes if len(shape) > 1)
    return matrices, sum(shape[0] for shape in shapes if len(shape) == 1)


def _stream_survives(call: Call, got: Outcome, want: Outcome) -> str:
    if same(got.value, want.value):
        return ""
    return (
        "With all weights zero, both sub-layers add nothing and x should come out. Your block returns something else."
    )


def _one_sample_and_each_word(arguments: dict) -> tuple[dict, ...]:
    """Another sample 1, the words in another order, and each word moved in turn."""
    x = arguments["x"]
    other = torch.stack([x[0], 2 - x[1]])
    return {"x": other}, {"x": x[:, ORDER]}, *for_each_word("x", 0)(arguments)


def _alone_permuted_and_reached(call: Call, got: Outcome, want: Outcome) -> str:
    other, moved, *changed = got.more
    if not same(other[0], got.value[0]):
        return "When sample 1 of the batch is exchanged, the output for sample 0 changes: samples must not mix."
    as_if = Outcome(value=got.value, more=(moved,))
    return permuted(call, as_if, want) or reach(call, Outcome(value=got.value, more=tuple(changed)), want)


def _causal(call: Call, got: Outcome, want: Outcome) -> str:
    first, *later = got.more
    told = no_future(call, Outcome(value=got.value, more=tuple(later)), want)
    if told or not same(first[:, -1], got.value[:, -1]):
        return told
    return "Under a causal mask, changing word 0 does not change the last output, which may see it."


def _input_is_normalised(call: Call, got: Outcome, want: Outcome) -> str:
    """What a pre-norm block adds to x does not grow with x."""
    large = got.more[0] - 1000 * call.arguments["x"]
    added = got.value - call.arguments["x"]
    size = float(added.abs().max())
    if size > 1e-4 and float(large.abs().max()) < 20 * size + 1:
        return ""
    return "When x is a thousand times larger, what the block adds to it grows as well, or it adds nothing."


def _bends(call: Call, got: Outcome, want: Outcome) -> str:
    """Without biases everything but the activation turns its sign with x (T = 1: the attention is linear)."""
    if not same(got.more[0], -got.value):
        return ""
    return "With all biases zero, -x gives exactly the negative result: there is no activation between ff1 and ff2."


def _differ(outcome: Outcome) -> bool:
    second = outcome.second
    return second is not None and second.error is None and not same(second.value, outcome.value)


def two_calls_differ(call: Call, got: Outcome, want: Outcome) -> str:
    """In train mode, with dropout."""
    if _differ(got) == _differ(want):
        return ""
    return "In train mode, with dropout, two calls give the same result: dropout does nothing."


def _drops_what_is_added(call: Call, got: Outcome, want: Outcome) -> str:
    """Where both sub-layers are dropped, x comes through as it is; in 36 numbers that happens somewhere."""
    x = call.arguments["x"]
    if bool((got.value == x).any()) or not bool((want.value == x).any()):
        return two_calls_differ(call, got, want)
    return (
        "In train mode, with dropout, there are places where all that the sub-layers add is dropped, and x should come "
        "through unchanged. Your block changes x everywhere."
    )


def _one_sample_hidden(arguments: dict) -> tuple[dict, ...]:
    return (changed_word(arguments, "x", 3, sample=1),)


def _hidden_in_its_sample(call: Call, got: Outcome, want: Outcome) -> str:
    if same(got.more[0][:, :3], got.value[:, :3]):
        return ""
    return f"With a mask of shape {tuple(call.arguments['mask'].shape)}, a hidden word changes other outputs."


def _last_hidden_in_sample_1() -> torch.Tensor:
    mask = torch.ones(2, 4, 4, dtype=torch.bool)
    mask[1, :, 3] = False
    return mask


PROPERTIES = (
    Case("the number of weights", "attention, feed-forward network and two norms", 1,
         lambda d: {"x": d.normal(2, 5, 8)}, make=made(d_model=8, n_heads=4, d_ff=11), compare=_number_of_weights),
    Case("all weights zero", "what sub-layers add is added to x itself", 1, lambda d: {"x": 2 + d.normal(2, 3, 6)},
         make=_bare(6, 2, 10, own="zeros"), compare=_stream_survives),
    Case("words change places", "the outputs change places with the words; every word reaches every word of its own "
         "sample, and no other", 1,
         lambda d: {"x": d.normal(2, 5, 8)}, make=_bare(8, 4, 12), more=_one_sample_and_each_word,
         compare=_alone_permuted_and_reached),
    Case("a causal mask (T, T)", "no word sees a later word", 2,
         lambda d: {"x": d.normal(2, 5, 6), "mask": causal(5)}, make=_bare(6, 2, 9), more=for_each_word("x", 0),
         compare=_causal),
    Case("a large input", "each sub-layer reads a normalised copy of x", 1, lambda d: {"x": d.normal(2, 4, 6)},
         make=_bare(6, 3, 8), more=lambda a: ({"x": 1000 * a["x"]},), compare=_input_is_normalised),
    Case("x and -x", "there is an activation between the two layers of the feed-forward network", 1,
         lambda d: {"x": d.normal(4, 1, 6)}, make=_bare(6, 1, 24, own="no biases"),
         more=lambda a: ({"x": -a["x"]},), compare=_bends),
    Case("dropout in evaluation mode, and gradients", "two calls agree; gradients reach all weights; nothing is "
         "written to", 1, lambda d: {"x": d.normal(2, 3, 6)}, make=_bare(6, 3, 7, 0.4), gradients_of=("x",),
         repeat=True, keeps_inputs=True, compare=repeats),
    Case("dropout in train mode", "dropout acts on what each sub-layer adds; two calls differ", 1,
         lambda d: {"x": d.normal(2, 3, 6)}, make=_bare(6, 2, 7, 0.6, training=True), repeat=True,
         compare=_drops_what_is_added),
    # The form in which a model hands on masks that hide padding; the attention of the course takes it, too.
    Case("a mask (B, 1, T, T)", "the mask of a sentence is used for it alone, in all of its heads", 1,
         lambda d: {"x": d.normal(2, 4, 6), "mask": _last_hidden_in_sample_1().unsqueeze(1)}, make=_bare(6, 3, 7),
         more=_one_sample_hidden, compare=_hidden_in_its_sample),
    Case("a mask for each sentence (B, T, T)", "the mask of a sentence is used for it alone", 0,
         lambda d: {"x": d.normal(2, 4, 6), "mask": _last_hidden_in_sample_1()}, make=_bare(6, 2, 7),
         more=_one_sample_hidden, compare=_hidden_in_its_sample,
         note="Passed. With a mask of its own for each sentence, (B, T, T), your block gives an error or lets a hidden "
              "word through; padded sentences need such masks."),
)  # fmt: skip
