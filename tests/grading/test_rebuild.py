"""What is taken from a submission, whatever became of its cells."""

import copy
import json

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_utils.grading import notebook_file
from course_utils.grading.lesson import lesson, lessons
from course_utils.grading.model import Unreadable
from course_utils.grading.rebuild import take
from grading.school import LESSON, WORDS, cell_of, code, raw, solved, stub, with_source

NAME = "additive_attention"
HELPER = "def soft(x):\n    return x.softmax(-1)"


def taken(book):
    return take(raw(book), LESSON)


def source_of(found, grade_id):
    return [source for name, source in found.cells if name == grade_id]


def without_metadata(book, keep_ids=False):
    book = copy.deepcopy(book)
    for number, cell in enumerate(book["cells"]):
        cell["metadata"] = {}
        if not keep_ids:
            cell["id"] = f"c{number}"
    return book


@pytest.mark.parametrize("name", list(lessons()))
def test_a_finished_notebook_gives_its_solution_cells_and_nothing_else(name):
    found = take(raw(solved(name)), name)
    wanted = [c.grade_id for c in lesson(name).cells if c.solution and c.kind == "code"]
    assert [grade_id for grade_id, _ in found.cells] == wanted
    assert list(found.written.values()) == [WORDS]
    assert found.notes == ()


def test_an_untouched_notebook_gives_stubs_and_no_written_answer():
    found = taken(stub())
    assert "NotImplementedError" in source_of(found, NAME)[0]
    assert found.written == {}
    assert found.notes == ()


def test_the_checks_are_the_courses_own_whatever_the_submission_says():
    book = with_source(solved(), f"check_{NAME}", "10")
    book["cells"].remove(cell_of(book, "questions_02"))
    found = taken(book)
    assert all(source != "10" for _, source in found.cells)
    assert any("changed" in note and f"check_{NAME}" in note for note in found.notes)
    assert any("missing" in note and "questions_02" in note for note in found.notes)


@pytest.mark.parametrize("keep_ids", [True, False])
def test_without_metadata_cells_are_found_by_what_they_are(keep_ids):
    whole, bare = taken(solved()), taken(without_metadata(solved(), keep_ids))
    assert set(bare.cells) == set(whole.cells)
    assert bare.written == whole.written


def test_a_copied_cell_does_not_count_twice_and_an_untouched_copy_undoes_nothing():
    book = solved()
    place = book["cells"].index(cell_of(book, NAME))
    book["cells"].insert(place + 3, copy.deepcopy(cell_of(stub(), NAME)))
    found = taken(book)
    assert source_of(found, NAME) == source_of(taken(solved()), NAME)
    assert any("2 times" in note for note in found.notes)


def test_of_two_filled_copies_both_run_so_that_the_last_one_counts():
    book = solved()
    place = book["cells"].index(cell_of(book, NAME))
    again = copy.deepcopy(cell_of(book, NAME))
    again["source"] = f"def {NAME}(*a):\n    return 1"
    book["cells"].insert(place + 1, again)
    assert source_of(taken(book), NAME)[-1] == again["source"]
    assert len(source_of(taken(book), NAME)) == 2


@pytest.mark.parametrize("keeps_metadata", [True, False])
@pytest.mark.parametrize("line", [2, -1])
def test_a_cell_split_inside_its_function_is_put_together(keeps_metadata, line):
    book = with_source(solved(), NAME, f"def {NAME}(q):\n    a = q + 1\n    b = a * 2\n    return b")
    whole = cell_of(book, NAME)
    lines = whole["source"].split("\n")
    second = copy.deepcopy(whole) if keeps_metadata else code("")
    whole["source"], second["source"] = "\n".join(lines[:line]), "\n".join(lines[line:])
    second["id"] = "other"
    book["cells"].insert(book["cells"].index(whole) + 1, second)
    found = taken(book)
    assert source_of(found, NAME) == ["\n".join(lines)]
    assert any("split" in note for note in found.notes)


def test_a_cell_turned_into_text_is_code_still():
    book = solved()
    cell_of(book, NAME)["cell_type"] = "markdown"
    found = taken(book)
    assert source_of(found, NAME) == source_of(taken(solved()), NAME)
    assert any("turned into text" in note for note in found.notes)


def test_cells_in_another_order_run_as_they_stand():
    book = solved()
    first, second = (book["cells"].index(cell_of(book, name)) for name in (NAME, "decode_step"))
    book["cells"][first], book["cells"][second] = book["cells"][second], book["cells"][first]
    found = taken(book)
    names = [name for name, _ in found.cells]
    assert names.index("decode_step") < names.index(NAME)
    assert any("order" in note for note in found.notes)


def test_swapped_grade_ids_are_seen_by_what_the_cells_define():
    book = solved()
    one, two = cell_of(book, NAME), cell_of(book, "decode_step")
    one["metadata"], two["metadata"] = two["metadata"], one["metadata"]
    found = taken(book)
    assert source_of(found, NAME) == source_of(taken(solved()), NAME)


