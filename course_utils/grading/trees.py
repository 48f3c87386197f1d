"""The course as the student's process sees it: a copy without solutions, checks, questions and references.

The tree of a lesson lacks the references of all its exercises. The tree of one exercise lacks that one alone: it is
for an answer that builds on another exercise's reference, as `use` gives it where the student's own part is wrong.
"""

import ast
import shutil
from collections.abc import Iterable
from pathlib import Path

from course_utils.checks.model import Exercise

PACKAGE = Path(__file__).parents[1]
# Modules of the library that lessons import parts from. Whatever is not named here is absent (see stand_ins.py).
LIBRARY = (
    *("attention", "decoding", "encoder_decoder", "layers", "losses", "masks", "multihead", "positions", "recurrent"),
    *("seq2seq", "training", "transformer", "vision", "mode", "device", "progress_bar", "evaluation"),
)
FOLDERS = ("data", "plots")
RUNS_THE_ANSWER = ("answers", "doubles", "limit", "model", "modules", "probes", "raising", "values")
INSIDE = ("inside", "refusal", "stand_ins", "wire")
ZYGOTE = ("jail", "zygote")


def write_zygote_tree(folder: Path) -> None:
    """What the first process needs, which knows nothing of the course."""
    _packages(folder, ("", "grading"))
    _copy(folder, "grading", ZYGOTE)


def write_course_tree(folder: Path, lacking: Iterable[Exercise]) -> None:
    """The course without the references of some exercises."""
    _packages(folder, ("", "grading", "checks"))
    _copy(folder, "", LIBRARY)
    for name in FOLDERS:
        shutil.copytree(PACKAGE / name, folder / "course_utils" / name, ignore=shutil.ignore_patterns("__pycache__"))
    _copy(folder, "checks", RUNS_THE_ANSWER)
    _copy(folder, "grading", (*INSIDE, *ZYGOTE, "plain"))
    for exercise in lacking:
        module, name = place_of(exercise)
        path = folder.joinpath(*module.split(".")).with_suffix(".py")
        path.write_text(without(path.read_text(encoding="utf-8"), name), encoding="utf-8")


def place_of(exercise: Exercise) -> tuple[str, str]:
    """The module and the name of an exercise's reference."""
    return exercise.reference.__module__, exercise.reference.__name__


def bare(name: str) -> str:
    """What the reference class without its methods is called: `copy_from` of an answer reads weights from one."""
    return f"_bare_{name}"


def without(source: str, name: str) -> str:
    """A module in which one function, or one class, says that it is not there. ValueError if it has none of that name.

    A class is kept under another name with its `__init__` alone: there are its parameters, and nothing is computed.
    """
    tree = ast.parse(source)
    kept: list[ast.stmt] = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            if isinstance(node, ast.ClassDef):
                kept.append(_only_init(node))
            kept += ast.parse(_refusal(node)).body
        else:
            kept.append(node)
    if len(kept) == len(tree.body) and not any(isinstance(n, ast.FunctionDef) and n.name == name for n in tree.body):
        raise ValueError(f"name: {name} is no function or class of this module")
    return ast.unparse(ast.Module(kept, tree.type_ignores))


def _refusal(node: ast.FunctionDef | ast.ClassDef) -> str:
    refuse = f"from course_utils.grading.refusal import refuse\n        refuse({node.name!r})"
    if isinstance(node, ast.FunctionDef):
        return f"def {node.name}(*_, **__):\n        {refuse}"
    return f"class {node.name}(nn.Module):\n    def __init__(self, *_, **__):\n        {refuse}"


def _only_init(node: ast.ClassDef) -> ast.ClassDef:
    inits = [part for part in node.body if isinstance(part, ast.FunctionDef) and part.name == "__init__"]
    return ast.ClassDef(bare(node.name), node.bases, node.keywords, inits or [ast.Pass()], [])


def _packages(folder: Path, names: Iterable[str]) -> None:
    for name in names:
        package = folder / "course_utils" / name
        package.mkdir(parents=True, exist_ok=True)
        (package / "__init__.py").write_text("", encoding="utf-8")


def _copy(folder: Path, package: str, modules: Iterable[str]) -> None:
    for module in modules:
        shutil.copyfile(PACKAGE / package / f"{module}.py", folder / "course_utils" / package / f"{module}.py")
