"""Every entry of what is handed in is mapped to a student and a lesson, or explained."""

import io
import tarfile
import zipfile

import pytest

from course_utils.folders import CourseError
from course_utils.grading import archives
from course_utils.grading.intake import IGNORED, OLDER, TAKEN, UNKNOWN, collect
from course_utils.grading.names import folder_name, identify, lesson_in
from course_utils.grading.roster import read_roster
from grading.school import LESSON, archive, raw, solved, stub, with_source

FILE = f"{LESSON}.ipynb"
DONE, NEW = raw(solved()), raw(with_source(solved(), "decode_step", "def decode_step(*a):\n    return 1"))
GRADESCOPE = """\
submission_11:
  :submitters:
  - :name: Ann Bell
    :sid: '7001'
    :email: ann@example.org
  - :name: Bo Cole
    :sid: '7002'
    :email: bo@example.org
  :created_at: 2026-11-03 20:00:00 Z
submission_12:
  :submitters: []
"""


def owners(collected):
    return {(s.student, s.notebook) for s in collected.submissions}


def fate(collected, part):
    return [(line.what, line.why) for line in collected.lines if part in line.origin]


def roster(tmp_path, text):
    path = tmp_path / "roster.csv"
    path.write_text(text, encoding="utf-8")
    return read_roster(path)


def test_moodle_with_folders_and_without(tmp_path):
    packed = archive(
        tmp_path / "moodle.zip",
        {
            f"Ann Bell_12_assignsubmission_file_/{FILE}": DONE,
            "Zoé O'Neil_13_assignsubmission_file_/My attention.ipynb": DONE,
            f"Bo Cole_14_assignsubmission_file_{FILE}": DONE,
            "Ann Bell_12_assignsubmission_onlinetext_/onlinetext.html": b"hello",
        },
    )
    found = collect([packed])
    assert owners(found) == {(f"{name}", LESSON) for name in ("Ann Bell_12", "Zoé O'Neil_13", "Bo Cole_14")}
    assert {s.submitted for s in found.submissions} == {"2026-11-03T20:00:00"}
    assert fate(found, "onlinetext")[0][0] == IGNORED
    mine = roster(tmp_path, "student;name;moodle id\nab1;Ann Bell;12\nzo1;;13\nbc1;Bo Cole;\n")
    found = collect([packed], mine)
    assert owners(found) == {("ab1", LESSON), ("zo1", LESSON), ("bc1", LESSON)}
    assert found.strangers == []


def test_canvas_with_late_files_resubmissions_and_hidden_names(tmp_path):
    packed = archive(
        tmp_path / "submissions.zip",
        {
            f"bellann_111_9001_{FILE}": DONE,
            f"bellann_111_9002_{LESSON}-1.ipynb": NEW,
            f"colebo_LATE_112_9003_{FILE}": DONE,
            f"anon_Xy12z_9004_{FILE}": DONE,
            "stray.ipynb": DONE,
        },
    )
    found = collect([packed])
    assert owners(found) == {("bellann_111", LESSON), ("colebo_112", LESSON), ("anon_Xy12z", LESSON)}
    by_student = {s.student: s for s in found.submissions}
    assert by_student["bellann_111"].raw == NEW
    assert by_student["colebo_112"].late and not by_student["bellann_111"].late
    assert fate(found, "9001")[0][0] == OLDER
    assert fate(found, "stray")[0][0] == UNKNOWN
    found = collect([packed], roster(tmp_path, "student,canvas_id\nann,111\nbo,112\n"))
    assert ("ann", LESSON) in owners(found)
    assert found.strangers == ["anon_Xy12z"]


def test_gradescope_with_a_group(tmp_path):
    packed = archive(
        tmp_path / "export.zip",
        {
            "assignment_5_export/submission_metadata.yml": GRADESCOPE.encode(),
            f"assignment_5_export/submission_11/{FILE}": DONE,
            f"assignment_5_export/submission_12/{FILE}": DONE,
            f"assignment_5_export/submission_13/{FILE}": DONE,
        },
    )
    found = collect([packed])
    assert owners(found) == {("7001", LESSON), ("7002", LESSON)}
    assert fate(found, "submission_12")[0][0] == UNKNOWN
    assert "submission_metadata" in fate(found, "submission_13")[0][1]
    found = collect([packed], roster(tmp_path, "student,email\nann,ANN@example.org\nbo,bo@example.org\n"))
    assert owners(found) == {("ann", LESSON), ("bo", LESSON)}


