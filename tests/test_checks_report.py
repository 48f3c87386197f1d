"""What a report says and shows, and that `check` survives whatever is passed to it."""

import json
import random
import re
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
import torch
import wrong_answers

from course_utils.checks import EXERCISES, Report, check
from course_utils.checks.bench import bench
from course_utils.recurrent import rnn_step as reference_rnn_step

NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?")


def stub(x, h, W_xh, W_hh, b):
    raise NotImplementedError("write the step")


def text_of(report):
    return str(report) + report._repr_html_()


# --- what is passed


def test_stub_is_not_done_yet_and_no_alarm():
    report = check(stub, "rnn_step")
    assert (report.passed, report.points, report.max_points) == (False, 0, 10)
    assert report.state == "not done yet"
    assert not report.findings
    assert "not done yet" in str(report)


def test_not_implemented_in_one_branch_is_an_ordinary_finding():
    def rnn_step(x, h, W_xh, W_hh, b):
        if len(x) == 1:
            raise NotImplementedError
        return reference_rnn_step(x, h, W_xh, W_hh, b)

    report = check(rnn_step)
    assert report.state == "not right yet"
    assert 0 < report.points < 10
    assert "NotImplementedError" in str(report)


@pytest.mark.parametrize(
    "thing",
    [None, 3, "rnn_step", "nonsense", [], {}, torch.zeros(2), (torch.zeros(2), 1), dict, torch.nn.Linear, lambda x: x],
    ids=lambda thing: type(thing).__name__ + getattr(thing, "__name__", ""),
)
def test_anything_can_be_passed(thing):
    for exercise in (None, "rnn_step"):
        report = check(thing, exercise)
        assert isinstance(report, Report)
        assert not report.passed
        assert report.points == 0
        assert report.findings
        assert text_of(report)


def test_unknown_exercise_is_the_callers_mistake():
    with pytest.raises(ValueError, match="rnn_step"):
        check(stub, "rnn_stp")
    with pytest.raises(ValueError, match="no exercise"):
        check(stub, 3)


def test_unnamed_function_is_told_near_names():
    def additive_atention(query, keys, W_q, W_k, v, mask=None):
        return None

    assert "additive_attention" in str(check(additive_atention))


def test_result_instead_of_function_is_recognised():
    assert "without parentheses" in str(check(torch.zeros(2, 3)))


def test_hostile_objects():
    class Hostile:
        @property
        def __name__(self):
            raise RuntimeError("no name")

        def __call__(self, *_):
            raise SystemExit("bye")

    assert not check(Hostile()).passed
    assert not check(Hostile(), "rnn_step").passed

    class Lying(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise RuntimeError("no comparison")

    class Endless(tuple):
        def __iter__(self):
            while True:
                yield 1

        def __eq__(self, other):
            return True

        __hash__ = None

    class Yes:
        def __eq__(self, other):
            return True

        __hash__ = None

    results = [
        torch.zeros(2, 5).as_subclass(Lying), Endless((1, 2)), Yes(), torch.zeros(1).expand(10**9, 17),
        [[[[[[1]]]]]], torch.zeros(2, 5).to_sparse(), torch.zeros(2, 5, device="meta"), np.zeros((2, 5)),
        float("nan"), 10**400, "text" * 10**6, b"bytes", {"a": 1}, iter([]), torch.zeros(2, 5, dtype=torch.complex64),
    ]  # fmt: skip
    for result in results:
        for exercise in ("rnn_step", "additive_attention"):
            report = check(lambda *_, result=result: result, exercise)
            assert not report.passed
            assert len(text_of(report)) < 20_000


# --- what the student's code does


def test_infinite_recursion():
    def rnn_step(x, h, W_xh, W_hh, b):
        return rnn_step(x, h, W_xh, W_hh, b)

    assert "RecursionError" in str(check(rnn_step))


@pytest.mark.parametrize("error", [SystemExit, GeneratorExit, MemoryError, StopIteration, AssertionError])
def test_exceptions_are_reported(error):
    def rnn_step(*_):
        raise error("something")

    report = check(rnn_step)
    assert error.__name__ in str(report)


def test_exception_names_the_students_own_line():
    def rnn_step(x, h, W_xh, W_hh, b):
        return x @ W_hh  # the line to be named

    assert "the line to be named" in str(check(rnn_step))
    assert "RuntimeError" in str(check(rnn_step))


def test_exception_that_cannot_be_printed():
    class Mute(Exception):
        def __str__(self):
            raise RuntimeError

    def rnn_step(*_):
        raise Mute

    assert "Mute" in str(check(rnn_step))


def test_keyboard_interrupt_passes_through():
    def rnn_step(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check(rnn_step)


@pytest.mark.parametrize("answer", [lambda: 1, lambda x: x, lambda *, x, h: x], ids=["none", "one", "keywords"])
def test_wrong_arity_names_the_arguments(answer):
    assert "(x, h, W_xh, W_hh, b)" in str(check(answer, "rnn_step"))


def test_parameters_may_be_renamed():
    def rnn_step(a, b, c, d, e):
        return reference_rnn_step(a, b, c, d, e)

    assert check(rnn_step).passed


def test_generator_and_coroutine_are_recognised():
    def yields(*_):
        yield 1

    async def waits(*_):
        return 1

    assert "yield" in str(check(yields, "rnn_step"))
    assert "async" in str(check(waits, "rnn_step"))


def test_printing_is_cut(capsys):
    def rnn_step(x, h, W_xh, W_hh, b):
        print("x" * 10**6)
        print("more")
        return reference_rnn_step(x, h, W_xh, W_hh, b)

    assert check(rnn_step).passed
    assert len(capsys.readouterr().out) < 5000


def test_everything_global_is_left_as_found():
    def rnn_step(x, h, W_xh, W_hh, b):
        torch.manual_seed(3)
        random.seed(3)
        np.random.seed(3)
        torch.set_grad_enabled(False)
        torch.set_default_dtype(torch.float64)
        torch.set_default_device("meta")
        torch.set_num_threads(1)
        sys.setrecursionlimit(sys.getrecursionlimit() + 7)
        x.zero_()
        return torch.rand(x.shape[0], h.shape[1])

    torch.manual_seed(1)
    before = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].copy()
    limits = torch.get_num_threads(), sys.getrecursionlimit(), sys.stdout
    assert not check(rnn_step).passed
    assert not check(lambda *_: torch.randn(2, 5), "rnn_step").passed
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1] == random.getstate()
    assert (before[2] == np.random.get_state()[1]).all()
    assert torch.is_grad_enabled()
    assert torch.get_default_dtype() == torch.float32
    assert torch.get_default_device() == torch.device("cpu")
    assert limits == (torch.get_num_threads(), sys.getrecursionlimit(), sys.stdout)
    assert check(reference_rnn_step).passed  # its inputs were not touched


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_check_works_where_gradients_are_off(context):
    with context():
        assert check(reference_rnn_step).passed


