"""Every entry of entries/, by name: adding a file there puts a widget under all tests."""

import pkgutil
from importlib import import_module

from . import entries
from .entry import Entry

MODULES = sorted(module.name for module in pkgutil.iter_modules(entries.__path__))
ENTRIES: dict[str, Entry] = {
    name: import_module(f"{entries.__name__}.{name}").ENTRY for name in MODULES if name != "shared"
}
