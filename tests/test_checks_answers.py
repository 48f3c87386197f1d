"""Right answers pass in every style; wrong ones are rejected, and the catalogued ones are named."""

from functools import partial

import pytest
import right_answers
import torch
import wrong_answers

from course_utils.checks import EXERCISES, check
from course_utils.checks.bench import bench

SEEDS = (0, 1, 11)
LISTED = [w for w in wrong_answers.ALL if w.misconception]
UNLISTED = [w for w in wrong_answers.ALL if not w.misconception]


def label(answer):
    what = answer.function
    named = isinstance(what, type) or (what.__name__.isidentifier() and what.__name__ != "_")
    where = what.__name__ if named else f"line{what.__code__.co_firstlineno}"
    return f"{answer.exercise}-{getattr(answer, 'misconception', None) or 'own'}-{where}"


def named(report):
    return {finding.misconception for finding in report.findings}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=list(EXERCISES))
def test_reference_earns_everything(exercise, seed):
    report = check(exercise.reference, seed=seed)
    assert (report.passed, report.points, report.max_points) == (True, 10, 10), str(report)
    assert not report.findings
    assert not report.notes


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=list(EXERCISES))
def test_recipe_without_exchanged_steps_is_right(exercise):
    report = check(exercise.recipe.make(), exercise.name)
    assert report.passed, str(report)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("answer", right_answers.ALL, ids=label)
def test_right_answer_passes_in_any_style(answer, seed):
    report = check(answer.function, answer.exercise, seed=seed)
    assert report.passed, str(report)
    assert report.points == report.max_points
    assert not report.findings


@pytest.mark.parametrize("exercise", EXERCISES)
def test_three_styles_of_every_exercise(exercise):
    assert sum(answer.exercise == exercise for answer in right_answers.ALL) >= 3


@pytest.mark.parametrize("seed", SEEDS[::2])
@pytest.mark.parametrize("answer", LISTED, ids=label)
def test_catalogued_mistake_is_rejected_and_named(answer, seed):
    report = answer.report(seed)
    assert not report.passed
    assert report.points < report.max_points
    assert answer.misconception in named(report), str(report)


@pytest.mark.parametrize("seed", SEEDS[::2])
@pytest.mark.parametrize("answer", UNLISTED, ids=label)
def test_other_mistake_is_rejected_with_a_finding(answer, seed):
    report = answer.report(seed)
    assert not report.passed
    assert report.findings


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=list(EXERCISES))
def test_every_variant_of_the_catalogue_is_rejected_and_named(exercise):
    for misconception in exercise.misconceptions:
        for number, variant in enumerate(misconception.variants):
            report = check(exercise.recipe.make(variant), exercise.name)
            assert not report.passed, f"{misconception.id}, variant {number}"
            assert misconception.id in named(report), f"{misconception.id}, variant {number}: {report}"


def test_two_mistakes_at_once_are_both_named():
    def both(q, k, v, mask=None):
        scores = q @ k.transpose(-2, -1) / q.shape[-1]
        if mask is not None:
            scores = scores * mask
        weights = scores.softmax(-1)
        return weights @ v, weights

    report = check(both, "scaled_dot_product_attention")
    assert named(report) == {"sdpa_scale_d", "sdpa_mask_multiplied"}


@pytest.mark.parametrize("name", ["gen_stops_only_together", "gen_ignores_eos", "gen_not_frozen"])
@pytest.mark.parametrize("seed", SEEDS)
def test_three_ways_to_go_on_after_the_end_are_told_apart(name, seed):
    exercise = EXERCISES["greedy_decode"]
    (mistake,) = [m for m in exercise.misconceptions if m.id == name]
    assert named(check(exercise.recipe.make(mistake.variants[0]), exercise.name, seed=seed)) == {name}


def test_mistakes_that_behave_alike_are_both_offered():
    """No input tells these two apart, so neither may be asserted alone."""
    exercise = EXERCISES["seq2seq_encode"]
    wrong = {m.id: exercise.recipe.make(m.variants[0]) for m in exercise.misconceptions}
    pair = {"enc_last_column", "enc_zeroes_state_on_pad"}
    for name in pair:
        assert named(check(wrong[name], exercise.name)) == pair


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=list(EXERCISES))
def test_answers_without_content_earn_nothing(exercise):
    wanted = [w for w, case in zip(bench(exercise, 0).wanted, exercise.cases, strict=True) if not case.must_raise]
    shapes = [tuple(o.shape for o in _tuple(w.value)) for w in wanted]
    turn = iter(range(10**6))

    def like(make):
        # The right shapes, case by case: a second call belongs to the same case.
        cases = [case for case in exercise.cases if not case.must_raise]
        calls = [n for n, case in enumerate(cases) for _ in range(_calls(case))]

        def answer(*_):
            made = tuple(make(shape) for shape in shapes[calls[next(turn) % len(calls)]])
            return made if len(made) > 1 else made[0]

        return answer

    dtype = _tuple(wanted[0].value)[0].dtype
    numbers = partial(torch.zeros, dtype=dtype)
    noise = torch.randn if dtype.is_floating_point else lambda shape: torch.randint(40, shape).remainder(6).to(dtype)
    for answer in (lambda *_: None, lambda *_: 0, lambda *args: args[0], like(numbers), like(noise)):
        report = check(_as_class(answer) if exercise.is_class else answer, exercise.name)
        assert not report.passed
        assert report.points <= 1, str(report)


def _as_class(answer):
    """A module that refuses what cannot be divided, and nothing else."""

    class Empty(torch.nn.Module):
        def __init__(self, first, second=1, third=64):
            super().__init__()
            if (first, second) == (10, 4):
                raise ValueError
            self.emb = torch.nn.Embedding(first, second)
            for name in ("W_q", "W_k", "W_v", "W_o"):
                self.add_module(name, torch.nn.Linear(first, first))

        def forward(self, *inputs):
            return answer(*inputs)

    return Empty


def _calls(case):
    return 1 + case.repeat + bool(case.gradients_of)


def _tuple(value):
    return value if isinstance(value, tuple) else (value,)


def test_an_answer_that_learns_nothing_gets_a_note_but_passes():
    def rnn_step(x, h, W_xh, W_hh, b):
        return torch.tanh(x @ W_xh.detach() + h @ W_hh.detach() + b)

    report = check(rnn_step)
    assert report.passed
    assert any("would not learn" in note for note in report.notes)


def test_a_number_that_half_precision_cannot_hold_is_a_note_only():
    def scaled_dot_product_attention(q, k, v, mask=None):
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, -1e9)
        weights = scores.softmax(-1)
        return weights @ v, weights

    report = check(scaled_dot_product_attention)
    assert report.passed
    assert report.points == 10
    assert any("half precision" in note for note in report.notes)
