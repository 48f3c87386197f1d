"""Every mistake in the markers of a lesson stops the build, with its file and line and the way out."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from course_utils.authoring import BuildError
from course_utils.authoring.lesson import read_lesson, read_lessons
from course_utils.authoring.markers import MARKERS, meant_marker

SAMPLE = (Path(__file__).parent / "fixtures" / "lessons" / "01_sample.py").read_text(encoding="utf-8")


def problems_of(tmp_path, text):
    path = tmp_path / "01_sample.py"
    path.write_text(text, encoding="utf-8")
    try:
        read_lesson(path, "lessons/01_sample.py")
    except BuildError as error:
        return error.problems
    return []


def edited(old, new, nth=0):
    """The sample with the nth `old` replaced, and the line on which the replacement stands."""
    at = [found.start() for found in re.finditer(re.escape(old), SAMPLE)][nth]
    return SAMPLE[:at] + new + SAMPLE[at + len(old) :], SAMPLE[:at].count("\n") + 1


def test_the_sample_is_well_formed(tmp_path):
    assert problems_of(tmp_path, SAMPLE) == []


# what is replaced, what replaces it, words that the message must have, how many lines further down it points
EDITS = {
    "misspelt key": ('exercise="add"', 'exercis="add"', ["exercis", '"exercise"'], 0),
    "unknown key": ('tags=["demo"]', 'colour="red"', ["colour", "known keys"], 0),
    "unquoted value": ('exercise="add"', "exercise=add", ["cell line", 'key="value"'], 0),
    "comma between the pairs": ('exercise="add" ', 'exercise="add", ', ["exercise=", "spaces"], 0),
    "title on a cell line": ('tags=["demo"]', "A title", ["A title"], 0),
    "cell line without a space": ('# %% tags=["demo"]', '#%% tags=["demo"]', ["#%%"], 0),
    "raw cell": ('# %% tags=["demo"]', "# %% [raw]", ["[raw]"], 0),
    "misspelt begin": ("### BEGIN SOLUTION", "### BEGIN SOLUTON", ["SOLUTON", '"### BEGIN SOLUTION"'], 0),
    "misspelt end": ("### END SOLUTION", "### EN SOLUTION", ["EN SOLUTION", '"### END SOLUTION"'], 0),
    "lower case": ("### BEGIN SOLUTION", "### begin solution", ['"### BEGIN SOLUTION"'], 0),
    "four hashes": ("### BEGIN SOLUTION", "#### BEGIN SOLUTION", ['"### BEGIN SOLUTION"'], 0),
    "one hash": ("### BEGIN SOLUTION", "# BEGIN SOLUTION", ['"### BEGIN SOLUTION"'], 0),
    "text behind a marker": ("### END SOLUTION", "### END SOLUTION here", ["looks like a marker"], 0),
    "misspelt answer block": ("### BEGIN ANSWER", "### BEGIN ANSWR", ['"### BEGIN ANSWER"'], 0),
    "misspelt guide": ("### END GUIDE", "### END GUIDES", ['"### END GUIDE"'], 0),
    "missing end": ("    ### END SOLUTION\n\n\n### BEGIN H", "\n\n\n### BEGIN H", ["before", "SOLUTION"], 3),
    "never closed": ("    ### END SOLUTION\n\n\n# %%", "\n\n\n# %%", ["never closed"], -3),
    "end before begin": ("### BEGIN GUIDE", "### END GUIDE", ["without", "BEGIN GUIDE"], 0),
    "nested": ("    total = a + b  #", "    ### BEGIN SOLUTION\n    total = a + b  #", ["nested"], 0),
    "closed by another": ("### END GUIDE", "### END ANSWER", ["### END GUIDE"], 0),
    "solution outside an exercise": ("print(", "### BEGIN SOLUTION\nprint(", ['exercise="..."'], 0),
    "answer outside a question": ("# ## Points", "# ### BEGIN ANSWER", ['question="..."'], 0),
    "name and definition differ": ("def add(", "def plus(", ["add", "plus"], -1),
    "no docstring": ('    """The sum of two numbers."""\n', "", ["docstring"], -2),
    "no difficulty": (" difficulty=1", "", ["difficulty"], 0),
    "difficulty out of range": ("difficulty=1", "difficulty=4", ["difficulty=4", "1, 2 or 3"], 0),
    "minutes not a number": ("minutes=5", 'minutes="long"', ["minutes"], 0),
    "optional not a boolean": ("optional=true", 'optional="yes"', ["optional=true"], 0),
    "minutes without exercise": ('tags=["demo"]', "minutes=5", ["minutes", "exercise="], 0),
    "duplicate exercise": ('exercise="Counter"', 'exercise="add"', ["add", "already used"], 0),
    "duplicate question": ('question="01.2"', 'question="01.1"', ["01.1", "already used"], 0),
    "question of another lesson": ('question="01.2"', 'question="02.2"', ["02.2", '"01.1"'], 0),
    "written id": ('written="01.W"', 'written="01.3"', ["01.3", '"01.W"'], 0),
    "no right answer": ("# right: b\n", "", ['"right: ..."'], 0),
    "right is no choice": ("right: b", "right: d", ["d is not one of"], 0),
    "choice without explanation": ("# a: Multiplying is what another function does.\n", "", ["choice a"], -1),
    "explanation without choice": ("# right: b", "# c: What?\n# right: b", ["c:"], 0),
    "number that is none": ("right: 0.125", "right: much", ["much", "not a number"], 0),
    "no tolerance": ("# tolerance: 0.001\n", "", ["tolerance"], -1),
    "choices out of order": ("- b) it adds", "- c) it adds", ['expected "b)"'], 0),
    "text in the block": ("# explain: One", "# One", ["expected"], 0),
    "text after the block": ("# ### END GUIDE", "# ### END GUIDE\n# More.", ["after"], 1),
    "two hints": ("# 2. You have a function for sums.\n", "", ["found 1 hints", "3"], -2),
    "four hints": ("# 3. Call it", "# 3. Before\n# 4. Call it", ["found 4 hints"], -3),
    "hints without a list": ("# 1. Which operator", "# Which operator", ["numbered list"], 0),
    "hints for nothing": ('hints="double"', 'hints="duoble"', ["duoble", "double"], 0),
    "no question total": ('# %% questions="01"', "", ["adds up"], None),
    "total before the questions": (
        '# %% tags=["demo"]',
        '# %% questions="01"\n\n# %%',
        ["already used"],
        None,
    ),
    "filled total": ('# %% questions="01"', '# %% questions="01"\n1', ["leave it empty"], 1),
    "solution at module level": (
        "def add(a, b):",
        "### BEGIN SOLUTION\nx = 1\n### END SOLUTION\ndef add(a, b):",
        ["not inside one function"],
        0,
    ),
    "solution over two methods": (
        "        ### END SOLUTION\n\n    def count",
        "\n    def count",
        ["nested"],
        3,
    ),
    "empty solution": ("    return add(a, a) if callable(add) else 2 * a\n", "", ["empty"], -1),
    "indentation of the stub": (
        "    ### BEGIN SOLUTION\n    total",
        "### BEGIN SOLUTION\n    total",
        ["not inside one function"],
        0,
    ),
    "solution that is not Python": ("total = a + b ", "total = = b ", ["not Python"], 0),
    "empty cell": ('print("between the exercises")', "", ["empty cell"], -1),
    "cell line in a string": (
        'print("between the exercises")',
        'print("""\n# %% between the exercises\n""")',
        ["# %%"],
        1,
    ),
    "bare line in markdown": ("# ## Points", "# ## Points\nmore", ['begins with "# "'], 1),
    "code before the first cell": ("# defines", "import os  #", ["before"], 0),
    "hidden tests of an optional exercise": (
        "    return add(a, a) if callable(add) else 2 * a\n    ### END SOLUTION\n",
        "    return 2 * a\n    ### END SOLUTION\n### BEGIN HIDDEN TESTS\nassert 1\n### END HIDDEN TESTS\n",
        ["optional", "hidden"],
        2,
    ),
}


