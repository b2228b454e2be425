"""Odd observations, states and batches for all agents, in processes of their own that are watched.

A case is a number: it decides the agent, what it has played, what is wrong with the input, and which method is called.

    python tests/campaigns/fuzzing.py     9,000 cases for each twelfth of the agents; the default tests make 300
"""

from __future__ import annotations

import contextlib
import copy
import multiprocessing
import os
import pickle
import time
import warnings
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np

import agents

ARMS = {"distribution": "bernoulli", "mean": [0.2, 0.3, 0.45, 0.6, 0.7, 0.8]}
SAMPLER = {"sampler": {"arms": 4}}
SETTINGS: list[tuple[str, dict[str, Any]]] = [
    ("Threshold", {"instance": SAMPLER, "budget": 60}),
    ("AllGood", {"instance": SAMPLER, "delta": 0.1, "max_pulls": 300, "epsilon": 0.1}),
    ("TopK", {"instance": ARMS, "k": 3, "epsilon": 0.1, "delta": 0.2, "budget": 300}),
    ("BestArm", {"instance": ARMS, "epsilon": 0.1, "delta": 0.2, "max_pulls": 300}),
    ("Feasible", {"instance": "katz-samuels2018-1", "budget": 60}),
    ("Threshold", {"instance": {"distribution": "gaussian", "mean": [0.0, 0.5, 1.0], "sd": 0.5}, "delta": 0.1}),
    ("Threshold", {"instance": "sampler(arms=70)", "budget": 200}),
    ("TopK", {"instance": ARMS, "k": 2, "epsilon": 0.1, "delta": 0.2, "criterion": "aggregate", "max_pulls": 400}),
]  # fmt: skip
NEEDS = {"ucbe": "ucbe(a=2)", "ugape": "ugape(a=2)", "lucb": "lucb(k=4)", "apt-oracle": "apt-oracle(threshold=0.5)"}
WORDS = [
    *["pulls", "total", "mean", "variance", "remaining", "public_seed", "state", "observation", "statistics"],
    *["slots", "features"],
]
LIMIT = 10.0  # seconds for a case
COMPILING = 90.0  # seconds for a case in which a kernel is compiled
PATIENCE = 300.0  # seconds for what comes before the first one: kernels are compiled

NUMBERS: list[Any] = [
    0, 1, -1, 2, 7, 2**31, -(2**31), 2**62, 2**63 - 1, -(2**63), 0.5,
    -0.5, 1e-300, 1e300, -1e300, np.nan, np.inf, -np.inf,
]  # fmt: skip
TYPES = ["f4", "f8", "i4", "i8", "u8", "u1", "i1", ">i8", ">f8", "c16", "?", "O", "U5", "M8[s]", "f2"]
JUNK: list[Any] = [
    *[5, "x", [], {}, (), object(), 0.5, np.zeros(3), np.zeros((2, 4)), b"", True, np.float64("nan"), 1j, len],
]
SLOTS: list[Any] = [
    *[None, np.array([0]), np.array([9]), np.array([-9]), np.array([0.5]), "x", np.array([2**40]), [0], 0],
]


@dataclass
class Setup:
    """An agent on a task: what it has seen in a few episodes, and its states there, by the size of the batch."""

    name: str
    agent: Any
    snapshots: dict[int, list[tuple[Any, Any]]] = field(default_factory=dict)


def names() -> list[tuple[int, str, str]]:
    """All agents of the catalogue on all settings: the number of the setting, the agent, the form of the actions."""
    return [
        (i, name, form)
        for i, (problem, _) in enumerate(SETTINGS)
        for name in agents.names(problem)
        for form in (("full", "arm") if i < 2 else ("full",))
    ]


def set_up(number: int, name: str, actions: str) -> Setup | None:
    """Make the agent and let it play; None if it does not solve this task."""
    problem, kwargs = SETTINGS[number]
    made = Setup(f"{name} on {problem} {kwargs}, {actions}", None)
    believes = name == "ppo"
    for E in (1, 3):
        envs: Any = gym.make_vec(
            f"bandit_envs/{problem}-v0", E, actions="arm" if believes else actions, autoreset_mode="Disabled",
            observation="relative" if believes else "statistics", **kwargs,
        )  # fmt: skip
        for one in (name, NEEDS.get(name, name)):
            with contextlib.suppress(ValueError, ImportError):
                made.agent = made.agent or agents.make(one, envs)
        if made.agent is None:
            return None
        observation, _ = envs.reset(seed=1)
        state, rows = None, made.snapshots.setdefault(E, [])
        for step in range(20):
            if step in (0, 1, 5, 19):
                rows.append((copy.deepcopy(observation), copy.deepcopy(state)))
            action, state = made.agent.predict(observation, state)
            observation, *_ = envs.step(action)
        made.agent.recommend(observation, state) if hasattr(made.agent, "recommend") else None
    return made


