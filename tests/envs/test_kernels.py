"""Kernels of structs: what they are handed, how they are kept, and when they are compiled anew."""

from __future__ import annotations

import copy
import enum
import pickle
import subprocess
import sys
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import pytest
from numba import types
from processes import with_path

import agents
from agents.baselines import next_in_turn
from agents.certified.top_two import Thompson
from agents.core.plans import decide_by
from agents.thresholding.hdoc import HDoC
from bandit_envs.kernels import Kernel, episode_kernel, jit, kernel
from bandit_envs.kernels.stamps import stamp_of
from bandit_envs.simulation import Playing, Quiet, player

ROOT = Path(agents.__file__).parents[1]


class Inner(NamedTuple):
    whole: int
    real: float
    yes: bool


class Table(NamedTuple):
    values: Any  # (E, K)
    inner: Inner


class Only(NamedTuple):
    values: Any  # (E,)


@episode_kernel
def weighed(e, table: Table, factor: float, out2):
    """The sum of a row, weighed by its places; half of the factor is written elsewhere."""
    total = 0.0
    for k in range(table.values.shape[1]):
        total += table.values[e, k] * (k + 1)
    out2[e] = factor / 2
    return total * table.inner.whole + (table.inner.real if table.inner.yes else 0.0)


@kernel
def first(only: Only, rows):
    return only.values[rows[0]]


def called(values: Any, whole: Any = 2, real: Any = 0.5, yes: Any = True, factor: Any = 3.0) -> list[float]:
    out, halves = np.zeros(len(values)), np.zeros(len(values))
    weighed(Table(values, Inner(whole, real, yes)), factor, halves, out)
    assert halves.tolist() == [1.5] * len(values)
    return out.tolist()  # type: ignore[no-any-return]


VALUES = np.arange(6.0).reshape(2, 3)
WANTED = [2 * (0 + 2 + 6) + 0.5, 2 * (3 + 8 + 15) + 0.5]
READ_ONLY = VALUES.copy()
READ_ONLY.flags.writeable = False
FORMS = {
    "C": VALUES,
    "Fortran": np.asfortranarray(VALUES),
    "strided": np.repeat(VALUES, 2, axis=1)[:, ::2],
    "read-only": READ_ONLY,
    "integers": VALUES.astype(np.int64),
    "single precision": VALUES.astype(np.float32),
}


@pytest.mark.parametrize("form", FORMS)
def test_arrays_of_every_form_are_read_as_they_are(form: str) -> None:
    for one in ("C", form, "C"):  # whatever was there before
        assert called(FORMS[one]) == WANTED


def test_what_is_read_only_is_not_written_to() -> None:
    out = np.zeros(2)
    out.flags.writeable = False
    weighed(Table(VALUES, Inner(2, 0.5, True)), 3.0, np.zeros(2), np.zeros(2))
    with pytest.raises(Exception, match="readonly"):
        weighed(Table(VALUES, Inner(2, 0.5, True)), 3.0, np.zeros(2), out)
    assert out.tolist() == [0, 0]


def test_numbers_are_cast_to_their_declared_types() -> None:
    compiled = len(weighed.compiled.signatures)
    for given in (
        {"whole": np.int32(2), "real": np.float32(0.5)},
        *({"yes": np.True_, "factor": 3}, {"factor": np.int64(3)}, {"whole": np.uint8(2), "yes": 1}),
    ):
        assert called(VALUES, **given) == WANTED
    assert called(VALUES, real=1) == [value + 0.5 for value in WANTED]
    assert len(weighed.compiled.signatures) == max(compiled, 1)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"whole": 0.7}, ["table.inner.whole", "integer", "0.7"]),
        ({"whole": None}, ["table.inner.whole", "None"]),
        ({"real": "2"}, ["table.inner.real", "number", "'2'"]),
        ({"factor": 1j}, ["factor", "number", "1j"]),
        ({"yes": "no"}, ["table.inner.yes", "'no'"]),
    ],
)
def test_other_values_are_refused_by_name(given: dict[str, Any], named: list[str]) -> None:
    with pytest.raises(TypeError) as error:
        called(VALUES, **given)
    assert all(part in str(error.value) for part in named)


def test_a_struct_is_given_whole() -> None:
    out, more, table = np.zeros(2), np.zeros(2), Table(VALUES, Inner(2, 0.5, True))
    for wrong in ((table, 3.0, more), (*table, 3.0, more, out), (table, 3.0, more, out, 1)):
        with pytest.raises(TypeError, match="table, factor, out2, out; got"):
            weighed(*wrong)
    with pytest.raises(TypeError, match="table must be of the class Table"):
        weighed(VALUES, 3.0, more, out)
    assert not out.any()


