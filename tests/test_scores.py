"""Tables of scores as instances, the law of such tables, and the instances of fixed-confidence papers."""

from __future__ import annotations

import builtins
import math
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from scipy import stats

import agents
from bandit_envs import Bernoulli, Gaussian, Instance, PromptSelection, Resampled, lookup, scores

BEST, TOP = "bandit_envs/BestArm-v0", "bandit_envs/TopK-v0"
NAN = float("nan")


def written(folder: Path, text: str) -> str:
    (folder / "scores.csv").write_text(text)
    return str(folder / "scores.csv")


# --- tables ----------------------------------------------------------------------------------------------------------


def test_right_and_wrong_is_bernoulli(tmp_path: Path) -> None:
    """Columns 1 0 1 1 and 0 _ 1 0: means 3/4 and 1/3; the names of the examples are no scores."""
    found = scores(written(tmp_path, ",gpt,llama\nq1,1,0\nq2,0,\nq3,1,1.0\nq4,1,0\n"))
    assert isinstance(found, Instance)
    assert isinstance(found.arms, Bernoulli)
    assert found.arms.means.tolist() == [0.75, 1 / 3]
    assert found.arm_names == ("gpt", "llama")


def test_other_scores_are_resampled() -> None:
    found = scores([[0.5, 0.25], [1.0, NAN], [0.0, 0.75]], name="rubric")
    assert isinstance(found.arms, Resampled)
    assert found.name == "rubric"
    assert found.arms.means.tolist() == [0.5, 0.5]
    assert found.arms.variances == pytest.approx([1 / 6, 1 / 16])  # (.25 + .25 + 0) / 3; (.0625 + .0625) / 2
    assert found.arm_names == ("candidate 0", "candidate 1")
    env: Any = gym.make(BEST, instance=found, budget=400).unwrapped
    env.reset(seed=0)
    seen = {env.step(1)[-1]["sample"] for _ in range(200)}
    assert seen == {0.25, 0.75} or seen == {0.0, 0.5, 1.0}  # the arms come in a random order


@pytest.mark.parametrize("kind", ["csv", "parquet", "frame"])
def test_all_forms_of_a_table(kind: str, tmp_path: Path) -> None:
    pandas: Any = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"id": ["a", "b", "c"], "x": [0.1, None, 0.3], "y": [1, 0, 1]})
    if kind == "csv":
        frame.to_csv(tmp_path / "t.csv", index=False)
    if kind == "parquet":
        pytest.importorskip("pyarrow")
        frame.to_parquet(tmp_path / "t.parquet")
    source: Any = frame if kind == "frame" else str(tmp_path / f"t.{kind}")
    for index in ("id", 0):
        found = scores(source, index=index)
        assert found.arm_names == ("x", "y")
        assert found.arms.means == pytest.approx([0.2, 2 / 3])


def test_by_name_and_on_the_command_line(tmp_path: Path) -> None:
    path = written(tmp_path, "a,b,c\n" + "1,0,0\n" * 9 + "0,1,0\n")
    env: Any = gym.make(BEST, instance=f"scores(path={path!r})", budget=60).unwrapped
    assert env.setting.shuffle_arms  # tables are often sorted
    assert sorted(env.instance.arms.means.tolist()) == [0.0, 0.1, 0.9]
    found = agents.evaluate(
        "sequential-halving", BEST, episodes=50, budgets=[60], env_kwargs={"instance": {"scores": {"path": path}}}
    )
    assert found.episodes["correct"].mean() > 0.9


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n1,0\n0,good\n", r"row line 3, column 'b': a score is a finite number, or nothing, got 'good'"),
        (",a,b\nq1,1,0\nq2,inf,1\n", r"row line 3 \(q2\), column 'a': .* got 'inf'"),
        ("a,b\n1,\n0,NA\n", "has no score in column 'b'"),
        ("a,a\n1,0\n", r"has columns of the same name: \['a'\]"),
        ("a\n1\n", r"must have at least 2 columns of scores, got \['a'\]"),
        ("a,b\n1,1\n1,1\n", "all scores of .* are 1: no candidate is better than another"),
        ("a,b\n1\n", "line 2: it has 1 cells, the header has 2"),
        ("", r"must have at least 2 columns of scores, got \[\]"),
        ("a,b\n", "has no score in column 'a'"),
    ],
)
def test_bad_tables(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=said):
        scores(written(tmp_path, text))


