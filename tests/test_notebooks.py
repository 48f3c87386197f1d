"""Every built notebook: well formed, and it runs wherever and however a student runs it.

Training is cut short here (smoke mode); the claims are judged once, in the full run of solutions/.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted([*ROOT.glob("notebooks/*.ipynb"), *ROOT.glob("solutions/*.ipynb")])
LARGEST = 1_500_000  # bytes: what a learning platform and a code review still show

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: f"{path.parent.name}/{path.stem}")


def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


@every_notebook
def test_is_valid(path):
    notebook = read(path)
    nbformat.validate(notebook)
    ids = [cell.id for cell in notebook.cells]
    assert len(ids) == len(set(ids)), "two cells have the same id"


@every_notebook
def test_uses_the_kernel_that_everybody_has(path):
    assert read(path).metadata.kernelspec.name == "python3"


@every_notebook
def test_stores_no_widget_state(path):
    assert "widgets" not in read(path).metadata


@every_notebook
def test_is_small(path):
    assert path.stat().st_size < LARGEST


@every_notebook
def test_has_outputs_only_if_solved(path):
    cells = [cell for cell in read(path).cells if cell.cell_type == "code"]
    with_outputs = [cell for cell in cells if cell.outputs or cell.execution_count]
    assert bool(with_outputs) == (path.parent.name == "solutions")


def has_alt(tag: str) -> bool:
    return re.search(r"""\salt\s*=\s*(?:"[^"]*\w[^"]*"|'[^']*\w[^']*')""", tag) is not None


def images_without_text(notebook: nbformat.NotebookNode) -> Iterator[str]:
    """Images in text and in outputs that say nothing to somebody who does not see them."""
    for cell in notebook.cells:
        outputs = cell.get("outputs", [])
        markup = [cell.source] if cell.cell_type == "markdown" else []
        markup += ["".join(output.data["text/html"]) for output in outputs if "text/html" in output.get("data", {})]
        for text in markup:
            yield from (tag[:80] for tag in re.findall(r"<img\b[^>]*>", text) if not has_alt(tag))
        if cell.cell_type == "markdown":
            yield from re.findall(r"!\[\s*\]\([^)]*\)", cell.source)
        for output in outputs:
            data = output.get("data", {})
            pictures = [kind for kind in data if kind.startswith("image/")]
            described = "<img" in data.get("text/html", "") or not data.get("text/plain", "<").startswith("<")
            if pictures and not described:
                yield f"{pictures[0]} in an output of cell {cell.id}"


@every_notebook
def test_every_image_has_a_text(path):
    assert list(images_without_text(read(path))) == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("![a matrix of weights](x.png)", 0),
        ("![](x.png)", 1),
        ('<img src="x.png" alt="">', 1),
        ("<img src='x.png' alt='a curve'>", 0),
    ],
)
def test_the_image_check_itself(source, found):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(source)])
    assert len(list(images_without_text(notebook))) == found


def execute(path: Path, folder: Path, home: Path | None = None, twice: bool = False) -> None:
    """Run a notebook in `folder`, in smoke mode; an error in a cell is raised here."""
    notebook = read(path)
    if twice:
        cells = [(cell, cell.copy()) for cell in notebook.cells]
        for _, again in cells:
            again.id += "-2"
        notebook.cells = [cell for pair in cells for cell in pair]
    env = dict(os.environ, COURSE_SMOKE="1", COURSE_STRICT="1")
    if home is not None:
        env.update(HOME=str(home), USERPROFILE=str(home))
    client = NotebookClient(
        notebook,
        timeout=300,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
        store_widget_state=False,
    )
    client.execute(env=env)


def files_in(folder: Path) -> set[Path]:
    return {file for file in folder.rglob("*") if ".ipynb_checkpoints" not in file.parts}


# nbval runs every notebook in its own folder; here it is enough to see for one that nothing is left there.
@pytest.mark.notebook
@pytest.mark.parametrize("path", [p for p in NOTEBOOKS if p.parent.name == "notebooks"][:1], ids=lambda p: p.stem)
def test_runs_in_its_own_folder_and_leaves_nothing_there(path):
    before = files_in(path.parent)
    execute(path, path.parent)
    assert files_in(path.parent) == before


# The solved ones have the same cells but for the answers; nbval runs all of them, and one of them here.
TWICE = [p for p in NOTEBOOKS if p.parent.name == "notebooks" or p.stem.startswith("02")]


@pytest.mark.notebook
@pytest.mark.parametrize("path", TWICE, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_runs_with_every_cell_twice_in_a_folder_with_an_awkward_name(path, tmp_path):
    folder = tmp_path / "Übung eins, ő"
    folder.mkdir()
    execute(path, folder, twice=True)
    assert files_in(folder) == set()


# Other folders are tested above for all; what a home folder adds is alike in every notebook.
@pytest.mark.notebook
@pytest.mark.parametrize("path", [p for p in NOTEBOOKS if p.parent.name == "notebooks"][:1], ids=lambda p: p.stem)
def test_runs_from_a_home_folder(path, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    execute(path, home, home=home)
    left = {file.relative_to(home).parts[0] for file in files_in(home)}
    assert not {name for name in left if not name.startswith((".", "Library", "AppData"))}, left
