"""Misconceptions of `ViTEmbedding` about what forward does with patches, class token and positions."""

import math

import torch
import torch.nn.functional as F

from course_utils.checks import vit_embedding_symptoms as symptoms
from course_utils.checks.model import Misconception, Steps
from course_utils.checks.patches_mistakes import MISCONCEPTIONS as OF_PATCHIFY
from course_utils.checks.shared import dropout_always
from course_utils.checks.vit_embedding_recipe import PATCHIFY, far, table
from course_utils.checks.vit_embedding_weights import CAT_LINE, WEIGHTS

FIRST = "the class token comes first, and each of the 1 + N tokens gets a position of its own."
ROWS = "row 0 of pos_embed belongs to the class token, the rows 1 to N to the patches."


def _join(*ways) -> tuple[Steps, ...]:
    return tuple({"join": way} for way in ways)


def _finished(*ways) -> tuple[Steps, ...]:
    return tuple({"finish": way} for way in ways)


def _cat(cls, x):
    return torch.cat([cls, x], dim=1)


def _projected(change):
    return {"project": lambda module, patches: change(module.proj(patches))}


def _norm(x):
    return F.layer_norm(x, x.shape[-1:])


# Those that the projection takes, and each in its usual ways: a check must not take long.
_OTHER_PATCHES = tuple(
    {"cut": PATCHIFY.make(m.variants[number])}
    for m in OF_PATCHIFY
    for number in {"patch_view": (0, 6), "patch_dilated": (0, 1), "patch_hw_swapped": (0, 1),
                   "patch_column_major": (0,), "patch_order_reversed": (0, 2), "patch_channel_last": (0,),
                   "patch_transposed_inside": (0,), "patch_unfold_mixes_channels": (0,), "patch_axes_confused": (0,),
                   "patch_unfold_not_transposed": (1,), "patch_batch_mixed": (0,)}.get(m.id, ())
)  # fmt: skip