def test_github_classroom_clones(tmp_path):
    root = tmp_path / "lab-02-submissions"
    for user in ("ann-b", "ann-c"):
        (root / f"lab-02-{user}" / ".git").mkdir(parents=True)
        (root / f"lab-02-{user}" / ".git" / "config").write_text("x")
        (root / f"lab-02-{user}" / FILE).write_bytes(DONE)
    found = collect([root])
    assert owners(found) == {("ann-b", LESSON), ("ann-c", LESSON)}
    assert len(fate(found, ".git")) == 2


def test_nbgraders_own_folders(tmp_path):
    for place, data in {
        f"submitted/ann/{LESSON}/{FILE}": DONE,
        f"submitted/ann/{LESSON}/timestamp.txt": b"2026-11-03 20:00:00.000000 UTC\n",
        f"release/{LESSON}/{FILE}": raw(stub()),
    }.items():
        (tmp_path / "school" / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "school" / place).write_bytes(data)
    found = collect([tmp_path / "school"])
    assert owners(found) == {("ann", LESSON)}
    assert found.submissions[0].submitted == "2026-11-03T20:00:00+00:00"
    assert "not in submitted" in fate(found, "release")[0][1]
    assert owners(collect([tmp_path / "school" / "submitted"])) == {("ann", LESSON)}


def test_a_folder_for_each_student_or_the_students_name_in_the_file(tmp_path):
    for place in (f"class/ann/{FILE}", "class/bo/deep/attention (1).ipynb", f"class/cy_{FILE}"):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_bytes(DONE)
    assert owners(collect([tmp_path / "class"])) == {("ann", LESSON), ("bo", LESSON), ("cy", LESSON)}
    assert owners(collect([tmp_path / "class" / "ann" / FILE])) == {("ann", LESSON)}


def test_files_that_may_be_anybodys_are_not_given_to_somebody(tmp_path):
    folder = tmp_path / "downloads"
    folder.mkdir()
    for name in ("attention.ipynb", "attention (1).ipynb"):
        (folder / name).write_bytes(DONE)
    found = collect([folder])
    assert found.submissions == []
    assert [line.what for line in found.lines] == [UNKNOWN, UNKNOWN]


def test_the_newest_of_several_files_counts_and_the_others_are_named(tmp_path):
    packed = archive(tmp_path / "m.zip", {f"Ann_1_assignsubmission_file_/{FILE}": DONE})
    late = archive(tmp_path / "late.zip", {f"Ann_1_assignsubmission_file_/{FILE}": NEW})
    found = collect([packed, late])
    assert [s.raw for s in found.submissions] == [NEW]
    assert [line.what for line in found.lines] == [OLDER, TAKEN]


@pytest.mark.parametrize(
    "name", ["My attention.ipynb", "attention (1).ipynb", "02.ipynb", "02_Attention-final.IPYNB", "02 attention.ipynb"]
)
def test_a_renamed_file_is_known_by_its_name(name):
    assert lesson_in(name) == LESSON


def test_the_cells_decide_where_the_name_says_otherwise():
    assert identify("01_rnn_bottleneck.ipynb", DONE)[0] == LESSON
    assert "01_rnn_bottleneck" in identify("01_rnn_bottleneck.ipynb", DONE)[1]
    assert identify("homework.ipynb", DONE)[0] == LESSON
    assert identify("homework.ipynb", DONE[:-50])[0] == LESSON
    assert identify("homework.ipynb", b"{}")[0] is None
    assert lesson_in("self attention.ipynb") == "03_self_attention"


def test_what_does_not_belong_into_an_archive_is_explained(tmp_path):
    packed = archive(
        tmp_path / "m.zip",
        {
            f"Ann_1_assignsubmission_file_/{FILE}": DONE,
            "Ann_1_assignsubmission_file_/notes.pdf": b"x",
            "Ann_1_assignsubmission_file_/poem.ipynb": b"{}",
            f"__MACOSX/Ann_1_assignsubmission_file_/._{FILE}": b"x",
            f"../../Evil_2_assignsubmission_file_/{FILE}": DONE,
            f"/Evil_3_assignsubmission_file_/{FILE}": DONE,
        },
    )
    before = sorted(tmp_path.rglob("*"))
    found = collect([packed])
    assert owners(found) == {("Ann_1", LESSON)}
    assert sorted(tmp_path.rglob("*")) == before
    assert fate(found, "notes.pdf") == [(IGNORED, "not a notebook")]
    assert fate(found, "poem.ipynb")[0][0] == UNKNOWN
    assert fate(found, "__MACOSX")[0][0] == IGNORED
    assert [what for what, _ in fate(found, "Evil")] == [IGNORED, IGNORED]
    names = zipfile.ZipFile(packed).namelist()
    assert len(found.lines) == len(names)


