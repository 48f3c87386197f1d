"""The experiments of the lessons, each one function: notebooks run one seed, course_utils.measured runs them all.

Every function seeds what it makes itself, so that a cell gives the same numbers however often it runs.
"""

from .cost import HeadsInALoop, generate_greedily, head_focus, median_seconds, peak_bytes, without_head
from .distance import LAYERS, exponent, influence, layer_seconds, longest_chain, recall_accuracy
from .lookup import LookupStart, dead_share, lookup_curve, lookup_start, moving_mean, steps_to
from .roles import role_accuracy, role_batches, train_role_reader
from .text import loss_by_position, train_language_model
from .translation import copy_capacity, half_length, train_translator

__all__ = [
    "LAYERS",
    "HeadsInALoop",
    "LookupStart",
    "copy_capacity",
    "dead_share",
    "exponent",
    "generate_greedily",
    "half_length",
    "head_focus",
    "influence",
    "layer_seconds",
    "longest_chain",
    "lookup_curve",
    "lookup_start",
    "loss_by_position",
    "median_seconds",
    "moving_mean",
    "peak_bytes",
    "recall_accuracy",
    "role_accuracy",
    "role_batches",
    "steps_to",
    "train_language_model",
    "train_role_reader",
    "train_translator",
    "without_head",
]