@pytest.mark.parametrize("case", EDITS)
def test_a_mistake_is_reported_with_its_line(tmp_path, case):
    old, new, words, offset = EDITS[case]
    text, line = edited(old, new)
    found = problems_of(tmp_path, text)
    assert found, "the mistake was accepted"
    matching = [problem for problem in found if all(word in problem for word in words)]
    assert matching, found
    assert all(re.match(r"lessons/01_sample\.py:\d+: ", problem) for problem in found)
    if offset is not None:
        # An edit that is several lines long, or that removes lines, shifts what is reported.
        assert any(problem.startswith(f"lessons/01_sample.py:{line + offset}: ") for problem in matching), found


def test_an_exercise_needs_hints(tmp_path):
    start = SAMPLE.index('# %% [markdown] hints="double"')
    end = SAMPLE.index("# %%", start + 4)
    found = problems_of(tmp_path, SAMPLE[:start] + SAMPLE[end:])
    assert len(found) == 1
    assert "has no hints" in found[0]


def test_hints_stand_below_their_exercise(tmp_path):
    start = SAMPLE.index('# %% [markdown] hints="double"')
    end = SAMPLE.index("# %%", start + 4)
    exercise = SAMPLE.index('# %% exercise="double"')
    moved = SAMPLE[:exercise] + SAMPLE[start:end] + SAMPLE[exercise:start] + SAMPLE[end:]
    assert ["stand before" in problem for problem in problems_of(tmp_path, moved)] == [True]