def test_an_archive_that_a_student_handed_in_is_looked_into(tmp_path):
    inner = archive(tmp_path / "hw.zip", {f"hw/{FILE}": DONE}).read_bytes()
    packed = archive(tmp_path / "m.zip", {"Ann_1_assignsubmission_file_/hw.zip": inner})
    assert owners(collect([packed])) == {("Ann_1", LESSON)}


def test_a_tar_is_read_without_following_its_links(tmp_path):
    path = tmp_path / "m.tar.gz"
    with tarfile.open(path, "w:gz") as packed:
        for name, data in {f"ann/{FILE}": DONE}.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            packed.addfile(info, io.BytesIO(data))
        link = tarfile.TarInfo(f"bo/{FILE}")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        packed.addfile(link)
    found = collect([path])
    assert owners(found) == {("ann", LESSON)}
    assert "link" in fate(found, "bo")[0][1]


def test_a_file_that_is_too_large_has_a_reason_and_is_not_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MAX_BYTES", len(DONE) - 1)
    packed = archive(tmp_path / "m.zip", {f"Ann_1_assignsubmission_file_/{FILE}": DONE})
    found = collect([packed])
    assert found.submissions == []
    assert [(r.student, r.notebook) for r in found.refused] == [("Ann_1", LESSON)]
    assert "larger" in found.refused[0].reason


def test_an_archive_that_unpacks_without_end_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MAX_TOTAL", 1_000_000)
    path = tmp_path / "bomb.tar.gz"
    with tarfile.open(path, "w:gz") as packed:
        info = tarfile.TarInfo("ann/zeros.bin")
        info.size = 20_000_000
        packed.addfile(info, io.BytesIO(bytes(info.size)))
    found = collect([path])
    assert any("unpacks to more" in line.why for line in found.lines)


@pytest.mark.parametrize("damage", [lambda d: d[: len(d) // 2], lambda d: b"PK" + bytes(100), lambda d: b""])
def test_a_broken_archive_is_named(tmp_path, damage):
    path = archive(tmp_path / "m.zip", {f"Ann_1_assignsubmission_file_/{FILE}": DONE})
    path.write_bytes(damage(path.read_bytes()))
    found = collect([path])
    assert found.submissions == []
    assert "broken" in found.lines[0].why


def test_a_path_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(CourseError, match="does not exist"):
        collect([tmp_path / "nothing"])


@pytest.mark.parametrize(
    "text, word",
    [
        ("", "empty"),
        ("name,email\nAnn,a@b\n", "no column student"),
        ("student\nann\nann\n", "twice"),
        ("student,email\nann,a@b\nbo,A@b\n", "same email"),
        ("student,email\n,a@b\n", "line 2"),
    ],
)
def test_a_roster_that_cannot_be_meant_is_an_error(tmp_path, text, word):
    with pytest.raises(CourseError, match=word):
        roster(tmp_path, text)


def test_a_name_matches_only_where_one_student_has_it(tmp_path):
    packed = archive(tmp_path / "m.zip", {f"Ann Bell_12_assignsubmission_file_/{FILE}": DONE})
    one = collect([packed], roster(tmp_path, 'student,name\nu1,"Bell, Ann"\n'))
    two = collect([packed], roster(tmp_path, 'student,name\nu1,"Bell, Ann"\nu2,Ann Bell\n'))
    assert owners(one) == {("u1", LESSON)}
    assert two.strangers == ["Ann Bell_12"]


def test_folder_names_are_safe_everywhere_and_keep_students_apart():
    students = [
        "ann",
        "Ann",
        "ANN",
        "con",
        "a/b",
        "a\\b",
        "..",
        "",
        "x" * 300,
        "x" * 301,
        "Zoé",
        "nul.txt",
        "a:b",
        "a b",
        "a_b",
    ]
    names = [folder_name(student) for student in students]
    assert len({name.lower() for name in names}) == len(students)
    for name in names:
        assert 0 < len(name) <= 80 and not set(name) - set("abcdefghijklmnopqrstuvwxyz0123456789._-")
        assert name.split(".")[0] not in ("con", "nul") and name.strip(".") == name