MISCONCEPTIONS = (
    *WEIGHTS,
    Misconception(
        "vit_pos_before_cls",
        "The positions are added before the class token is attached, so that the class token gets none.",
        ("How many tokens are there when the positions are added?", "First attach, then add.", CAT_LINE),
        (*_join(lambda cls, x, rows: _cat(cls, x + rows[:, 1:]), lambda cls, x, rows: _cat(cls, x + rows[:, :-1])),
         {"table": table(lambda patches: patches, start=far),
          "join": lambda cls, x, rows: _cat(cls, x + rows)}),
        convention=FIRST,
        symptom=symptoms.adds_n_rows,
    ),
    Misconception(
        "vit_pos_shifted",
        "The rows of the position table are shifted: the class token gets a row that belongs to a patch.",
        ("Which row belongs to the class token?", "Look at the slices of your table.", CAT_LINE),
        _join(lambda cls, x, rows: _cat(cls, x) + rows.roll(-1, 1),
              lambda cls, x, rows: _cat(cls, x) + rows.roll(1, 1)),
        convention=ROWS,
    ),
    Misconception(
        "vit_pos_reversed",
        "The rows of the position table are used in reverse: the last row goes to the first token.",
        ("Which row belongs to the class token, and which to the last patch?", "Look for flip and for [::-1].",
         CAT_LINE),
        _join(lambda cls, x, rows: _cat(cls, x) + rows.flip(1),
              lambda cls, x, rows: _cat(cls, x) + _cat(rows[:, :1], rows[:, 1:].flip(1))),
        convention=ROWS,
    ),
    Misconception(
        "vit_pos_multiplied",
        "The positions multiply the tokens, or are subtracted, instead of being added.",
        ("With patches and a class token of zero, what must the output be?",
         "Look at the operator in front of the positions.", "+ self.pos_embed"),
        _join(lambda cls, x, rows: _cat(cls, x) * rows, lambda cls, x, rows: _cat(cls, x) - rows,
              lambda cls, x, rows: _cat(cls, x) * (1 + rows)),
    ),
    Misconception(
        "vit_pos_twice",
        "The positions are added twice to some tokens.",
        ("How often does forward add pos_embed?", "Patches get their row once, and so does the class token.", CAT_LINE),
        _join(lambda cls, x, rows: _cat(cls, x) + 2 * rows, lambda cls, x, rows: _cat(cls, x + rows[:, 1:]) + rows),
    ),
    Misconception(
        "vit_pos_concatenated",
        "The positions are appended to the tokens, which makes them longer.",
        ("How many features must a token have?", "Print the shape of your result.", "Add, do not append."),
        _join(lambda cls, x, rows: torch.cat([_cat(cls, x), rows.expand(len(x), -1, -1)], dim=-1)),
    ),
    Misconception(
        "vit_cls_last",
        "The class token is put behind the patches.",
        ("Which token will be read at the end of the model?", "Look at the order in your cat.", CAT_LINE),
        _join(lambda cls, x, rows: torch.cat([x, cls], dim=1) + rows,
              lambda cls, x, rows: torch.cat([x + rows[:, 1:], cls + rows[:, :1]], dim=1)),
        convention=FIRST,
    ),
    Misconception(
        "vit_cls_replaces_patch",
        "The class token takes the place of a patch instead of being put before the patches.",
        ("How many tokens has an image with N patches?", "Add a token, do not replace one.", CAT_LINE),
        (*_join(lambda cls, x, rows: _cat(cls, x[:, 1:]) + rows[:, : x.shape[1]],
                lambda cls, x, rows: _cat(cls, x[:, 1:]) + rows[:, 1:],
                lambda cls, x, rows: _cat(cls, x[:, :-1]) + rows[:, : x.shape[1]]),
         {"table": table(lambda patches: patches, start=far),
          "join": lambda cls, x, rows: _cat(cls, x[:, 1:]) + rows}),
        convention="1 + N tokens come out, the class token first.",
        symptom=lambda got, want: symptoms.has_n_tokens(got, want) and symptoms.starts_alike(got),
    ),
    Misconception(
        "vit_cls_added",
        "The class token is added to the patches; it should be a token of its own.",
        ("How many tokens has an image with N patches?", "Look for + between cls_token and the patches.", CAT_LINE),
        _join(lambda cls, x, rows: x + cls + rows[:, 1:], lambda cls, x, rows: x + cls + rows[:, :-1],
              lambda cls, x, rows: _cat(cls, x + cls) + rows),
        symptom=lambda got, want: symptoms.has_n_tokens(got, want) and not symptoms.starts_alike(got)
        and got.gradients.get("cls_token") is not None,
    ),
    Misconception(
        "vit_cls_not_expanded",
        "There is one class token and a batch of images: cat does not copy it to every image.",
        ("How many images are in the batch, and how many class tokens in your cat?",
         "cat does not broadcast.", "self.cls_token.expand(len(x), -1, -1)"),
        ({"every": lambda module, x: module.cls_token},),
    ),
    Misconception(
        "vit_wrong_patches",
        "The patches that go into the projection are not those of patchify.",
        ("Does your patchify pass its own check?", "Compare what goes into proj with patchify, on an image of 4 x 6.",
         "cut = use(patchify), before the class; patches = cut(images, self.patch)"),
        _OTHER_PATCHES,
        convention="patches go row by row, each flattened as (channel, row, column).",
    ),
    Misconception(
        "vit_batch_averaged",
        "The images of a batch are mixed: every patch becomes the mean over all images.",
        ("Does a token of image 0 change when image 1 changes?", "Look for a mean or a norm over axis 0.",
         "Patches stay with their image; only the class token and the positions are shared."),
        (_projected(lambda x: x.mean(0, keepdim=True).expand_as(x)),
         _projected(lambda x: (x - x.mean(0)) / (x.var(0, unbiased=False) + 1e-5).sqrt()),
         *_finished(lambda result: result.mean(0, keepdim=True).expand_as(result))),
    ),
    Misconception(
        "vit_features_not_last",
        "(batch, feature, patch) is read anew as (batch, patch, feature): a token has pieces of several patches.",
        ("Which axis of a convolution's result holds the features?", "reshape only reads memory anew.",
         "conv(images).flatten(2).transpose(1, 2)"),
        (_projected(lambda x: x.transpose(1, 2).reshape(x.shape)), _projected(lambda x: x.transpose(1, 2))),
    ),
    Misconception(
        "vit_scaled",
        "The tokens are scaled with the root of d_model, as word vectors are.",
        ("Which formula has a root?", "Look for sqrt.", CAT_LINE),
        _join(lambda cls, x, rows: _cat(cls, x * math.sqrt(x.shape[-1])) + rows,
              lambda cls, x, rows: _cat(cls, x) * math.sqrt(x.shape[-1]) + rows,
              lambda cls, x, rows: _cat(cls, x / math.sqrt(x.shape[-1])) + rows),
        convention="the tokens of an image are not scaled.",
    ),
    Misconception(
        "vit_extra_step",
        "There is a step too many: an activation or a normalisation, before or after the positions.",
        ("What comes between the projection and the positions?", "Look for relu, gelu, tanh and LayerNorm.", CAT_LINE),
        (*(_projected(change) for change in (F.relu, F.gelu, torch.tanh, _norm)),
         *_finished(_norm, F.relu, F.gelu, torch.tanh)),
        convention="a linear projection, class token and positions, nothing else.",
    ),
    Misconception(
        "vit_detached",
        "Something is cut off from the graph, so that it never learns.",
        ("Do proj, cls_token and pos_embed get gradients?", "Look for detach, .data, no_grad and torch.tensor(...).",
         "Use the parameters as they are."),
        ({"every": lambda module, x: module.cls_token.detach().expand(len(x), -1, -1)},
         {"rows": lambda module: module.pos_embed.detach()},
         {"rows": lambda module: _cat(module.pos_embed[:, :1].detach(), module.pos_embed[:, 1:])},
         {"rows": lambda module: _cat(module.pos_embed[:, :1], module.pos_embed[:, 1:].detach())},
         _projected(lambda x: x.detach()),
         *_finished(lambda result: result.detach())),
    ),
    dropout_always("vit_dropout_always", "Dropout is always on: two calls with the same images differ.", "finish"),
    Misconception(
        "vit_token_axis_first",
        "The batch does not come first in the result.",
        ("Which axis is the batch?", "Print the shape of your result.", "(B, 1 + N, d_model)"),
        _finished(lambda result: result.transpose(0, 1), lambda result: result.transpose(1, 2)),
        convention="the result is (batch, token, feature).",
    ),
)  # fmt: skip
