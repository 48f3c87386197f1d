"""The benchmark of the checks measures what it says; nothing here asserts a time."""

import pytest

from course_utils.benchmarks import BENCHMARKS
from course_utils.benchmarks import checks as benchmark
from course_utils.benchmarks.checks import BUDGET, PAIRS, Timing, row, summary, time_exercise
from course_utils.checks import EXERCISES

FAST = Timing("fast", [0.001, 0.003], [(0.002, "a"), (0.004, "b")], [(0.006, "a + b")])
SLOW = Timing("slow", [0.010], [(9.0, "c"), (0.5, "d")])


def test_every_exercise_is_measured_with_all_its_mistakes():
    exercise = EXERCISES["causal_mask"]
    timing = time_exercise(exercise, repeats=2)
    assert timing.name == exercise.name
    assert len(timing.right) == 2
    assert [name for _, name in timing.wrong] == [m.id for (m,), _ in exercise.singles()]
    assert len(timing.pairs) == min(PAIRS, len(list(exercise.pairs())))
    assert all(s >= 0 for s, _ in timing.wrong + timing.pairs)


def test_the_summary_looks_at_all_checks_together():
    assert summary([FAST, SLOW]) == {"right, median": 0.003, "wrong, median": 0.006, "slowest": 9.0}


def test_a_row_names_the_slowest_mistake():
    assert row(FAST) == ("fast", pytest.approx(2.0), 3, pytest.approx(4.0), pytest.approx(6.0), "a + b")
    assert row(SLOW)[-1] == "c"


@pytest.mark.parametrize(("timing", "code"), [(FAST, 0), (SLOW, 1)])
def test_a_budget_that_is_exceeded_is_said_and_returned(timing, code, monkeypatch, capsys):
    monkeypatch.setenv("COURSE_REMEMBER", "0")
    monkeypatch.setattr(benchmark, "EXERCISES", {"one": None})
    monkeypatch.setattr(benchmark, "time_exercise", lambda exercise, repeats: timing)
    assert benchmark.main(1) == code
    out = capsys.readouterr().out
    assert timing.name in out
    assert ("OVER" in out) == bool(code)
    assert out.count("computing time") == len(BUDGET)


def test_the_benchmark_is_listed():
    title, run = BENCHMARKS["checks"]
    assert "check" in title
    assert callable(run)