def test_more_bad_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileNotFoundError):
        scores(tmp_path / "nothing.csv")
    with pytest.raises(ValueError, match=r"has no column 'id', only \['a', 'b'\]"):
        scores(written(tmp_path, "a,b\n1,0\n"), index="id")
    with pytest.raises(ValueError, match=r"index must be an integer in \[0, 1\], got 2"):
        scores(written(tmp_path, "a,b\n1,0\n"), index=2)
    for odd in ([1, 0, 1], "abc", [["x", "y"]], None, 3):
        with pytest.raises((TypeError, FileNotFoundError)):
            scores(odd)
    with pytest.raises(
        ValueError, match="row 1, column 'candidate 1': a score is a finite number, or nothing, got inf"
    ):
        scores([[1.0, 0.0], [0.0, math.inf]])
    with pytest.raises(ValueError, match="arm_names must be the names of 2 arms, got 3"):
        Instance(Bernoulli([0.1, 0.2]), arm_names=("a", "b", "c"))
    with pytest.raises(ValueError, match="arm_names must be a tuple of texts"):
        Instance(Bernoulli([0.1, 0.2]), arm_names=["a", "b"])  # type: ignore[arg-type]
    (tmp_path / "t.parquet").write_bytes(b"")
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.partition(".")[0] == "pandas":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr("importlib.import_module", without)
    with pytest.raises(ImportError, match="a Parquet file of scores needs pandas and pyarrow: pip install"):
        scores(tmp_path / "t.parquet")


# --- the law of such tables ------------------------------------------------------------------------------------------


def test_logits_of_accuracies_are_normal() -> None:
    """100 episodes of 50 candidates: Kolmogorov-Smirnov at 1e-6; another spread is noticed."""
    from bandit_envs.rng import root_key, root_number

    law = PromptSelection(50, 0.3, 0.8)
    key = np.repeat(root_key(root_number(1))[:, None], 100, axis=1)
    means, table = law.draw(key, np.arange(100, dtype=np.uint64))
    assert means.shape == (100, 50)
    assert table.shape == (100, 50, 1)
    z = (np.log(means / (1 - means)) - math.log(0.3 / 0.7)).ravel()
    assert stats.kstest(z / 0.8, "norm").pvalue > 1e-6
    assert stats.kstest(z / 1.0, "norm").pvalue < 1e-6
    assert law.positive


def test_the_sampler_by_name() -> None:
    for form in ("prompt-selection(K=12)", {"prompt-selection": {"K": 12}}):
        env: Any = gym.make(TOP, instance=form, k=3, budget=60).unwrapped
        assert env.task.K == 12
        first = env.reset(seed=0)[1]
        assert first is not None
    law: Any = lookup.find("prompt-selection(K=12, accuracy=0.81, spread=1.12)")
    assert law.to_dict() == {"prompt-selection": {"K": 12, "accuracy": 0.81, "spread": 1.12}}
    assert repr(lookup.find(law.to_dict())) == repr(law)
    for bad, said in (
        ("K=1", "K must be an integer"),
        ("accuracy=1", "accuracy must be"),
        ("spread=0", "spread must be"),
    ):
        with pytest.raises(ValueError, match=said):
            lookup.find(f"prompt-selection({bad})")


# --- instances of fixed-confidence papers ----------------------------------------------------------------------------


def test_instances_of_garivier_and_kaufmann() -> None:
    """delta is left to the user, and so is the budget."""
    for number, means in ((1, [0.5, 0.45, 0.43, 0.4]), (2, [0.3, 0.21, 0.2, 0.19, 0.18])):
        found = lookup.find(f"garivier2016-{number}")
        assert isinstance(found, Instance)
        assert found.arms.means.tolist() == means
        for env_id, more in ((BEST, {}), (TOP, {"k": 2})):
            task = gym.make(env_id, instance=found, delta=0.01, max_pulls=10**6, **more).unwrapped.task  # type: ignore[attr-defined]
            assert (task.delta, task.budget) == (0.01, None)
            assert task.parameters["criterion"] == ("exact" if env_id == BEST else "aggregate")


def test_ladder() -> None:
    found: Any = lookup.find("jamieson2014-ladder(K=5, alpha=0.5)")
    assert isinstance(found.arms, Gaussian)
    assert found.arms.means == pytest.approx([1.0, 0.5, 1 - math.sqrt(0.5), 1 - math.sqrt(0.75), 0.0])
    assert found.arms.variances == pytest.approx([0.25] * 5)
    for bad in ("K=1", "alpha=0", "sd=-1"):
        with pytest.raises(ValueError, match=bad.partition("=")[0]):
            lookup.find(f"jamieson2014-ladder({bad})")
