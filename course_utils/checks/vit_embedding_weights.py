"""Misconceptions of `ViTEmbedding` about what it holds: sizes, and what is trained."""

import torch
from torch import nn

from course_utils.checks import vit_embedding_symptoms as symptoms
from course_utils.checks.model import Misconception, Steps
from course_utils.checks.patches_recipe import accept
from course_utils.checks.shared import no_super
from course_utils.checks.vit_embedding_recipe import PATCHIFY, far, table, token

PARAMETERS_LINE = (
    "self.cls_token = nn.Parameter(torch.zeros(1, 1, d_model)) and "
    "self.pos_embed = nn.Parameter(torch.zeros(1, 1 + N, d_model))"
)
CAT_LINE = "torch.cat([self.cls_token.expand(len(x), -1, -1), x], dim=1) + self.pos_embed"
SIZE = "img_size is a number, for square images, or (height, width)."


_OVERLAPPING = {"refuse": accept, "cut": lambda images, p: images.unfold(2, p, 1).unfold(3, p, 1)}


def _fixed(tensor):
    return nn.Parameter(tensor, requires_grad=False)


def _nothing(module, *sizes):
    """Not held at all."""


def _buffer(name: str, make):
    def hold(module, *sizes):
        make(module, *sizes)
        tensor = getattr(module, name)
        delattr(module, name)
        module.register_buffer(name, tensor)

    return hold


def _linear(numbers, bias=True):
    def hold(module, in_ch, patch, d_model):
        module.proj = nn.Linear(numbers(in_ch, patch), d_model, bias=bias)

    return hold


def _of_channels(module, patches):
    return module.proj(patches.unflatten(-1, (-1, module.proj.in_features)))


def _plain(tensor):
    return tensor


def _rows(*counts) -> tuple[Steps, ...]:
    return tuple({"table": table(count, start=far)} for count in counts)


def _drawn(draw):
    return {"every": lambda module, x: draw(len(x), 1, x.shape[-1])}


