"""The user's data folder: where it is, and how JSON is read from it and written to it."""

import contextlib
import json
import os
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

_said: set[str] = set()  # lines that are said once


def data_folder() -> Path:
    """Where the course keeps what it remembers: the user's data folder, or the folder COURSE_DATA names."""
    given = os.environ.get("COURSE_DATA", "").strip()
    if given:
        return Path(given).expanduser()
    return import_module("platformdirs").user_data_path("attention-course")


def read_json(path: Path, *, say: bool = True) -> dict[str, Any] | None:
    """A JSON object from a file; None if there is none or it is damaged, and that is said, once, unless say=False."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(data, dict):
            return data
        why = "it holds something else"
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:  # the last: brackets in brackets, thousands deep
        why = getattr(error, "strerror", None) or type(error).__name__
    if say:
        way_out = "You may delete it: the cell that wrote it writes it anew."
        say_once(f"{path} cannot be read ({why}) and is passed over. {way_out}")
    return None


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file in one move: a crash leaves the old one or the new one, never half of one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        partial.write_bytes(data)
        partial.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        raise


def write_json(path: Path, data: Mapping[str, Any]) -> bool:
    """Write a file in one move, see `write_atomically`. False if it cannot be written."""
    try:
        write_atomically(path, json.dumps(data, ensure_ascii=False, indent=1).encode("utf-8"))
    except OSError as error:
        why = error.strerror or error
        say_once(f"Nothing is remembered: {path.parent} is not writable ({why}). All else works.")
        return False
    return True


def say_once(line: str) -> None:
    """Print a line, unless it was printed since the kernel started."""
    if line not in _said:
        _said.add(line)
        print(line)