def odd_array(array: Any, random: np.random.Generator) -> Any:
    """An array with other values, another shape, dtype, order or stride; or no array at all."""
    kind = random.integers(12)
    if kind < 4 and array.size:
        array = array.copy()
        value = NUMBERS[random.integers(len(NUMBERS))]
        with np.errstate(all="ignore"):
            if array.dtype.kind == "i" and not (isinstance(value, int) and -(2**63) <= value < 2**63):
                array = array.astype(np.float64)
            where = ... if kind == 0 else tuple(random.integers(array.shape))
            try:
                array[where] = value
            except (TypeError, ValueError, OverflowError):  # it has another dtype by now
                array = np.full(array.shape, value)
        return array
    if kind == 4:
        return array[: random.integers(len(array) + 1)] if random.integers(2) else np.concatenate([array, array])
    if kind == 5:
        return [array.T, array[None], array.reshape(-1), array[..., None], array[..., :-1], array[:0], array.sum()][
            random.integers(7)
        ]
    if kind == 6:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return array.astype(TYPES[random.integers(len(TYPES))])
            except (TypeError, ValueError):
                return array.astype(object)
    if kind == 7:
        wide = np.repeat(array, 2, axis=-1)
        return wide[..., ::2]
    if kind == 8:
        return np.asfortranarray(array) if random.integers(2) else array[..., ::-1]
    if kind == 9 and random.integers(2) and array.size:  # it begins between two places in memory
        odd = np.zeros(array.nbytes + 1, np.uint8)[1:].view(array.dtype).reshape(array.shape)
        odd[...] = array
        return odd
    if kind == 9:
        return np.broadcast_to(array.reshape(-1)[:1].reshape((1,) * array.ndim), array.shape) if array.size else array
    if kind == 10:
        array = array.copy()
        array.setflags(write=False)
        return array
    return JUNK[random.integers(len(JUNK))] if random.integers(2) else array.tolist()


def odd_observation(observation: Any, random: np.random.Generator) -> Any:
    if random.integers(40) == 0:
        return JUNK[random.integers(len(JUNK))]
    if not isinstance(observation, dict):
        return odd_array(observation, random)
    observation = dict(observation)
    if random.integers(6) == 0:  # all parts alike
        cut = slice(0, random.integers(4))
        return {name: array[cut] for name, array in observation.items()}
    for _ in range(random.integers(1, 4)):
        name = list(observation)[random.integers(len(observation))]
        if random.integers(25) == 0:
            del observation[name]
        else:
            array = observation[name]
            with contextlib.suppress(TypeError, ValueError, OverflowError):  # it is odd already, of another dtype
                observation[name] = odd_array(array, random) if isinstance(array, np.ndarray) else array
        if not observation:
            break
    return observation


def alike(one: Any, other: Any) -> bool:
    """Whether two observations or actions have the same parts, of the same values."""
    one, other = ({"": x} if not isinstance(x, dict) else x for x in (one, other))
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in other)


