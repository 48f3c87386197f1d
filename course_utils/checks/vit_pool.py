"""Cases and misconceptions of `vit_pool`."""

import torch
import torch.nn.functional as F

from course_utils import vision as reference
from course_utils.checks.model import Case, Draw, Exercise, Misconception, Output, Recipe, Steps
from course_utils.checks.shared import DOUBLE_NOTE, in_double


def _tokens(draw: Draw, *shape: int) -> dict:
    return {"tokens": draw.normal(*shape)}


def _large_patches(draw: Draw) -> dict:
    tokens = draw.normal(2, 4, 3)
    tokens[:, 1:] = 100 * tokens[:, 1:] + 50
    return {"tokens": tokens}


CASES = (
    Case("a batch", "the class token of every image", 3, lambda d: _tokens(d, 3, 7, 5)),
    Case("as many tokens as features", "token 0 is taken, not feature 0", 2, lambda d: _tokens(d, 2, 6, 6)),
    Case("as many images as tokens", "token 0 is taken, not image 0", 1, lambda d: _tokens(d, 5, 5, 3)),
    Case("patches full of large numbers", "the patches have no part in the result", 1, _large_patches),
    Case("one image", "a batch of one stays a batch", 1, lambda d: _tokens(d, 1, 5, 4)),
    Case("time before batch in memory", "what counts is the shape, not how the numbers lie in memory", 1,
         lambda d: {"tokens": d.normal(8, 3, 2).transpose(0, 1)}),
    Case("gradients, and tokens are kept", "gradients flow to the class token; nothing is written to", 1,
         lambda d: _tokens(d, 4, 3, 6), gradients_of=("tokens",), repeat=True, keeps_inputs=True),
    Case("double precision", "works in float64", 0, lambda d: in_double(_tokens(d, 2, 3, 4)), note=DOUBLE_NOTE),
)  # fmt: skip


def _finished(*ways) -> tuple[Steps, ...]:
    return tuple({"finish": way} for way in ways)


def _taken(*ways) -> tuple[Steps, ...]:
    return tuple({"take": way} for way in ways)


def _assemble(s):
    return lambda tokens: s.finish(s.take(tokens))


RIGHT = {"take": lambda tokens: tokens[:, 0], "finish": lambda taken: taken}
CLASS_TOKEN = "the class token is token 0, and it alone stands for the image."

