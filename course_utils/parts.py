"""The student's own parts: `use` gives a function that passed its check, and keeps it for later notebooks.

A part is kept as source text, one JSON file an exercise, in the user's data folder. It never leaves the
computer.
"""

import ast
import builtins
import contextlib
import difflib
import inspect
import json
import linecache
import os
import statistics
import symtable
import sys
import textwrap
import time
import types
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from . import mode, notebook

FORMAT = 1
PREFIX = "course_part_"  # of the module that a remembered part is loaded into
TOO_SLOW = 3.0  # times the reference
NOISE_FLOOR = 2e-3  # seconds; below it nobody waits, and a ratio means little

_seen: dict[str, tuple[int, int, bool]] = {}  # exercise: points, of, passed; in this session
_kept: dict[str, dict[str, Any]] = {}  # what was stored in this session
_said: set[str] = set()  # lines that are said once


class CannotRemember(Exception):
    """A part cannot be kept as source text; the message completes "X is not remembered: ..."."""


def use(part: Callable[..., Any] | str, exercise: str | None = None, *, quiet: bool = False) -> Callable[..., Any]:
    """The student's own part if its check passes, else the reference; prints one line that says which.

    part: the function or class itself, or the name of an exercise whose remembered part is to be loaded.
    exercise: the name of the exercise, if the function is called something else.
    A right part that is more than three times slower than the reference is praised, and the reference used.
    """
    by_name = isinstance(part, str)
    name = part if by_name else exercise or getattr(part, "__name__", type(part).__name__)
    entry = find_exercise(name)
    mine, line = _remembered(name) if by_name else (part, f"your {name}")
    if mine is not None:
        mine, line = _judge(entry, mine, line)
    if not quiet:
        print(line)
    return entry.reference if mine is None else mine


def _judge(entry: Any, mine: Callable[..., Any], whose: str) -> tuple[Callable[..., Any] | None, str]:
    """The part if it is right and fast enough, else None; and the line to print."""
    report = import_module("course_utils.checks").check(mine, exercise=entry.name)
    remember(mine, report)
    capital = whose[0].upper() + whose[1:]
    if report.state == "not done yet":
        return None, f"{entry.name} is not done yet: the reference stands in."
    if not report.passed:
        why = (
            textwrap.shorten(report.findings[0].message, 90, placeholder=" ...") if report.findings else "see its check"
        )
        return None, f"{capital} does not pass yet ({why.rstrip('.')}): the reference stands in."
    times = slowness(entry, mine)
    if times is not None and times > TOO_SLOW:
        return None, (
            f"{capital} is right, but {times:.0f} times slower than the reference: well done; "
            "training goes on with the reference."
        )
    return mine, f"Using {whose}."


def remember(part: Callable[..., Any], report: Any) -> None:
    """Note the result of a check, and keep the part for later notebooks if it passed.

    A part that cannot be kept is said so, once. Nothing is written where mode.remembering() is False.
    """
    name = report.exercise
    _seen[name] = (report.points, report.max_points, bool(report.passed))
    loaded = str(getattr(part, "__module__", "")).startswith(PREFIX)
    if loaded or not report.passed or not mode.remembering():
        return
    try:
        source = collect(part)
        if _kept.get(name) == source:
            return
        load(name, source)
    except CannotRemember as reason:
        _say_once(f"{name} is not remembered for later notebooks: {reason}.")
        return
    record = {
        "format": FORMAT,
        "exercise": name,
        **source,
        "notebook": notebook.current_lesson(),
        "date": date.today().isoformat(),
        "course": _version("attention-course"),
        "torch": _version("torch"),
        "python": ".".join(map(str, sys.version_info[:3])),
    }
    if write_json(_file(name), record):
        _kept[name] = source


def forget(name: str | None = None) -> None:
    """Remove one remembered part, or all of them."""
    names = list(exercises()) if name is None else [find_exercise(name).name]
    names = [one for one in names if _file(one).exists()]
    for one in names:
        _file(one).unlink()
        _kept.pop(one, None)
        sys.modules.pop(PREFIX + one, None)
    print(f"Forgotten: {', '.join(names)}." if names else "There was nothing to forget.")


