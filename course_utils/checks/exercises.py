"""The registry: every exercise of the course by name, in the order of the notebooks."""

from course_utils.checks import (
    additive,
    decoder,
    decoding,
    dot_product,
    encoder,
    gated,
    loss,
    recurrent,
    teacher_forcing,
)
from course_utils.checks.model import Exercise

_ALL: tuple[Exercise, ...] = (
    recurrent.RNN_STEP,
    gated.GRU_STEP,
    encoder.SEQ2SEQ_ENCODE,
    teacher_forcing.SHIFT_RIGHT,
    loss.LM_LOSS,
    decoding.GREEDY_DECODE,
    additive.ADDITIVE_ATTENTION,
    decoder.DECODE_STEP,
    dot_product.SCALED_DOT_PRODUCT_ATTENTION,
)

EXERCISES: dict[str, Exercise] = {exercise.name: exercise for exercise in _ALL}
