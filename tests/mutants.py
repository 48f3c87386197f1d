"""Broken versions of a function, each one small edit away from the original.

A mutant is a place in the syntax tree and what stands there instead. Annotations, docstrings and decorators stay.
"""

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType

OTHER_OPERATOR = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.MatMult: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
OTHER_COMPARISONS = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}


@dataclass(frozen=True)
class Mutant:
    """`name` says the function, the statement, and the edit."""

    name: str
    tree: ast.Module

    def build(self, module: ModuleType) -> dict[str, object]:
        """Execute the edited source; returns its names."""
        names: dict[str, object] = {"__name__": module.__name__, "__package__": module.__package__}
        exec(compile(self.tree, f"<mutant: {self.name}>", "exec"), names)
        return names


def mutants(source: str, function: str) -> list[Mutant]:
    """All mutants of one top-level function or class of a source text."""
    tree = ast.parse(source)
    (definition,) = [n for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef)) and n.name == function]
    found, seen = [], {}
    for statement in _body(definition):
        for node in _expressions_and_statements(statement):
            for changed in _edits(node):
                before, after = ast.unparse(node), "" if isinstance(changed, ast.Pass) else ast.unparse(changed)
                where = ast.unparse(_line_of(statement, node)).splitlines()[0]
                name = f"{function}: {where}: [{' '.join(before.split())}] -> [{after}]"
                seen[name] = seen.get(name, 0) + 1
                if seen[name] > 1:
                    name += f" ({seen[name]})"
                found.append(Mutant(name, ast.fix_missing_locations(_rebuild(tree, node, changed))))
    return found


def _body(definition: ast.FunctionDef | ast.ClassDef) -> list[ast.stmt]:
    """The statements of a function, or of all methods of a class, without docstrings."""
    if isinstance(definition, ast.ClassDef):
        return [s for method in definition.body if isinstance(method, ast.FunctionDef) for s in _body(method)]
    return definition.body[1:] if ast.get_docstring(definition) else definition.body


def _line_of(statement: ast.stmt, node: ast.AST) -> ast.stmt:
    """The innermost statement that holds the node."""
    for child in ast.walk(statement):
        if isinstance(child, ast.stmt) and child is not statement and any(n is node for n in ast.walk(child)):
            return _line_of(child, node)
    return statement


def _expressions_and_statements(statement: ast.stmt) -> Iterator[ast.AST]:
    """Every node that may change; a sign belongs to its number, and an annotation to nobody."""
    inside = {id(n.operand) for n in ast.walk(statement) if _is_number(n) and isinstance(n, ast.UnaryOp)}
    for noted in (n for n in ast.walk(statement) if isinstance(n, ast.AnnAssign)):
        inside |= {id(n) for n in ast.walk(noted.annotation)}
    return (node for node in ast.walk(statement) if id(node) not in inside)


def _is_number(node: ast.AST) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def _edits(node: ast.AST) -> Iterator[ast.AST]:
    """What may stand in place of a node."""
    if _is_number(node):
        value = ast.literal_eval(node)
        yield from (ast.Constant(other) for other in {0: (1, -1), 1: (0, 2), -1: (-2, 0)}.get(value, (value + 1,)))
    else:
        yield from _other_operators(node)
        yield from _other_arguments(node)
        yield from _other_statements(node)


def _other_operators(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.BinOp(left, op, right):
            if type(op) in OTHER_OPERATOR:
                yield ast.BinOp(left, OTHER_OPERATOR[type(op)](), right)
            if isinstance(op, (ast.Sub, ast.Div, ast.MatMult)):  # the others commute
                yield ast.BinOp(right, op, left)
            yield left
            yield right
        case ast.UnaryOp(ast.Not() | ast.Invert() | ast.USub(), operand):
            yield operand
        case ast.Compare(left, [op], [right]):
            yield from (ast.Compare(left, [other()], [right]) for other in OTHER_COMPARISONS.get(type(op), ()))
        case ast.BoolOp(op, values):
            yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
            yield from values
        case ast.IfExp(_, body, orelse):
            yield body
            yield orelse


def _other_arguments(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Constant(bool() as value):
            yield ast.Constant(not value)
        case ast.Constant("-inf"):
            yield ast.Constant("0")
        case ast.Call(_, [first, second, *rest], _):
            yield _with(node, args=[second, first, *rest])
        case ast.Call(_, [only], []):
            yield only  # torch.tanh(x) becomes x
        case ast.Call(ast.Attribute(value, _), _, _):
            yield value  # x.softmax(dim=-1) becomes x
        case ast.List([first, second]):
            yield ast.List([second, first], ast.Load())
        case ast.Subscript(_, ast.Slice(None, upper)) if upper is not None:
            yield _with(node, slice=ast.Slice(upper, None))
        case ast.Subscript(_, ast.Slice(lower, None)) if lower is not None:
            yield _with(node, slice=ast.Slice(None, lower))


def _other_statements(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Return(ast.Tuple([first, second])):
            yield ast.Return(ast.Tuple([second, first], ast.Load()))
        case ast.If() | ast.Expr() | ast.Break() | ast.AugAssign():
            yield ast.Pass()
        case ast.Assign([ast.Name(name)], value) if name in {n.id for n in ast.walk(value) if isinstance(n, ast.Name)}:
            yield ast.Pass()  # x = f(x) is left out


def _with(node: ast.AST, **fields: object) -> ast.AST:
    """A copy of the node with other fields."""
    return type(node)(**{**dict(ast.iter_fields(node)), **fields})


def _rebuild(node: object, old: ast.AST, new: ast.AST) -> object:
    """A copy of the tree with `new` where the very node `old` is."""
    if node is old:
        return copy.deepcopy(new)
    if isinstance(node, ast.AST):
        copied = type(node)(**{name: _rebuild(value, old, new) for name, value in ast.iter_fields(node)})
        return ast.copy_location(copied, node)
    if isinstance(node, list):
        return [_rebuild(item, old, new) for item in node]
    return node