def check_case(setups: list[Setup], case: int) -> str:
    """Run a case; what is wrong with its outcome, "" if nothing is."""
    random = np.random.default_rng(case)
    setup = setups[random.integers(len(setups))]
    rows = setup.snapshots[int(random.choice([1, 3]))]
    observation, state = copy.deepcopy(rows[random.integers(len(rows))])
    clean = observation
    if random.integers(5) == 0:  # a single episode
        observation = {k: v[0] for k, v in observation.items()} if isinstance(observation, dict) else observation[0]
        clean = observation
    if random.integers(5):
        observation = odd_observation(observation, random)
    foreign = random.integers(8)
    if foreign == 0:
        state = None
    elif foreign == 1:
        other = setups[random.integers(len(setups))].snapshots[int(random.choice([1, 3]))]
        state = copy.deepcopy(other[random.integers(len(other))][1])
    elif foreign == 2:
        other = setup.snapshots[int(random.choice([1, 3]))]
        state = copy.deepcopy(other[random.integers(len(other))][1])
    elif foreign == 3:
        state = JUNK[random.integers(len(JUNK))]
    elif foreign == 4:
        state = pickle.loads(pickle.dumps(state))
    agent, how = setup.agent, random.integers(10)
    said = f"{setup.name}: {('predict', 'recommend', 'begin_anew')[0 if how < 7 else 1 if how < 9 else 2]}"
    try:
        if how < 7 or not hasattr(agent, "recommend"):
            same, before = alike(observation, clean), copy.deepcopy(state)
            action, after = agent.predict(observation, state)
            if same and not alike(action, agent.predict(clean, before)[0]):
                return f"{said}: another action than for plain arrays of these values"
            agent.predict(observation, after)
        elif how < 9:
            agent.recommend(observation, state, SLOTS[random.integers(len(SLOTS))])
        else:
            agent.begin_anew(observation)
    except (ValueError, TypeError) as error:
        if type(error) not in (ValueError, TypeError) or not any(word in str(error) for word in WORDS):
            return f"{said}: {type(error).__name__} names nothing: {error!s:.200}"
    except Exception as error:
        import traceback

        last = traceback.extract_tb(error.__traceback__)[-1]
        return f"{said}: {type(error).__name__}: {error!s:.200} ({last.filename}:{last.lineno})"
    return ""


def _work(chosen: list[tuple[int, str, str]], first: int, end: int, place: Any, wrong: Any) -> None:
    """What a process does: cases first .. end - 1; `place` tells which one is running."""
    warnings.simplefilter("ignore")
    os.environ["PYTHONWARNINGS"] = "ignore"
    setups = [made for one in chosen if (made := set_up(*one)) is not None]
    with np.errstate(all="ignore"):
        for case in range(first, end):
            place.value = case
            if said := check_case(setups, case):
                wrong.put((case, said))
    place.value = end
    wrong.close()
    wrong.join_thread()


def fuzz(chosen: list[tuple[int, str, str]], first: int, end: int) -> dict[int, str]:
    """What is wrong in the cases first .. end - 1 of these agents: {case: what}. Each crash or hang is one.

    A case may take long once, where a kernel is compiled for arrays of an odd kind; it is then tried again.
    """
    found, slow = _watched(chosen, first, end, COMPILING)
    for case in slow:
        found |= _watched(chosen, case, case + 1, LIMIT)[0]
    return found


def _watched(
    chosen: list[tuple[int, str, str]], first: int, end: int, limit: float
) -> tuple[dict[int, str], list[int]]:
    """What is wrong, and the cases that took longer than LIMIT and ended within `limit` seconds."""
    context = multiprocessing.get_context("spawn")
    found: dict[int, str] = {}
    slow: list[int] = []
    while first < end:
        place, wrong = context.Value("q", -1), context.Queue()
        process = context.Process(target=_work, args=(chosen, first, end, place, wrong), daemon=True)
        process.start()
        seen, since, hung = -1, time.monotonic(), False
        while process.is_alive() and not hung:
            process.join(0.05)
            found |= _told(wrong)
            now = time.monotonic()
            if place.value != seen:
                if seen >= 0 and now - since > LIMIT:
                    slow.append(seen)
                seen, since = place.value, now
            hung = now - since > (PATIENCE if seen < 0 else limit)
        if hung:
            process.kill()
            process.join()
        found |= _told(wrong)
        last = place.value
        if last == end and process.exitcode == 0:
            break
        if last < 0:
            raise RuntimeError(f"the agents {chosen} cannot be set up: exit code {process.exitcode}")
        found[last] = f"case {last} of {chosen}: " + ("hangs" if hung else f"ends the process, {process.exitcode}")
        first = last + 1
    return found, slow


def _told(wrong: Any) -> dict[int, str]:
    """What the process has found wrong since the last call."""
    found: dict[int, str] = {}
    while not wrong.empty():
        case, said = wrong.get()
        found[case] = said
    return found


if __name__ == "__main__":
    for group in range(12):
        found = fuzz(names()[group::12], 10**6 * (group + 1), 10**6 * (group + 1) + 9000)
        assert not found, "\n".join(f"{case}: {said}" for case, said in sorted(found.items())[:20])
