"""A part as source text: what it needs to stand alone, and how it is run again from that."""

import ast
import builtins
import inspect
import linecache
import symtable
import sys
import textwrap
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

PREFIX = "course_part_"  # of the module that a remembered part is loaded into


class CannotRemember(Exception):
    """A part cannot be kept as source text; the message completes "X is not remembered: ..."."""


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


def load(name: str, source: Mapping[str, Any]) -> Callable[..., Any]:
    """Run the stored source of a part in a module of its own and return the part.

    The module and its text are registered, so that tracebacks and inspect.getsource show the student's lines.
    """
    try:
        text = "\n".join([*source["imports"], *source["constants"], "", *source["definitions"]]) + "\n"
        wanted = source["name"]
        known = isinstance(source.get("notebook"), str)
        where = f"<your {name} from notebook {source['notebook']}>" if known else f"<your {name}>"
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
