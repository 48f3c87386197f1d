"""Submissions of all sorts on the course's own notebooks, each with what a fair teacher would give.

Most are lesson 02 with right answers, in which one thing is odd. What is not said to be otherwise gets full points.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from grading.school import cell_of, code, raw, solved, stub

NOTEBOOK = "02_attention"
LAST = "scaled_dot_product_attention"
FULL = {"additive_attention": 10, "decode_step": 10, LAST: 10, "questions_02": 20}
Book = dict[str, Any]


@dataclass(frozen=True)
class Odd:
    """One submission. points: where they are not full; None means no number. says: parts of the reasons and notes."""

    name: str
    raw: bytes
    points: dict[str, float | None] = field(default_factory=dict)
    says: tuple[str, ...] = ()
    state: str = "graded"
    notebook: str = NOTEBOOK

    @property
    def expected(self) -> dict[str, float | None]:
        """The points of every exercise that is not read by a person."""
        return FULL | self.points


def text(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def with_cell(source: str, name: str = LAST) -> bytes:
    """Right answers, but for one cell."""
    book = solved()
    cell_of(book, name)["source"] = source
    return raw(book)


def with_body(body: str) -> bytes:
    """Right answers, but for the body of the last function."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return with_cell(f"def {LAST}(q, k, v, mask=None):\n{lines}\n")


def with_extra(source: str, before: str = "additive_attention") -> bytes:
    """Right answers, and a cell of the student's own."""
    book = solved()
    place = book["cells"].index(cell_of(book, before))
    book["cells"].insert(place, code(source))
    return raw(book)


def changed(change: Callable[[Book], None]) -> bytes:
    """Right answers, and something done to the file."""
    book = solved()
    change(book)
    return raw(book)


RIGHT = text(cell_of(solved(), LAST))
NONE: dict[str, float | None] = {LAST: 0}
UNSCALED = "scores = q @ k.transpose(-2, -1)\nw = scores.softmax(-1)\nreturn w @ v, w"


def before_right(source: str) -> bytes:
    """Something in front of a right answer, in its cell."""
    return with_cell(f"{source}\n\n{RIGHT}")


# Right, wrong, partial, untouched

ORDINARY = (
    Odd("right", raw(solved())),
    Odd("untouched", raw(stub()), dict.fromkeys(FULL, 0), ("not done yet",)),
    Odd("wrong", with_body("return v, v"), NONE, ("not right yet", "shape")[1:]),
    Odd("unscaled", with_body(UNSCALED), NONE, ("scal",)),
    Odd("returns nothing", with_body("q @ k.mT"), NONE, ("None",)),
    Odd("one answer wrong", with_cell('answer("02.1", "b")', "answer_02_1"), {"questions_02": 18}, ("9 of 10",)),
    Odd(
        "one answer left out", with_cell('answer("02.1", None)', "answer_02_1"), {"questions_02": 18}, ("not answered",)
    ),
    Odd("an answer that is computed", with_cell('x = 1 / 4\nanswer("02.10", x)', "answer_02_10")),
)

# Code that does not end

ENDLESS = (
    Odd("loop in a function", with_body("while True: pass"), NONE, ("did not return",)),
    Odd("loop in a cell", before_right("while True: pass"), NONE, ("did not come to its end",)),
    Odd("loop in an extra cell", with_extra("while True: pass"), {}, ("did not come to its end",)),
    Odd(
        "loop that swallows interrupts",
        with_body("while True:\n    try:\n        while True: pass\n    except BaseException: pass"),
        NONE,
        ("did not return",),
    ),
    Odd(
        "C code that holds the GIL",
        with_body("import itertools\nany(itertools.repeat(False))"),
        NONE,
        ("did not return",),
    ),
    Odd(
        "C code that holds the GIL, in a cell",
        with_extra("import itertools\nany(itertools.repeat(False))"),
        {},
        ("did not come to its end",),
    ),
    Odd("waits for input", before_right("input('ready?')"), NONE, ("EOFError",)),
    Odd("sleeps", with_body("import time\ntime.sleep(10**6)"), NONE, ("did not return",)),
)

# Memory, exits, output

