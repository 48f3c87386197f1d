"""The catalogue and the cases are well formed: ids, hints, points, and inputs that can tell right from wrong."""

from itertools import chain

import pytest
import torch

from course_utils.checks import EXERCISES
from course_utils.checks.bench import bench
from course_utils.checks.values import leaves

ALL = EXERCISES.values()
each_exercise = pytest.mark.parametrize("exercise", ALL, ids=list(EXERCISES))


def test_ids_are_unique():
    ids = [m.id for exercise in ALL for m in exercise.misconceptions]
    assert len(ids) == len(set(ids))


@each_exercise
def test_every_misconception_has_a_sentence_three_hints_and_runs(exercise):
    for misconception in exercise.misconceptions:
        assert misconception.says.endswith("."), misconception.id
        assert len(misconception.hints) == 3, misconception.id
        assert all(hint.strip() for hint in misconception.hints), misconception.id
        assert misconception.variants, misconception.id


@each_exercise
def test_cases_share_ten_points(exercise):
    assert exercise.max_points == 10
    assert len(exercise.hints) == 3
    assert len({case.name for case in exercise.cases}) == len(exercise.cases)
    assert all(case.note for case in exercise.cases if not case.points)
    assert exercise.cases[0].points > 0


@each_exercise
def test_a_case_is_the_same_for_the_same_seed_and_another_for_another(exercise):
    differs = False
    for case in exercise.cases:
        first, second, other = case.call(5), case.call(5), case.call(6)
        for a, b, c in zip(*map(_drawn, (first, second, other)), strict=True):
            assert torch.equal(a.nan_to_num(), b.nan_to_num())  # padding may hold NaN
            differs = differs or not torch.equal(a, c)
    assert differs


def _drawn(call):
    """Everything that a case draws: tensors, whole numbers, the weights of a module, and what a probe needs."""
    numbers = [torch.tensor(v) for v in call.arguments.values() if type(v) is int]
    weights = [] if call.construction is None else list(call.construction.weights.values())
    probed = {} if call.probe is None else call.probe.params
    return [tensor for _, tensor in leaves(call.arguments | probed)] + numbers + weights


@each_exercise
def test_arguments_are_kept_and_calls_repeat_in_some_case(exercise):
    counted = [case for case in exercise.cases if case.points]
    assert any(case.keeps_inputs for case in counted)
    assert any(case.repeat for case in counted)


@each_exercise
def test_the_reference_is_finite_everywhere(exercise):
    for case, outcome in zip(exercise.cases, bench(exercise, 0).wanted, strict=True):
        assert (outcome.error is not None) == case.must_raise
        if case.must_raise:
            continue
        assert outcome.gradient_error is None
        values = outcome.value if isinstance(outcome.value, tuple) else (outcome.value,)
        gradients = [g for g in outcome.gradients.values() if g is not None]
        assert all(t.isfinite().all() for t in chain(values, gradients))


@pytest.mark.parametrize("seed", range(8))
def test_masks_hide_and_show_a_key_in_every_row_where_values_count(seed):
    for exercise in ALL:
        for case in exercise.cases:
            arguments = case.call(seed).arguments
            mask = arguments.get("mask", arguments.get("enc_mask"))
            if mask is not None and case.loose is None:
                assert mask.any(-1).all(), f"{exercise.name}: {case.name}"


@pytest.mark.parametrize("seed", range(8))
def test_low_scores_are_low(seed):
    """The case exists to tell a hidden score of -10 or 0 from minus infinity: visible scores must lie far below."""
    for case in EXERCISES["scaled_dot_product_attention"].cases:
        if case.name == "low scores":
            a = case.call(seed).arguments
            scores = a["q"] @ a["k"].transpose(-2, -1) / a["q"].shape[-1] ** 0.5
            assert (scores[a["mask"].expand_as(scores)] < -25).all()
    for case in EXERCISES["additive_attention"].cases:
        if case.name == "low scores":
            a = case.call(seed).arguments
            scores = torch.tanh((a["query"] @ a["W_q"]).unsqueeze(1) + a["keys"] @ a["W_k"]) @ a["v"]
            assert (scores[a["mask"]] < -25).all()


@pytest.mark.parametrize("seed", range(8))
def test_large_numbers_overflow_a_tanh_written_by_hand(seed):
    (case,) = [c for c in EXERCISES["rnn_step"].cases if c.name == "large numbers"]
    a = case.call(seed).arguments
    inner = a["x"] @ a["W_xh"] + a["h"] @ a["W_hh"] + a["b"]
    assert inner.max() >= 100
    assert inner.min() <= -100


@pytest.mark.parametrize("seed", range(8))
def test_rows_end_together_where_they_should(seed):
    """The only case that tells a loop that stops with the last word of all rows from one that never stops."""
    exercise = EXERCISES["greedy_decode"]
    (number,) = [i for i, c in enumerate(exercise.cases) if c.name == "rows that end together"]
    at = bench(exercise, seed)
    arguments, tokens = at.calls[number].arguments, at.wanted[number].value
    ends = tokens == arguments["eos_id"]
    assert ends[:, -1].all()
    assert ends.sum() == len(ends)
    assert tokens.shape[1] < arguments["idx"].shape[1] + arguments["n"]


@pytest.mark.parametrize("seed", range(8))
def test_rows_end_at_different_steps_where_they_should(seed):
    (case,) = [c for c in EXERCISES["greedy_decode"].cases if c.name == "rows that end at different steps"]
    number = EXERCISES["greedy_decode"].cases.index(case)
    tokens = bench(EXERCISES["greedy_decode"], seed).wanted[number].value
    ends = (tokens == bench(EXERCISES["greedy_decode"], seed).calls[number].arguments["eos_id"]).int().argmax(1)
    assert len(set(ends.tolist())) == len(ends)


@pytest.mark.parametrize("seed", range(8))
def test_low_scores_of_the_heads_are_low_and_the_hidden_ones_are_high(seed):
    (case,) = [c for c in EXERCISES["MultiHeadAttention"].cases if "low scores" in c.name]
    call = case.call(seed)
    module = EXERCISES["MultiHeadAttention"].reference(**call.construction.arguments)
    module.load_state_dict(call.construction.weights)
    q, k = module.split(module.W_q(call.arguments["x_q"])), module.split(module.W_k(call.arguments["x_kv"]))
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    seen = call.arguments["mask"].expand_as(scores)
    assert (scores[seen] < -20).all()
    assert (scores[~seen] > 0).all()


@pytest.mark.parametrize("exercise", [e for e in ALL if e.is_class], ids=lambda e: e.name)
def test_every_weight_of_a_module_is_random(exercise):
    """Fresh zeros and ones hide mistakes."""
    for case in exercise.cases:
        for name, weight in case.call(0).construction.weights.items():
            assert weight.unique().numel() > 1 or weight.numel() == 1, f"{case.name}: {name}"


@pytest.mark.parametrize("exercise", [e for e in ALL if e.is_class], ids=lambda e: e.name)
def test_properties_share_ten_points_too(exercise):
    assert exercise.by_properties.max_points == 10
    assert any(case.keeps_inputs and case.repeat for case in exercise.properties)
    assert exercise.by_properties is exercise.by_properties  # benches are kept for it
