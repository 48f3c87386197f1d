"""The registry: every exercise of the course by name, in the order of the notebooks."""

from course_utils.checks import (
    additive,
    decoder,
    decoder_mask,
    decoding,
    dot_product,
    embedding,
    encoder,
    gated,
    loss,
    masks,
    multihead,
    pooling,
    recurrent,
    rope,
    sampling,
    self_attention,
    sinusoids,
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
    self_attention.SELF_ATTENTION,
    sinusoids.SINUSOIDAL_POSITIONS,
    rope.APPLY_ROPE,
    embedding.TOKEN_EMBEDDING,
    masks.CAUSAL_MASK,
    masks.PADDING_MASK,
    decoder_mask.DECODER_MASK,
    pooling.MEAN_POOL,
    sampling.GENERATE,
    multihead.MULTI_HEAD_ATTENTION,
)

EXERCISES: dict[str, Exercise] = {exercise.name: exercise for exercise in _ALL}