CRASHES = (
    Odd("40 GB at once", with_body("import torch\nreturn torch.ones(10**10), v"), NONE, ("memory",)),
    Odd(
        "growing memory",
        with_body("import torch\nkept = []\nwhile True: kept.append(torch.empty(10**8))"),
        NONE,
        ("memory",),
    ),
    Odd("sys.exit in a function", with_body("import sys\nsys.exit(0)"), NONE, ("SystemExit",)),
    Odd("sys.exit in a cell", with_extra("import sys\nsys.exit(0)"), {}, ("SystemExit",)),
    Odd("os._exit in a function", with_body("import os\nos._exit(0)"), NONE, ("ended the Python process",)),
    Odd("os._exit in a cell", with_extra("import os\nos._exit(7)"), {}, ("ended the Python process",)),
    Odd("a crash", with_body("import ctypes\nctypes.string_at(0)"), NONE, ("crashed",)),
    Odd("a crash in a cell", with_extra("import ctypes\nctypes.string_at(0)"), {}, ("crashed",)),
    Odd("quit()", with_extra("quit()")),
    Odd("kills itself", with_body("import os\nos.kill(os.getpid(), 9)\nreturn 1"), NONE),
    Odd("recursion", with_body(f"return {LAST}(q, k, v)"), NONE, ("calls itself",)),
    Odd("long lines", before_right("for _ in range(10): print('x' * 10**7)")),
    Odd("many lines", with_extra("while True: print('line')"), {}, ("did not come to its end",)),
    Odd("warnings and stderr", before_right("import sys, warnings\nwarnings.warn('oh')\nprint('oh', file=sys.stderr)")),
    Odd("a fork bomb", with_extra("import os\nfor _ in range(10): os.fork()")),
)


# Files


def _all_checks(book: Book) -> list[dict[str, Any]]:
    return [cell for cell in book["cells"] if cell["metadata"].get("nbgrader", {}).get("locked")]


def _replace_checks(book: Book) -> None:
    for cell in _all_checks(book):
        cell["source"] = "10"


def _more_points(book: Book) -> None:
    for cell in _all_checks(book):
        cell["metadata"]["nbgrader"]["points"] = 1000


def _no_checks(book: Book) -> None:
    gone = _all_checks(book)
    book["cells"] = [cell for cell in book["cells"] if cell not in gone]


def _no_metadata(book: Book) -> None:
    for cell in book["cells"]:
        cell["metadata"] = {}


def _twice(book: Book) -> None:
    cell = cell_of(book, LAST)
    book["cells"].insert(book["cells"].index(cell), copy.deepcopy(cell))


def _split(book: Book) -> None:
    cell = cell_of(book, LAST)
    lines = text(cell).splitlines(keepends=True)
    half = len(lines) // 2
    other = copy.deepcopy(cell) | {"source": "".join(lines[half:]), "metadata": {}, "id": "half"}
    cell["source"] = "".join(lines[:half])
    book["cells"].insert(book["cells"].index(cell) + 1, other)


def _backwards(book: Book) -> None:
    book["cells"].reverse()


def _as_text(book: Book) -> None:
    cell_of(book, LAST)["cell_type"] = "markdown"


def _old_format(book: Book) -> None:
    book["nbformat_minor"] = 2
    for cell in book["cells"]:
        del cell["id"]


def _version_3(book: Book) -> None:
    cells = book.pop("cells")
    for cell in cells:
        if cell["cell_type"] == "code":
            cell["input"] = cell.pop("source")
            cell["language"] = "python"
    book.update(nbformat=3, nbformat_minor=0, worksheets=[{"cells": cells, "metadata": {}}])


def _other_kernel(book: Book) -> None:
    book["metadata"]["kernelspec"] = {"name": "ir", "display_name": "R", "language": "R"}


def _huge_image(book: Book) -> None:
    data = {"image/png": "A" * 50_000_000, "text/html": "<script>alert(1)</script>"}
    output = {"output_type": "display_data", "data": data, "metadata": {}}
    cell_of(book, LAST)["outputs"] = [output]


def _helper_below(book: Book) -> None:
    cell = cell_of(book, LAST)
    cell["source"] = f"def {LAST}(q, k, v, mask=None):\n    return helper(q, k, v, mask)"
    book["cells"].append(code(RIGHT.replace(f"def {LAST}", "def helper")))


UNREADABLE = dict.fromkeys(FULL, None)

FILES = (
    Odd("checks replaced", changed(_replace_checks)),
    Odd("more points in the file", changed(_more_points)),
    Odd("checks deleted", changed(_no_checks)),
    Odd("metadata lost", changed(_no_metadata)),
    Odd("cell twice", changed(_twice)),
    Odd("cell split", changed(_split)),
    Odd("cells backwards", changed(_backwards)),
    Odd("cell turned into text", changed(_as_text)),
    Odd("nbformat 4.2", changed(_old_format)),
    Odd("nbformat 3", changed(_version_3)),
    Odd("another kernel", changed(_other_kernel)),
    Odd("a huge image and a script", changed(_huge_image)),
    Odd("helper below", changed(_helper_below)),
    Odd("a syntax error", with_cell(f"def {LAST}(q, k, v, mask=None:\n    return"), NONE, ("SyntaxError",)),
    Odd("conflict markers", with_cell(f"<<<<<<< HEAD\n{RIGHT}\n=======\n>>>>>>> other"), NONE, ("SyntaxError",)),
    Odd("deleted answer", changed(lambda book: book["cells"].remove(cell_of(book, LAST))), NONE, ("There is no",)),
    Odd("invalid JSON", b'{"cells": [', UNREADABLE, state="unreadable"),
    Odd("empty file", b"", UNREADABLE, state="unreadable"),
    Odd("no notebook", b"\x89PNG\r\n", UNREADABLE, state="unreadable"),
    Odd("not even an object", b"[1, 2]", UNREADABLE, state="unreadable"),
    Odd("another lesson", raw(solved("05_multi_head")), UNREADABLE, state="unreadable"),
    Odd("magics", before_right("%matplotlib inline\n%timeit -n1 -r1 1 + 1\n!echo hello")),
)

