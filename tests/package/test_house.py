"""The order of the house: no circle, no arrow upward, and what stays in its file."""

from __future__ import annotations

import ast
import importlib
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from house import ORDER, ROOT, Tree, arrows, behind_the_faces, circles, parsed, private, read, upward

import bandit_envs


def faces() -> dict[str, list[str]]:
    """The public names of `bandit_envs` and of its rooms."""
    rooms = ("envs", "instances", "kernels", "problems", "simulation", "stopping", "text")
    modules = {"bandit_envs": bandit_envs} | {
        f"bandit_envs.{room}": importlib.import_module(f"bandit_envs.{room}") for room in rooms
    }
    ends = {name: name if name.endswith(".text") else f"{name}.__init__" for name in modules}
    return {ends[name]: [*module.__all__, "__version__"] for name, module in modules.items()}


# Imports upward by name, when a model is asked for: PyTorch takes seconds, and whoever reads no model does without it.
LATE = {("agents.models.cards", "agents.learned.model"), ("agents.registry", "agents.learned.__init__")}


@pytest.fixture(scope="module")
def tree() -> Tree:
    found = read(ROOT, list(ORDER))
    for module, target in LATE:
        found.imports[module].remove(target)
    return found


def test_no_circle_between_files(tree: Tree) -> None:
    assert circles(tree.imports) == []


def test_no_arrow_upward(tree: Tree) -> None:
    assert upward(tree, ORDER) == []


def test_agents_know_the_public_face_only(tree: Tree) -> None:
    assert behind_the_faces(tree, "agents", faces()) == []


def test_private_names_stay_in_their_file(tree: Tree) -> None:
    assert private(tree) == []


KERNELS = "jit lean part inlined view kernel episode_kernel kind versions overload_attribute"


def unannotated(tree: ast.AST) -> Iterator[str]:
    """Functions that lack an annotation and are no kernels, whose types Numba infers; lambdas and those inside kernels
    are passed over."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.expr):
            continue
        if isinstance(node, ast.FunctionDef):
            marks = [getattr(mark, "func", mark) for mark in node.decorator_list]
            if any(getattr(mark, "id", None) in KERNELS.split() for mark in marks):
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
    found = [f"{path}: {one}" for path in paths for one in unannotated(parsed(path))]
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
    """Two packages with circles, some within a function and by name, arrows upward, and private names taken."""
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
                importlib.import_module(".roof", __name__), import_module(HALL), __import__(name)
            ROOMS, HALL = 2, "high.hall"
        """,
        "high/roof.py": "__import__('high.attic')\n__import__('os')\nimport_module(__name__)",
        "high/hall/__init__.py": "",
        "high/hall/door.py": "from .. import hall\nfrom . import mat\nmat._dust",
        "high/hall/mat.py": "def late():\n    from .door import _key",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(textwrap.dedent(text))
    return read(tmp_path, ["low", "high"])


def test_wrong_trees_are_found_out(wrong: Tree) -> None:
    order = {"low": ["ground", "__init__"], "high": ["stairs hall", "attic", "roof", "loft"]}
    assert circles(wrong.imports) == [["high.attic", "high.roof", "high.stairs"], ["high.hall.door", "high.hall.mat"]]
    assert circles(arrows(wrong, order)) == [["high.attic", "high.roof", "high.stairs"]]
    assert upward(wrong, order) == [
        "high.loft is in the order and not in the tree",
        "high.__init__ has no place in the order",
        "high.stairs imports high.attic",
        "high.stairs imports high.hall.__init__",
        "high.stairs imports high.hall.door",
        "high.stairs imports high.hall.mat",
        "high.stairs imports high.roof",
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
