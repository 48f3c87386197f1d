"""Checks: what runs behind `check(my_function)`.

How to add a misconception. Find its exercise's file through `exercises.py`. A right answer is written there as a
recipe of named steps. Add a `Misconception`: an id, one plain sentence, three hints (a question, where to look,
nearly the line) and variants, each a dict of the steps that people write differently ("whole" replaces the
function). Then write the mistake once more in `tests/wrong_answers/`, as a student would, with its id: the tests
prove that it is rejected and named.

How to add an exercise. Write a reference function, then an `Exercise` with its outputs (axes by name), a recipe, its
misconceptions, three general hints, and cases whose points add up to 10. A case draws its inputs from `Draw`; make
sizes unequal, hide keys behind huge values, and say in `shows` what a right answer does. List the exercise in
`exercises.py` and put two or three right answers of different styles into `tests/right_answers/`.

A class is an exercise like a function: its recipe makes the class, its cases also say how the module is made
(`make`, with random weights from `modules.construction`), and its reference is named in `modules.py`. `properties`
are the cases for a module into which no weights can be copied; they also tell where to look when no misconception
explains wrong numbers. Where a result is random, or only a property can be
asked for, a case brings its own `compare`; where it is a plain number, its `Output` says `number=True`.

Arguments and results cross by value (`values.py`), so that the same cases run on an answer in another process:
anything with a `call(Call) -> Outcome` is an answer; a call says how a module is made, what it holds and what it is
fed. A model that a function needs is a `Double` (`doubles.py`). A function that makes a module, or changes one, is
tried out by a `Probe` (`probes.py`), which runs where the answer runs and returns plain values. An answer that does
not return is ended (`limit.py`).
"""

from course_utils.checks.exercises import EXERCISES
from course_utils.checks.report import CaseResult, Finding, Report
from course_utils.checks.run import check, run_exercise

__all__ = ["EXERCISES", "CaseResult", "Finding", "Report", "check", "run_exercise"]