WEIGHTS = (
    no_super("vit_no_super"),
    Misconception(
        "vit_square_only",
        "Only square images were thought of: one side decides how many patches there are.",
        ("How many patches of 2 x 2 has an image of 4 x 6?", "Try img_size=(4, 6).",
         "N = (height // patch) * (width // patch)"),
        ({"count": lambda height, width, patch: (height // patch) ** 2},
         {"count": lambda height, width, patch: (width // patch) ** 2},
         {"size": lambda img_size: (img_size, img_size)}),
        convention=SIZE,
        symptom=symptoms.thinks_of_squares,
    ),
    Misconception(
        "vit_size_needs_two",
        "img_size is always taken apart into height and width; a single number cannot be.",
        ("What should img_size=6 mean?", "Try img_size=6.",
         "height, width = (img_size, img_size) if isinstance(img_size, int) else img_size"),
        ({"size": tuple}, {"size": lambda img_size: (img_size[0], img_size[1])}),
        convention=SIZE,
        symptom=symptoms.needs_two_sizes,
    ),
    Misconception(
        "vit_pos_one_vector",
        "There is one position vector for all places, so that it tells no place from another.",
        ("How many places are there, and how many rows has your table?", "Print the shape of pos_embed.",
         "self.pos_embed = nn.Parameter(torch.zeros(1, 1 + N, d_model))"),
        (*_rows(lambda patches: 1), {"table": table(lambda patches: 1, batch=4, start=far)},
         {"rows": lambda module: module.pos_embed[:, :1]}, {"rows": lambda module: module.pos_embed[:, -1:]}),
        convention="pos_embed is (1, 1 + N, d_model).",
        symptom=symptoms.has_one_row,
    ),
    Misconception(
        "vit_batch_sized_params",
        "The class token or the table of positions has an axis as long as a batch.",
        ("What happens with a batch of another size? And are the images of a batch to have different class tokens?",
         "Print the shapes of cls_token and pos_embed.", PARAMETERS_LINE),
        ({"token": token(32, 1, start=far), "every": lambda module, x: module.cls_token},
         {"table": table(batch=32, start=far)},
         {"token": token(32, 1, start=far), "every": lambda module, x: module.cls_token,
          "table": table(batch=32, start=far)}),
        convention="weights do not depend on the size of a batch: (1, 1, d_model) and (1, 1 + N, d_model).",
        symptom=symptoms.is_for_a_batch,
    ),
    Misconception(
        "vit_pos_not_as_many",
        "There are not as many rows of positions as tokens: N patches and the class token need 1 + N rows.",
        ("How many tokens are there after the class token was attached?",
         "Print the shapes of x and of pos_embed. Patches do not overlap.",
         "self.pos_embed = nn.Parameter(torch.zeros(1, 1 + N, d_model)); a convolution needs stride=patch"),
        (*_rows(lambda patches: patches), {"cut": PATCHIFY.make(_OVERLAPPING)}),
        symptom=lambda got, want: got.error is not None and symptoms.has_n_rows(got, want),
    ),
    Misconception(
        "vit_proj_no_bias",
        "The projection has no bias.",
        ("What does nn.Linear hold besides its weight?", "Look for bias=False.",
         "nn.Linear(in_ch * patch * patch, d_model)"),
        ({"projection": _linear(lambda in_ch, patch: in_ch * patch * patch, bias=False)},),
        convention="proj is nn.Linear with bias.",
        symptom=lambda got, want: got.inside is not None and got.inside.missing == ("proj.bias",),
    ),
    Misconception(
        "vit_proj_per_channel",
        "Every channel is projected by itself; a patch with all its channels is one vector.",
        ("How many numbers has a patch of a colour image?", "Print the shape of what goes into proj.",
         "nn.Linear(in_ch * patch * patch, d_model)"),
        ({"projection": _linear(lambda in_ch, patch: patch * patch),
          "project": lambda module, patches: _of_channels(module, patches).sum(2)},
         {"projection": _linear(lambda in_ch, patch: patch * patch),
          "project": lambda module, patches: _of_channels(module, patches).mean(2)}),
        symptom=symptoms.projects_per_channel,
    ),
    Misconception(
        "vit_proj_size",
        "The projection and what goes into it do not fit: it takes the C · p · p numbers of a flattened patch.",
        ("How many numbers has a patch of a colour image?", "Print the shape of what goes into proj: (B, N, C·p·p).",
         "nn.Linear(in_ch * patch * patch, d_model); after F.unfold, .transpose(1, 2)"),
        (*({"projection": _linear(numbers)} for numbers in (
            lambda in_ch, patch: patch * patch, lambda in_ch, patch: in_ch, lambda in_ch, patch: in_ch * patch)),
         {"project": lambda module, patches: module.proj(patches.transpose(1, 2))},
         {"project": lambda module, patches: module.proj(patches.unflatten(2, (-1, module.patch, module.patch)))}),
        symptom=symptoms.has_another_projection,
    ),
    Misconception(
        "vit_cls_random",
        "A new class token is drawn at every call; it should be learned.",
        ("Do two calls with the same images agree?", "Look for randn in forward.",
         "self.cls_token = nn.Parameter(torch.zeros(1, 1, d_model)), in __init__"),
        (_drawn(torch.randn), _drawn(torch.rand),
         {"every": lambda module, x: torch.randn(1, 1, x.shape[-1]).expand(len(x), -1, -1)},
         {"token": _nothing} | _drawn(torch.randn)),
        symptom=symptoms.draws_class_token,
    ),
    Misconception(
        "vit_cls_not_parameter",
        "The class token is an ordinary tensor: no optimizer ever sees it, and it stays as it is.",
        ("What does list(module.named_parameters()) show?", "Look for the line that makes the class token.",
         "self.cls_token = nn.Parameter(torch.zeros(1, 1, d_model)), in __init__"),
        ({"token": token(keep=_plain)}, {"token": _buffer("cls_token", token(keep=_plain))},
         {"token": token(keep=_fixed)},
         {"token": _nothing, "table": table(start=far),
          "every": lambda module, x: torch.zeros(len(x), 1, x.shape[-1])},
         {"every": lambda module, x: torch.zeros(len(x), 1, x.shape[-1])},
         {"every": lambda module, x: torch.ones(len(x), 1, x.shape[-1])}),
        symptom=symptoms.holds_no_class_token,
    ),
    Misconception(
        "vit_pos_not_learned",
        "The positions are fixed: a buffer, an ordinary tensor, or a table of sinusoids.",
        ("Which numbers should the optimizer change?", "What does list(module.named_parameters()) show?",
         "self.pos_embed = nn.Parameter(torch.zeros(1, 1 + N, d_model))"),
        ({"table": _buffer("pos_embed", table(keep=_plain))}, {"table": table(keep=_plain)},
         {"table": table(keep=_fixed)}),
        convention="the positions of images are learned.",
        symptom=symptoms.does_not_train_table,
    ),
    Misconception(
        "vit_no_pos",
        "The positions are never added: the model cannot tell where in the image a patch was.",
        ("How does the model know where a patch was?", "Where in forward is pos_embed used?", CAT_LINE),
        ({"join": lambda cls, x, rows: torch.cat([cls, x], dim=1)},
         {"table": _nothing, "rows": lambda module: 0.0, "token": token(start=far)}),
        symptom=symptoms.has_no_places,
    ),
    Misconception(
        "vit_no_cls",
        "There is no class token: the patches are all that comes out.",
        ("How many tokens has an image with N patches?", "Where in forward is cls_token used?", CAT_LINE),
        ({"join": lambda cls, x, rows: x + rows[:, 1:]}, {"join": lambda cls, x, rows: x + rows[:, :-1]},
         {"token": _nothing, "every": lambda module, x: None, "table": table(lambda patches: patches, start=far),
          "join": lambda cls, x, rows: x + rows}),
        convention="1 + N tokens come out, the class token first.",
        symptom=symptoms.lost_class_token,
    ),
)  # fmt: skip