MISCONCEPTIONS = (
    Misconception(
        "vpool_last",
        "The last token is taken, which is a patch.",
        ("Where does the class token stand?", "In a language model the last word has seen all; here it is the class "
         "token.", "tokens[:, 0]"),
        _taken(lambda tokens: tokens[:, -1]),
        convention=CLASS_TOKEN,
    ),
    Misconception(
        "vpool_first_patch",
        "Token 1 is taken, which is the first patch.",
        ("Which number does the first token have?", "Counting starts at 0.", "tokens[:, 0]"),
        _taken(lambda tokens: tokens[:, 1]),
    ),
    Misconception(
        "vpool_mean_all",
        "All tokens are averaged, the class token with the patches.",
        ("Which token was put there to stand for the image?", "Look for mean.", "tokens[:, 0]"),
        _taken(lambda tokens: tokens.mean(1)),
        convention=CLASS_TOKEN,
    ),
    Misconception(
        "vpool_mean_patches",
        "The patches are averaged, and the class token is left out.",
        ("Which token was put there to stand for the image?", "Look for mean.", "tokens[:, 0]"),
        _taken(lambda tokens: tokens[:, 1:].mean(1), lambda tokens: tokens[:, :-1].mean(1)),
        convention=CLASS_TOKEN,
    ),
    Misconception(
        "vpool_max",
        "The largest number of all tokens is taken, feature by feature.",
        ("Which token was put there to stand for the image?", "Look for max.", "tokens[:, 0]"),
        _taken(lambda tokens: tokens.amax(1), lambda tokens: tokens[:, 1:].amax(1), lambda tokens: tokens.max(1)),
        convention=CLASS_TOKEN,
    ),
    Misconception(
        "vpool_sum",
        "The tokens are added up.",
        ("Which token was put there to stand for the image?", "Look for sum.", "tokens[:, 0]"),
        _taken(lambda tokens: tokens.sum(1), lambda tokens: tokens[:, 1:].sum(1)),
        convention=CLASS_TOKEN,
    ),
    Misconception(
        "vpool_class_and_mean",
        "The class token is taken together with a mean over tokens.",
        ("Which part of your result comes from the patches?", "Look for mean and cat.", "tokens[:, 0]"),
        _taken(lambda tokens: tokens[:, 0] + tokens[:, 1:].mean(1), lambda tokens: tokens[:, 0] + tokens.mean(1),
               lambda tokens: torch.cat([tokens[:, 0], tokens[:, 1:].mean(1)], dim=-1),
               lambda tokens: (tokens[:, 0] + tokens[:, 1:].mean(1)) / 2),
        convention=CLASS_TOKEN,
    ),
    Misconception(
        "vpool_feature",
        "The first feature of every token is taken instead of all features of the first token.",
        ("Which axis counts tokens?", "tokens is (B, 1+N, d), the result is (B, d).", "tokens[:, 0]"),
        _taken(lambda tokens: tokens[:, :, 0]),
    ),
    Misconception(
        "vpool_wrong_axis",
        "The numbers are put together along the features or the batch, where a token was asked for.",
        ("Which axis counts tokens?", "tokens is (B, 1+N, d), the result is (B, d).", "tokens[:, 0]"),
        _taken(lambda tokens: tokens.mean(-1), lambda tokens: tokens.mean(0), lambda tokens: tokens.amax(-1)),
    ),
    Misconception(
        "vpool_first_image",
        "The first image is taken, not the first token of every image.",
        ("Which axis is the batch?", "tokens is (B, 1+N, d), the result is (B, d).", "tokens[:, 0]"),
        _taken(lambda tokens: tokens[0], lambda tokens: tokens[0, 0], lambda tokens: tokens[:1, 0],
               lambda tokens: tokens[0, 0].expand(len(tokens), -1)),
    ),
    Misconception(
        "vpool_keeps_axis",
        "The result keeps an axis of one token.",
        ("How many axes has the result?", "A slice keeps its axis, a number removes it.",
         "tokens[:, 0], not tokens[:, :1]"),
        _finished(lambda taken: taken.unsqueeze(1), lambda taken: taken.unsqueeze(-1), lambda taken: taken[None]),
        convention="the result is (B, d).",
    ),
    Misconception(
        "vpool_squeezed",
        "squeeze without an axis also removes the batch where it holds one image.",
        ("What is the shape of your result for a batch of one?", "squeeze() removes every axis of size 1.",
         "tokens[:, 0], or squeeze(1)"),
        _finished(lambda taken: taken.squeeze()),
    ),
    Misconception(
        "vpool_drops_class",
        "The class token is removed, and the patches are what is left.",
        ("Which token was put there to stand for the image?", "1: is everything but the first.", "tokens[:, 0]"),
        _taken(lambda tokens: tokens[:, 1:], lambda tokens: tokens[:, 1:].flatten(1)),
        convention=CLASS_TOKEN,
    ),
    Misconception(
        "vpool_all_tokens",
        "All tokens come back: nothing was pooled.",
        ("How many tokens has the result?", "Compare the shapes of tokens and of your result.", "tokens[:, 0]"),
        _taken(lambda tokens: tokens.clone(), lambda tokens: tokens.flatten(1)),
    ),
    Misconception(
        "vpool_normalised",
        "The class token is changed on its way: normalised, or squashed.",
        ("Which layer does that in the model?", "Look for normalize, layer_norm, tanh or softmax.", "tokens[:, 0]"),
        _finished(lambda taken: F.layer_norm(taken, taken.shape[-1:]), lambda taken: F.normalize(taken, dim=-1),
                  lambda taken: taken.tanh(), lambda taken: taken.softmax(-1)),
        convention="the class token is taken as it is.",
    ),
    Misconception(
        "vpool_detached",
        "The class token is cut off from the graph: nothing before it would learn.",
        ("What does the model learn from the result?", "Look for detach, .data or no_grad.", "tokens[:, 0]"),
        _finished(lambda taken: taken.detach()),
    ),
)  # fmt: skip

VIT_POOL = Exercise(
    name="vit_pool",
    notebook="07",
    reference=reference.vit_pool,
    outputs=(Output("pooled", ("batch", "feature")),),
    cases=CASES,
    recipe=Recipe(_assemble, RIGHT),
    misconceptions=MISCONCEPTIONS,
    hints=(
        "Which of the tokens was put there to stand for the whole image?",
        "tokens is (B, 1+N, d), the result is (B, d): one axis disappears. Which one, and by which index?",
        "tokens[:, 0]",
    ),
)
