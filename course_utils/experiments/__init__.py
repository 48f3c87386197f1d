"""The experiments of the lessons, each one function: notebooks run one seed, course_utils.measured runs them all.

Every function seeds what it makes itself, so that a cell gives the same numbers however often it runs.
"""

from .attention_maps import adopt, showing_weights, torch_encoder_layer, translator_maps
from .blocks import BLOCKS, expert_load, held_out_nats, train_blocks
from .cost import (
    HeadsInALoop,
    generate_greedily,
    head_focus,
    median_seconds,
    peak_bytes,
    role_loss,
    without_head,
)
from .depth import VARIANTS, deep_model, frequency_nats, gradient_norms, likeness, stream_gradients, train_deep
from .distance import LAYERS, exponent, influence, layer_seconds, longest_chain, recall_accuracy
from .images import (
    accuracy_without,
    correlation,
    grid_distance,
    image_accuracy,
    ink,
    looking_distance,
    patch_maps,
    position_likeness,
    readable_vit,
    shuffle_patches,
    shuffled_patches,
    train_image_classifier,
)
from .lookup import LookupStart, dead_share, lookup_curve, lookup_start, moving_mean, steps_to
from .roles import role_accuracy, role_batches, train_role_reader
from .text import loss_by_position, train_language_model
from .translation import copy_capacity, encoder_block, half_length, train_translator

__all__ = [
    "BLOCKS",
    "LAYERS",
    "VARIANTS",
    "HeadsInALoop",
    "LookupStart",
    "accuracy_without",
    "adopt",
    "copy_capacity",
    "correlation",
    "dead_share",
    "deep_model",
    "encoder_block",
    "expert_load",
    "exponent",
    "frequency_nats",
    "generate_greedily",
    "gradient_norms",
    "grid_distance",
    "half_length",
    "head_focus",
    "held_out_nats",
    "image_accuracy",
    "influence",
    "ink",
    "layer_seconds",
    "likeness",
    "longest_chain",
    "looking_distance",
    "lookup_curve",
    "lookup_start",
    "loss_by_position",
    "median_seconds",
    "moving_mean",
    "patch_maps",
    "peak_bytes",
    "position_likeness",
    "readable_vit",
    "recall_accuracy",
    "role_accuracy",
    "role_batches",
    "role_loss",
    "showing_weights",
    "shuffle_patches",
    "shuffled_patches",
    "steps_to",
    "stream_gradients",
    "torch_encoder_layer",
    "train_blocks",
    "train_deep",
    "train_image_classifier",
    "train_language_model",
    "train_role_reader",
    "train_translator",
    "translator_maps",
    "without_head",
]