def test_a_struct_that_is_known_by_sight_is_not_taken_for_another() -> None:
    made = [Table(np.full((1, 2), float(i)), Inner(1, 0.0, True)) for i in range(40)]
    for _ in range(2):
        for i, table in enumerate(made):
            out = np.zeros(1)
            weighed(table, 1.0, np.zeros(1), out)
            assert out[0] == 3 * i
    for i in range(200):  # structs whose places in memory are used again, of other types
        values = np.full((1, 2), i, (np.int64, np.float64, np.int32)[i % 3])
        assert called(values, whole=1, real=0.0) == [3 * i]


def test_records_of_equal_types_are_told_apart_by_their_fields() -> None:
    @kernel
    def second(books):
        return books[0].b

    for _ in range(50):  # types whose places in memory are used again
        for names in (["a", "b"], ["b", "a"]):
            books = np.zeros(1, np.dtype([(name, np.int64) for name in names]))
            books["b"] = 5
            assert second(books) == 5


def test_local_structs_and_kernels() -> None:
    class Local(NamedTuple):
        values: Any
        add: float

    def shifted(e, local, out2):
        return local.values[e] + local.add

    shifted.__annotations__ = {"local": Local}
    made = episode_kernel(shifted)
    for again in (made, copy.deepcopy(made), pickle.loads(pickle.dumps(next_in_turn))):
        assert isinstance(again, Kernel)
    out = np.zeros(2)
    made(Local(np.array([1.0, 2.0]), 0.5), np.zeros(2), out)
    assert out.tolist() == [1.5, 2.5]


def test_kernels_pickle_without_their_machine_code() -> None:
    called(VALUES)
    stored = pickle.dumps((weighed, first))
    assert pickle.loads(stored) == (weighed, first)
    assert len(stored) < 1000  # names alone


NAMES = ("left", "sim", "uint64", "given0")  # of loops, of structs, of modules, and such as are made up


def test_arguments_may_have_any_name() -> None:
    """None is taken for a name of the code around the function, in players neither."""
    source = f"def arm_of(e, {', '.join(NAMES)}, limit):\n    return {' + '.join(NAMES)} + 0 * limit[e]\n"
    place: dict[str, Any] = {"__name__": __name__}
    exec(compile(source, __file__, "exec"), place)
    made, out = episode_kernel(place["arm_of"]), np.zeros(2)
    made(4, -8, 6, 1, np.zeros(2), out)
    assert out.tolist() == [3, 3]
    envs = gym.make_vec("bandit_envs/BestArm-v0", num_envs=2, budget=5, actions="full")
    envs.reset(seed=0)
    arms = np.zeros(2, np.int64)
    most = np.full(2, 5)
    player(made)(4, -8, 6, 1, np.zeros(2, np.int64), arms, Playing(envs.unwrapped.simulation, Quiet(most, 4)))  # type: ignore[attr-defined]
    assert arms.tolist() == [3, 3]
    assert envs.unwrapped.pulls[:, 3].tolist() == [4, 4]  # type: ignore[attr-defined]


# --- what a kernel is compiled from -----------------------------------------------------------------------------------

SOURCE = """
import numpy as np
from bandit_envs.kernels import jit, part
CONSTANT, OTHER = 2.0, 3.0

@part
def callee(x):
    return x * CONSTANT

@jit
def caller(x):
    return callee(x) + 1.0
"""


def stamped(source: str, name: str = "caller") -> str:
    place: dict[str, Any] = {"__name__": "somewhere"}
    exec(compile(source, "somewhere.py", "exec"), place)
    return stamp_of(place[name].py_func)


@pytest.mark.parametrize(
    ("old", "new", "differs"),
    [
        ("+ 1.0", "+ 1.5", True),
        ("CONSTANT, OTHER = 2.0", "CONSTANT, OTHER = 2.5", True),
        ("x * CONSTANT", "x / CONSTANT", True),
        ("OTHER = 2.0, 3.0", "OTHER = 2.0, 4.0", False),
        ("@part", "# a comment\n@part", False),
        ("x * CONSTANT", "x * CONSTANT  # a comment", False),
        ("@jit", "@part\ndef third(x):\n    return x\n\n@jit", False),
    ],
)
def test_the_stamp_is_of_all_that_a_function_is_compiled_from(old: str, new: str, differs: bool) -> None:
    assert SOURCE.count(old) == 1
    assert (stamped(SOURCE) != stamped(SOURCE.replace(old, new))) == differs


def test_the_stamp_is_the_same_in_every_process() -> None:
    code = "from agents.certified.top_two import Thompson; from agents.core.plans import decide_by; "
    code += "from bandit_envs.kernels.stamps import stamp_of; "
    code += "print(stamp_of(decide_by(Thompson.form.rules, Thompson.prepare)))"
    command = [sys.executable, "-c", code]
    variables = with_path(PYTHONHASHSEED="1")
    told = subprocess.run(command, env=variables, capture_output=True, check=True, cwd=ROOT, text=True)
    assert told.stdout.strip() == stamp_of(decide_by(Thompson.form.rules, Thompson.prepare))  # whose hashes are others


