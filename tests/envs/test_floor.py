"""The floor: few internal names of Numba, in one file, and plain mode, which gives the same numbers without any."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import golden
import pytest
from processes import with_path

import agents
import bandit_envs
from bandit_envs.kernels import floor
from bandit_envs.kernels.floor import NAMES, TESTED

ROOT = Path(bandit_envs.__file__).parents[1]
CAMPAIGNS = Path(golden.__file__).parent
PRODUCT = [path for package in (bandit_envs, agents) for path in Path(package.__file__).parent.rglob("*.py")]
FLOOR = ROOT / "bandit_envs" / "kernels" / "floor.py"
MOST = 25

# --- names ------------------------------------------------------------------------------------------------------------
# Counted is what Numba's manual does not have: modules numba.core.* and numba._*, llvmlite.binding, attributes and
# methods of dispatchers, compilers, libraries, contexts and caches, and options of `njit` that it does not list. Not
# counted are numba.njit, cfunc, typeof, carray, config, errors, types with their attributes, numba.extending, what
# llvmlite documents (`ir`, PROCESSOR, and the attributes of functions and variables of a module), and attributes of our
# own.
PROCESSOR = {"get_default_triple", "get_host_cpu_name", "get_host_cpu_features"}

LEAVES = {name.split(".")[-1] for name in NAMES}
# In use before, and others like them.
FORMER = {
    "_cache", "_cache_file", "_impl_class", "_index_key", "_locator_classes", "overloads", "add_overload",
    "load_overload", "save_overload", "enable_caching", "get_dummy_value", "get_value_type", "_dispatcher", "_defn",
    "_ensure_finalized", "_find_referenced_environments", "create_library", "unserialize_library", "_unserialize",
    "get_pointer_to_function", "enable_object_caching", "cache_hits", "cache_misses", "_compiler", "typingctx",
    "targetctx", "_wrapper_address", "_library", "compile_extra", "magic_tuple", "forceinline",
}  # fmt: skip
# What floor.py names of Numba, llvmlite, Python and our own.
DOCUMENTED = {
    "BOUNDSCHECK",
    "__version__", "append", "types", "unliteral", "functions", "global_variables", "linkage", "name", "flatten",
    "cache", "config", "CPU_NAME", "CPU_FEATURES", "ENABLE_AVX",
    "is_declaration", "add_function_attribute", "data", "split", "join", "items", "get", "environ", "warn",
    "import_module", "copy", "library", "is_kept", "target", "kinds", "how", "read", "write", "partition", "_rebuilt",
    "alone", "look_up", "path", "_compiled",
    "__init__", "__mro__", "__code__", "co_names",
}  # fmt: skip


def internal(tree: ast.AST) -> Iterator[str]:
    """The internal names in a file: imported, read, set, defined by a class, or options of a call."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found = [
                f"{node.module}.{alias.name}" for alias in node.names if not node.level and alias.name not in PROCESSOR
            ]
        elif isinstance(node, ast.Attribute):
            found = [f".{node.attr}"]
            if isinstance(node.value, ast.Name) and node.value.id in ("numba", "NUMBA"):
                found.append(f"numba.{node.attr}")
        elif isinstance(node, ast.ClassDef):
            found = [f".{one.name}" for one in node.body if isinstance(one, ast.FunctionDef)]
        elif isinstance(node, ast.Call):
            found = [f".{one.arg}" for one in node.keywords if one.arg]
        elif isinstance(node, ast.Dict):
            found = [f".{one.value}" for one in node.keys if isinstance(one, ast.Constant)]
        else:
            continue
        for name in found:
            inner = name.startswith(("numba.core", "numba._", "llvmlite.binding")) and name != "numba.__version__"
            if inner or name[1:] in LEAVES | FORMER:
                yield name


WORDS = re.compile(rf"(?i:numba|llvmlite)|\b({'|'.join(LEAVES | FORMER)})\b")
WRONG = [
    "from numba.core import types",
    "import llvmlite.binding as ll",
    "from numba._dispatcher import compute_fingerprint",
    "x = numba.core.y",
    "f._compile_for_args(1)",
    "numba.njit(_nrt=False)",
    "class A(B):\n    def _finalize_specific(self): pass",
    "{'no_cpython_wrapper': True}",
]


def test_no_other_file_names_anything_internal() -> None:
    for path in PRODUCT:
        if path != FLOOR and WORDS.search(text := path.read_text()):
            assert list(internal(ast.parse(text))) == [], path
    for wrong in WRONG:
        assert WORDS.search(wrong)
        assert list(internal(ast.parse(wrong)))


def test_the_list_of_internal_names_is_complete_and_short() -> None:
    tree = ast.parse(FLOOR.read_text())
    named = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    named |= {name[1:] for name in internal(tree) if name.startswith(".")}
    strings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    named |= strings & LEAVES
    bases = {name.split(".")[-1] for name in NAMES if name in strings and name.split(".")[-1][0].isupper()}
    looked_up = {name.split(".")[-1] for name in strings & set(NAMES) if FLOOR.read_text().count(f'"{name}"') > 1}
    assert (named - DOCUMENTED) | bases | looked_up == LEAVES
    assert not [name for name in internal(tree) if not name.startswith(".")]  # none is imported, all are in the list
    assert len(NAMES) == len(set(NAMES)) <= MOST


