"""Damaged files of models and evaluations: each is refused by an error that names it, or what is read is right.

PYTHONPATH=tests/support python tests/campaigns/damage.py     thousands of files of each kind, in tests a hundred
"""

from __future__ import annotations

import copy
import io
import json
import shutil
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import gymnasium as gym
import numpy as np

import agents
from agents.models import cards
from bandit_envs import Task

THRESHOLD = "bandit_envs/Threshold-v0"


FOUR = {"instance": {"sampler": {"arms": 4}}, "budget": 12}


ODD: list[Any] = [
    None, True, -1, 0, 0.5, 10**30, -(10**400), 1e308, float("nan"), float("inf"), "", "word", "7", [], [[]],
    [None], [1, "a"], {}, {"a": 1}, {":serialized:": "gASVDgA="}, {":type:": 3, "n": "x", "__module__": 5},
    "\ud800", "[" * 3000,
]  # fmt: skip


def broken(content: bytes, random: np.random.Generator) -> bytes:
    """A file with bytes changed, left out or added."""
    data, n = bytearray(content), len(content)
    kind = random.integers(6)
    if kind == 0:  # a few bits
        for at in random.integers(0, n, random.integers(1, 4)):
            data[at] ^= 1 << random.integers(8)
    elif kind == 1:  # bytes near the end, where the tables of archives are
        for at in n - 1 - random.integers(0, min(n, 800), 5):
            data[at] = random.integers(256)
    elif kind == 2:
        del data[random.integers(n) :]
    elif kind == 3:
        start = random.integers(n)
        data[start : start + random.integers(1, 200)] = random.bytes(random.integers(200))
    elif kind == 4:
        data[:0] = random.bytes(random.integers(1, 50))
    else:
        data += random.bytes(random.integers(1, 50))
    return bytes(data)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all values within JSON."""
    if path:
        yield path
    rows = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in rows:
        yield from places(one, (*path, key))


def altered(value: Any, random: np.random.Generator) -> Any:
    """JSON with a value removed, or another one in its place; often near the top."""
    value = copy.deepcopy(value)
    found = list(places(value))
    weights = np.array([4.0 ** -len(path) for path in found])
    *above, last = found[random.choice(len(found), p=weights / weights.sum())]
    inner = value
    for key in above:
        inner = inner[key]
    if random.integers(4) == 0:
        del inner[last]
    else:
        inner[last] = ODD[random.integers(len(ODD))]
    return value


def text(value: Any) -> bytes:
    return json.dumps(value).encode("utf-8", "surrogatepass")


def outcome(call: Callable[[], Any], folder: Path, what: str) -> str:
    """Whether a call was refused or is right; anything else fails.

    Args:
        call: returns whether what was read is right.
        folder: the files in it are to be named.
        what: the damage, for messages.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            right = call()
        except Exception as error:
            said = f"{what}: {type(error).__name__}: {error}"
            clear = type(error) in (ValueError, OSError, FileNotFoundError, IsADirectoryError) and len(said) < 2000
            if not clear or str(folder) not in said:
                raise AssertionError(said) from error
            return "refused"
    if not right:
        raise AssertionError(f"{what}: read, and wrong")
    return "read"


def model_is_right(path: Path) -> Callable[[], bool]:
    """Whether the model at this path plays."""
    env = gym.make(THRESHOLD, observation="features", **FOUR)
    x, _ = env.reset(seed=0)

    def look() -> bool:
        action, _ = agents.make(str(path), env).predict(x)
        return 0 <= int(action) <= 4

    return look


def with_data(content: bytes, change: Callable[[Any], Any]) -> bytes:
    """A model file whose JSON is changed."""
    if not content.startswith(b"PK"):
        from safetensors.numpy import load, save

        head = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])["__metadata__"]["bandit_envs"]
        return save(load(content), {"bandit_envs": json.dumps(change(json.loads(head)))})
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(made, "w") as new:
        for name in old.namelist():
            one = old.read(name)
            new.writestr(name, text(change(json.loads(one))) if name == "data" else one)
    return made.getvalue()