@jit
def _recursive(n):
    return n if n < 2 else _recursive(n - 1) + _recursive(n - 2)


def test_functions_that_call_themselves_have_stamps() -> None:
    assert stamp_of(_recursive.py_func) == stamp_of(_recursive.py_func)  # type: ignore[attr-defined]


def test_the_stamp_knows_values_of_every_kind() -> None:
    """Each pair of values is told apart: in modules of modules, fields of structs, named constants, types."""

    def place(**names: Any) -> str:
        given: dict[str, Any] = {"__name__": "somewhere", "jit": jit, **names}
        exec(compile("@jit\ndef f(x):\n    return pk.consts.X, S.a, Color.RED, I(x)\n", "s.py", "exec"), given)
        return stamp_of(given["f"].py_func)

    def names(X: Any = 1, S: Any = ("a", "b"), red: int = 1, kind: Any = types.int64) -> dict[str, Any]:
        pk, consts = ModuleType("pk"), ModuleType("pk.consts")
        consts.X, consts.pk, pk.consts = X, pk, consts  # type: ignore[attr-defined]
        struct: Any = namedtuple("Set", S)  # type: ignore[misc]
        return {"pk": pk, "S": struct(2.0, 5.0), "Color": enum.IntEnum("Color", {"RED": red}), "I": kind}

    changes: list[dict[str, Any]] = [{}, {"X": 2}, {"S": ("b", "a")}, {"red": 2}, {"kind": types.int8}]
    stamps = [place(**names(**changed)) for changed in changes]
    assert len(set(stamps)) == 5
    assert place(**names()) == stamps[0]


def test_threads_play_side_by_side() -> None:
    """The rules of an algorithm, which nobody has called before, played in two threads at once."""
    HDoC.form._routines.clear()
    kwargs = {"instance": "tao2019-1", "budget": 3000}

    def scores() -> Any:
        return agents.evaluate("hdoc", "Threshold", episodes=20, env_kwargs=kwargs).episodes["score"].tolist()

    with ThreadPoolExecutor(2) as pool:
        found = [one.result() for one in [pool.submit(scores) for _ in range(2)]]
    assert found == [scores()] * 2


def test_structs_of_one_name_and_fields_that_are_called_like_arguments() -> None:
    class P:
        class Own(NamedTuple):
            a: float
            b: float

    class Q:
        class Own(NamedTuple):
            b: float
            a: float

    def digits(e, p, q, p_a):
        return 1000 * p.a + 100 * p.b + 10 * q.a + q.b + 0 * p_a

    digits.__annotations__ = {"p": P.Own, "q": Q.Own}
    out = np.zeros(1)
    episode_kernel(digits)(P.Own(1.0, 2.0), Q.Own(4.0, 3.0), 7.0, out)
    assert out.tolist() == [1234]


def test_arrays_of_another_byte_order_or_of_other_dimensions_are_refused() -> None:
    for _ in range(2):
        assert called(VALUES) == WANTED
        with pytest.raises(Exception, match="argument"):
            weighed(Table(VALUES, Inner(2, 0.5, True)), 3.0, np.zeros(2, ">f8"), np.zeros(2))
        with pytest.raises(Exception, match="index"):
            called(VALUES[0])


def test_none_is_refused_whatever_was_there_before() -> None:
    @kernel
    def truth(rows, yes: bool):
        return rows[0] if yes else -1

    rows = np.arange(3)
    for _ in range(2):
        with pytest.raises(TypeError, match="yes must be True or False, got None"):
            truth(rows, None)
        assert truth(rows, True) == 0


def test_an_observation_of_other_integers_spoils_nothing() -> None:
    env = gym.make("bandit_envs/BestArm-v0", budget=20, actions="full")
    agent, (observation, _) = agents.make("uniform", env), env.reset(seed=0)
    odd = observation | {"remaining": observation["remaining"].astype(np.int32)}
    arms = [agent.predict(one)[0]["arm"] for one in (observation, odd, observation, odd)]
    assert arms == [arms[0]] * 4


def test_a_state_with_other_plans_is_another_state() -> None:
    env = gym.make("bandit_envs/BestArm-v0", delta=0.1, max_pulls=1000)
    agent: Any = agents.make("top-two", env)
    observation, _ = env.reset(seed=1)
    arm, state = agent.predict(observation)
    other = copy.deepcopy(state)
    before = state.now.copy()
    observation, *_ = env.step(arm)
    agent.predict(observation, other)
    assert (state.now == before).all()
