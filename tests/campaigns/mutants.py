"""Small mistakes in code: the mutants of a file; see `mutation`."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGES = ("bandit_envs", "agents")

OPERATORS: dict[type[ast.AST], tuple[str, tuple[str, ...]]] = {
    ast.Add: ("+", ("-",)),
    ast.Sub: ("-", ("+",)),
    ast.Mult: ("*", ("/",)),
    ast.Div: ("/", ("*",)),
    ast.FloorDiv: ("//", ("*",)),
    ast.Mod: ("%", ("//",)),
    ast.Pow: ("**", ("*",)),
    ast.BitAnd: ("&", ("|",)),
    ast.BitOr: ("|", ("&",)),
    ast.Lt: ("<", ("<=", ">")),
    ast.LtE: ("<=", ("<", ">")),
    ast.Gt: (">", (">=", "<")),
    ast.GtE: (">=", (">", "<")),
    ast.Eq: ("==", ("!=",)),
    ast.NotEq: ("!=", ("==",)),
    ast.Is: ("is", ("is not",)),
    ast.IsNot: ("is not", ("is",)),
    ast.In: ("in", ("not in",)),
    ast.NotIn: ("not in", ("in",)),
    ast.And: ("and", ("or",)),
    ast.Or: ("or", ("and",)),
}
NAMES = {
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "log": "log1p",
    "log1p": "log",
    "argmin": "argmax",
    "argmax": "argmin",
    "minimum": "maximum",
    "maximum": "minimum",
    "floor": "ceil",
    "ceil": "floor",
}
SILENT = (ast.Raise, ast.JoinedStr, ast.Assert, ast.Import, ast.ImportFrom, ast.Global)  # nothing in them is changed


class Mutant(NamedTuple):
    """A change of one file: the text from `start` to `end` becomes another one."""

    file: str
    start: int
    end: int
    text: str
    line: int
    old: str
    code: str  # the line

    @property
    def change(self) -> str:
        """The change in words."""
        old, new = (" ".join(text.split()) for text in (self.old, self.text))
        return f"{old} -> {new or 'nothing'}"

    @property
    def id(self) -> str:
        """The same for the same change of the same line, wherever that stands."""
        return hashlib.blake2b(repr((self.file, self.code, self.change)).encode(), digest_size=5).hexdigest()


# --- changes ----------------------------------------------------------------------------------------------------------


class _Source:
    """A file, and where its nodes stand."""

    def __init__(self, file: str) -> None:
        self.file, self.text = file, (ROOT / file).read_text()
        self.lines = self.text.splitlines(keepends=True)
        self._offsets = [0]
        for line in self.lines:
            self._offsets.append(self._offsets[-1] + len(line))

    def at(self, line: int, column: int) -> int:
        """The place of a line and a column, which counts bytes."""
        return self._offsets[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

    def span(self, node: ast.AST) -> tuple[int, int]:
        """From where to where a node stands."""
        end = self.at(node.end_lineno or 0, node.end_col_offset or 0)  # type: ignore[attr-defined]
        return self.at(node.lineno, node.col_offset), end  # type: ignore[attr-defined]

    def mutant(self, start: int, end: int, text: str) -> Mutant:
        line = self.text.count("\n", 0, start) + 1
        return Mutant(self.file, start, end, text, line, self.text[start:end], self.lines[line - 1].strip())

    def between(self, left: ast.AST, right: ast.AST, operator: ast.AST) -> Iterator[Mutant]:
        """The changes of an operator that stands between two nodes."""
        sign, others = OPERATORS.get(type(operator), ("", ()))
        start, end = self.span(left)[1], self.span(right)[0]
        found = re.search(rf"(?<![*/<>=!]){re.escape(sign)}(?![*/<>=])" if sign else r"(?!)", self.text[start:end])
        if found is not None:
            for other in others:
                yield self.mutant(start + found.start(), start + found.end(), other)


def _numbers(value: object) -> list[str]:
    """What is put in the place of a number."""
    if type(value) is int:
        return [str(value + 1), *([str(value - 1)] if value > 0 else [])] if abs(value) < 10**6 else []
    if type(value) is float:
        return ["1.0"] if value == 0 else [repr(value * 1.5), repr(value / 1.5)] if value < 1e100 else []
    return [str(not value)] if type(value) is bool else []


def _removable(node: ast.AST) -> bool:
    """Whether a statement may be left out: what it names is there all the same."""
    if isinstance(node, ast.Assign):
        return all(isinstance(target, (ast.Attribute, ast.Subscript)) for target in node.targets)
    return isinstance(node, ast.AugAssign) or isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)


def _of(node: ast.AST, source: _Source) -> Iterator[Mutant]:
    """The changes of a node itself."""
    if isinstance(node, ast.Constant):
        for text in _numbers(node.value):
            yield source.mutant(*source.span(node), text)
    elif isinstance(node, ast.BinOp):
        yield from source.between(node.left, node.right, node.op)
    elif isinstance(node, ast.Compare):
        for left, right, operator in zip([node.left, *node.comparators], node.comparators, node.ops, strict=False):
            yield from source.between(left, right, operator)
    elif isinstance(node, ast.BoolOp):
        for left, right in zip(node.values, node.values[1:], strict=False):
            yield from source.between(left, right, node.op)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
        yield source.mutant(source.span(node)[0], source.span(node.operand)[0], "")
    elif isinstance(node, ast.IfExp):
        body, other = (source.text[slice(*source.span(one))] for one in (node.body, node.orelse))
        middle = source.text[source.span(node.body)[1] : source.span(node.orelse)[0]]
        yield source.mutant(*source.span(node), f"{other}{middle}{body}")
    elif isinstance(node, (ast.If, ast.While)):
        start, end = source.span(node.test)
        yield source.mutant(start, end, f"not ({source.text[start:end]})")
    elif isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in NAMES:
            _, end = source.span(node.func)
            yield source.mutant(end - len(name), end, NAMES[name])
    if _removable(node):
        yield source.mutant(*source.span(node), "pass")


def _visible(node: ast.AST) -> Iterator[ast.AST]:
    """A node and what it is made of, without what is only said: annotations, messages, docstrings, decorators."""
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_comment"):
            continue
        for one in value if isinstance(value, list) else [value]:
            public = isinstance(one, ast.Assign) and getattr(one.targets[0], "id", "") == "__all__"
            shown = isinstance(one, ast.FunctionDef) and one.name == "__repr__"
            if isinstance(one, ast.AST) and not isinstance(one, SILENT) and not public and not shown:
                yield from _visible(one)


def mutants_of(file: str) -> list[Mutant]:
    """All mutants of a file; of several that stand in one line and say the same, the first."""
    source, found = _Source(file), dict[str, Mutant]()
    for node in _visible(ast.parse(source.text)):
        for mutant in _of(node, source):
            found.setdefault(mutant.id, mutant)
    return list(found.values())


def mutated(text: str, mutant: Mutant) -> str:
    """The source with the change."""
    return text[: mutant.start] + mutant.text + text[mutant.end :]


def is_python(mutant: Mutant) -> bool:
    """Whether the file is Python with the change."""
    try:
        ast.parse(mutated((ROOT / mutant.file).read_text(), mutant))
    except SyntaxError:
        return False
    return True