def check_models(model: tuple[bytes, bytes], folder: Path, seeds: range, suffix: str = ".safetensors") -> None:
    content, card = model
    told = json.loads(card)
    path, beside, seen = folder / f"m{suffix}", folder / "m.json", []
    right = model_is_right(path)
    path.write_bytes(content)
    beside.write_bytes(card)
    assert outcome(right, folder, "no damage") == "read"
    loose = text({name: value for name, value in told.items() if name != "digests"})
    for seed in seeds:
        random = np.random.default_rng(seed)
        kind = random.integers(4)
        path.write_bytes(content)
        beside.write_bytes(loose)
        if kind == 0:
            path.write_bytes(broken(content, random))
        elif kind == 1:
            beside.write_bytes(broken(card, random))
        elif kind == 2:
            path.write_bytes(with_data(content, lambda data: altered(data, random)))  # noqa: B023
        else:
            beside.write_bytes(text(altered(told if random.integers(2) else json.loads(loose), random)))
        if random.integers(8) == 0:
            beside.unlink()
        seen.append(outcome(right, folder, f"seed {seed}"))
    assert {"read", "refused"} <= set(seen)


def check_stored(name: str, folder: Path, seeds: range) -> None:
    env = gym.make(THRESHOLD, observation="relative" if name == "ppo" else "statistics", **FOUR)
    task: Task = env.unwrapped.task.replace(observation="statistics")
    x, _ = env.reset(seed=0)

    def right() -> bool:
        action, _ = agents.make(name, task).predict(x)
        return 0 <= int(action if name == "ppo" else action) <= 4

    files = {path.name: path.read_bytes() for path in folder.glob(f"{name}-threshold-budget.*")}
    assert len(files) == (2 if name == "ppo" else 1)
    seen = [outcome(right, folder, "no damage")]
    for seed in seeds:
        random = np.random.default_rng(seed)
        for file, content in files.items():
            (folder / file).write_bytes(content)
        file = list(files)[random.integers(len(files))]
        if file.endswith(".json") and random.integers(2):
            (folder / file).write_bytes(text(altered(json.loads(files[file]), random)))
        elif random.integers(10) == 0:
            (folder / file).write_bytes(files[list(files)[-1]] if file != list(files)[-1] else b"")
        else:
            (folder / file).write_bytes(broken(files[file], random))
        seen.append(outcome(right, folder, f"{name}, seed {seed}"))
    assert {"read", "refused"} <= set(seen)


def check_evaluations(folder: Path, seeds: range) -> None:
    evaluation = agents.evaluate(["uniform", "lsa"], THRESHOLD, episodes=5, at=[4, 12], env_kwargs=FOUR)
    evaluation.save(folder)
    expected = evaluation.summary()
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    told = json.loads(files["settings.json"])
    loose = {name: value for name, value in told.items() if name != "digests"}

    def right() -> bool:
        found = agents.Evaluation.load(folder)
        return found.summary().shape[1] == expected.shape[1] and len(found.pulls) > 0 and bool(repr(found))

    seen = [outcome(right, folder, "no damage")]
    for seed in seeds:
        random = np.random.default_rng(seed)
        for file, content in files.items():
            (folder / file).write_bytes(content)
        kind = random.integers(4)
        if kind == 0:
            (folder / "settings.json").write_bytes(broken(files["settings.json"], random))
        elif kind == 1:
            (folder / "settings.json").write_bytes(text(altered(loose if random.integers(4) else told, random)))
        else:
            if kind == 2:
                (folder / "settings.json").write_bytes(text(loose))
            file = ["episodes.parquet", "pulls.parquet"][random.integers(2)]
            (folder / file).write_bytes(broken(files[file], random) if random.integers(5) else files["settings.json"])
        seen.append(outcome(right, folder, f"seed {seed}"))
    assert {"read", "refused"} <= set(seen)


def a_model(folder: Path, suffix: str = ".safetensors") -> tuple[bytes, bytes]:
    """A saved model and its card."""
    from learning import untrained, zipped

    from agents.learned import Trained, make_vec_env

    envs = make_vec_env(THRESHOLD, 4, observation="features", **FOUR)
    card = {"format": 1, "call": "agents.train()", "features": list(agents.learned.model.FEATURES), "seed": 0}
    write: Any = Trained.save if suffix == ".safetensors" else zipped
    path = write(Trained(untrained(envs), card), folder / "m")
    return path.read_bytes(), path.with_suffix(".json").read_bytes()


def own_models(folder: Path) -> Path:
    """A copy of the package's models."""
    return shutil.copytree(cards.FOLDER, folder, ignore=shutil.ignore_patterns("*.py", "__pycache__"))


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder, often = Path(name), range(1000, 4000)
        for place in ("model", "many", "evaluation"):
            (folder / place).mkdir()
        for suffix in (".safetensors", ".zip"):
            check_models(a_model(folder / "model", suffix), folder / "many", often, suffix)
        with mock.patch.object(cards, "FOLDER", own_models(folder / "models")):
            for agent in ("evolved", "ppo"):
                check_stored(agent, folder / "models", often)
        check_evaluations(folder / "evaluation", often)


if __name__ == "__main__":
    main()
