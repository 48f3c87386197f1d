"""The package behind the notebooks of the course on attention and transformers.

What a notebook needs by name is here. Each name is imported when it is first used, so that `import
course_utils` itself loads neither torch nor matplotlib.
"""

from importlib import import_module

_HOME = {
    "answer": "questions",
    "check": "checks",
    "claim": "claims",
    "progress": "progress",
    "question_points": "questions",
    "setup": "notebook",
    "use": "parts",
}

__all__ = ["answer", "check", "claim", "progress", "question_points", "setup", "use"]


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value  # for the next time; `progress` then names the function, no longer its module
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