# Attempts to be given points

REFERENCE = f"from course_utils.attention import {LAST} as other\n"
PRETEND = """
import course_utils.checks.answers as answers, torch
from course_utils.checks.values import Outcome
answers.LocalAnswer.call = lambda self, call: Outcome(value=(torch.zeros(2, 3), torch.zeros(2, 3)))
"""
SAYS_NONSENSE = """
import os, socket
for number in range(3, 64):
    try: os.write(number, b'\\xff' * 64)
    except OSError: pass
"""
BAD_JSON = """
import os, struct
text = b'[' * 100_000
for number in range(3, 64):
    try: os.write(number, struct.pack('<II', len(text), 0) + text)
    except OSError: pass
"""

TRICKS = (
    Odd("allclose patched", before_right("import torch\ntorch.allclose = torch.equal = lambda *a, **k: True")),
    Odd(
        "allclose patched, wrong answer",
        with_cell(f"import torch\ntorch.allclose = lambda *a, **k: True\ndef {LAST}(q, k, v, mask=None): return v, v"),
        NONE,
    ),
    Odd(
        "the reference patched",
        with_cell(
            f"def {LAST}(q, k, v, mask=None): return v, v\nfrom course_utils import attention\n"
            f"attention.{LAST} = attention.masked_softmax = {LAST}"
        ),
        NONE,
    ),
    Odd(
        "asserts stripped",
        with_cell(
            "import ast\nclass T(ast.NodeTransformer):\n    def visit_Assert(self, node): return None\n"
            f"get_ipython().ast_transformers.append(T())\ndef {LAST}(q, k, v, mask=None): return v, v"
        ),
        NONE,
    ),
    Odd("run_cell replaced", with_extra("get_ipython().run_cell = lambda *a, **k: None", LAST)),
    Odd(
        "output hooks",
        before_right("import sys\nsys.displayhook = sys.excepthook = lambda *a: None\nsys.stdout = None"),
    ),
    Odd(
        "the reference used", with_cell(REFERENCE + f"def {LAST}(*a): return other(*a)"), NONE, ("is not there while",)
    ),
    Odd("the reference by use", with_cell(f"def {LAST}(*a): return use('{LAST}')(*a)"), NONE, ("is not there while",)),
    Odd("invented outcomes", with_cell(PRETEND + f"def {LAST}(q, k, v, mask=None): return v, v"), NONE),
    Odd("nonsense on every descriptor", with_cell(f"{SAYS_NONSENSE}\ndef {LAST}(q, k, v): return v, v"), NONE),
    Odd("nesting on every descriptor", with_cell(f"{BAD_JSON}\ndef {LAST}(q, k, v): return v, v"), NONE),
    Odd("says it is equal", with_body("class E:\n    def __eq__(self, o): return True\nreturn E(), E()"), NONE),
    Odd(
        "a tensor with opinions",
        with_body(
            "import torch\nclass T(torch.Tensor):\n    @classmethod\n"
            "    def __torch_function__(cls, f, t, a=(), k=None): return torch.tensor(True)\n"
            "return v.as_subclass(T), v.as_subclass(T)"
        ),
        NONE,
    ),
    Odd("an expanded view", with_body("return v.new_zeros(1).expand(17 * 10**9), v"), NONE, ("shape",)),
    Odd("nested lists", with_body("x = []\nfor _ in range(10**5): x = [x]\nreturn x, x"), NONE),
    Odd("a list in itself", with_body("x = []\nx.append(x)\nreturn x, x"), NONE),
    Odd("a class", with_cell(f"class {LAST}: pass"), NONE, ("has to be a function",)),
    Odd("a number", with_cell(f"{LAST} = 3"), NONE, ("has to be a function",)),
    Odd("an answer without end", with_cell("answer('02.1', 'a' * 10**8)", "answer_02_1"), {"questions_02": 18}),
    Odd("all answers", with_extra('for x in "abcd": answer("02.1", x)', "additive_attention"), {"questions_02": 18}),
)

ALL = (*ORDINARY, *ENDLESS, *CRASHES, *FILES, *TRICKS)
