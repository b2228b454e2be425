"""The floor: few internal names of Numba, in one file, and plain mode, which gives the same numbers without any."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import golden
import pytest
from processes import with_path

import agents
import bandit_envs
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
    "__version__", "append", "types", "unliteral", "functions", "global_variables", "linkage", "name", "flatten",
    "cache", "config", "CPU_NAME", "CPU_FEATURES", "ENABLE_AVX",
    "is_declaration", "add_function_attribute", "data", "split", "join", "items", "get", "environ", "warn",
    "import_module", "copy", "library", "is_kept", "target", "kinds", "how", "read", "write", "partition", "_rebuilt",
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
        if path != FLOOR:
            assert list(internal(ast.parse(path.read_text()))) == [], path
    for wrong in WRONG:
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

CELLS = [  # indices, turns, draws, plans, bulk pulls, feasible arms, a stopping rule, a tree of arms, what is learned
    "apt | Threshold bernoulli K=10 budget",
    "ucbe | Threshold bernoulli K=10 budget",
    "uniform | Threshold bernoulli K=10 budget",
    "random | BestArm bernoulli K=10 budget",
    "hdoc | Threshold bernoulli K=10 budget",
    "sequential-halving | BestArm bernoulli K=10 budget",
    "racing | BestArm bernoulli K=10 budget",
    "uniform | Feasible square bernoulli K=10 budget, arms, memory dropped",
    "lucb | BestArm bernoulli K=5 delta, arms, memory dropped",
    "evolved | BestArm bernoulli K=5 delta, arms, memory dropped",
]
HEADER, DIGESTS = golden.read()
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


def recorded(keys: list[str]) -> list[str]:
    if reason := golden.incomparable(HEADER):
        pytest.skip(reason)
    return [DIGESTS[key] for key in keys]


def test_plain_mode_plays_ten_golden_cells() -> None:
    found, said = played(CELLS, BANDIT_ENVS_PLAIN="1")
    assert found == ["True", *recorded(CELLS)]
    assert "plain mode" not in said  # who asks for it needs no warning


PIECES = 12


@pytest.mark.slow
@pytest.mark.parametrize("piece", range(PIECES))
def test_plain_mode_plays_all_golden_cells(piece: int) -> None:
    names = sorted({golden.bare(key) for key in DIGESTS} - set(golden.NETWORKS))[piece::PIECES]
    keys = [key for key in DIGESTS if golden.bare(key) in names]
    found, _ = played(keys, BANDIT_ENVS_PLAIN="1")
    wanted = ["True", *recorded(keys)]
    assert [key for key, one, other in zip(["plain", *keys], found, wanted, strict=True) if one != other] == []


LACKING = [("numba.core.codegen", "JITCodeLibrary", ""), ("numba.core.cpu", "CPUTargetOptions", "_nrt")]


@pytest.mark.parametrize(("module", "owner", "name"), LACKING)
def test_a_numba_that_lacks_a_name_is_used_plainly(module: str, owner: str, name: str) -> None:
    before = f"import numba, {module} as place"
    if name:
        before += f"; place = next(one for one in place.{owner}.__mro__ if {name!r} in vars(one))"
    before += f"; delattr(place, {name or owner!r})"
    found, said = played(CELLS[:1], before)
    assert found == ["True", *recorded(CELLS[:1])]
    assert said.count("RuntimeWarning") == 1
    for words in (name or owner, "same results", "slower first use", "BANDIT_ENVS_PLAIN=1"):
        assert words in said


def test_a_numba_of_another_version_is_used_plainly() -> None:
    found, said = played([], "import numba; numba.__version__ = '0.99.1'")
    assert found == ["True"]
    assert said.count("RuntimeWarning") == 1
    for words in ("0.99.1", TESTED[0], TESTED[-1], "same results", "slower first use", "BANDIT_ENVS_PLAIN=1"):
        assert words in said


def test_the_variable_may_say_no() -> None:
    found, said = played([], BANDIT_ENVS_PLAIN="0")
    assert found == ["False"]
    assert "RuntimeWarning" not in said


def test_other_values_of_the_variable_are_refused() -> None:
    with pytest.raises(AssertionError, match="BANDIT_ENVS_PLAIN must be 1 .*got 'yes'"):
        played([], BANDIT_ENVS_PLAIN="yes")
