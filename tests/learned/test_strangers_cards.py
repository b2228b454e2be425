"""Cards and files that somebody else has written: no name in them runs code, and an error says what is wrong."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

from learning import FOUR, THRESHOLD, untrained

import agents
from agents.learned import Trained, make_vec_env
from bandit_envs import Task
from bandit_envs.instances import datasets, names_alone
from bandit_envs.instances.lookup import find

RAN: list[object] = []
CARD: dict[str, Any] = {"algorithm": "ppo", "env_id": THRESHOLD, "env_kwargs": FOUR, "roots": {"learning": 3}}
CARD |= {"hyperparameters": {"policy_kwargs": {"hidden": 16}}}
ME = f"{__name__}:ran"


def ran(**given: object) -> Any:
    """What no file may call."""
    RAN.append(given)
    return {"distribution": "bernoulli", "mean": [0.2, 0.4, 0.6, 0.8]}


FORMS = [
    {ME: {"arms": 4}}, f"{ME}(arms=4)", {"pools": {"pools": [{ME: {}}]}}, {"varied": {"instance": ME}},
    {"distribution": ME, "mean": [0.1, 0.2]}, {"sampler": {"distribution": ME}}, {"law": ME, "mean": [0.1, 0.2]},
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_an_instance_in_a_file_names_registered_rows_alone(form: Any) -> None:
    RAN.clear()
    with names_alone("the file"), pytest.raises(ValueError, match=r"the file names a module: the \w+ '.*:ran'"):
        find(form)
    assert not RAN


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return Trained(untrained(make_vec_env(THRESHOLD, 4, observation="features", **FOUR)), CARD).save(tmp_path / "m")


def with_card(model: Path, **changes: Any) -> Path:
    card = json.loads(model.with_suffix(".json").read_text()) | changes
    kept = {name: value for name, value in card.items() if value is not ...}
    model.with_suffix(".json").write_text(json.dumps(kept))
    return model


HERE = {**FOUR, "observation": "features"}
CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "instance": ({"env_kwargs": {**HERE, "instance": {ME: {}}}}, f"names a module: the instance '{ME}'.*trust=True"),
    "problem": ({"env_kwargs": {**HERE, "problem": ME}}, f"names a module: the problem '{ME}'"),
    "mix": ({"mix": [{"budget": 30}, {"instance": f"{ME}(a=1)"}]}, "names a module: the instance"),
    "no kwargs": ({"env_kwargs": ...}, "cannot go on: the card beside it has no env_kwargs"),
    "no roots": ({"roots": ...}, "no roots"),
    "no hyperparameters": ({"hyperparameters": ...}, "no hyperparameters"),
    "root": ({"roots": {"learning": "x"}}, "the root 'learning' on the card of .* got 'x'"),
    "mix of numbers": ({"mix": 5}, "its mix must be a list, got 5"),
    "deep": ({"env_kwargs": json.loads('{"a":' * 200 + "1" + "}" * 200)}, "nest 100 deep at most"),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_card_runs_nothing_and_says_what_is_wrong(case: str, model: Path) -> None:
    RAN.clear()
    change, said = CHANGES[case]
    with pytest.raises(ValueError, match=said):
        agents.train("ppo", THRESHOLD, steps=64, resume=with_card(model, **change), progress=False)
    assert not RAN


def test_an_evolved_card_runs_nothing(tmp_path: Path) -> None:
    RAN.clear()
    pytest.importorskip("cmaes")
    card = {"algorithm": "evolved", "names": [], "parameters": [], "env_kwargs": {"instance": {ME: {}}, "budget": 9}}
    (tmp_path / "e.json").write_text(json.dumps(card))
    for more, said in ({}, "names a module: the instance"), ({"result": [{}]}, "cannot be read, .*root"):
        (tmp_path / "e.json").write_text(json.dumps(card | more))
        with pytest.raises(ValueError, match=said):
            agents.evolve(THRESHOLD, generations=1, resume=tmp_path / "e.json", progress=False)
    assert not RAN


def test_a_task_in_json_names_registered_problems_alone() -> None:
    form = json.loads(Task("Threshold", {"threshold": 0.5}, K=3, budget=9).to_json())
    for text in (json.dumps(form | {"problem": ME}), "[" * 10**5 + "]" * 10**5):
        with pytest.raises(ValueError, match=r"names a module: the problem|nest 100 deep"):
            Task.from_json(text)


class Typed:
    """Pickled, an array of a type of one's own, or of nothing."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind

    def __reduce__(self) -> Any:
        if self.kind is None:
            return np.ndarray, ((4, 2),)
        made = np.zeros((4, 2)).__reduce__()
        return made[0], made[1], (1, (4, 2), np.dtype(self.kind), False, bytes(4 * 2 * np.dtype(self.kind).itemsize))


@pytest.mark.parametrize("kind", [None, "O", [("a", "O")], "V8", "U4", "M8[s]", "c16"], ids=str)
def test_a_pickle_of_scores_makes_no_objects(kind: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (path := tmp_path / "t.pkl").write_bytes(pickle.dumps(Typed(kind), 4))
    monkeypatch.setattr(datasets, "fetched", lambda name, folder: path)
    with pytest.raises(ValueError, match="is no pickle of an array of numbers"):
        datasets.score_table("t.pkl")
    for array in (np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6).reshape(2, 3))):
        path.write_bytes(pickle.dumps(array, 4))
        assert np.array_equal(datasets.score_table("t.pkl")[0], array.T)