# --- plain mode -------------------------------------------------------------------------------------------------------

CELLS = ["apt | Threshold bernoulli K=10 budget"]  # all others are slow: Numba's own cache is of one checkout
_, DIGESTS = golden.read()
PLAYED = """
import sys, warnings
{before}
import bandit_envs, golden
from bandit_envs.kernels import floor
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    found = [golden.digest(key) for key in sys.argv[1:]]
print(floor.PLAIN, *found)
"""


def played(keys: list[str], before: str = "", **variables: str) -> tuple[list[str], str]:
    """Whether a fresh process is in plain mode, the digests of these rows in it, and what it writes on errors."""
    command = [sys.executable, "-W", "always", "-c", PLAYED.format(before=before), *keys]
    done = subprocess.run(
        command, env=with_path(ROOT, CAMPAIGNS, **variables), capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), done.stderr


def here(keys: list[str]) -> list[str]:
    """The digests of these rows in this process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [golden.digest(key) for key in keys]


def test_plain_mode_plays_a_golden_cell() -> None:
    found, said = played(CELLS, BANDIT_ENVS_PLAIN="1")
    assert found == ["True", *here(CELLS)]
    assert "plain mode" not in said  # who asks for it needs no warning


PIECES = 12


@pytest.mark.parametrize("piece", range(PIECES))
def test_plain_mode_plays_all_golden_cells(piece: int) -> None:
    names = sorted({golden.bare(key) for key in DIGESTS} - set(golden.NETWORKS))[piece::PIECES]
    keys = [key for key in DIGESTS if golden.bare(key) in names]
    found, _ = played(keys, BANDIT_ENVS_PLAIN="1")
    wanted = ["True", *here(keys)]
    assert [key for key, one, other in zip(["plain", *keys], found, wanted, strict=True) if one != other] == []


LACKING = [("numba.core.codegen", "JITCodeLibrary", ""), ("numba.core.cpu", "CPUTargetOptions", "_nrt")]
TOLD = ("same results", "slower first use", "BANDIT_ENVS_PLAIN=1")


@pytest.mark.parametrize(("module", "owner", "name"), LACKING)
def test_a_numba_that_lacks_a_name_is_used_plainly(module: str, owner: str, name: str) -> None:
    before = f"import numba, {module} as place"
    if name:
        before += f"; place = next(one for one in place.{owner}.__mro__ if {name!r} in vars(one))"
    before += f"; delattr(place, {name or owner!r})"
    found, said = played(CELLS[:1], before)
    assert found == ["True", *here(CELLS[:1])]
    assert said.count("RuntimeWarning") == 1
    for words in (name or owner, *TOLD):
        assert words in said


OF_A_MODULE = "numba.core.typing.templates.AttributeTemplate"  # which `_found` takes for an attribute of a class
RAISES = pytest.mark.xfail(raises=AttributeError, strict=True, reason="`_found` reads __mro__ of a module")


@pytest.mark.parametrize("name", [*sorted({*NAMES} - {OF_A_MODULE}), pytest.param(OF_A_MODULE, marks=RAISES)])
def test_each_name_that_is_lacking_is_found_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, kind, attribute = re.fullmatch(r"(.*?\.[a-z.]+)\.([A-Z]\w+)\.?(\w*)", name).groups()
    place = importlib.import_module(module)
    places = getattr(place, kind).__mro__[:-1] if attribute else [place]
    for one in places:
        if (attribute or kind) in vars(one):
            monkeypatch.delattr(one, attribute or kind)
        elif hasattr(vars(one).get("__init__"), "__code__"):  # where objects get attributes
            monkeypatch.setattr(one, "__init__", lambda self: None)
    lacking = {name: floor._found(name) for name in NAMES}
    assert lacking[name] is None
    with pytest.warns(RuntimeWarning, match="has no numba.core.*plain mode") as caught:
        assert floor._is_plain(lacking)
    assert all(words in str(caught[0].message) for words in TOLD)


def test_other_versions_are_used_plainly_and_any_where_the_variable_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("0", "", "1"):
        monkeypatch.setenv("BANDIT_ENVS_PLAIN", value)
        assert floor._is_plain({}) == (value == "1")
    monkeypatch.setattr("numba.__version__", "0.99.1")
    assert floor._is_plain({})  # who asks for it needs no warning
    monkeypatch.delenv("BANDIT_ENVS_PLAIN")
    with pytest.warns(RuntimeWarning, match=f"0.99.1, but with {TESTED[0]} to {TESTED[-1]}") as caught:
        assert floor._is_plain({})
    assert all(words in str(caught[0].message) for words in TOLD)
    monkeypatch.setenv("BANDIT_ENVS_PLAIN", "yes")
    with pytest.raises(ValueError, match="BANDIT_ENVS_PLAIN must be 1 .*got 'yes'"):
        floor._is_plain({})
