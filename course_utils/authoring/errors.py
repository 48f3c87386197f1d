"""What the build says when it cannot go on."""

import importlib.util

TOOLS = ("jupytext", "nbformat", "nbclient", "nbgrader")


class BuildError(Exception):
    """One or more problems that a maintainer has to solve; each is a line that says where and what to do."""

    def __init__(self, *problems: str):
        super().__init__("\n".join(problems))
        self.problems = list(problems)


class Problems:
    """Collects what is wrong with one lesson, so that a single build reports all of it."""

    def __init__(self, file: str):
        self.file = file
        self.found: list[tuple[int, str]] = []

    def add(self, line: int, text: str) -> None:
        """Note that `text` is wrong at `line` (counted from 1) of the lesson."""
        self.found.append((line, text))

    def messages(self) -> list[str]:
        """All problems as "file:line: text", in the order of the file, each once."""
        return [f"{self.file}:{line}: {text}" for line, text in sorted(set(self.found))]

    def stop_if_any(self) -> None:
        """Raise a BuildError with everything found so far, if there is anything."""
        if self.found:
            raise BuildError(*self.messages())


def require_tools() -> None:
    """Raise a BuildError that says what to install when a tool of the build is missing."""
    missing = [tool for tool in TOOLS if importlib.util.find_spec(tool) is None]
    if missing:
        raise BuildError(
            f'building notebooks needs {", ".join(missing)}. Run: pip install -e ".[author]"'
            " (in the folder that holds pyproject.toml)"
        )
