"""Whatever is passed and whatever it does: the check of every exercise ends with a report, and gives no points."""

import signal
import time

import pytest
import torch
from torch import nn

from course_utils.checks import EXERCISES, Report, check, limit
from course_utils.checks.report import FAILED, NOT_DONE

each_exercise = pytest.mark.parametrize("exercise", EXERCISES.values(), ids=list(EXERCISES))
needs_timer = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no such timer")


def answer_to(exercise, behave, where="forward"):
    """A function that behaves like this, or a class whose method does."""
    if not exercise.is_class:
        return behave

    class Answer(nn.Module):
        def __init__(self, *_):
            super().__init__()

        def forward(self, *inputs):
            return behave(*inputs)

    if where == "__init__":
        Answer.__init__ = lambda self, *_: behave()
    return Answer


def rejected(answer, exercise):
    """The report, which must be whole and without points."""
    report = check(answer, exercise.name)
    assert isinstance(report, Report)
    assert not report.passed
    assert report.points == 0
    assert str(report)
    assert report._repr_html_()
    assert report.exercise == exercise.name
    return report


def stub(*_):
    raise NotImplementedError("your code here")


def recursive(*_):
    return recursive()


def endless(*_):
    while True:
        time.sleep(0.001)


def interrupted(*_):
    raise KeyboardInterrupt


RESULTS = {
    "None": lambda *_: None,
    "a text": lambda *_: "text",
    "a class": lambda *_: dict,
    "a number": lambda *_: 3,
    "an empty tuple": lambda *_: (),
    "a tuple of one": lambda *_: (torch.zeros(2, 3),),
    "a tuple of two Nones": lambda *_: (None, None),
    "two empty tensors": lambda *_: (torch.zeros(0), torch.zeros(0, 3)),
    "tuples in a tuple": lambda *_: ((torch.zeros(2), 1), (torch.zeros(2), 1)),
    "complex numbers": lambda *_: torch.zeros(2, 3, dtype=torch.complex64),
    "six axes": lambda *_: torch.zeros(1, 2, 1, 2, 1, 2),
    "an empty tensor": lambda *_: torch.zeros(0),
    "one number as a tensor": lambda *_: torch.zeros(()),
    "many results": lambda *_: tuple(torch.zeros(2) for _ in range(20)),
    "NaN everywhere": lambda *_: torch.full((2, 3, 4), torch.nan),
    "a large tensor": lambda *_: torch.zeros(1).expand(10**7),
}


@each_exercise
@pytest.mark.parametrize("result", RESULTS.values(), ids=list(RESULTS))
def test_a_result_of_another_kind(exercise, result):
    assert rejected(answer_to(exercise, result), exercise).findings


@each_exercise
@pytest.mark.parametrize("where", ["__init__", "forward"])
def test_a_stub_is_not_done_yet(exercise, where):
    answer = type("Answer", (answer_to(exercise, stub),), {where: stub}) if exercise.is_class else stub
    report = rejected(answer, exercise)
    assert report.state == NOT_DONE
    assert not report.findings


@each_exercise
@pytest.mark.parametrize(
    "thing",
    [None, 3, 2.5, "a text", [], {}, torch.zeros(2), (torch.zeros(2), 1), nn.Linear(2, 2)],
    ids=lambda thing: type(thing).__name__,
)
def test_something_that_is_no_answer_at_all(exercise, thing):
    report = rejected(thing, exercise)
    assert report.state == FAILED
    assert "Pass the" in str(report) or "asks for a" in str(report)


@each_exercise
def test_its_own_name_as_a_text(exercise):
    assert "without quotes" in str(rejected(exercise.name, exercise))
    assert check(exercise.name).exercise == exercise.name


@each_exercise
def test_a_class_for_a_function_and_a_function_for_a_class(exercise):
    if exercise.is_class:
        assert "asks for a class" in str(rejected(lambda *_: None, exercise))
    else:
        for thing in (nn.Linear, dict, nn.Linear(2, 2)):
            assert "asks for a function" in str(rejected(thing, exercise))


@each_exercise
@pytest.mark.parametrize("answer", [lambda: 1, lambda *, a, b: 1], ids=["no arguments", "by name only"])
def test_a_wrong_number_of_arguments_is_told_with_their_names(exercise, answer):
    first = exercise.cases[0].call(0)
    if exercise.is_class:
        made = type("Answer", (nn.Module,), {"__init__": lambda self: None})
        assert "An instance of your class cannot be made" in str(rejected(made, exercise))
        called = type("Answer", (nn.Module,), {"__init__": lambda self, *_: nn.Module.__init__(self),
                                               "forward": lambda self: None})  # fmt: skip
        assert "`forward` cannot be called" in str(rejected(called, exercise))
    else:
        assert f"({', '.join(first.arguments)})" in str(rejected(answer, exercise))


@each_exercise
@pytest.mark.parametrize("where", ["__init__", "forward"])
def test_infinite_recursion(exercise, where):
    assert "without end" in str(rejected(answer_to(exercise, recursive, where), exercise))


@needs_timer
@each_exercise
def test_an_endless_loop(exercise, monkeypatch):
    monkeypatch.setattr(limit, "SECONDS", 0.1)
    monkeypatch.setattr(limit, "AFTERWARDS", 0.02)
    report = rejected(answer_to(exercise, endless), exercise)
    assert "did not return within" in str(report)
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


@each_exercise
@pytest.mark.parametrize("where", ["__init__", "forward"])
def test_keyboard_interrupt_passes_through(exercise, where):
    before = torch.get_rng_state(), torch.get_num_threads()
    with pytest.raises(KeyboardInterrupt):
        check(answer_to(exercise, interrupted, where), exercise.name)
    assert torch.equal(before[0], torch.get_rng_state())
    assert torch.get_num_threads() == before[1]


@each_exercise
@pytest.mark.parametrize("error", [SystemExit, GeneratorExit, MemoryError, StopIteration, KeyError, RuntimeError])
def test_any_error_is_reported(exercise, error):
    def raising(*_):
        raise error("something")

    assert error.__name__ in str(rejected(answer_to(exercise, raising), exercise))


@each_exercise
def test_an_answer_that_fails_in_one_case_only_loses_that_case(exercise):
    """Points are split: what is right in the other cases counts."""
    calls = iter(range(10**6))
    reference = exercise.reference

    def once(*inputs):
        if next(calls) == 0:
            raise RuntimeError("the first time")
        return reference(*inputs)

    answer = once
    if exercise.is_class:

        class answer(reference):
            def forward(self, *inputs):
                if next(calls) == 0:
                    raise RuntimeError("the first time")
                return super().forward(*inputs)

    report = check(answer, exercise.name)
    assert not report.passed
    assert report.points == report.max_points - exercise.cases[0].points
    assert "the first time" in str(report)