def stored_parts() -> dict[str, dict[str, Any]]:
    """The readable records of all remembered parts, by exercise; empty where nothing is remembered."""
    if not mode.remembering():
        return {}
    records = {path.stem: read_json(path) for path in sorted((data_folder() / "parts").glob("*.json"))}
    return {name: record for name, record in records.items() if record is not None}


def session_results() -> dict[str, tuple[int, int, bool]]:
    """For each exercise that was checked since the kernel started: points, points possible, passed."""
    return dict(_seen)


def _remembered(name: str) -> tuple[Callable[..., Any] | None, str]:
    """The remembered part and how to call it, or None and the line that says why the reference stands in."""
    if not mode.remembering():
        return None, f"Using the reference {name}: nothing is remembered in this run."
    if not _file(name).exists():
        return None, f"No {name} of yours is remembered yet: the reference stands in."
    record = read_json(_file(name))
    if record is None or record.get("format") != FORMAT:
        why = "its file is damaged" if record is None else "another version of the course stored it"
        return (
            None,
            f"Your {name} cannot be loaded ({why}): the reference stands in. Check it again to renew it.",
        )
    whose = f"your {name}" + (f" from notebook {record['notebook']}" if record.get("notebook") else "")
    try:
        return load(name, record), whose
    except CannotRemember as reason:
        return None, f"{whose[0].upper()}{whose[1:]} cannot be loaded ({reason}): the reference stands in."


def load(name: str, source: Mapping[str, Any]) -> Callable[..., Any]:
    """Run the stored source of a part in a module of its own and return the part.

    The module and its text are registered, so that tracebacks and inspect.getsource show the student's lines.
    """
    try:
        text = "\n".join([*source["imports"], *source["constants"], "", *source["definitions"]]) + "\n"
        wanted = source["name"]
        where = f"<your {name} from notebook {source['notebook']}>" if source.get("notebook") else f"<your {name}>"
        module = types.ModuleType(PREFIX + name)
        module.__file__ = where
        before = sys.modules.get(module.__name__)
        sys.modules[module.__name__] = module
        linecache.cache[where] = (len(text), None, text.splitlines(keepends=True), where)
        exec(compile(text, where, "exec"), module.__dict__)
        return module.__dict__[wanted]
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # whatever the text does, the notebook goes on with the reference
        if "module" in locals():
            sys.modules.pop(module.__name__, None)
            if before is not None:
                sys.modules[module.__name__] = before
        raise CannotRemember(f"its source does not run on its own, {type(error).__name__}: {error}") from None


def exercises() -> dict[str, Any]:
    """The exercises of the course by name, in the order of the notebooks."""
    return import_module("course_utils.checks").EXERCISES


def find_exercise(name: str) -> Any:
    """The exercise of this name; ValueError with the nearest names if there is none."""
    known = exercises()
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    way_out = f"did you mean {' or '.join(near)}?" if near else f"the exercises are {', '.join(known)}."
    raise ValueError(
        f'There is no exercise called "{name}": {way_out} A function of another name is passed as '
        'use(my_function, "the_exercise").'
    )


# The user's data folder.


def data_folder() -> Path:
    """Where the course keeps what it remembers: the user's data folder, or the folder COURSE_DATA names."""
    given = os.environ.get("COURSE_DATA", "").strip()
    if given:
        return Path(given).expanduser()
    return import_module("platformdirs").user_data_path("attention-course")


