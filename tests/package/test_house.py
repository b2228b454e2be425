"""The order of the house: who imports whom, read from the source without running it.

A room is a folder of a package, or a file at its top; an arrow is an import from another room. Imports inside
functions and those for type checkers count as well.
"""

from __future__ import annotations

import ast
import importlib
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import bandit_envs

ROOT = Path(__file__).parents[2]

# The rooms of each package, each list from the ground upward. A room may import from rooms of lower lines; those of one
# line do not know each other.
ORDER: dict[str, list[str]] = {
    "bandit_envs": [
        "kernels moved",
        "instances stopping",
        "problems",
        "simulation",
        "envs",
        "testing",
        "__init__",
    ],
    "agents": [
        "core",
        "thresholding top_k baselines look_ahead models certified",
        "all_good tables earlier",
        "evolved.network",
        "evolved.formula",
        "evolved.coupled",
        "evolved.parameters",
        "evolved.agent",
        "registry",
        "evaluation session",
        "evolved.search evolved.space",
        "evolved.evolution evolved.__init__ learned figures",
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


def read(root: Path, packages: Sequence[str]) -> Tree:
    """The tree of the packages below a folder; packages are modules of their own, "agents.figures.__init__"."""
    files = {}
    for package in packages:
        for path in sorted((root / package).rglob("*.py")):
            files[".".join(path.relative_to(root).with_suffix("").parts)] = path
    tree = Tree({module: set() for module in files})
    for module, path in files.items():
        for target, names in _imports(module, ast.parse(path.read_text()), files):
            tree.imports[module].add(target)
            tree.names.setdefault((module, target), set()).update(names)
    return tree


def _imports(module: str, code: ast.Module, files: Mapping[str, Path]) -> Iterator[tuple[str, set[str]]]:
    """What a file takes: (module of the tree, names)."""

    def file_of(dotted: str) -> str | None:
        return next((name for name in (dotted, f"{dotted}.__init__") if name in files), None)

    whole: dict[str, str] = {}  # local name -> module
    for node in ast.walk(code):
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
    for node in ast.walk(code):
        if isinstance(node, ast.Attribute) and (target := whole.get(ast.unparse(node.value))):
            yield target, {node.attr}


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


def faces() -> dict[str, list[str]]:
    """The public names of `bandit_envs` and of its rooms."""
    rooms = ("envs", "instances", "kernels", "problems", "simulation", "stopping")
    modules = {"bandit_envs": bandit_envs} | {
        f"bandit_envs.{room}": importlib.import_module(f"bandit_envs.{room}") for room in rooms
    }
    return {f"{name}.__init__": [*module.__all__, "__version__"] for name, module in modules.items()}


@pytest.fixture(scope="module")
def tree() -> Tree:
    return read(ROOT, list(ORDER))


def test_no_circle_between_files(tree: Tree) -> None:
    assert circles(tree.imports) == []


def test_no_arrow_upward(tree: Tree) -> None:
    assert upward(tree, ORDER) == []


def test_agents_know_the_public_face_only(tree: Tree) -> None:
    assert behind_the_faces(tree, "agents", faces()) == []


def test_private_names_stay_in_their_file(tree: Tree) -> None:
    assert private(tree) == []


KERNELS = {
    "jit",
    "lean",
    "part",
    "inlined",
    "view",
    "kernel",
    "episode_kernel",
    "slot_kernel",
    "kind",
    "versions",
    "overload_attribute",
}


def unannotated(tree: ast.AST) -> Iterator[str]:
    """Functions that lack an annotation and are no kernels, whose types Numba infers; lambdas and those inside kernels
    are passed over."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            marks = [getattr(mark, "func", mark) for mark in node.decorator_list]
            if any(getattr(mark, "id", None) in KERNELS for mark in marks):
                continue
            own = node.args
            if [one.arg for one in own.args] == ["ep", "own"]:  # of the class of an algorithm
                continue
            told = [*own.posonlyargs, *own.args, *own.kwonlyargs, *filter(None, (own.vararg, own.kwarg))]
            told = told[1:] if told and told[0].arg in ("self", "cls", "kind") else told
            if node.returns is None or any(one.annotation is None for one in told):
                yield f"{node.name}, line {node.lineno}"
        yield from unannotated(node)


def test_all_but_kernels_is_annotated() -> None:
    paths = [path for top in ("bandit_envs", "agents") for path in (ROOT / top).rglob("*.py")]
    found = [f"{path}: {one}" for path in paths for one in unannotated(ast.parse(path.read_text()))]
    assert not found
    wrong = "@part\ndef f(x): return x\ndef g(x): return x\nclass A:\n    def h(self, x: int): return x"
    assert list(unannotated(ast.parse(wrong))) == ["g, line 3", "h, line 5"]


def test_the_formatter_lays_out_nearly_every_line() -> None:
    mark = "# fmt: " + "skip"
    paths = [path for top in ("bandit_envs", "agents", "tests", "examples") for path in (ROOT / top).rglob("*.py")]
    assert sum(path.read_text().count(mark) for path in paths) < 36


# That the tests above can fail ------------------------------------------------------------------------------------


@pytest.fixture
def wrong(tmp_path: Path) -> Tree:
    """Two packages with a circle of two files, one within a function, an arrow upward, and a private name taken."""
    files = {
        "low/__init__.py": "from .ground import seen",
        "low/ground.py": "seen = _hidden = 1",
        "high/__init__.py": "",
        "high/attic.py": """
            import low
            from low.ground import seen
            from .stairs import step
            print(low.seen, low.unheard_of)
        """,
        "high/stairs.py": """
            from typing import TYPE_CHECKING
            if TYPE_CHECKING:
                from .attic import rest
            def step():
                from .hall import door, mat
        """,
        "high/hall/__init__.py": "",
        "high/hall/door.py": "from .. import hall\nfrom . import mat\nmat._dust",
        "high/hall/mat.py": "def late():\n    from .door import _key",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(textwrap.dedent(text))
    return read(tmp_path, ["low", "high"])


def test_wrong_trees_are_found_out(wrong: Tree) -> None:
    order = {"low": ["ground", "__init__"], "high": ["stairs hall", "attic", "roof"]}
    assert circles(wrong.imports) == [["high.attic", "high.stairs"], ["high.hall.door", "high.hall.mat"]]
    assert circles(arrows(wrong, order)) == [["high.attic", "high.stairs"]]
    assert upward(wrong, order) == [
        "high.roof is in the order and not in the tree",
        "high.__init__ has no place in the order",
        "high.stairs imports high.attic",
        "high.stairs imports high.hall.door",
        "high.stairs imports high.hall.mat",
    ]
    assert private(wrong) == [
        "high.hall.door takes _dust of high.hall.mat",
        "high.hall.mat takes _key of high.hall.door",
    ]
    assert behind_the_faces(wrong, "high", {"low.__init__": ["seen"]}) == [
        "high.attic takes unheard_of of low.__init__",
        "high.attic imports low.ground",
    ]


def test_an_import_of_oneself_is_a_circle() -> None:
    assert circles({"a": {"a"}, "b": {"a"}, "c": set()}) == [["a"]]
