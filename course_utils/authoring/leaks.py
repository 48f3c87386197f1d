"""Does anything that students must not see stand in their notebook?

This looks at the finished notebook alone, so that it also finds what a mistake in the build lets through.
"""

from collections.abc import Iterator

from .lesson import Lesson

SHORTEST = 8  # characters without spaces: shorter lines ("return x") stand anywhere


def find_leaks(lesson: Lesson, notebook: dict) -> list[str]:
    """The leaks in a student's notebook, each as text that names the cell and the line of the lesson.

    A secret is a line of a solution, of hidden tests, of an answer block or of a marking guide, unless the
    visible part of the lesson says the same. Outputs are leaks whatever they say.
    """
    visible = _plain(lesson.visible())
    secrets = [
        (_plain(line.text), f'{what}, line {line.number} of the lesson: "{line.text.strip()}"')
        for line, what in lesson.secrets()
        if len("".join(line.text.split())) >= SHORTEST and _plain(line.text) not in visible
    ]
    found = []
    for i, cell in enumerate(notebook["cells"], 1):
        place = f"cell {i} ({cell.get('id')})"
        if cell.get("outputs") or cell.get("execution_count") is not None:
            found.append(f"{place} has outputs or an execution count")
        found += _shown(place, cell, secrets)
    return found + _shown("the metadata", notebook["metadata"], secrets)


def _shown(place: str, value: object, secrets: list[tuple[str, str]]) -> list[str]:
    text = _plain("\n".join(_strings(value)))
    return [f"{place} shows {what}" for secret, what in secrets if secret in text]


def _plain(text: str) -> str:
    """Text with spaces and line breaks made equal, so that moved or indented lines are found as well."""
    return " ".join(text.split())


def _strings(value: object) -> Iterator[str]:
    """All texts in a piece of a notebook."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
