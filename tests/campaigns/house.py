"""The order of the house: who imports whom, read from the source without running it.

    python tests/campaigns/house.py     each room and the rooms that it imports, circles, and arrows upward

A room is a folder of a package, or a file at its top; an arrow is an import from another room. Imports inside
functions and those for type checkers count as well, and so do `import_module("name")` and `__import__("name")`, also
with a constant of the module in the place of the text.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]


# The rooms of each package, each list from the ground upward. A room may import from rooms of lower lines; those of one
# line do not know each other.
ORDER: dict[str, list[str]] = {
    "bandit_envs": [
        "kernels",
        "instances stopping",
        "problems",
        "simulation",
        "envs",
        "testing text",
        "__init__",
    ],
    "agents": [
        "core",
        "control language",
        "thresholding top_k baselines look_ahead models certified",
        "all_good tables",
        "evolved.network",
        "evolved.formula",
        "evolved.coupled",
        "evolved.parameters",
        "evolved.agent",
        "registry",
        "evaluation",
        "session logs gating",
        "evolved.search",
        "evolved.evolution evolved.__init__",
        "learned figures",
        "pictures testing",
        "benchmarking",
        "__init__",
        "cli",
        "__main__",
    ],
}


@dataclass
class Tree:
    """The files of some packages and their imports.

    Attributes:
        imports: {module: {module of the tree that it imports}}.
        names: {(module, other module): names that it takes from it}; attributes of a module taken as a whole count.
    """

    imports: dict[str, set[str]] = field(default_factory=dict)
    names: dict[tuple[str, str], set[str]] = field(default_factory=dict)


@functools.cache
def parsed(path: Path) -> ast.Module:
    """The code of a file."""
    return ast.parse(path.read_text())


def read(root: Path, packages: Sequence[str]) -> Tree:
    """The tree of the packages below a folder; packages are modules of their own, "agents.figures.__init__"."""
    files = {}
    for package in packages:
        for path in sorted((root / package).rglob("*.py")):
            files[".".join(path.relative_to(root).with_suffix("").parts)] = path
    tree = Tree({module: set() for module in files})
    for module, path in files.items():
        for target, names in _imports(module, parsed(path), files):
            tree.imports[module].add(target)
            tree.names.setdefault((module, target), set()).update(names)
    return tree


def _imports(module: str, code: ast.Module, files: Mapping[str, Path]) -> Iterator[tuple[str, set[str]]]:
    """What a file takes: (module of the tree, names)."""

    def file_of(dotted: str) -> str | None:
        return next((name for name in (dotted, f"{dotted}.__init__") if name in files), None)

    whole: dict[str, str] = {}  # local name -> module
    nodes, constants = list(ast.walk(code)), dict(_constants(code))
    for node in nodes:
        if isinstance(node, ast.Import):
            for one in node.names:
                if target := file_of(one.name):
                    whole[one.asname or one.name] = target
                    yield target, set()
        elif isinstance(node, ast.ImportFrom):
            base = module.split(".")[: -node.level] if node.level else []
            dotted = ".".join([*base, *([node.module] if node.module else [])])
            for one in node.names:
                if target := file_of(f"{dotted}.{one.name}"):
                    whole[one.asname or one.name] = target
                    yield target, {one.name} if one.name.startswith("_") else set()
                elif target := file_of(dotted):
                    yield target, {one.name}
        elif isinstance(node, ast.Call):
            by_name = ast.unparse(node.func).rpartition(".")[2] in ("import_module", "__import__")
            for one in node.args[:by_name]:
                value = constants.get(one.id, one) if isinstance(one, ast.Name) else one
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    dots = len(value.value) - len(name := value.value.lstrip("."))
                    base = module.split(".")[:-dots] if dots else []
                    if target := file_of(".".join([*base, name])):
                        yield target, set()
    roots = {name.partition(".")[0] for name in whole}
    for node in nodes:
        root = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if root is not node and getattr(root, "id", None) in roots and (target := whole.get(ast.unparse(node.value))):
            yield target, {node.attr}


def _constants(code: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """The names that a module gives to expressions at its top: (name, expression)."""
    for node in (one for one in code.body if isinstance(one, ast.Assign)):
        for target in node.targets:
            many = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
            names, values = (target.elts, node.value.elts) if many else ([target], [node.value])  # type: ignore
            yield from ((one.id, value) for one, value in zip(names, values, strict=False) if isinstance(one, ast.Name))


def circles(graph: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """The sets of nodes that reach each other, and nodes that import themselves. [Tarjan 1972]"""
    found: list[list[str]] = []
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph[node]):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            group = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(group) > 1 or node in graph[node]:
                found.append(sorted(group))

    for node in graph:
        if node not in index:
            visit(node)
    return sorted(found)


def room(module: str, order: Mapping[str, Sequence[str]]) -> str:
    """The room of a module: "agents.figures" for "agents.figures.claims".

    Where the order names a file of a folder, that file is a room of its own.
    """
    package, *rest = module.split(".")
    named = {name for line in order[package] for name in line.split()}
    for parts in (rest, rest[:1]):
        if ".".join(parts) in named:
            return ".".join([package, *parts])
    return ".".join([package, *rest[:1]])


def arrows(tree: Tree, order: Mapping[str, Sequence[str]]) -> dict[str, set[str]]:
    """{room: the other rooms that it imports}."""
    graph: dict[str, set[str]] = {}
    for module, targets in tree.imports.items():
        here = room(module, order)
        graph.setdefault(here, set()).update({room(target, order) for target in targets} - {here})
    return graph


def upward(tree: Tree, order: Mapping[str, Sequence[str]]) -> list[str]:
    """What the order forbids, in words: imports, files without a place in it, and places without a file."""
    packages = list(order)
    level = {
        f"{package}.{name}": (packages.index(package), height)
        for package, lines in order.items()
        for height, line in enumerate(lines)
        for name in line.split()
    }
    rooms = {module: room(module, order) for module in tree.imports}
    found = [f"{name} is in the order and not in the tree" for name in level if name not in rooms.values()]
    found += [f"{module} has no place in the order" for module in tree.imports if rooms[module] not in level]
    for module, targets in tree.imports.items():
        for target in sorted(targets):
            mine, theirs = rooms[module], rooms[target]
            if mine != theirs and {mine, theirs} <= level.keys() and level[theirs] >= level[mine]:
                found.append(f"{module} imports {target}")
    return found


def private(tree: Tree) -> list[str]:
    """Private names that another file takes."""
    return [
        f"{module} takes {name} of {target}"
        for (module, target), names in sorted(tree.names.items())
        for name in sorted(names)
        if module != target and name.startswith("_") and not name.startswith("__")
    ]


def behind_the_faces(tree: Tree, package: str, faces: Mapping[str, Iterable[str]]) -> list[str]:
    """What a package takes from another one that is in none of its faces, {module: its public names}."""
    found, others = [], {face.partition(".")[0] for face in faces}
    for (module, target), names in sorted(tree.names.items()):
        if module.partition(".")[0] == package and target.partition(".")[0] in others:
            if target not in faces:
                found.append(f"{module} imports {target}")
            else:
                found += [f"{module} takes {name} of {target}" for name in sorted(names - {*faces[target]})]
    return found


def main() -> None:
    tree = read(ROOT, list(ORDER))
    for name, others in arrows(tree, ORDER).items():
        print(name, "<-", *sorted(others))
    print("circles:", circles(tree.imports))
    print("upward:", upward(tree, ORDER))


if __name__ == "__main__":
    main()