def read_json(path: Path) -> dict[str, Any] | None:
    """A JSON object from a file; None if there is none or it is damaged."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return data if isinstance(data, dict) else None


def write_json(path: Path, data: Mapping[str, Any]) -> bool:
    """Write a file in one move: a crash leaves the old one or the new one. False if it cannot be written."""
    text = json.dumps(data, ensure_ascii=False, indent=1)
    temporary = path.with_name(f".{path.stem}-{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        why = error.strerror or error
        _say_once(f"Nothing is remembered: {path.parent} is not writable ({why}). All else works.")
        return False
    return True


def _file(name: str) -> Path:
    return data_folder() / "parts" / f"{name}.json"


def _say_once(line: str) -> None:
    if line not in _said:
        _said.add(line)
        print(line)


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


# What a part needs to stand alone.


def collect(part: Callable[..., Any]) -> dict[str, Any]:
    """The source of a part with everything it needs: {"name", "imports", "constants", "definitions"}.

    Functions and classes of the notebook come along as source, modules as import lines, plain constants as
    text. Raises CannotRemember for anything else.
    """
    needs = _Needs(part)
    needs.define(part)
    return {
        "name": inspect.unwrap(part).__name__,
        "imports": sorted(needs.imports.values()),
        "constants": [f"{name} = {text}" for name, text in needs.constants.items()],
        "definitions": list(needs.definitions.values()),
    }


class _Needs:
    """Walks from a part over the global names it uses, and writes down where each comes from."""

    def __init__(self, part: Any) -> None:
        self.imports: dict[str, str] = {}
        self.constants: dict[str, str] = {}
        self.definitions: dict[str, str] = {}  # in an order in which they can be run
        self._objects: dict[str, Any] = {}
        self._here = {"__main__", getattr(part, "__module__", None)}

    def define(self, obj: Any) -> None:
        """A function or class written in the notebook, after all that it uses."""
        inner = inspect.unwrap(obj) if callable(obj) else obj
        name = getattr(inner, "__name__", type(inner).__name__)
        if name in self._objects:
            if self._objects[name] is not inner:
                raise CannotRemember(f"two different things are called {name}")
            return
        self._objects[name] = inner
        text, namespace = source_text(inner)
        for used in global_names(text):
            if used != name and used in namespace:
                self.need(used, namespace[used])
        self.definitions[name] = text

    def need(self, name: str, value: Any) -> None:
        """One global name that a definition uses."""
        if isinstance(value, types.ModuleType):
            self.imports[name] = f"import {value.__name__}" + (f" as {name}" if name != value.__name__ else "")
        elif callable(value) and self._is_here(value):
            self.define(value)
            original = inspect.unwrap(value).__name__
            if original != name:
                self.definitions[name] = f"{name} = {original}\n"
        elif (home := importable(value)) is not None:
            module, original = home
            self.imports[name] = f"from {module} import {original}" + (f" as {name}" if name != original else "")
        elif (text := literal(value)) is not None:
            self.constants[name] = text
        else:
            kind = type(value).__name__
            raise CannotRemember(f"it uses the notebook's variable {name} ({kind}), which cannot be kept as text")

    def _is_here(self, value: Any) -> bool:
        home = getattr(value, "__module__", None) or ""
        return isinstance(value, (type, types.FunctionType)) and (home in self._here or home.startswith(PREFIX))


def source_text(obj: Any) -> tuple[str, dict[str, Any]]:
    """The text of a function or class with its decorators, and the namespace it looks its globals up in.

    inspect.getsource does not find a class of a notebook before Python 3.13, so the text is cut out of the
    file or cell that the code itself names.
    """
    if not isinstance(obj, (type, types.FunctionType)):
        raise CannotRemember(f"it is not written with def or class, but an object of type {type(obj).__name__}")
    if obj.__name__ == "<lambda>":
        raise CannotRemember("it is a lambda; write it with def")
    if "." in obj.__qualname__ or (isinstance(obj, types.FunctionType) and obj.__closure__):
        raise CannotRemember(f"{obj.__name__} is made inside another function or class; write it at the top of a cell")
    for function in _functions(obj):
        code = function.__code__
        lines = linecache.getlines(code.co_filename, function.__globals__)
        try:
            tree = ast.parse("".join(lines))
        except SyntaxError:
            continue
        for node in ast.walk(tree):
            if getattr(node, "name", None) == obj.__name__ and hasattr(node, "decorator_list"):
                first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
                if first <= code.co_firstlineno <= (node.end_lineno or first):
                    text = textwrap.dedent("".join(lines[first - 1 : node.end_lineno]))
                    return text.rstrip() + "\n", function.__globals__
    raise CannotRemember(f"the source of {obj.__name__} cannot be found")


def _functions(obj: Any) -> Iterator[types.FunctionType]:
    """The function itself, or the methods that a class defines."""
    if isinstance(obj, types.FunctionType):
        yield obj
        return
    for value in vars(obj).values():
        method = getattr(value, "fget", None) or getattr(value, "__func__", value)
        method = inspect.unwrap(method) if callable(method) else method
        if isinstance(method, types.FunctionType) and method.__qualname__.startswith(f"{obj.__qualname__}."):
            yield method


def global_names(text: str) -> list[str]:
    """The names that a definition reads from outside itself, built-in names left out."""

    def walk(scope: symtable.SymbolTable) -> Iterator[str]:
        for symbol in scope.get_symbols():
            if symbol.is_global() and symbol.is_referenced():
                yield symbol.get_name()
        for child in scope.get_children():
            yield from walk(child)

    return sorted(name for name in set(walk(symtable.symtable(text, "part", "exec"))) if not hasattr(builtins, name))


def importable(value: Any) -> tuple[str, str] | None:
    """(module, name) under which a value can be imported, if there is such a place."""
    name = getattr(value, "__name__", None) or getattr(value, "_name", None) or str(value).removeprefix("torch.")
    for module in (getattr(value, "__module__", None), "torch", "torch.nn.functional", "math", "numpy"):
        found = sys.modules.get(module or "")
        if found is not None and module != "__main__" and getattr(found, name, None) is value and name.isidentifier():
            return str(module), name
    return None


def literal(value: Any) -> str | None:
    """A plain constant as Python text, or None."""
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return f'float("{value}")'
    text = repr(value)
    try:
        same = len(text) <= 10_000 and ast.literal_eval(text) == value
    except (ValueError, SyntaxError, TypeError, RuntimeError):
        return None
    return text if same is True else None


# How fast a part is.


def slowness(entry: Any, mine: Callable[..., Any]) -> float | None:
    """How many times longer the part takes than the reference; None if fast anyway or not measurable."""
    make = TYPICAL.get(entry.name)
    if make is None or mine is entry.reference:
        return None
    torch = import_module("torch")
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        arguments = make(torch)
        try:
            mine_first = _seconds(mine, arguments)
            repeats = 7 if mine_first < 0.1 else 1
            pairs = [(_seconds(mine, arguments), _seconds(entry.reference, arguments)) for _ in range(repeats)]
        except Exception:  # a size that no check asks for is no reason to stop a notebook
            return None
    own, reference = (statistics.median(times) for times in zip(*pairs, strict=True))
    return None if own < NOISE_FLOOR else own / max(reference, 1e-9)


def _seconds(function: Callable[..., Any], arguments: tuple[Any, ...]) -> float:
    start = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - start


def _typical_decode_step(t: Any) -> tuple[Any, ...]:
    shapes = {"W_x": (96, 64), "W_h": (64, 64), "b": (64,), "W_o": (128, 200), "b_o": (200,)}
    weights = {name: 0.1 * t.randn(shape) for name, shape in shapes.items()}
    return t.randn(32, 32), t.randn(32, 64), t.randn(32, 40, 64), t.rand(32, 40) < 0.9, weights


# Sizes like those in the training loops of the lessons; t is torch.
TYPICAL: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    "rnn_step": lambda t: (
        t.randn(64, 64),
        t.randn(64, 128),
        t.randn(64, 128),
        t.randn(128, 128),
        t.randn(128),
    ),
    "gru_step": lambda t: (
        t.randn(64, 64),
        t.randn(64, 128),
        t.randn(3, 64, 128),
        t.randn(3, 128, 128),
        t.randn(3, 128),
    ),
    "seq2seq_encode": lambda t: (
        t.randn(32, 40, 32),
        t.randint(1, 41, (32,)),
        0.1 * t.randn(32, 64),
        0.1 * t.randn(64, 64),
        t.randn(64),
    ),
    "shift_right": lambda t: (t.randint(3, 99, (64, 40)), 1),
    "lm_loss": lambda t: (t.randn(32, 40, 200), t.randint(0, 200, (32, 40)), 0),
    "greedy_decode": lambda t: (t.nn.Embedding(100, 100), t.randint(0, 100, (64, 1)), 40),
    "additive_attention": lambda t: (
        t.randn(32, 64),
        t.randn(32, 40, 64),
        t.randn(64, 64),
        t.randn(64, 64),
        t.randn(64),
        t.rand(32, 40) < 0.9,
    ),
    "decode_step": _typical_decode_step,
    "scaled_dot_product_attention": lambda t: (
        t.randn(8, 4, 40, 32),
        t.randn(8, 4, 40, 32),
        t.randn(8, 4, 40, 32),
    ),
}
