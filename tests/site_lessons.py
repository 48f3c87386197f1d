"""Small solved lessons for the tests of the site."""

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from course_utils.authoring.run import WIDGET_VIEW


def lesson(number, title, text=""):
    """The first text of a lesson, and more."""
    return (
        f"# {number} {title}\n\n**The question.** *Does $x'$ matter?*\n\nSome words.\n\n"
        "**You will be able to**\n- say *why*, in words\n  that run on;\n- write `it`.\n\n"
        f"**You should know** much. **Time** ten minutes; running takes one.\n\n{text}"
    )


def stream(text):
    return new_output("stream", name="stdout", text=text)


def html_output(html, plain):
    return new_output("display_data", {"text/html": html, "text/plain": plain})


def widget_output(widget):
    """What the build keeps of a widget."""
    data, _ = widget._repr_mimebundle_()
    return new_output("execute_result", {kind: value for kind, value in data.items() if kind != WIDGET_VIEW})


def code(source, *outputs):
    return new_code_cell(source, outputs=list(outputs), execution_count=1)


def save(root, name, first, *cells, **metadata):
    """Write solutions/NAME.ipynb; `first` is the text that it begins with."""
    folder = root / "solutions"
    folder.mkdir(exist_ok=True)
    notebook = new_notebook(cells=[new_markdown_cell(first), *cells], metadata=metadata)
    for i, cell in enumerate(notebook.cells):
        cell.id = f"cell-{i}"
    nbformat.write(notebook, folder / f"{name}.ipynb")