def test_cells_that_the_student_added_are_taken_where_they_stand():
    book = solved()
    book["cells"].insert(book["cells"].index(cell_of(book, NAME)), code(HELPER))
    cells = list(taken(book).cells)
    assert cells[cells.index((None, HELPER)) + 1][0] == NAME


def test_of_a_changed_experiment_only_definitions_are_taken():
    book = solved()
    plain = next(c for c in book["cells"] if c["cell_type"] == "code" and "nbgrader" not in c["metadata"])
    plain["source"] += f"\nimport functools\n{HELPER}\nSIZE = 3\ntrain_for_hours(steps=10**9)\n"
    added = [source for name, source in taken(book).cells if name is None]
    assert len(added) == 1
    assert "import functools" in added[0] and "def soft" in added[0] and "SIZE = 3" in added[0]
    assert "train_for_hours" not in added[0] and "setup" not in added[0]


def test_an_answer_written_into_the_check_cell_counts():
    book = stub()
    own = f"def {NAME}(*a):\n    return 1"
    cell_of(book, f"check_{NAME}")["source"] = own
    assert source_of(taken(book), NAME)[-1] == own


def test_a_written_answer_may_go_on_in_a_new_cell():
    book = solved()
    place = book["cells"].index(cell_of(book, "written_02_W"))
    book["cells"].insert(
        place + 1, {"cell_type": "markdown", "id": "w", "metadata": {}, "source": "And one thing more."}
    )
    assert taken(book).written == {"written_02_W": f"{WORDS}\n\nAnd one thing more."}


def test_old_formats_and_other_kernels_are_read():
    book = solved()
    book["metadata"]["kernelspec"] = {"name": "ir", "display_name": "R", "language": "R"}
    assert any("ir" in note for note in taken(book).notes)
    wanted = taken(solved()).cells
    assert take(nbformat.writes(nbformat.from_dict(solved()), version=4).encode("utf-16"), LESSON).cells == wanted
    older = solved()
    older["nbformat_minor"] = 2
    for cell in older["cells"]:
        del cell["id"]
        cell["source"] = cell["source"].splitlines(keepends=True) if isinstance(cell["source"], str) else cell["source"]
    assert taken(older).cells == wanted
    cells = [{**c, "input": c.pop("source")} if c["cell_type"] == "code" else c for c in solved()["cells"]]
    version_3 = {"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": [{"cells": cells}]}
    assert taken(version_3).cells == wanted


CONFLICT = b'{"cells": [\n<<<<<<< HEAD\n {"a": 1}\n=======\n {"a": 2}\n>>>>>>> theirs\n]}'


@pytest.mark.parametrize(
    "data, word",
    [
        (b"", "empty"),
        (b"   \n", "empty"),
        (b"{broken", "JSON"),
        (raw(solved())[:-2000], "ends in the middle"),
        (CONFLICT, "merge"),
        (b"[" * 100_000 + b"]" * 100_000, "deeply"),
        (b"[1, 2]", "not a notebook"),
        (b'{"a": 1}', "no list of cells"),
        (b'{"cells": []}', "no cells"),
        (b'{"cells": [{"cell_type": "code", "source": "x = 1", "metadata": {}}]}', LESSON),
        (b"%PDF-1.4 ...", "PDF"),
        (b"PK\x03\x04....", "archive"),
        (b"<!DOCTYPE html><p>Sign in", "web page"),
        (b'{"cells": ' + b"9" * 5000 + b"}", "read"),
    ],
)
def test_what_is_no_notebook_says_why(data, word):
    with pytest.raises(Unreadable, match=word):
        take(data, LESSON)


def test_another_lessons_notebook_is_named():
    with pytest.raises(Unreadable, match="03_self_attention"):
        take(raw(solved("03_self_attention")), LESSON)


def test_a_file_that_is_too_large_is_not_read(monkeypatch):
    monkeypatch.setattr(notebook_file, "MAX_BYTES", 1000)
    with pytest.raises(Unreadable, match="larger"):
        taken(solved())


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.lists(st.tuples(st.sampled_from(["source", "metadata", "cell_type", "id", "nbgrader"]), json_values), max_size=6)
)
def test_any_nonsense_in_the_fields_of_a_cell_ends_in_a_result_or_a_reason(changes):
    book = solved()
    for number, (key, value) in enumerate(changes):
        cell = book["cells"][8 + 3 * number]
        if key == "nbgrader":
            cell["metadata"] = {"nbgrader": value}
        else:
            cell[key] = value
    try:
        found = take(json.dumps(book).encode(), LESSON)
    except Unreadable as reason:
        assert str(reason)
    else:
        assert all(isinstance(source, str) for _, source in found.cells)
