"""nbgrader's autograder on the lessons themselves: the stub gets nothing, the solution everything."""

from pathlib import Path

import nbformat
import pytest
from fixtures.school import autograde

ROOT = Path(__file__).parents[1]
LESSONS = sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))


@pytest.mark.notebook
@pytest.mark.parametrize("name", LESSONS)
def test_the_stub_gets_nothing_and_the_solution_everything(name, tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_SMOKE", "1")  # checks and questions are not affected
    stub, solved = (nbformat.read(ROOT / place / f"{name}.ipynb", as_version=4) for place in ("notebooks", "solutions"))
    grades, _ = autograde(tmp_path, name, stub, solved, monkeypatch)
    assert grades["stub"] and grades["stub"].keys() == grades["done"].keys()
    assert any(cell.startswith("check_") for cell in grades["stub"])
    for cell, (points, _, _) in grades["stub"].items():
        assert not points, cell
    for cell, (points, maximum, by_hand) in grades["done"].items():
        assert by_hand == cell.startswith("written_"), cell
        assert by_hand or points == maximum, cell