def test_all_mistakes_are_reported_at_once(tmp_path):
    text = SAMPLE.replace("minutes=5", "minuts=5").replace("### BEGIN GUIDE", "### BEGIN GUID")
    found = problems_of(tmp_path, text)
    assert any("minuts" in problem for problem in found)
    assert any("GUID" in problem for problem in found)


@pytest.mark.parametrize("marker", MARKERS)
@pytest.mark.parametrize("kind", ["code", "markdown"])
def test_one_letter_less_is_still_recognised(marker, kind):
    """Whatever single letter of a marker is lost or doubled: not an ordinary comment."""
    assert meant_marker(marker, kind) is None
    for i in range(4, len(marker)):
        for text in (marker[:i] + marker[i + 1 :], marker[:i] + marker[i] + marker[i:]):
            assert text == marker or meant_marker(text, kind), text


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("### What the encoder sees in the end", "markdown"),
        ("## Solutions of the equation", "markdown"),
        ("### A guide to masks", "markdown"),
        ("At the end, answer the question.", "markdown"),
        ("hidden = encoder(x)  # the hidden state at the end", "code"),
        ("# begin with the last real step", "code"),
    ],
)
def test_ordinary_lines_are_left_alone(text, kind):
    assert meant_marker(text, kind) is None


def test_numbers_and_names_are_unique_in_the_course(tmp_path):
    folder = tmp_path / "lessons"
    folder.mkdir()
    (folder / "01_sample.py").write_text(SAMPLE, encoding="utf-8")
    (folder / "02_other.py").write_text(SAMPLE.replace('"01', '"02'), encoding="utf-8")
    (folder / "intro.py").write_text("# %%\n1\n", encoding="utf-8")
    (folder / "01_again.py").write_text("# %%\n1\n", encoding="utf-8")
    lessons, found = read_lessons(tmp_path)
    assert [lesson.name for lesson in lessons] == ["01_again", "01_sample", "02_other"]
    assert any("intro.py:1: rename" in problem for problem in found)
    assert any("01_sample.py:1: lessons/01_again.py has the number 01 too" in problem for problem in found)
    assert sum("is already defined at lessons/01_sample.py:" in problem for problem in found) == 3


def test_the_package_is_cheap_to_import_and_says_what_to_install():
    """Without the tools: the import works, and the error of a build is the command that installs them."""
    code = (
        "import sys\n"
        "for name in ('jupytext', 'nbgrader', 'nbclient', 'nbformat'): sys.modules[name] = None\n"
        "import importlib.util, course_utils.authoring as a\n"
        "importlib.util.find_spec = lambda name: None\n"
        "try: a.build('.')\n"
        "except a.BuildError as error: print(error)\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'pip install -e ".[author]"' in result.stdout
