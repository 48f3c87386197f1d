"""Jupyter with the modules of tests/ on the path of its kernels."""

from pathlib import Path

from course_utils.browser import jupyter
from course_utils.browser.jupyter import (
    CURRENT,
    DARK,
    in_kernel,
    open_notebook,
    run_all,
    stop_kernels,
    write_notebook,
)

__all__ = ["CURRENT", "DARK", "environment", "in_kernel", "open_notebook", "run_all", "server", "stop_kernels"]
__all__ += ["write_notebook"]
TESTS = Path(__file__).resolve().parents[1]


def environment(folder: Path) -> dict[str, str]:
    return jupyter.environment(folder, TESTS)


def server(app: str, root: Path, folder: Path, theme: str = "JupyterLab Light"):
    return jupyter.server(app, root, folder, theme, (TESTS,))
