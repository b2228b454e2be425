"""The words of earlier versions: files and texts that have them are read, and mean what they meant."""

import importlib
import json
import re
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest

import agents
import bandit_envs
from agents.evaluation.identity import described
from agents.evolved.parameters import parameter_names
from bandit_envs import Arms, Bernoulli, BestArm, Sampler, Task
from bandit_envs.instances.lookup import find
from bandit_envs.stopping import common

BOTH = ("law", "distribution")
TASK: dict[str, Any] = {"parameters": {}, "K": 3, "delta": 0.1, "support": None, "sigma": 1.0}
both = pytest.mark.parametrize("word", BOTH)
ROOT = Path(__file__).parents[2]
WORDS = tomllib.loads((Path(__file__).parent / "words.toml").read_text())
FOLDERS = Path(__file__).parents[1] / "evaluation" / "folders" / "47cb50b"


def task(**given: Any) -> Task:
    return Task("BestArm", **TASK, **given)


@both
def test_instances_are_read_in_both_spellings(word: str, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("arm,value\na,0.5\na,0.25\nb,0\nb,1\n")
    for form in (
        {word: "gaussian", "mean": [0.0, 1.0], "sd": [1.0, 1.0]},
        {"sampler": {word: "gaussian"}},
        f"sampler({word}='gaussian')",
        f"polyhedra({word}='gaussian')",
        {"table": {"path": str(table), word: "gaussian"}},
        lambda: {word: "gaussian", "mean": [0.0, 1.0]},
    ):
        source: Any = find(form)
        assert source.arms.distribution == "gaussian"
        assert '"distribution": "gaussian"' in json.dumps(source.to_dict())


@both
def test_tasks_and_texts_are_read_in_both_spellings(word: str) -> None:
    one = task(distribution="gaussian")
    assert json.loads(one.to_json())["distribution"] == "gaussian"
    assert Task.from_json(one.to_json().replace('"distribution"', f'"{word}"')) == one
    before = one.to_json().replace('"statistics"', '"belief"')  # as results of models of 0.2.0 have it
    assert Task.from_json(before).observation == "belief"
    for name in ("top-two(", "evidence(", "track-and-stop(", "lucb(stop='certificate', "):
        agent: Any = agents.make(f"{name}{word}='student')", one)
        assert agent.certifier.numbers[0] == common(distribution="student")[0]
        assert agent.parameters["distribution"] == "student"


def test_calls_take_the_spelling_of_today_alone() -> None:
    one, old = task(distribution="gaussian"), {"law": "student"}
    calls: list[Any] = [
        lambda: task(**old),
        lambda: one.replace(**old),
        lambda: one.certifier(**old),
        lambda: BestArm().evidence([1, 1], [0, 1], **old),  # type: ignore[arg-type]
        lambda: BestArm().lower_bound([0, 1], 0.1, **old),  # type: ignore[arg-type]
        lambda: common(**old),  # type: ignore[arg-type]
        lambda: Sampler(**old),  # type: ignore[arg-type]
        lambda: agents.make("top-two", one, **old),
        lambda: agents.make("lucb(stop='certificate')", one, **old),
        lambda: agents.make("evolved", one.replace(delta=None, budget=9), genes="start"),
    ]
    for call in calls:
        with pytest.raises((TypeError, ValueError), match=r"\b(law|genes)\b"):
            call()
    own: Any = type("Own", (Arms,), {"law": "own", "code": Bernoulli.code})
    with pytest.raises(ValueError, match="distribution"):
        bandit_envs.register_distribution(own)


def test_what_is_given_in_both_spellings_is_refused() -> None:
    two: Any = {"law": "gaussian", "distribution": "uniform"}
    for call in (
        lambda: Task.from_json(json.dumps({"problem": "BestArm", "parameters": {}, "K": 3, **two})),
        lambda: agents.make("lucb(stop='certificate', law='student', distribution='student')", task()),
        lambda: find({**two, "mean": [0, 1]}),
        lambda: find({"sampler": two}),
    ):
        with pytest.raises(ValueError, match=r"distribution=.*law="):
            call()


@both
def test_folders_of_results_go_on_in_both_spellings(word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of before, whose instance has a law, is complete; one with parameters is resumed."""
    monkeypatch.setattr("bandit_envs.__version__", "0.1.0")  # nothing is added to folders of other versions
    monkeypatch.setattr("agents.evaluation.identity.RESULTS", 1)
    out = tmp_path / "rows"
    shutil.copytree(FOLDERS / "rows", out)
    kwargs = {"instance": {word: "bernoulli", "mean": [0.2, 0.4, 0.6, 0.8]}, "threshold": 0.5, "budget": 2000}
    before = {path.name: path.stat().st_mtime_ns for path in out.glob("*.parquet/*")}
    agents.evaluate(
        ["uniform", "lsa"], "bandit_envs/Threshold-v0", episodes=24, at=[500, 2000], env_kwargs=kwargs, out=out
    )
    assert {path.name: path.stat().st_mtime_ns for path in out.glob("*.parquet/*")} == before
    new = tmp_path / "new"
    for spelling in (word, *BOTH):
        agent = {"one": f"top-two({spelling}='bernoulli', rho=3.0)"}
        kwargs = {"instance": {spelling: "bernoulli", "mean": [0.2, 0.9]}, "delta": 0.3, "max_pulls": 50}
        agents.evaluate(agent, "bandit_envs/BestArm-v0", episodes=4, env_kwargs=kwargs, out=new)
        assert len(agents.results(new).episodes) == 4
    assert len(list(new.glob("*.parquet/*"))) == 1


@both
def test_sessions_go_on_in_both_spellings(word: str, tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    for spelling in (word, *BOTH):
        agent = f"top-two({spelling}='student')"
        with agents.Session(agent, task(distribution="gaussian"), store=store, public_seed=1) as session:
            session.tell(0, len(session.history()) / 7)
    with agents.Session(store=store) as session:
        assert len(session.history()) == 3


@pytest.mark.parametrize("name", WORDS)
def test_the_packages_have_the_words_of_today(name: str) -> None:
    word, kept = re.compile(WORDS[name]["pattern"]), WORDS[name]["kept"]
    found: dict[str, list[str]] = {}
    for path in (path for top in WORDS[name]["packages"] for path in (ROOT / top).rglob("*.py")):
        if lines := [line for line in path.read_text().splitlines() if word.search(line)]:
            found[path.relative_to(ROOT).as_posix()] = lines
    assert found.keys() == kept.keys()
    for name, lines in found.items():
        assert [line for line in lines if not any(one in line for one in kept[name])] == []
        assert [one for one in kept[name] if not any(one in line for line in lines)] == []


@pytest.mark.parametrize("word", ["genes", "parameters"])
def test_cards_of_evolved_are_read_in_both_spellings(word: str, tmp_path: Path) -> None:
    one, path = Task("Threshold", {"threshold": 0.5}, K=3, budget=50), tmp_path / "mine.json"
    names = parameter_names(False)[:18]
    path.write_text(json.dumps({"algorithm": "evolved", "names": names, word: [0.5] * 18}))
    made: Any = agents.make(str(path), one)
    assert made.candidates[0, :18].tolist() == [0.5] * 18
    path.write_text(json.dumps({"algorithm": "evolved", "names": names, word: 3}))
    with pytest.raises(ValueError, match=f"its {word} must be a list"):
        agents.make(str(path), one)


def test_texts_with_genes_are_read() -> None:
    """In stores of sessions, say; folders of results go on, as identities have the old word."""
    one, values = Task("Threshold", {"threshold": 0.5}, K=3, budget=50), [0.5] * 18
    old, new = (agents.make(f"evolved({word}={values})", one) for word in ("genes", "parameters"))
    assert old.parameters == new.parameters == {"parameters": values}
    assert described(old) == described(new) == f"agents.evolved.agent:Evolved, genes={values}"
    with pytest.raises(ValueError, match="two spellings"):
        agents.make("evolved(genes='start', parameters='start')", one)


@pytest.mark.parametrize("name", ["LAWS", "nearest_way", "Lookahead", "player", "pull", "EPISODES_LIMIT"])
def test_names_that_have_moved_say_where_they_are(name: str) -> None:
    with pytest.raises(ImportError, match=rf"bandit_envs\.{name} is now bandit_envs\.") as caught:
        exec(f"from bandit_envs import {name}")
    module, _, found = str(caught.value).split(" is now ")[1].rpartition(".")
    assert hasattr(importlib.import_module(module), found)


def test_there_is_no_other_name() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = bandit_envs.no_such_name
    assert len(bandit_envs.__all__) <= 46