# --- what the report shows


@pytest.mark.parametrize("answer", wrong_answers.ALL, ids=lambda a: f"{a.exercise}-{a.misconception}")
def test_no_expected_number_appears(answer):
    """A report may be read by students before they are done: no number of the reference is in it."""
    report = answer.report()
    exercise = EXERCISES[answer.exercise]
    catalogue = " ".join(t for m in exercise.misconceptions for t in (m.says, m.convention, *m.hints))
    fixed = catalogue + " ".join((*exercise.hints, *(c.shows + c.name for c in exercise.cases)))
    code = " ".join(f.message for f in report.findings if "Your code raises" in f.message)
    numbers = set(NUMBER.findall(str(report))) - set(NUMBER.findall(fixed + code))
    expected = torch.cat([_flat(w.value) for w in bench(exercise, 0).wanted if w.error is None])
    for number in map(float, numbers - {"1.3"}):
        assert not torch.isclose(expected, torch.tensor(number).double(), rtol=1e-2).any(), number


def _flat(value):
    tensors = value if isinstance(value, tuple) else (value,)
    return torch.cat([t.flatten().double() for t in tensors])


@pytest.mark.parametrize("answer", wrong_answers.ALL, ids=lambda a: f"{a.exercise}-{a.misconception}")
def test_findings_are_few_distinct_and_carry_three_hints(answer):
    report = answer.report()
    assert 1 <= len(report.findings) <= 4
    ids = [f.misconception for f in report.findings if f.misconception]
    assert len(ids) == len(set(ids))
    for finding in report.findings:
        assert finding.message
        assert len(finding.hints) == 3


def test_convention_is_named_where_both_ways_exist():
    exercise = EXERCISES["gru_step"]
    (flipped,) = [m for m in exercise.misconceptions if m.id == "gru_update_flipped"]
    report = check(exercise.recipe.make(*flipped.variants), "gru_step")
    assert "In this course" in report.findings[0].message


def test_points_are_a_plain_number():
    for report in (check(stub, "rnn_step"), check(reference_rnn_step), check(None)):
        assert type(report.points) is int
        assert type(report.passed) is bool


def test_to_dict_is_json():
    report = check(lambda *_: None, "lm_loss")
    again = json.loads(json.dumps(report.to_dict()))
    assert again["exercise"] == "lm_loss"
    assert again["points"] == 0
    assert len(again["findings"][0]["hints"]) == 3


class Tags(HTMLParser):
    """Collects tags and checks that they close."""

    def __init__(self):
        super().__init__()
        self.open, self.seen = [], []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.seen.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_html_escapes_closes_and_folds():
    def rnn_step(*_):
        raise ValueError("<script>alert(1)</script> & <img src=x>")

    report = check(rnn_step)
    html = report._repr_html_()
    tags = Tags()
    tags.feed(html)
    assert not tags.open
    assert "script" not in tags.seen
    assert "img" not in tags.seen
    assert tags.seen.count("details") == 3
    assert 'role="region"' in html


def test_colour_is_not_the_only_sign():
    for report, words in ((check(reference_rnn_step), "passed"), (check(lambda *_: None, "rnn_step"), "not right")):
        assert words in re.sub(r"<[^>]*>", "", report._repr_html_())
