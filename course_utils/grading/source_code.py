"""What can be said about a cell's code without running it."""

import ast
import re

MAGIC = re.compile(r"^([ \t]*)[%!].*$", re.MULTILINE)
DEFINITIONS = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def parse(source: str) -> ast.Module | None:
    """The code as a tree, magics left out; None where it is not Python."""
    if re.match(r"\s*%%", source):
        return None
    try:
        return ast.parse(MAGIC.sub(r"\1pass", source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def parses(source: str) -> bool:
    """Whether the cell is Python: whole, and with every `return` inside a function."""
    tree = parse(source)
    return tree is not None and not any(_returns(node) for node in tree.body)


def added_definitions(source: str, original: str) -> str:
    """Imports, functions, classes and constants of a cell that its original does not have; "" if there are none."""
    new, old = parse(source), parse(original)
    if new is None:
        return ""
    before = {ast.dump(node) for node in old.body} if old is not None else set()
    kept = [node for node in new.body if _harmless(node) and ast.dump(node) not in before]
    return "\n".join(ast.unparse(node) for node in kept)


def _harmless(node: ast.stmt) -> bool:
    if isinstance(node, DEFINITIONS):
        return True
    if not isinstance(node, ast.Assign) or not all(isinstance(target, ast.Name) for target in node.targets):
        return False
    try:
        ast.literal_eval(node.value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def _returns(node: ast.AST) -> bool:
    """A `return` or `yield` that stands in no function."""
    if isinstance(node, ast.Return | ast.Yield | ast.YieldFrom):
        return True
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
        return False
    return any(_returns(child) for child in ast.iter_child_nodes(node))
